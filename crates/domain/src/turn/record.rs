//! A turn as the log keeps it. What can be read from the raw response is not written twice, and large pieces lie
//! beside the log under the SHA-256 of their bytes. Loading checks what it reads and then constructs.

mod packed_memory;
mod packer;

pub use packed_memory::PackedMemory;
use packer::{Packer, Packing};

use super::{Block, Failure, Outline, ToolCall, Turn, outline};
use crate::digest::sha256;
use crate::text::json_value;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// From this length on, in bytes, a text is stored beside the log.
pub const LARGE: usize = 4096;
/// How much of a large text stays in the log, in letters.
const HEAD: usize = 240;
/// The key by which the log names what is next to it.
const BLOB: &str = "$blob";

/// What goes into the log, and what is next to it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Encoded {
    /// One line of JSON.
    pub content: String,
    /// Large pieces, by their SHA-256.
    pub blobs: BTreeMap<String, String>,
}

/// Why a record is no turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// It has not the shape of one; what is wrong.
    Shape(String),
    /// A large piece is not there, or is not what its name says.
    Missing(String),
    /// Its content has been erased for good.
    Erased,
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DecodeError::Shape(what) => write!(formatter, "not a turn: {what}"),
            DecodeError::Missing(hash) => {
                write!(formatter, "the blob {hash} is missing or not what its name says")
            }
            DecodeError::Erased => write!(formatter, "erased"),
        }
    }
}

/// What is known of a new turn beside itself, so that nothing is hashed or packed twice.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// By call, the SHA-256 of its result's words, where it was needed for the turn itself.
    pub results: Vec<Option<String>>,
    /// The working memory as the content has it, where the turn before had the same: then the turn itself brings none.
    pub memory: Option<String>,
    /// True if program and calls were read from the raw response, and so say nothing that it does not.
    pub is_as_outlined: bool,
}

#[derive(Serialize)]
struct Content<'a> {
    raw_response: Vec<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<Packing<'a, Value>>,
    result: Packing<'a, Value>,
    prints: Vec<Packing<'a, str>>,
    tool_calls: Vec<NewCall<'a>>,
    // Behind these: `memory`, which is there as JSON already, and `ext`.
}

/// Tool and arguments are left out where the raw response says the same.
#[derive(Serialize)]
struct NewCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<(&'a str, Packing<'a, Value>)>,
    result: Packing<'a, Value>,
    ext: Packing<'a, Map<String, Value>>,
}

/// The same, read back.
#[derive(Deserialize)]
struct StoredCall {
    #[serde(default)]
    asked: Option<(String, Value)>,
    result: Value,
    ext: Value,
}

/// What the log keeps of a turn.
pub fn encode(turn: &Turn) -> Encoded {
    encode_new(turn, &Known::default()).0
}

/// The same of a turn that was just made; also its working memory, for the turn after it.
pub fn encode_new(turn: &Turn, known: &Known) -> (Encoded, Option<PackedMemory>) {
    let packer = Packer { blobs: RefCell::default(), hashed: hashed(turn, known) };
    let packed = PackedMemory::of(turn.memory(), &packer);
    let memory = match (&known.memory, &packed) {
        (Some(memory), _) => memory.clone(),
        (None, Some(packed)) => packed.at_step(packed.step),
        (None, None) => packer.memory(turn.memory()).to_string(),
    };
    let outline = (!known.is_as_outlined).then(|| outline(turn.raw_response()));
    let program = turn.program().map_or(Value::Null, |program| json!(program));
    let says_more = outline.as_ref().is_some_and(|outline| outline.program.as_deref() != turn.program());
    let tool_calls = turn.tool_calls().iter().enumerate();
    let tool_calls = tool_calls.map(|(place, call)| NewCall {
        asked: outline
            .as_ref()
            .filter(|outline| !says_the_same(outline, place, call))
            .map(|_| (call.name.as_str(), packer.pack(&call.args))),
        result: packer.pack(&call.result),
        ext: packer.pack(&call.ext),
    });
    let content = Content {
        raw_response: turn.raw_response().iter().map(|block| packer.block(block)).collect(),
        program: says_more.then(|| packer.pack(&program)),
        result: packer.pack(turn.result()),
        prints: turn.prints().iter().map(|text| packer.pack(text.as_str())).collect(),
        tool_calls: tool_calls.collect(),
    };
    let (content, ext) = (written(&content), written(&packer.pack(turn.ext())));
    let fields = content.strip_suffix('}').unwrap_or_default();
    let content = format!(r#"{fields},"memory":{memory},"ext":{ext}}}"#);
    (Encoded { content, blobs: packer.blobs.into_inner() }, packed)
}

fn written(what: &impl Serialize) -> String {
    serde_json::to_string(what).unwrap_or_default()
}

/// True if the raw response has a call at its place.
fn says_the_same(outline: &Outline, place: usize, call: &ToolCall) -> bool {
    let said = outline.calls.get(place);
    said.is_some_and(|(id, name, args)| (id.as_str(), name, args) == (call.id(), &call.name, &call.args))
}

/// The results of a turn's calls that were hashed, with their SHA-256.
fn hashed<'a>(turn: &'a Turn, known: &'a Known) -> Vec<(&'a str, &'a str)> {
    let results = turn.tool_calls().iter().zip(&known.results);
    results.filter_map(|(call, hash)| Some((call.result.as_str()?, hash.as_deref()?))).collect()
}

