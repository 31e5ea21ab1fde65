//! Encodes turns for the log and decodes them. Data that can be derived from the raw response is not written twice, and large
//! texts are stored beside the log as blobs, named by the SHA-256 of their bytes. Decoding validates everything before it
//! constructs the turn.

mod encoded_memory;
mod packer;

pub use encoded_memory::EncodedMemory;
use packer::{Packer, WithLargeTextsAsBlobs};

use super::{Block, ResponseOutline, ToolCall, Turn, TurnFailure, parse_response_outline};
use crate::digest::sha256_hex;
use crate::text::parse_json_or_null;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Texts of at least this many bytes are stored beside the log.
pub const BLOB_MIN_BYTES: usize = 4096;
/// How many characters of a large text stay in the log as a preview.
const BLOB_PREVIEW_CHARS: usize = 240;
/// The key of an object in the log that refers to a blob.
const BLOB_KEY: &str = "$blob";

/// An encoded record: its line in the log, and the blobs beside it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EncodedRecord {
    /// One line of JSON.
    pub content: String,
    /// Large texts, by their SHA-256.
    pub blobs: BTreeMap<String, String>,
}

/// Why a record could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// The record does not have the shape of a turn; the text describes the problem.
    InvalidShape(String),
    /// The blob with this SHA-256 is missing, or its content has another SHA-256.
    MissingBlob(String),
    /// The content has been erased permanently.
    Erased,
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DecodeError::InvalidShape(problem) => write!(formatter, "not a turn: {problem}"),
            DecodeError::MissingBlob(hash) => {
                write!(formatter, "the blob {hash} is missing or not what its name says")
            }
            DecodeError::Erased => write!(formatter, "erased"),
        }
    }
}

/// Results that have already been computed for a new turn, so that nothing is hashed or encoded twice.
#[derive(Debug, Clone, Default)]
pub struct EncodingHints {
    /// For each call, the SHA-256 of its result's text, if it has been computed already.
    pub result_hashes: Vec<Option<String>>,
    /// The encoded working memory, if the previous turn had the same one; then the turn itself holds none.
    pub memory_json: Option<String>,
    /// True if program and calls were derived from the raw response, so they need not be written.
    pub is_derived_from_response: bool,
}

#[derive(Serialize)]
struct EncodedTurn<'a> {
    raw_response: Vec<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<WithLargeTextsAsBlobs<'a, Value>>,
    result: WithLargeTextsAsBlobs<'a, Value>,
    prints: Vec<WithLargeTextsAsBlobs<'a, str>>,
    tool_calls: Vec<EncodedCall<'a>>,
    // `memory`, which is JSON already, and `ext` are appended after these fields.
}

/// A call to be written. Tool and arguments are omitted if the raw response has the same.
#[derive(Serialize)]
struct EncodedCall<'a> {
    #[serde(rename = "asked", skip_serializing_if = "Option::is_none")]
    name_and_args: Option<(&'a str, WithLargeTextsAsBlobs<'a, Value>)>,
    result: WithLargeTextsAsBlobs<'a, Value>,
    ext: WithLargeTextsAsBlobs<'a, Map<String, Value>>,
}

/// A call as read from the log.
#[derive(Deserialize)]
struct StoredCall {
    #[serde(rename = "asked", default)]
    name_and_args: Option<(String, Value)>,
    result: Value,
    ext: Value,
}

/// Encodes a turn for the log.
pub fn encode_turn(turn: &Turn) -> EncodedRecord {
    encode_turn_and_memory(turn, &EncodingHints::default()).0
}

