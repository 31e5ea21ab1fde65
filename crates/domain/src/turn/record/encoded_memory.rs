//! The working memory in encoded form. It is the largest part of a turn, and usually only its step changes from turn to turn. The
//! recorder keeps the encoded form, so that it need not be read, encoded and hashed again for each turn.

use super::{BLOB_KEY, Packer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The encoded working memory of a turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EncodedMemory {
    /// The revision of the memory.
    pub rev: u64,
    /// The step of the turn.
    pub step: u64,
    /// The encoded fields after `rev` and `step`, as one JSON object.
    #[serde(rename = "rest")]
    other_fields_json: Box<RawValue>,
}

impl EncodedMemory {
    /// Encodes a memory. Returns `None` if its first fields are not `rev` and `step`, with more fields after them, as in
    /// every memory that Plimsoll writes.
    pub(super) fn encode_if_rev_and_step_come_first(
        memory: &Map<String, Value>,
        packer: &Packer<'_>,
    ) -> Option<EncodedMemory> {
        let mut keys = memory.keys().map(String::as_str);
        let has_expected_start =
            (keys.next(), keys.next(), keys.next().is_some()) == (Some("rev"), Some("step"), true);
        if !has_expected_start || memory.contains_key(BLOB_KEY) {
            return None;
        }
        let (rev, step) = (memory.get("rev")?.as_u64()?, memory.get("step")?.as_u64()?);
        let other_fields: Map<String, Value> =
            memory.iter().skip(2).map(|(key, value)| (key.clone(), value.clone())).collect();
        let other_json =
            RawValue::from_string(packer.pack_memory_with_heap_as_blobs(&other_fields).to_string()).ok()?;
        Some(EncodedMemory { rev, step, other_fields_json: other_json })
    }

    /// Returns the JSON of the memory for a turn at this step.
    pub fn to_json_with_step(&self, step: u64) -> String {
        format!("{{\"rev\":{},\"step\":{step},{}", self.rev, &self.other_fields_json.get()[1..])
    }
}

impl PartialEq for EncodedMemory {
    fn eq(&self, other: &EncodedMemory) -> bool {
        (self.rev, self.step, self.other_fields_json.get())
            == (other.rev, other.step, other.other_fields_json.get())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        EncodingHints, decode_turn, encode_turn, encode_turn_and_memory, referenced_blob_hashes,
    };
    use crate::Turn;
    use serde_json::{Map, Value, json};

    fn turn_with_memory(memory: Value) -> Turn {
        let Value::Object(memory) = memory else { panic!("no object") };
        Turn::new_success(1, Vec::new(), None, Value::Null, Vec::new(), Vec::new(), memory, Map::new())
    }

    #[test]
    fn a_kept_memory_gives_the_same_bytes_as_one_encoded_again() {
        let memory = |step: u64| {
            json!({"rev": 3, "step": step, "frame": "", "registers": {"R0_GOAL": "g".repeat(5_000)},
                "heap": {"a": "short", "b": "short"}})
        };
        let (first, packed_memory) =
            encode_turn_and_memory(&turn_with_memory(memory(1)), &EncodingHints::default());
        let packed_memory = packed_memory.unwrap();
        assert_eq!(referenced_blob_hashes(&first.content).len(), 3, "two of them the same");
        let hints = EncodingHints {
            memory_json: Some(packed_memory.to_json_with_step(2)),
            ..EncodingHints::default()
        };
        let (next, _) = encode_turn_and_memory(&turn_with_memory(json!({})), &hints);
        assert_eq!(next.content, encode_turn(&turn_with_memory(memory(2))).content);
        assert!(next.blobs.is_empty(), "they are there");
        let text = serde_json::to_string(&packed_memory).unwrap();
        assert_eq!(serde_json::from_str::<super::EncodedMemory>(&text).unwrap(), packed_memory);
    }

    #[test]
    fn a_memory_of_another_shape_is_encoded_as_any_object() {
        for memory in [
            json!({}),
            json!({"rev": 1, "step": 2}),
            json!({"step": 1, "rev": 2, "frame": ""}),
            json!({"rev": 1, "step": 2, "$blob": "x"}),
            json!({"rev": -1, "step": 2, "frame": ""}),
        ] {
            let (encoded, packed_memory) =
                encode_turn_and_memory(&turn_with_memory(memory.clone()), &EncodingHints::default());
            assert!(packed_memory.is_none(), "{memory}");
            let decoded = decode_turn(1, true, &encoded.content, &|_| None).unwrap();
            assert_eq!(Value::Object(decoded.memory().clone()), memory);
        }
    }

    #[test]
    fn a_known_hash_is_used_for_the_result_and_for_the_print_of_it() {
        let text = "x".repeat(5_000);
        let call = crate::turn::ToolCall {
            name: "Bash".into(),
            args: Value::Null,
            result: json!(text),
            ext: Map::new(),
        };
        let turn = Turn::new_success(
            1,
            Vec::new(),
            None,
            Value::Null,
            vec![text.clone()],
            vec![call],
            Map::new(),
            Map::new(),
        );
        let hash = crate::digest::sha256_hex(&[text.as_bytes()]);
        let hints = EncodingHints { result_hashes: vec![Some(hash)], ..EncodingHints::default() };
        let (encoded, _) = encode_turn_and_memory(&turn, &hints);
        assert_eq!(encoded.content, encode_turn(&turn).content);
        assert_eq!(encoded.blobs, encode_turn(&turn).blobs);
    }
}
