//! A reader who knows nothing but one request: what he must take for the memory. He shares no code with the product's
//! renderer; he does what the blocks tell a model to do ("of a frame's blocks, the highest rev is current").

use plimsoll_domain::memory::{Memory, Register};
use plimsoll_testkit::scripted_model::Request;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a reader knows.
#[derive(Default)]
pub(crate) struct Mind {
    /// By key, as in `R1_PLAN`, with the revision that he heard it from.
    pub(crate) registers: BTreeMap<String, (u64, String)>,
    /// By name; none for a chunk that is freed.
    pub(crate) heap: BTreeMap<String, (u64, Option<String>)>,
    calls: BTreeMap<String, (String, Value)>,
    depth: usize,
}

/// Text as it is before it is shown: what begins a tag is shown as `‹`, line ends are the same everywhere, and a mark of
/// direction, which nobody sees, is shown as a sign.
pub(crate) fn plain(text: &str) -> String {
    text.replace('‹', "<")
        .replace("\r\n", "\n")
        .replace(['\r', '\u{2028}'], "\n")
        .replace('\u{202e}', "\u{fffd}")
}

impl Mind {
    /// Reads a request from its first message to its last, as who works at that depth.
    pub(crate) fn of(request: &Request, depth: usize) -> Mind {
        let mut mind = Mind { depth, ..Mind::default() };
        for message in request.body["messages"].as_array().into_iter().flatten() {
            match &message["content"] {
                Value::String(text) => mind.hear(text),
                content => content.as_array().into_iter().flatten().for_each(|block| mind.read(block)),
            }
        }
        mind
    }

