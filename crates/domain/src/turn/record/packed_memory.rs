//! The working memory as a turn's content has it. It is most of what a turn holds, and from turn to turn it is mostly the same:
//! only the step is another one. So who records the turns keeps it, and neither reads, packs nor hashes it again.

use super::{BLOB, Packer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The working memory of a turn, packed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PackedMemory {
    /// Its revision.
    pub rev: u64,
    /// The step of the turn.
    pub step: u64,
    /// All of it that is behind these two.
    rest: Box<RawValue>,
}

impl PackedMemory {
    /// Packs a memory; none if it does not begin with revision and step, as ours all do.
    pub(super) fn of(memory: &Map<String, Value>, packer: &Packer<'_>) -> Option<PackedMemory> {
        let mut keys = memory.keys().map(String::as_str);
        let begins = (keys.next(), keys.next(), keys.next().is_some()) == (Some("rev"), Some("step"), true);
        if !begins || memory.contains_key(BLOB) {
            return None;
        }
        let (rev, step) = (memory.get("rev")?.as_u64()?, memory.get("step")?.as_u64()?);
        let rest: Map<String, Value> =
            memory.iter().skip(2).map(|(key, value)| (key.clone(), value.clone())).collect();
        let rest = RawValue::from_string(packer.memory(&rest).to_string()).ok()?;
        Some(PackedMemory { rev, step, rest })
    }

    /// As the content of a turn at a step has it.
    pub fn at_step(&self, step: u64) -> String {
        format!("{{\"rev\":{},\"step\":{step},{}", self.rev, &self.rest.get()[1..])
    }
}

impl PartialEq for PackedMemory {
    fn eq(&self, other: &PackedMemory) -> bool {
        (self.rev, self.step, self.rest.get()) == (other.rev, other.step, other.rest.get())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Known, blobs_of, decode, encode, encode_new};
    use crate::Turn;
    use serde_json::{Map, Value, json};

    fn turn(memory: Value) -> Turn {
        let Value::Object(memory) = memory else { panic!("no object") };
        Turn::success(1, Vec::new(), None, Value::Null, Vec::new(), Vec::new(), memory, Map::new())
    }

    #[test]
    fn the_next_turn_is_the_same_to_the_byte_whether_its_memory_is_packed_anew_or_kept() {
        let memory = |step: u64| {
            json!({"rev": 3, "step": step, "frame": "", "registers": {"R0_GOAL": "g".repeat(5_000)},
                "heap": {"a": "short", "b": "short"}})
        };
        let (first, kept) = encode_new(&turn(memory(1)), &Known::default());
        let kept = kept.unwrap();
        assert_eq!(blobs_of(&first.content).len(), 3, "two of them the same");
        let known = Known { memory: Some(kept.at_step(2)), ..Known::default() };
        let (next, _) = encode_new(&turn(json!({})), &known);
        assert_eq!(next.content, encode(&turn(memory(2))).content);
        assert!(next.blobs.is_empty(), "they are there");
        let text = serde_json::to_string(&kept).unwrap();
        assert_eq!(serde_json::from_str::<super::PackedMemory>(&text).unwrap(), kept);
    }

    #[test]
    fn a_memory_of_another_shape_is_packed_as_any_object() {
        for memory in [
            json!({}),
            json!({"rev": 1, "step": 2}),
            json!({"step": 1, "rev": 2, "frame": ""}),
            json!({"rev": 1, "step": 2, "$blob": "x"}),
            json!({"rev": -1, "step": 2, "frame": ""}),
        ] {
            let (encoded, kept) = encode_new(&turn(memory.clone()), &Known::default());
            assert!(kept.is_none(), "{memory}");
            let back = decode(1, true, &encoded.content, &|_| None).unwrap();
            assert_eq!(Value::Object(back.memory().clone()), memory);
        }
    }

    #[test]
    fn a_result_that_was_hashed_is_named_by_that_hash_also_where_it_was_printed() {
        let text = "x".repeat(5_000);
        let call = crate::turn::ToolCall {
            name: "Bash".into(),
            args: Value::Null,
            result: json!(text),
            ext: Map::new(),
        };
        let turn = Turn::success(
            1,
            Vec::new(),
            None,
            Value::Null,
            vec![text.clone()],
            vec![call],
            Map::new(),
            Map::new(),
        );
        let hash = crate::digest::sha256(&[text.as_bytes()]);
        let known = Known { results: vec![Some(hash)], ..Known::default() };
        let (encoded, _) = encode_new(&turn, &known);
        assert_eq!(encoded.content, encode(&turn).content);
        assert_eq!(encoded.blobs, encode(&turn).blobs);
    }
}
