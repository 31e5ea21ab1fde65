//! An independent reader that knows only one request and derives the memory from it. It shares no code with the
//! product's renderer; it does what the blocks tell a model to do ("for each frame, the highest rev is
//! current").

use plimsoll_domain::memory::{Memory, Register};
use plimsoll_testkit::scripted_model::Request;
use serde_json::Value;
use std::collections::BTreeMap;

/// The memory as a reader of one request knows it.
#[derive(Default)]
pub(crate) struct RequestReader {
    /// By key, as in `R1_PLAN`: the revision that the text was read from, and the text.
    pub(crate) registers: BTreeMap<String, (u64, String)>,
    /// By name: the revision, and the content; `None` for a freed chunk.
    pub(crate) heap: BTreeMap<String, (u64, Option<String>)>,
    tool_calls: BTreeMap<String, (String, Value)>,
    frame_depth: usize,
}

/// Undoes the escaping of shown text, and makes line endings the same everywhere. `‹` stands for the start of a tag;
/// the invisible direction mark U+202E is shown as U+FFFD.
pub(crate) fn normalize_text(text: &str) -> String {
    text.replace('‹', "<")
        .replace("\r\n", "\n")
        .replace(['\r', '\u{2028}'], "\n")
        .replace('\u{202e}', "\u{fffd}")
}

impl RequestReader {
    /// Reads a request from its first message to its last, as a conversation that works at this depth.
    pub(crate) fn from_request(request: &Request, depth: usize) -> RequestReader {
        let mut reader = RequestReader { frame_depth: depth, ..RequestReader::default() };
        for message in request.body["messages"].as_array().into_iter().flatten() {
            match &message["content"] {
                Value::String(text) => reader.read_blocks(text),
                content => {
                    content.as_array().into_iter().flatten().for_each(|block| reader.read_block(block))
                }
            }
        }
        reader
    }