/// Anything else the log keeps, such as a prompt.
pub fn encode_fields(fields: &Map<String, Value>) -> Encoded {
    let packer = Packer::default();
    let content = written(&packer.pack(fields));
    Encoded { content, blobs: packer.blobs.into_inner() }
}

/// How a large piece is had by its SHA-256.
pub type Fetch<'a> = &'a dyn Fn(&str) -> Option<Vec<u8>>;

/// Reads a turn back: its shape is checked, then it is constructed.
pub fn decode(number: u64, success: bool, content: &str, fetch: Fetch<'_>) -> Result<Turn, DecodeError> {
    let unpacker = Unpacker { fetch };
    let mut fields = fields_of(content)?;
    if number == 0 {
        return Err(DecodeError::Shape("its number is 0; turns count from 1".to_owned()));
    }
    let blocks: Vec<&RawValue> = take(&mut fields, "raw_response")?;
    let raw_response = blocks.iter().map(|block| unpacker.block(block)).collect::<Result<Vec<_>, _>>()?;
    let Outline { program, calls, .. } = outline(&raw_response);
    let program = match fields.remove("program") {
        None => program,
        Some(raw) => match unpacker.unpack(read("program", raw)?)? {
            Value::Null => None,
            Value::String(text) => Some(text),
            _ => return Err(DecodeError::Shape("`program` is no text".to_owned())),
        },
    };
    let result = unpacker.unpack(take(&mut fields, "result")?)?;
    let prints: Vec<Value> = take(&mut fields, "prints")?;
    let prints = prints
        .into_iter()
        .map(|text| match unpacker.unpack(text)? {
            Value::String(text) => Ok(text),
            _ => Err(DecodeError::Shape("`prints` holds what is no text".to_owned())),
        })
        .collect::<Result<_, _>>()?;
    let stored: Vec<StoredCall> = take(&mut fields, "tool_calls")?;
    let tool_calls = stored
        .into_iter()
        .enumerate()
        .map(|(place, call)| unpacker.call(place, call, calls.get(place)))
        .collect::<Result<_, _>>()?;
    let memory = unpacker.map("memory", take(&mut fields, "memory")?)?;
    let mut ext = unpacker.map("ext", take(&mut fields, "ext")?)?;
    // A later Plimsoll may say more than this one knows: that is kept.
    for (key, raw) in fields {
        let value = unpacker.unpack(read(&key, raw)?)?;
        ext.entry(key).or_insert(value);
    }
    if success {
        return Ok(Turn::success(number, raw_response, program, result, prints, tool_calls, memory, ext));
    }
    let failure = Failure::from_value(&result)
        .filter(|failure| failure.to_value() == result)
        .ok_or_else(|| DecodeError::Shape("it failed, and `result` is no failure".to_owned()))?;
    Ok(Turn::failure(number, raw_response, program, &failure, prints, tool_calls, memory, ext))
}

/// Reads back what [`encode_fields`] wrote.
pub fn decode_fields(content: &str, fetch: Fetch<'_>) -> Result<Map<String, Value>, DecodeError> {
    if content == ERASED {
        return Err(DecodeError::Erased);
    }
    Unpacker { fetch }.map("the content", read("the content", as_raw(content)?)?)
}

/// The content of a record that has been erased.
pub const ERASED: &str = "\"erased\"";

