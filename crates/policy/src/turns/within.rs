//! Results that the API itself puts into a response, for tools that run on its side: no user line brings them.

use super::Returned;
use plimsoll_domain::turn::Block;
use plimsoll_protocol::recording::{Behind, ToolResult};
use serde_json::Value;

/// The results among the blocks of a response, by their call.
pub(super) fn results(blocks: &[Block], at: &str) -> impl Iterator<Item = (String, Returned)> {
    blocks.iter().filter_map(move |block| {
        if !block.json().contains("tool_result") {
            return None;
        }
        let value = block.value();
        let kind = value["type"].as_str().filter(|kind| kind.ends_with("_tool_result"))?;
        let id = value["tool_use_id"].as_str()?.to_owned();
        let content = &value["content"];
        // `web_search_tool_result_error` inside a `web_search_tool_result`.
        let is_error = value["is_error"] == true || content["type"] == Value::String(format!("{kind}_error"));
        let result = ToolResult {
            id: id.clone(),
            is_error,
            content: Some(content.clone().into()),
            behind: Behind::default(),
            denied: false,
            stopped: false,
            decided_by: None,
        };
        Some((id, Returned { result, at: at.to_owned() }))
    })
}