/// Encodes a new turn for the log, using the hints. Also returns its encoded working memory, which the next
/// turn can reuse; `None` if the memory does not have the expected shape.
pub fn encode_turn_and_memory(turn: &Turn, hints: &EncodingHints) -> (EncodedRecord, Option<EncodedMemory>) {
    let packer =
        Packer { blobs: RefCell::default(), precomputed_hashes: results_with_known_hashes(turn, hints) };
    let encoded_memory = EncodedMemory::encode_if_rev_and_step_come_first(turn.memory(), &packer);
    let memory_json = match (&hints.memory_json, &encoded_memory) {
        (Some(reused_json), _) => reused_json.clone(),
        (None, Some(packed)) => packed.to_json_with_step(packed.step),
        (None, None) => packer.pack_memory_with_heap_as_blobs(turn.memory()).to_string(),
    };
    let outline = (!hints.is_derived_from_response).then(|| parse_response_outline(turn.raw_response()));
    let program = turn.program().map_or(Value::Null, |program| json!(program));
    let program_differs_from_response =
        outline.as_ref().is_some_and(|outline| outline.program.as_deref() != turn.program());
    let tool_calls = turn.tool_calls().iter().enumerate();
    let tool_calls = tool_calls.map(|(index, call)| EncodedCall {
        name_and_args: outline
            .as_ref()
            .filter(|outline| !outline_has_call_at_index(outline, index, call))
            .map(|_| (call.name.as_str(), packer.pack(&call.args))),
        result: packer.pack(&call.result),
        ext: packer.pack(&call.ext),
    });
    let content = EncodedTurn {
        raw_response: turn
            .raw_response()
            .iter()
            .map(|block| packer.store_block_as_blob_unless_plain(block))
            .collect(),
        program: program_differs_from_response.then(|| packer.pack(&program)),
        result: packer.pack(turn.result()),
        prints: turn.prints().iter().map(|text| packer.pack(text.as_str())).collect(),
        tool_calls: tool_calls.collect(),
    };
    let (content, ext_json) = (to_json_or_empty(&content), to_json_or_empty(&packer.pack(turn.ext())));
    let open_object = content.strip_suffix('}').unwrap_or_default();
    let content = format!(r#"{open_object},"memory":{memory_json},"ext":{ext_json}}}"#);
    (EncodedRecord { content, blobs: packer.blobs.into_inner() }, encoded_memory)
}

fn to_json_or_empty(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns true if the raw response has the same call at this index.
fn outline_has_call_at_index(outline: &ResponseOutline, index: usize, call: &ToolCall) -> bool {
    let call_at_index = outline.calls.get(index);
    call_at_index
        .is_some_and(|(id, name, args)| (id.as_str(), name, args) == (call.id(), &call.name, &call.args))
}

/// Returns the result texts of calls whose SHA-256 has already been computed, with that SHA-256.
fn results_with_known_hashes<'a>(turn: &'a Turn, hints: &'a EncodingHints) -> Vec<(&'a str, &'a str)> {
    let calls_with_hashes = turn.tool_calls().iter().zip(&hints.result_hashes);
    calls_with_hashes.filter_map(|(call, hash)| Some((call.result.as_str()?, hash.as_deref()?))).collect()
}

/// Encodes a record that is not a turn, such as a prompt.
pub fn encode_fields(fields: &Map<String, Value>) -> EncodedRecord {
    let packer = Packer::default();
    let content = to_json_or_empty(&packer.pack(fields));
    EncodedRecord { content, blobs: packer.blobs.into_inner() }
}

/// Reads a blob by its SHA-256; `None` if there is none.
pub type BlobReader<'a> = &'a dyn Fn(&str) -> Option<Vec<u8>>;

/// Decodes a turn. Fails if the content is erased, does not have the shape of a turn, or refers to a missing or changed blob.
pub fn decode_turn(
    number: u64,
    success: bool,
    content: &str,
    read_blob: BlobReader<'_>,
) -> Result<Turn, DecodeError> {
    let unpacker = Unpacker { read_blob };
    let mut fields = parse_fields(content)?;
    if number == 0 {
        return Err(DecodeError::InvalidShape("its number is 0; turns count from 1".to_owned()));
    }
    let blocks: Vec<&RawValue> = remove_required_field(&mut fields, "raw_response")?;
    let raw_response =
        blocks.iter().map(|block| unpacker.unpack_block(block)).collect::<Result<Vec<_>, _>>()?;
    let ResponseOutline { program, calls, .. } = parse_response_outline(&raw_response);
    let program = match fields.remove("program") {
        None => program,
        Some(raw) => match unpacker.unpack(parse_field("program", raw)?)? {
            Value::Null => None,
            Value::String(text) => Some(text),
            _ => return Err(DecodeError::InvalidShape("`program` is no text".to_owned())),
        },
    };
    let result = unpacker.unpack(remove_required_field(&mut fields, "result")?)?;
    let prints: Vec<Value> = remove_required_field(&mut fields, "prints")?;
    let prints = prints
        .into_iter()
        .map(|text| match unpacker.unpack(text)? {
            Value::String(text) => Ok(text),
            _ => Err(DecodeError::InvalidShape("`prints` holds what is no text".to_owned())),
        })
        .collect::<Result<_, _>>()?;
    let stored_calls: Vec<StoredCall> = remove_required_field(&mut fields, "tool_calls")?;
    let tool_calls = stored_calls
        .into_iter()
        .enumerate()
        .map(|(index, call)| unpacker.unpack_call(index, call, calls.get(index)))
        .collect::<Result<_, _>>()?;
    let memory = unpacker.unpack_object("memory", remove_required_field(&mut fields, "memory")?)?;
    let mut ext = unpacker.unpack_object("ext", remove_required_field(&mut fields, "ext")?)?;
    // Fields of a later version of Plimsoll are kept in `ext`.
    for (key, raw) in fields {
        let value = unpacker.unpack(parse_field(&key, raw)?)?;
        ext.entry(key).or_insert(value);
    }
    if success {
        return Ok(Turn::new_success(number, raw_response, program, result, prints, tool_calls, memory, ext));
    }
    let failure = TurnFailure::from_value(&result)
        .filter(|failure| failure.to_value() == result)
        .ok_or_else(|| DecodeError::InvalidShape("it failed, and `result` is no failure".to_owned()))?;
    Ok(Turn::new_failure(number, raw_response, program, &failure, prints, tool_calls, memory, ext))
}

/// Decodes the fields that [`encode_fields`] wrote.
pub fn decode_fields(content: &str, read_blob: BlobReader<'_>) -> Result<Map<String, Value>, DecodeError> {
    if content == ERASED_CONTENT {
        return Err(DecodeError::Erased);
    }
    Unpacker { read_blob }.unpack_object("the content", parse_field("the content", parse_raw_json(content)?)?)
}

/// The content of a record that has been erased.
pub const ERASED_CONTENT: &str = "\"erased\"";

/// Returns the SHA-256 of every blob to which a content refers, duplicates included.
pub fn referenced_blob_hashes(content: &str) -> Vec<String> {
    fn collect_hashes(value: &Value, hashes: &mut Vec<String>) {
        match value {
            Value::Object(fields) => match fields.get(BLOB_KEY) {
                Some(Value::Object(blob_reference)) => {
                    match (blob_reference.get("sha256"), blob_reference.get("literal")) {
                        (Some(Value::String(hash)), None) => hashes.push(hash.clone()),
                        // An object that only looks like a reference is wrapped as a literal; its values may hold real references.
                        (None, Some(Value::Object(literal))) => {
                            literal.values().for_each(|value| collect_hashes(value, hashes));
                        }
                        _ => {}
                    }
                }
                _ => fields.values().for_each(|value| collect_hashes(value, hashes)),
            },
            Value::Array(elements) => elements.iter().for_each(|value| collect_hashes(value, hashes)),
            _ => {}
        }
    }
    let mut hashes = Vec::new();
    collect_hashes(&parse_json_or_null(content), &mut hashes);
    hashes
}

fn parse_raw_json(content: &str) -> Result<&RawValue, DecodeError> {
    serde_json::from_str(content).map_err(|error| DecodeError::InvalidShape(format!("no JSON ({error})")))
}

fn parse_fields(content: &str) -> Result<BTreeMap<String, &RawValue>, DecodeError> {
    if content == ERASED_CONTENT {
        return Err(DecodeError::Erased);
    }
    serde_json::from_str(content).map_err(|error| DecodeError::InvalidShape(format!("no object ({error})")))
}

fn remove_required_field<'a, T: Deserialize<'a>>(
    fields: &mut BTreeMap<String, &'a RawValue>,
    name: &str,
) -> Result<T, DecodeError> {
    let raw = fields.remove(name).ok_or_else(|| DecodeError::InvalidShape(format!("`{name}` is missing")))?;
    parse_field(name, raw)
}

fn parse_field<'a, T: Deserialize<'a>>(name: &str, raw: &'a RawValue) -> Result<T, DecodeError> {
    serde_json::from_str(raw.get()).map_err(|error| DecodeError::InvalidShape(format!("`{name}`: {error}")))
}

/// Replaces references in a record by the texts of their blobs.
struct Unpacker<'a> {
    read_blob: BlobReader<'a>,
}