/// The SHA-256 of what a content keeps beside the log.
pub fn blobs_of(content: &str) -> Vec<String> {
    fn look(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => match fields.get(BLOB) {
                Some(Value::Object(mark)) => match (mark.get("sha256"), mark.get("literal")) {
                    (Some(Value::String(hash)), None) => found.push(hash.clone()),
                    // Text that only looks like our marker is content.
                    (None, Some(Value::Object(literal))) => {
                        literal.values().for_each(|value| look(value, found));
                    }
                    _ => {}
                },
                _ => fields.values().for_each(|value| look(value, found)),
            },
            Value::Array(elements) => elements.iter().for_each(|value| look(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    look(&json_value(content), &mut found);
    found
}

fn as_raw(content: &str) -> Result<&RawValue, DecodeError> {
    serde_json::from_str(content).map_err(|error| DecodeError::Shape(format!("no JSON ({error})")))
}

fn fields_of(content: &str) -> Result<BTreeMap<String, &RawValue>, DecodeError> {
    if content == ERASED {
        return Err(DecodeError::Erased);
    }
    serde_json::from_str(content).map_err(|error| DecodeError::Shape(format!("no object ({error})")))
}

fn take<'a, T: Deserialize<'a>>(
    fields: &mut BTreeMap<String, &'a RawValue>,
    name: &str,
) -> Result<T, DecodeError> {
    let raw = fields.remove(name).ok_or_else(|| DecodeError::Shape(format!("`{name}` is missing")))?;
    read(name, raw)
}

fn read<'a, T: Deserialize<'a>>(name: &str, raw: &'a RawValue) -> Result<T, DecodeError> {
    serde_json::from_str(raw.get()).map_err(|error| DecodeError::Shape(format!("`{name}`: {error}")))
}

/// Puts large pieces back.
struct Unpacker<'a> {
    fetch: Fetch<'a>,
}

impl Unpacker<'_> {
    /// A call; what does not stand with it is what the raw response asked for.
    fn call(
        &self,
        place: usize,
        call: StoredCall,
        said: Option<&(String, String, Value)>,
    ) -> Result<ToolCall, DecodeError> {
        let (name, args) = match (call.asked, said) {
            (Some((name, args)), _) => (name, self.unpack(args)?),
            (None, Some((_, name, args))) => (name.clone(), args.clone()),
            (None, None) => {
                return Err(DecodeError::Shape(format!("`tool_calls` {place} is not in the raw response")));
            }
        };
        let result = self.unpack(call.result)?;
        Ok(ToolCall { name, args, result, ext: self.map("a call's ext", call.ext)? })
    }

    fn get(&self, hash: &str) -> Result<String, DecodeError> {
        let missing = || DecodeError::Missing(hash.to_owned());
        let bytes = (self.fetch)(hash).filter(|bytes| sha256(&[bytes]) == hash).ok_or_else(missing)?;
        String::from_utf8(bytes).map_err(|_| missing())
    }

    fn unpack(&self, value: Value) -> Result<Value, DecodeError> {
        match value {
            Value::Array(elements) => elements.into_iter().map(|element| self.unpack(element)).collect(),
            Value::Object(mut fields) => match fields.remove(BLOB) {
                Some(Value::Object(mut mark)) => match (mark.remove("sha256"), mark.remove("literal")) {
                    (Some(Value::String(hash)), None) => self.get(&hash).map(Value::String),
                    (None, Some(Value::Object(literal))) => self.unpack_map(literal).map(Value::Object),
                    _ => Err(DecodeError::Shape(format!("`{BLOB}` names nothing"))),
                },
                Some(_) => Err(DecodeError::Shape(format!("`{BLOB}` is no object"))),
                None => self.unpack_map(fields).map(Value::Object),
            },
            plain => Ok(plain),
        }
    }

    fn unpack_map(&self, fields: Map<String, Value>) -> Result<Map<String, Value>, DecodeError> {
        fields.into_iter().map(|(key, value)| Ok((key, self.unpack(value)?))).collect()
    }

    fn map(&self, name: &str, value: Value) -> Result<Map<String, Value>, DecodeError> {
        match self.unpack(value)? {
            Value::Object(fields) => Ok(fields),
            _ => Err(DecodeError::Shape(format!("{name} is no object"))),
        }
    }

    fn block(&self, raw: &RawValue) -> Result<Block, DecodeError> {
        let json = raw.get();
        if !json.contains(BLOB) {
            return Ok(Block::new(raw.to_owned()));
        }
        let mark: Value = read("raw_response", raw)?;
        let hash = mark[BLOB]["sha256"].as_str().ok_or_else(|| DecodeError::Shape("a block".to_owned()))?;
        let text = self.get(hash)?;
        let block = RawValue::from_string(text).map_err(|error| DecodeError::Shape(error.to_string()))?;
        Ok(Block::new(block))
    }
}