    fn read(&mut self, block: &Value) {
        let word = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some("text") => self.hear(&word("text")),
            Some("tool_use") => {
                let name = word("name").rsplit("__").next().unwrap_or_default().to_owned();
                self.calls.insert(word("id"), (name, block["input"].clone()));
            }
            Some("tool_result") => {
                let text = match &block["content"] {
                    Value::String(text) => text.clone(),
                    content => {
                        let parts = content.as_array().into_iter().flatten();
                        parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
                    }
                };
                self.answered(&word("tool_use_id"), &text);
                self.hear(&text);
            }
            _ => {}
        }
    }

    /// The model's own call was done: its arguments are what it knows.
    fn answered(&mut self, id: &str, answer: &str) {
        let first = answer.lines().next().unwrap_or_default();
        let Some(rev) = first.strip_prefix("ok r").and_then(|rev| rev.trim().parse().ok()) else { return };
        let Some((tool, input)) = self.calls.get(id).cloned() else { return };
        let word = |name: &str| plain(input[name].as_str().unwrap_or_default());
        match tool.as_str() {
            "update_registers" => {
                for (key, value) in input.as_object().into_iter().flatten() {
                    let Some(value) = value.as_str() else { continue };
                    self.register(key, rev, plain(&kept(value, key, answer)));
                }
            }
            "heap_alloc" | "heap_write" => self.chunk(&word("name"), rev, Some(word("content"))),
            "heap_free" => self.chunk(&word("name"), rev, None),
            _ => {}
        }
    }

    /// Reads every block in a text; what lies between blocks is not about the memory.
    fn hear(&mut self, text: &str) {
        let mut rest = text;
        while let Some(place) =
            ["<plimsoll-memory ", "<plimsoll-chunk "].iter().filter_map(|tag| rest.find(tag)).min()
        {
            rest = &rest[place..];
            let is_chunk = rest.starts_with("<plimsoll-chunk ");
            let end = if is_chunk { "</plimsoll-chunk>" } else { "</plimsoll-memory>" };
            let Some(length) = rest.find(end) else { panic!("a block without an end: {rest}") };
            let (block, after) = rest.split_at(length);
            rest = &after[end.len()..];
            if is_chunk { self.hear_chunk(block) } else { self.hear_block(block) }
        }
    }

    fn hear_chunk(&mut self, block: &str) {
        let (head, content) = block.split_once(">\n").unwrap_or_else(|| panic!("a chunk: {block}"));
        let content = content.strip_suffix('\n').unwrap_or(content);
        let rev = attribute(head, "rev").parse().expect("a number");
        self.chunk(&attribute(head, "name"), rev, Some(plain(content)));
    }

    fn hear_block(&mut self, block: &str) {
        let mut lines = Vec::new();
        let mut rest = block;
        while let Some((before, after)) = rest.split_once("<plimsoll-chunk ") {
            lines.extend(before.split('\n'));
            let (chunk, after) = after.split_once("</plimsoll-chunk>").expect("a chunk ends in its block");
            self.hear_chunk(&format!("<plimsoll-chunk {chunk}"));
            rest = after;
        }
        lines.extend(rest.split('\n'));
        let head = lines.remove(0);
        let rev: u64 = attribute(head, "rev").parse().expect("a number");
        let is_whole = head.contains(" depth=\"");
        let (mut told, mut index): (Vec<(String, String)>, Vec<String>) = Default::default();
        for line in lines {
            if let Some((key, text)) = labelled(line) {
                told.push((key, text.to_owned()));
            } else if let Some(more) = line.strip_prefix(' ') {
                let (_, text) = told.last_mut().expect("a line of a register");
                *text = format!("{text}\n{more}");
            } else if let Some(name) = line.strip_prefix("heap:").and_then(|line| line.strip_suffix(" freed"))
            {
                self.chunk(name, rev, None);
            } else if let Some(name) = line.strip_prefix("- ").and_then(|line| line.split(' ').next()) {
                index.push(name.to_owned());
            } else {
                assert!(line.is_empty() || line.starts_with("HEAP "), "what is this line? {line:?}");
            }
        }
        if is_whole {
            let gone: Vec<String> = self.heap.keys().filter(|name| !index.contains(name)).cloned().collect();
            gone.iter().for_each(|name| self.chunk(name, rev, None));
        }
        // memory_show shows the present frame, which may be a child's.
        if is_whole && attribute(head, "depth") != self.depth.to_string() {
            return;
        }
        if is_whole {
            for register in
                Register::ALL.iter().filter(|register| told.iter().all(|(key, _)| key != register.key()))
            {
                self.register(register.key(), rev, String::new());
            }
        }
        for (key, text) in told {
            self.register(
                &key,
                rev,
                if text == "(empty)" && !is_whole { String::new() } else { plain(&text) },
            );
        }
    }

    fn register(&mut self, key: &str, rev: u64, text: String) {
        if self.registers.get(key).is_none_or(|(known, _)| rev >= *known) {
            self.registers.insert(key.to_owned(), (rev, text));
        }
    }

    fn chunk(&mut self, name: &str, rev: u64, content: Option<String>) {
        if self.heap.get(name).is_none_or(|(known, _)| rev >= *known) {
            self.heap.insert(name.to_owned(), (rev, content));
        }
    }

    /// What a reader has wrong of a frame and the heap; nothing, if the promise is kept.
    pub(crate) fn errors(&self, memory: &Memory, depth: usize) -> Vec<String> {
        let mut errors = Vec::new();
        for register in Register::ALL {
            let slot = &memory.frames[depth].registers[register.index()];
            let known = self.registers.get(register.key()).map_or("", |(_, text)| text.as_str());
            if known != plain(&slot.text) {
                errors.push(format!(
                    "{} (r{}) is {:?}, and he reads {known:?}",
                    register.key(),
                    slot.revision,
                    slot.text
                ));
            }
        }
        for chunk in &memory.heap {
            let known = self.heap.get(&chunk.name).and_then(|(_, content)| content.as_ref());
            if known != Some(&plain(&chunk.content)) {
                let start = |text: &String| text.chars().take(60).collect::<String>();
                let (is, reads) = (start(&chunk.content), known.map(start));
                errors
                    .push(format!("chunk {} (r{}) is {is:?}, and he reads {reads:?}", chunk.name, chunk.rev));
            }
        }
        for (name, _) in self
            .heap
            .iter()
            .filter(|(name, (_, content))| content.is_some() && memory.find_chunk(name).is_none())
        {
            errors.push(format!("chunk {name} is gone, and he takes it for live"));
        }
        errors
    }
}

/// What the tool says it has kept of a value.
fn kept(value: &str, key: &str, answer: &str) -> String {
    let cut = answer.lines().find_map(|line| line.strip_prefix(&format!("cut {key}: ")));
    let kept = cut.and_then(|cut| cut.split_once("kept ")?.1.split(',').next()?.parse().ok());
    value.chars().take(kept.unwrap_or(usize::MAX)).collect()
}

/// `R1 PLAN: text` as key and text.
fn labelled(line: &str) -> Option<(String, &str)> {
    let (label, text) = line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, "")))?;
    let key = label.replace(' ', "_");
    Register::ALL.iter().any(|register| register.key() == key).then_some((key, text))
}

fn attribute(head: &str, name: &str) -> String {
    let value = head.split_once(&format!("{name}=\"")).and_then(|(_, rest)| rest.split_once('"'));
    value.unwrap_or_else(|| panic!("no {name} in {head}")).0.to_owned()
}
