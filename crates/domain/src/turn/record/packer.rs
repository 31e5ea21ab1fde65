//! Serializes values with large texts replaced by references to blobs, without copying anything else.

use super::{BLOB_KEY, BLOB_MIN_BYTES, BLOB_PREVIEW_CHARS};
use crate::digest::sha256_hex;
use crate::text::first_chars;
use crate::turn::Block;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Collects large texts as blobs while values are serialized.
#[derive(Default)]
pub(super) struct Packer<'a> {
    /// The collected texts, by their SHA-256.
    pub(super) blobs: RefCell<BTreeMap<String, String>>,
    /// Texts whose SHA-256 has already been computed, with that SHA-256.
    pub(super) precomputed_hashes: Vec<(&'a str, &'a str)>,
}

/// A value that is packed while it is serialized.
pub(super) struct WithLargeTextsAsBlobs<'a, T: ?Sized> {
    packer: &'a Packer<'a>,
    value: &'a T,
}

impl<'a> Packer<'a> {
    pub(super) fn pack<T: ?Sized>(&'a self, value: &'a T) -> WithLargeTextsAsBlobs<'a, T> {
        WithLargeTextsAsBlobs { packer: self, value }
    }

    /// Returns the SHA-256 of a text. Hashing is the most expensive part of storing a large text, so existing hashes are reused.
    fn reused_or_computed_sha256(&self, content: &str) -> String {
        let blobs = self.blobs.borrow();
        let stored_hashes = blobs.iter().map(|(hash, text)| (text.as_str(), hash.as_str()));
        let mut all_hashes = self.precomputed_hashes.iter().copied().chain(stored_hashes);
        // Fast path: usually it is the same text in memory, which need not be compared.
        let existing_hash = all_hashes.find(|(text, _)| std::ptr::eq(*text, content) || *text == content);
        existing_hash.map_or_else(|| sha256_hex(&[content.as_bytes()]), |(_, hash)| hash.to_owned())
    }

    fn store_as_blob(&self, text: &str, preview_source: Option<&str>) -> Value {
        let hash = self.reused_or_computed_sha256(text);
        let mut blob_reference = json!({"sha256": hash, "bytes": text.len()});
        if let Some(preview_source) = preview_source {
            blob_reference["head"] = json!(first_chars(preview_source, BLOB_PREVIEW_CHARS));
        }
        self.blobs.borrow_mut().entry(hash).or_insert_with(|| text.to_owned());
        json!({BLOB_KEY: blob_reference})
    }

    /// Packs the working memory. Heap chunks rarely change between turns, so each is stored as a blob, however short it is.
    pub(super) fn pack_memory_with_heap_as_blobs(&self, memory: &Map<String, Value>) -> Value {
        let mut packed = serde_json::to_value(self.pack(memory)).unwrap_or_default();
        let heap = memory.get("heap").and_then(Value::as_object);
        if let (Some(heap), Some(packed_heap)) = (heap, packed.get_mut("heap").and_then(Value::as_object_mut))
        {
            for (name, content) in heap.iter().filter_map(|(name, content)| Some((name, content.as_str()?))) {
                if packed_heap.contains_key(name) {
                    packed_heap[name] = self.store_as_blob(content, None);
                }
            }
        }
        packed
    }

    pub(super) fn store_block_as_blob_unless_plain(&self, block: &'a Block) -> Cow<'a, RawValue> {
        let json = block.json();
        let mentions_blob_key = json.contains(BLOB_KEY)
            || json.contains("\\u") && block.parse_value().to_string().contains(BLOB_KEY);
        let is_plain = json.len() < BLOB_MIN_BYTES && !json.contains('\n') && !mentions_blob_key;
        let packed = if is_plain { None } else { Some(self.store_as_blob(json, None).to_string()) };
        let packed = packed.and_then(|packed| RawValue::from_string(packed).ok());
        packed.map_or(Cow::Borrowed(&*block.0), Cow::Owned)
    }
}

impl Serialize for WithLargeTextsAsBlobs<'_, str> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            large_text if large_text.len() >= BLOB_MIN_BYTES => {
                self.packer.store_as_blob(large_text, Some(large_text)).serialize(serializer)
            }
            text => serializer.serialize_str(text),
        }
    }
}

impl Serialize for WithLargeTextsAsBlobs<'_, Value> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::String(text) => self.packer.pack(text.as_str()).serialize(serializer),
            Value::Array(elements) => {
                serializer.collect_seq(elements.iter().map(|element| self.packer.pack(element)))
            }
            Value::Object(fields) => self.packer.pack(fields).serialize(serializer),
            scalar => scalar.serialize(serializer),
        }
    }
}

/// An object that happens to look like a reference to a blob is wrapped as a literal, so that it is never mistaken for one.
impl Serialize for WithLargeTextsAsBlobs<'_, Map<String, Value>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = PackedFields(self);
        if self.value.contains_key(BLOB_KEY) {
            serializer.collect_map([(BLOB_KEY, BTreeMap::from([("literal", fields)]))])
        } else {
            fields.serialize(serializer)
        }
    }
}

/// The packed fields of an object, without the wrapper.
struct PackedFields<'a>(&'a WithLargeTextsAsBlobs<'a, Map<String, Value>>);

impl Serialize for PackedFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.value.iter().map(|(key, value)| (key, self.0.packer.pack(value))))
    }
}
