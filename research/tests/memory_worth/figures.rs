//! The cost of a play, counted from the requests that the model received.

use crate::play::conversation_name;
use crate::task::FACTS;
use plimsoll_testkit::scripted_model::{Request, RequestKind};
use serde_json::Value;
use std::collections::BTreeMap;

/// A token is four bytes of a request's body, here and in the usage that the client is told.
const BYTES_PER_TOKEN: usize = 4;

/// The price of reading from and writing to the cache, as a percentage of the price of a fresh input token.
const CACHE_READ_PERCENT: usize = 10;
const CACHE_WRITE_PERCENT: usize = 125;

/// The figures of one play, in tokens unless stated otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlayFigures {
    pub(crate) input_tokens: usize,
    /// The input, weighted by the prices of the cache.
    pub(crate) weighted_input: usize,
    pub(crate) main_peak: usize,
    pub(crate) overall_peak: usize,
    pub(crate) compaction_count: usize,
    /// How many needed facts were visible when a step needed them, and how often a fact was needed.
    pub(crate) visible_when_needed: (usize, usize),
    /// The number of facts in the last request of the session.
    pub(crate) visible_at_end: usize,
    /// The first request of the last frame, if there is one: the cost of a frame before it works.
    pub(crate) first_frame_request: Option<usize>,
}

impl PlayFigures {
    pub(crate) fn from_requests(requests: &[Request], visible_when_needed: (usize, usize)) -> PlayFigures {
        let request_tokens = |request: &Request| request.body_bytes() / BYTES_PER_TOKEN;
        let peak_of_kinds = |kinds: &[RequestKind]| {
            let matching_requests = requests.iter().filter(|request| kinds.contains(&request.kind));
            matching_requests.map(request_tokens).max().unwrap_or_default()
        };
        let last_main_text = requests
            .iter()
            .rfind(|request| request.kind == RequestKind::Main)
            .expect("a session")
            .full_text();
        let last_frame_name =
            requests.iter().rfind(|request| request.kind == RequestKind::Subagent).map(conversation_name);
        let first_frame_request = last_frame_name
            .and_then(|name| requests.iter().find(|request| conversation_name(request) == name))
            .map(request_tokens);
        PlayFigures {
            input_tokens: requests.iter().map(request_tokens).sum(),
            weighted_input: weighted_input(requests),
            main_peak: peak_of_kinds(&[RequestKind::Main]),
            overall_peak: peak_of_kinds(&[RequestKind::Main, RequestKind::Subagent]),
            compaction_count: requests
                .iter()
                .filter(|request| request.kind == RequestKind::Compaction)
                .count(),
            visible_when_needed,
            visible_at_end: FACTS.iter().filter(|fact| last_main_text.contains(**fact)).count(),
            first_frame_request,
        }
    }
}

/// Returns the weighted input. A request counts as cached as far as its leading whole blocks equal those of
/// the request before it in the same conversation.
fn weighted_input(requests: &[Request]) -> usize {
    let mut previous_blocks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut percent_bytes = 0;
    for request in requests {
        let blocks = cacheable_blocks(&request.body);
        let previous = previous_blocks.entry(conversation_name(request)).or_default();
        let same_blocks = blocks.iter().zip(previous.iter()).take_while(|(new, old)| new == old);
        let cached_bytes: usize = same_blocks.map(|(block, _)| block.len()).sum();
        percent_bytes += cached_bytes * CACHE_READ_PERCENT
            + request.body_bytes().saturating_sub(cached_bytes) * CACHE_WRITE_PERCENT;
        *previous = blocks;
    }
    percent_bytes / 100 / BYTES_PER_TOKEN
}

/// Returns the blocks of a request in the order of the cache: tools, system, messages. Omits the cache marks,
/// which move with every request, and the billing header, which is not text for the model.
fn cacheable_blocks(body: &Value) -> Vec<String> {
    let to_list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let without_cache_mark = |mut block: Value| {
        if let Some(fields) = block.as_object_mut() {
            fields.remove("cache_control");
        }
        block.to_string()
    };
    let system_blocks = to_list(&body["system"]).into_iter().map(without_cache_mark);
    let system_text_blocks = system_blocks.filter(|block| !block.contains("x-anthropic-billing-header"));
    let content = |message: Value| match &message["content"] {
        Value::String(text) => vec![serde_json::json!({ "type": "text", "text": text })],
        content => to_list(content),
    };
    let messages = to_list(&body["messages"]).into_iter().flat_map(content).map(without_cache_mark);
    to_list(&body["tools"])
        .into_iter()
        .map(without_cache_mark)
        .chain(system_text_blocks)
        .chain(messages)
        .collect()
}
