//! A turn as the log keeps it. What can be read from the raw response is not written twice, and large pieces lie
//! beside the log under the SHA-256 of their bytes. Loading checks what it reads and then constructs.

use super::{Block, Failure, Outline, ToolCall, Turn, outline};
use crate::digest::sha256;
use crate::text::json_value;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
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

#[derive(Serialize)]
struct Content {
    raw_response: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<Value>,
    result: Value,
    prints: Vec<Value>,
    tool_calls: Vec<StoredCall>,
    memory: Value,
    ext: Value,
}

/// Tool and arguments are left out where the raw response says the same.
#[derive(Serialize, Deserialize)]
struct StoredCall {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<(String, Value)>,
    result: Value,
    ext: Value,
}

/// What the log keeps of a turn.
pub fn encode(turn: &Turn) -> Encoded {
    let mut packer = Packer::default();
    let outline = outline(turn.raw_response());
    let calls = turn.tool_calls().iter().enumerate().map(|(place, call)| {
        let said = outline.calls.get(place);
        let same = said
            .is_some_and(|(id, name, args)| (id.as_str(), name, args) == (call.id(), &call.name, &call.args));
        StoredCall {
            asked: (!same).then(|| (call.name.clone(), packer.pack(&call.args))),
            result: packer.pack(&call.result),
            ext: packer.pack_map(&call.ext),
        }
    });
    let tool_calls = calls.collect();
    let program = turn.program().map(str::to_owned);
    let content = Content {
        raw_response: turn.raw_response().iter().map(|block| packer.pack_block(block)).collect(),
        program: (program != outline.program).then(|| packer.pack(&json!(program))),
        result: packer.pack(turn.result()),
        prints: turn.prints().iter().map(|text| packer.pack(&json!(text))).collect(),
        tool_calls,
        memory: packer.pack_memory(turn.memory()),
        ext: packer.pack_map(turn.ext()),
    };
    let content = serde_json::to_string(&content).unwrap_or_default();
    Encoded { content, blobs: packer.blobs }
}

/// Anything else the log keeps, such as a prompt.
pub fn encode_fields(fields: &Map<String, Value>) -> Encoded {
    let mut packer = Packer::default();
    let content = packer.pack_map(fields).to_string();
    Encoded { content, blobs: packer.blobs }
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

/// Takes large pieces out.
#[derive(Default)]
struct Packer {
    blobs: BTreeMap<String, String>,
}

impl Packer {
    fn put_beside(&mut self, bytes: &str, head: Option<&str>) -> Value {
        let hash = sha256(&[bytes.as_bytes()]);
        let mut named = json!({"sha256": hash, "bytes": bytes.len()});
        if let Some(head) = head {
            named["head"] = json!(head.chars().take(HEAD).collect::<String>());
        }
        self.blobs.entry(hash).or_insert_with(|| bytes.to_owned());
        json!({BLOB: named})
    }

    fn pack(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) if text.len() >= LARGE => self.put_beside(text, Some(text)),
            Value::Array(elements) => elements.iter().map(|element| self.pack(element)).collect(),
            Value::Object(fields) => self.pack_map(fields),
            plain => plain.clone(),
        }
    }

    /// What happens to look like our own mark is wrapped, so that it is never taken for one.
    fn pack_map(&mut self, fields: &Map<String, Value>) -> Value {
        let packed: Map<String, Value> =
            fields.iter().map(|(key, value)| (key.clone(), self.pack(value))).collect();
        if packed.contains_key(BLOB) { json!({BLOB: {"literal": packed}}) } else { Value::Object(packed) }
    }

    /// Chunks are the same from turn to turn: each is stored beside the log once, however short it is.
    fn pack_memory(&mut self, memory: &Map<String, Value>) -> Value {
        let mut packed = self.pack_map(memory);
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

    fn pack_block(&mut self, block: &Block) -> Box<RawValue> {
        let json = block.json();
        let names_blob =
            json.contains(BLOB) || json.contains("\\u") && block.value().to_string().contains(BLOB);
        let plain = json.len() < LARGE && !json.contains('\n') && !names_blob;
        let packed = if plain { None } else { Some(self.put_beside(json, None).to_string()) };
        packed.and_then(|packed| RawValue::from_string(packed).ok()).unwrap_or_else(|| block.0.clone())
    }
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