impl Unpacker<'_> {
    /// Decodes a call. Takes tool and arguments from the raw response if the record omits them.
    fn unpack_call(
        &self,
        index: usize,
        call: StoredCall,
        call_in_response: Option<&(String, String, Value)>,
    ) -> Result<ToolCall, DecodeError> {
        let (name, args) = match (call.name_and_args, call_in_response) {
            (Some((name, args)), _) => (name, self.unpack(args)?),
            (None, Some((_, name, args))) => (name.clone(), args.clone()),
            (None, None) => {
                return Err(DecodeError::InvalidShape(format!(
                    "`tool_calls` {index} is not in the raw response"
                )));
            }
        };
        let result = self.unpack(call.result)?;
        Ok(ToolCall { name, args, result, ext: self.unpack_object("a call's ext", call.ext)? })
    }

    fn read_verified_text(&self, hash: &str) -> Result<String, DecodeError> {
        let missing_blob_error = || DecodeError::MissingBlob(hash.to_owned());
        let bytes = (self.read_blob)(hash)
            .filter(|bytes| sha256_hex(&[bytes]) == hash)
            .ok_or_else(missing_blob_error)?;
        String::from_utf8(bytes).map_err(|_| missing_blob_error())
    }

    fn unpack(&self, value: Value) -> Result<Value, DecodeError> {
        match value {
            Value::Array(elements) => elements.into_iter().map(|element| self.unpack(element)).collect(),
            Value::Object(mut fields) => match fields.remove(BLOB_KEY) {
                Some(Value::Object(mut blob_reference)) => {
                    match (blob_reference.remove("sha256"), blob_reference.remove("literal")) {
                        (Some(Value::String(hash)), None) => {
                            self.read_verified_text(&hash).map(Value::String)
                        }
                        (None, Some(Value::Object(literal))) => {
                            self.unpack_fields(literal).map(Value::Object)
                        }
                        _ => Err(DecodeError::InvalidShape(format!("`{BLOB_KEY}` names nothing"))),
                    }
                }
                Some(_) => Err(DecodeError::InvalidShape(format!("`{BLOB_KEY}` is no object"))),
                None => self.unpack_fields(fields).map(Value::Object),
            },
            scalar => Ok(scalar),
        }
    }

    fn unpack_fields(&self, fields: Map<String, Value>) -> Result<Map<String, Value>, DecodeError> {
        fields.into_iter().map(|(key, value)| Ok((key, self.unpack(value)?))).collect()
    }

    fn unpack_object(&self, name: &str, value: Value) -> Result<Map<String, Value>, DecodeError> {
        match self.unpack(value)? {
            Value::Object(fields) => Ok(fields),
            _ => Err(DecodeError::InvalidShape(format!("{name} is no object"))),
        }
    }

    fn unpack_block(&self, raw: &RawValue) -> Result<Block, DecodeError> {
        let json = raw.get();
        if !json.contains(BLOB_KEY) {
            return Ok(Block::new(raw.to_owned()));
        }
        let blob_reference: Value = parse_field("raw_response", raw)?;
        let hash = blob_reference[BLOB_KEY]["sha256"]
            .as_str()
            .ok_or_else(|| DecodeError::InvalidShape("a block".to_owned()))?;
        let text = self.read_verified_text(hash)?;
        let block =
            RawValue::from_string(text).map_err(|error| DecodeError::InvalidShape(error.to_string()))?;
        Ok(Block::new(block))
    }
}
