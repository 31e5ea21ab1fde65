//! What a response holds, read from its blocks: the calls, and the program they make.

use super::Block;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// What a response holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outline {
    /// The calls: id, tool, arguments.
    pub calls: Vec<(String, String, Value)>,
    /// The calls as a program, one a line; none if there is no action.
    pub program: Option<String>,
    /// How much of the model's reasoning is there: `full`, `omitted` (a signature and no words), `redacted`, or
    /// `none`.
    pub reasoning: &'static str,
    /// The text blocks, joined.
    pub text: String,
}

/// Reads the blocks of a response.
pub fn outline(blocks: &[Block]) -> Outline {
    let mut parts = OutlineParts::default();
    blocks.iter().for_each(|block| parts.add(block));
    Outline { program: parts.program(), reasoning: parts.reasoning(), text: parts.text(), calls: parts.calls }
}

/// The outline of a response that comes block by block, each of which is read once.
#[derive(Debug, Clone, Default)]
pub struct OutlineParts {
    /// The calls so far: id, tool, arguments.
    pub calls: Vec<(String, String, Value)>,
    lines: Vec<String>,
    texts: Vec<String>,
    reasoning: Option<&'static str>,
}

impl OutlineParts {
    /// Reads the next block.
    pub fn add(&mut self, block: &Block) {
        let Value::Object(mut fields) = block.value() else { return };
        let input = fields.get_mut("input").map(Value::take);
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                let args = input.unwrap_or_else(|| Value::Object(Map::new()));
                // What cannot be read as arguments is no action.
                if args.is_object() {
                    self.lines.push(format!("{} {}", text("name"), canonical(&args)));
                }
                self.calls.push((text("id").to_owned(), text("name").to_owned(), args));
            }
            "text" => self.texts.push(text("text").to_owned()),
            "thinking" if text("thinking").is_empty() => self.reasoning = Some("omitted"),
            "thinking" => self.reasoning = Some("full"),
            "redacted_thinking" => self.reasoning = Some("redacted"),
            _ => {}
        }
    }

    /// As [`Outline::program`].
    pub fn program(&self) -> Option<String> {
        (!self.lines.is_empty()).then(|| self.lines.join("\n"))
    }

    /// As [`Outline::reasoning`].
    pub fn reasoning(&self) -> &'static str {
        self.reasoning.unwrap_or("none")
    }

    /// As [`Outline::text`].
    pub fn text(&self) -> String {
        self.texts.join("\n")
    }
}

/// JSON with the keys of every object in order, so that the same call is the same line.
fn canonical(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let mut entries: Vec<_> = fields.iter().collect();
                entries.sort_by_key(|(key, _)| *key);
                Value::Object(entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
            }
            Value::Array(elements) => Value::Array(elements.iter().map(sorted).collect()),
            plain => plain.clone(),
        }
    }
    sorted(value).to_string()
}

/// The words of a text block.
pub(super) fn text_of(block: &Block) -> Option<String> {
    let value = block.value();
    (value["type"] == "text").then(|| value["text"].as_str().unwrap_or_default().to_owned())
}

/// The words of what a tool gave back: a text, or the texts of its blocks.
pub(super) fn words(result: &Value) -> Cow<'_, str> {
    match result {
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(blocks) => {
            let word = |block: &Value| match block["text"].as_str() {
                Some(text) => Some(text.to_owned()),
                None => Some(format!("[{}]", block["type"].as_str()?)),
            };
            blocks.iter().filter_map(word).collect::<Vec<_>>().join("\n").into()
        }
        Value::Null => Cow::Borrowed(""),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    fn block(json: &str) -> Block {
        Block::new(RawValue::from_string(json.to_owned()).unwrap())
    }

    #[test]
    fn a_program_is_its_calls_with_keys_in_order() {
        let blocks = [
            block(r#"{"type":"thinking","thinking":"","signature":"s"}"#),
            block(r#"{"type":"text","text":"I look."}"#),
            block(
                r#"{"type":"tool_use","id":"a","name":"Read","input":{"z":1,"a":{"y":[{"d":1,"c":2}],"b":0}}}"#,
            ),
            block(r#"{"type":"tool_use","id":"b","name":"Bash","input":{"command":"ls"}}"#),
        ];
        let outline = outline(&blocks);
        let program = "Read {\"a\":{\"b\":0,\"y\":[{\"c\":2,\"d\":1}]},\"z\":1}\nBash {\"command\":\"ls\"}";
        assert_eq!(outline.program.as_deref(), Some(program));
        assert_eq!((outline.reasoning, outline.text.as_str()), ("omitted", "I look."));
        assert_eq!(outline.calls[1].0, "b");
    }

    #[test]
    fn a_text_is_no_program() {
        assert_eq!(outline(&[block(r#"{"type":"text","text":"x"}"#)]).program, None);
    }
}
