//! Takes large pieces out of what is written, without a copy of the rest.

use super::{BLOB, HEAD, LARGE};
use crate::digest::sha256;
use crate::text::first;
use crate::turn::Block;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Takes large pieces out.
#[derive(Default)]
pub(super) struct Packer<'a> {
    /// What was taken out, by its SHA-256.
    pub(super) blobs: RefCell<BTreeMap<String, String>>,
    /// Texts whose SHA-256 is known.
    pub(super) hashed: Vec<(&'a str, &'a str)>,
}

/// Something that is packed while it is written.
pub(super) struct Packing<'a, T: ?Sized> {
    packer: &'a Packer<'a>,
    it: &'a T,
}

impl<'a> Packer<'a> {
    pub(super) fn pack<T: ?Sized>(&'a self, it: &'a T) -> Packing<'a, T> {
        Packing { packer: self, it }
    }

    /// Hashing is most of what a large piece costs: what is there several times is hashed once.
    fn hash(&self, bytes: &str) -> String {
        let blobs = self.blobs.borrow();
        let put = blobs.iter().map(|(hash, text)| (text.as_str(), hash.as_str()));
        let mut known = self.hashed.iter().copied().chain(put);
        // Mostly it is the very same text, which need not be compared.
        let known = known.find(|(text, _)| std::ptr::eq(*text, bytes) || *text == bytes);
        known.map_or_else(|| sha256(&[bytes.as_bytes()]), |(_, hash)| hash.to_owned())
    }

    fn put_beside(&self, bytes: &str, head: Option<&str>) -> Value {
        let hash = self.hash(bytes);
        let mut named = json!({"sha256": hash, "bytes": bytes.len()});
        if let Some(head) = head {
            named["head"] = json!(first(head, HEAD));
        }
        self.blobs.borrow_mut().entry(hash).or_insert_with(|| bytes.to_owned());
        json!({BLOB: named})
    }

    /// Chunks are the same from turn to turn: each is stored beside the log once, however short it is.
    pub(super) fn memory(&self, memory: &Map<String, Value>) -> Value {
        let mut packed = serde_json::to_value(self.pack(memory)).unwrap_or_default();
        let heap = memory.get("heap").and_then(Value::as_object);
        if let (Some(heap), Some(place)) = (heap, packed.get_mut("heap").and_then(Value::as_object_mut)) {
            for (name, content) in heap.iter().filter_map(|(name, content)| Some((name, content.as_str()?))) {
                if place.contains_key(name) {
                    place[name] = self.put_beside(content, None);
                }
            }
        }
        packed
    }

    pub(super) fn block(&self, block: &'a Block) -> Cow<'a, RawValue> {
        let json = block.json();
        let names_blob =
            json.contains(BLOB) || json.contains("\\u") && block.value().to_string().contains(BLOB);
        let is_plain = json.len() < LARGE && !json.contains('\n') && !names_blob;
        let packed = if is_plain { None } else { Some(self.put_beside(json, None).to_string()) };
        let packed = packed.and_then(|packed| RawValue::from_string(packed).ok());
        packed.map_or(Cow::Borrowed(&*block.0), Cow::Owned)
    }
}

impl Serialize for Packing<'_, str> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.it {
            large if large.len() >= LARGE => self.packer.put_beside(large, Some(large)).serialize(serializer),
            text => serializer.serialize_str(text),
        }
    }
}

impl Serialize for Packing<'_, Value> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.it {
            Value::String(text) => self.packer.pack(text.as_str()).serialize(serializer),
            Value::Array(elements) => {
                serializer.collect_seq(elements.iter().map(|element| self.packer.pack(element)))
            }
            Value::Object(fields) => self.packer.pack(fields).serialize(serializer),
            plain => plain.serialize(serializer),
        }
    }
}

/// What happens to look like our own mark is wrapped, so that it is never taken for one.
impl Serialize for Packing<'_, Map<String, Value>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let literal = Literal(self);
        if self.it.contains_key(BLOB) {
            serializer.collect_map([(BLOB, BTreeMap::from([("literal", literal)]))])
        } else {
            literal.serialize(serializer)
        }
    }
}

/// The fields of an object as they are.
struct Literal<'a>(&'a Packing<'a, Map<String, Value>>);

impl Serialize for Literal<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.it.iter().map(|(key, value)| (key, self.0.packer.pack(value))))
    }
}
