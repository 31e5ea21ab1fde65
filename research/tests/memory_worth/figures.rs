//! What a play cost, counted from the requests as the model received them.

use crate::play::who;
use crate::task::FACTS;
use plimsoll_testkit::scripted_model::{Request, RequestKind};
use serde_json::Value;
use std::collections::BTreeMap;

/// A token is taken for four bytes of a request's body, here and in the usage that the client was told.
const BYTES_PER_TOKEN: usize = 4;

/// What reading from and writing to the cache cost, in hundredths of a fresh input token.
const READ_AGAIN: usize = 10;
const NEW: usize = 125;

/// The figures of one play, in tokens where nothing else is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) requests: usize,
    pub(crate) sent: usize,
    /// The same, weighted as the cache's prices do.
    pub(crate) priced: usize,
    /// What the agent itself wrote as tool calls, which is paid as output.
    pub(crate) written: usize,
    pub(crate) peak_of_main: usize,
    pub(crate) peak: usize,
    pub(crate) compactions: usize,
    /// Facts that were to be seen when a step needed them, and how often one was needed.
    pub(crate) at_hand: (usize, usize),
    /// Facts that the last request of the session shows.
    pub(crate) visible: usize,
    /// The first request of the last frame, where there is one: what a frame costs before it works.
    pub(crate) first_of_frame: Option<usize>,
}

impl Figures {
    pub(crate) fn of(requests: &[Request], at_hand: (usize, usize)) -> Figures {
        let tokens = |request: &Request| request.bytes() / BYTES_PER_TOKEN;
        let peak = |kinds: &[RequestKind]| {
            let of_kind = requests.iter().filter(|request| kinds.contains(&request.kind));
            of_kind.map(tokens).max().unwrap_or_default()
        };
        let last =
            requests.iter().rfind(|request| request.kind == RequestKind::Main).expect("a session").text();
        let last_frame = requests.iter().rfind(|request| request.kind == RequestKind::Subagent).map(who);
        let first_of_frame =
            last_frame.and_then(|name| requests.iter().find(|request| who(request) == name)).map(tokens);
        Figures {
            requests: requests.len(),
            sent: requests.iter().map(tokens).sum(),
            priced: priced(requests),
            written: written(requests),
            peak_of_main: peak(&[RequestKind::Main]),
            peak: peak(&[RequestKind::Main, RequestKind::Subagent]),
            compactions: requests.iter().filter(|request| request.kind == RequestKind::Compaction).count(),
            at_hand,
            visible: FACTS.iter().filter(|fact| last.contains(**fact)).count(),
            first_of_frame,
        }
    }
}

/// As cached counts what a request has in common, from its start on and in whole blocks, with the one before it in
/// the same conversation.
fn priced(requests: &[Request]) -> usize {
    let mut before: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut hundredths = 0;
    for request in requests {
        let blocks = blocks(&request.body);
        let last = before.entry(who(request)).or_default();
        let same = blocks.iter().zip(last.iter()).take_while(|(new, old)| new == old);
        let cached: usize = same.map(|(block, _)| block.len()).sum();
        hundredths += cached * READ_AGAIN + request.bytes().saturating_sub(cached) * NEW;
        *last = blocks;
    }
    hundredths / 100 / BYTES_PER_TOKEN
}

/// Each call once, however often it was sent again.
fn written(requests: &[Request]) -> usize {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let messages = requests.iter().flat_map(|request| list(&request.body["messages"]));
    let blocks = messages.flat_map(|message| list(&message["content"]));
    let calls = blocks.filter(|block| block["type"] == "tool_use");
    let sizes: BTreeMap<String, usize> =
        calls.map(|call| (call["id"].to_string(), call["input"].to_string().len())).collect();
    sizes.values().sum::<usize>() / BYTES_PER_TOKEN
}

/// The request in the order in which a cache sees it: tools, system, messages. Without the marks where the cache is
/// to be written, which move with every request, and the header for billing, which is no text for the model.
fn blocks(body: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let plain = |mut block: Value| {
        if let Some(fields) = block.as_object_mut() {
            fields.remove("cache_control");
        }
        block.to_string()
    };
    let system = list(&body["system"]).into_iter().map(plain);
    let system = system.filter(|block| !block.contains("x-anthropic-billing-header"));
    let content = |message: Value| match &message["content"] {
        Value::String(text) => vec![serde_json::json!({ "type": "text", "text": text })],
        content => list(content),
    };
    let messages = list(&body["messages"]).into_iter().flat_map(content).map(plain);
    list(&body["tools"]).into_iter().map(plain).chain(system).chain(messages).collect()
}