    fn read_block(&mut self, block: &Value) {
        let field_text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some("text") => self.read_blocks(&field_text("text")),
            Some("tool_use") => {
                let name = field_text("name").rsplit("__").next().unwrap_or_default().to_owned();
                self.tool_calls.insert(field_text("id"), (name, block["input"].clone()));
            }
            Some("tool_result") => {
                let text = match &block["content"] {
                    Value::String(text) => text.clone(),
                    content => {
                        let content_blocks = content.as_array().into_iter().flatten();
                        content_blocks.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
                    }
                };
                self.apply_own_call(&field_text("tool_use_id"), &text);
                self.read_blocks(&text);
            }
            _ => {}
        }
    }

    /// Applies a successful call of the model itself: the model knows the arguments that it wrote.
    fn apply_own_call(&mut self, id: &str, result_text: &str) {
        let first_line = result_text.lines().next().unwrap_or_default();
        let Some(rev) = first_line.strip_prefix("ok r").and_then(|rev| rev.trim().parse().ok()) else {
            return;
        };
        let Some((tool, input)) = self.tool_calls.get(id).cloned() else { return };
        let normalized_input = |name: &str| normalize_text(input[name].as_str().unwrap_or_default());
        match tool.as_str() {
            "update_registers" => {
                for (key, value) in input.as_object().into_iter().flatten() {
                    let Some(value) = value.as_str() else { continue };
                    self.set_register(key, rev, normalize_text(&kept_part(value, key, result_text)));
                }
            }
            "heap_alloc" | "heap_write" => {
                self.set_chunk(&normalized_input("name"), rev, Some(normalized_input("content")))
            }
            "heap_free" => self.set_chunk(&normalized_input("name"), rev, None),
            _ => {}
        }
    }

    /// Reads every block in a text; text between blocks is not about the memory.
    fn read_blocks(&mut self, text: &str) {
        let mut rest = text;
        while let Some(start) =
            ["<plimsoll-memory ", "<plimsoll-chunk "].iter().filter_map(|tag| rest.find(tag)).min()
        {
            rest = &rest[start..];
            let is_chunk = rest.starts_with("<plimsoll-chunk ");
            let end = if is_chunk { "</plimsoll-chunk>" } else { "</plimsoll-memory>" };
            let Some(length) = rest.find(end) else { panic!("a block without an end: {rest}") };
            let (block, following) = rest.split_at(length);
            rest = &following[end.len()..];
            if is_chunk { self.read_chunk_block(block) } else { self.read_memory_block(block) }
        }
    }

    fn read_chunk_block(&mut self, block: &str) {
        let (opening_tag, content) = block.split_once(">\n").unwrap_or_else(|| panic!("a chunk: {block}"));
        let content = content.strip_suffix('\n').unwrap_or(content);
        let rev = attribute_value(opening_tag, "rev").parse().expect("a number");
        self.set_chunk(&attribute_value(opening_tag, "name"), rev, Some(normalize_text(content)));
    }

    fn read_memory_block(&mut self, block: &str) {
        let mut lines = Vec::new();
        let mut rest = block;
        while let Some((before, after)) = rest.split_once("<plimsoll-chunk ") {
            lines.extend(before.split('\n'));
            let (chunk, following) =
                after.split_once("</plimsoll-chunk>").expect("a chunk ends in its block");
            self.read_chunk_block(&format!("<plimsoll-chunk {chunk}"));
            rest = following;
        }
        lines.extend(rest.split('\n'));
        let opening_line = lines.remove(0);
        let rev: u64 = attribute_value(opening_line, "rev").parse().expect("a number");
        let is_full_block = opening_line.contains(" depth=\"");
        let (mut shown_registers, mut indexed_chunks): (Vec<(String, String)>, Vec<String>) =
            Default::default();
        for line in lines {
            if let Some((key, text)) = parse_register_line(line) {
                shown_registers.push((key, text.to_owned()));
            } else if let Some(continuation) = line.strip_prefix(' ') {
                let (_, text) = shown_registers.last_mut().expect("a line of a register");
                *text = format!("{text}\n{continuation}");
            } else if let Some(name) = line.strip_prefix("heap:").and_then(|line| line.strip_suffix(" freed"))
            {
                self.set_chunk(name, rev, None);
            } else if let Some(name) = line.strip_prefix("- ").and_then(|line| line.split(' ').next()) {
                indexed_chunks.push(name.to_owned());
            } else {
                assert!(line.is_empty() || line.starts_with("HEAP "), "what is this line? {line:?}");
            }
        }
        if is_full_block {
            let removed_chunks: Vec<String> =
                self.heap.keys().filter(|name| !indexed_chunks.contains(name)).cloned().collect();
            removed_chunks.iter().for_each(|name| self.set_chunk(name, rev, None));
        }
        // `memory_show` shows the current frame, which may be a child's.
        if is_full_block && attribute_value(opening_line, "depth") != self.frame_depth.to_string() {
            return;
        }
        if is_full_block {
            for register in Register::ALL
                .iter()
                .filter(|register| shown_registers.iter().all(|(key, _)| key != register.key()))
            {
                self.set_register(register.key(), rev, String::new());
            }
        }
        for (key, text) in shown_registers {
            self.set_register(
                &key,
                rev,
                if text == "(empty)" && !is_full_block { String::new() } else { normalize_text(&text) },
            );
        }
    }

    fn set_register(&mut self, key: &str, rev: u64, text: String) {
        if self.registers.get(key).is_none_or(|(known_rev, _)| rev >= *known_rev) {
            self.registers.insert(key.to_owned(), (rev, text));
        }
    }

    fn set_chunk(&mut self, name: &str, rev: u64, content: Option<String>) {
        if self.heap.get(name).is_none_or(|(known_rev, _)| rev >= *known_rev) {
            self.heap.insert(name.to_owned(), (rev, content));
        }
    }

    /// Returns what the reader has wrong about a frame and the heap; empty if the promise is kept.
    pub(crate) fn find_differences(&self, memory: &Memory, frame_depth: usize) -> Vec<String> {
        let mut differences = Vec::new();
        for register in Register::ALL {
            let slot = &memory.frames[frame_depth].registers[register.index()];
            let read_text = self.registers.get(register.key()).map_or("", |(_, text)| text.as_str());
            if read_text != normalize_text(&slot.text) {
                differences.push(format!(
                    "{} (r{}) is {:?}, and he reads {read_text:?}",
                    register.key(),
                    slot.revision,
                    slot.text
                ));
            }
        }
        for chunk in &memory.heap {
            let read_content = self.heap.get(&chunk.name).and_then(|(_, content)| content.as_ref());
            if read_content != Some(&normalize_text(&chunk.content)) {
                let first_chars = |text: &String| text.chars().take(60).collect::<String>();
                let (is, reads) = (first_chars(&chunk.content), read_content.map(first_chars));
                differences
                    .push(format!("chunk {} (r{}) is {is:?}, and he reads {reads:?}", chunk.name, chunk.rev));
            }
        }
        for (name, _) in self
            .heap
            .iter()
            .filter(|(name, (_, content))| content.is_some() && memory.find_chunk(name).is_none())
        {
            differences.push(format!("chunk {name} is gone, and he takes it for live"));
        }
        differences
    }
}

/// Returns the part of a value that the tool reports it has kept.
fn kept_part(value: &str, key: &str, result_text: &str) -> String {
    let cut_report = result_text.lines().find_map(|line| line.strip_prefix(&format!("cut {key}: ")));
    let kept_char_count =
        cut_report.and_then(|cut| cut.split_once("kept ")?.1.split(',').next()?.parse().ok());
    value.chars().take(kept_char_count.unwrap_or(usize::MAX)).collect()
}

/// Parses `R1 PLAN: text` into key and text.
fn parse_register_line(line: &str) -> Option<(String, &str)> {
    let (label, text) = line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, "")))?;
    let key = label.replace(' ', "_");
    Register::ALL.iter().any(|register| register.key() == key).then_some((key, text))
}

fn attribute_value(opening_tag: &str, attribute_name: &str) -> String {
    let value =
        opening_tag.split_once(&format!("{attribute_name}=\"")).and_then(|(_, rest)| rest.split_once('"'));
    value.unwrap_or_else(|| panic!("no {attribute_name} in {opening_tag}")).0.to_owned()
}
