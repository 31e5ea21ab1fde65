//! The outline of a response, parsed from its blocks: its tool calls, the program that they form, its text.

use super::Block;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The parsed content of a response.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResponseOutline {
    /// The tool calls: id, tool, arguments.
    pub calls: Vec<(String, String, Value)>,
    /// The tool calls as a program, one per line; `None` if there is no call.
    pub program: Option<String>,
    /// How much of the model's reasoning is included: `full`, `omitted` (a signature without text), `redacted`, or `none`.
    pub reasoning: &'static str,
    /// The text blocks, joined with line ends.
    pub text: String,
}

/// Parses the blocks of a response.
pub fn parse_response_outline(blocks: &[Block]) -> ResponseOutline {
    let mut builder = ResponseOutlineBuilder::default();
    blocks.iter().for_each(|block| builder.add_block(block));
    ResponseOutline {
        program: builder.program(),
        reasoning: builder.reasoning(),
        text: builder.joined_text(),
        calls: builder.calls,
    }
}

/// Builds the outline of a response that arrives block by block, so that each block is parsed only once.
#[derive(Debug, Clone, Default)]
pub struct ResponseOutlineBuilder {
    /// The tool calls so far: id, tool, arguments.
    pub calls: Vec<(String, String, Value)>,
    program_lines: Vec<String>,
    text_blocks: Vec<String>,
    reasoning: Option<&'static str>,
}

impl ResponseOutlineBuilder {
    /// Parses the next block and adds it. Ignores a block that is not a JSON object.
    pub fn add_block(&mut self, block: &Block) {
        let Value::Object(mut fields) = block.parse_value() else { return };
        let input = fields.get_mut("input").map(Value::take);
        let text_field = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        match text_field("type") {
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                let args = input.unwrap_or_else(|| Value::Object(Map::new()));
                // A call without an object as its arguments is not part of the program.
                if args.is_object() {
                    self.program_lines.push(format!("{} {}", text_field("name"), to_canonical_json(&args)));
                }
                self.calls.push((text_field("id").to_owned(), text_field("name").to_owned(), args));
            }
            "text" => self.text_blocks.push(text_field("text").to_owned()),
            "thinking" if text_field("thinking").is_empty() => self.reasoning = Some("omitted"),
            "thinking" => self.reasoning = Some("full"),
            "redacted_thinking" => self.reasoning = Some("redacted"),
            _ => {}
        }
    }

    /// Returns the same as [`ResponseOutline::program`] for the blocks so far.
    pub fn program(&self) -> Option<String> {
        (!self.program_lines.is_empty()).then(|| self.program_lines.join("\n"))
    }

    /// Returns the same as [`ResponseOutline::reasoning`] for the blocks so far.
    pub fn reasoning(&self) -> &'static str {
        self.reasoning.unwrap_or("none")
    }

    /// Returns the same as [`ResponseOutline::text`] for the blocks so far.
    pub fn joined_text(&self) -> String {
        self.text_blocks.join("\n")
    }
}

/// Returns the JSON text with the keys of every object sorted, so that equal calls give equal lines.
fn to_canonical_json(value: &Value) -> String {
    fn with_sorted_keys(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let mut entries: Vec<_> = fields.iter().collect();
                entries.sort_by_key(|(key, _)| *key);
                Value::Object(
                    entries.into_iter().map(|(key, value)| (key.clone(), with_sorted_keys(value))).collect(),
                )
            }
            Value::Array(elements) => Value::Array(elements.iter().map(with_sorted_keys).collect()),
            scalar => scalar.clone(),
        }
    }
    with_sorted_keys(value).to_string()
}

/// Returns the text of a text block; `None` for any other block.
pub(super) fn text_of_block(block: &Block) -> Option<String> {
    let value = block.parse_value();
    (value["type"] == "text").then(|| value["text"].as_str().unwrap_or_default().to_owned())
}

/// Renders the result of a tool as text: the text itself, the texts of its blocks with `[type]` for other blocks, or else JSON.
pub(super) fn render_tool_result(result: &Value) -> Cow<'_, str> {
    match result {
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(blocks) => {
            let render_block = |block: &Value| match block["text"].as_str() {
                Some(text) => Some(text.to_owned()),
                None => Some(format!("[{}]", block["type"].as_str()?)),
            };
            blocks.iter().filter_map(render_block).collect::<Vec<_>>().join("\n").into()
        }
        Value::Null => Cow::Borrowed(""),
        value => value.to_string().into(),
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
    fn a_program_lists_the_calls_with_sorted_keys() {
        let blocks = [
            block(r#"{"type":"thinking","thinking":"","signature":"s"}"#),
            block(r#"{"type":"text","text":"I look."}"#),
            block(
                r#"{"type":"tool_use","id":"a","name":"Read","input":{"z":1,"a":{"y":[{"d":1,"c":2}],"b":0}}}"#,
            ),
            block(r#"{"type":"tool_use","id":"b","name":"Bash","input":{"command":"ls"}}"#),
        ];
        let outline = parse_response_outline(&blocks);
        let program = "Read {\"a\":{\"b\":0,\"y\":[{\"c\":2,\"d\":1}]},\"z\":1}\nBash {\"command\":\"ls\"}";
        assert_eq!(outline.program.as_deref(), Some(program));
        assert_eq!((outline.reasoning, outline.text.as_str()), ("omitted", "I look."));
        assert_eq!(outline.calls[1].0, "b");
    }

    #[test]
    fn a_response_without_calls_has_no_program() {
        assert_eq!(parse_response_outline(&[block(r#"{"type":"text","text":"x"}"#)]).program, None);
    }
}
