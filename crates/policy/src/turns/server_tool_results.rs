//! Results of tools that run on the API's servers. They are blocks of the response itself, not of a following user line.

use super::ReturnedResult;
use plimsoll_domain::turn::Block;
use plimsoll_protocol::transcript_content::{ToolResult, ToolUseResult};
use serde_json::Value;

/// Returns the results of server tools among the blocks of a response, each with the id of its call.
pub(super) fn parse_server_tool_results(
    blocks: &[Block],
    returned_at: &str,
) -> impl Iterator<Item = (String, ReturnedResult)> {
    blocks.iter().filter_map(move |block| {
        if !block.json().contains("tool_result") {
            return None;
        }
        let value = block.parse_value();
        let block_type = value["type"].as_str().filter(|kind| kind.ends_with("_tool_result"))?;
        let call_id = value["tool_use_id"].as_str()?.to_owned();
        let content = &value["content"];
        // An error is, for example, a `web_search_tool_result_error` inside a `web_search_tool_result`.
        let is_error =
            value["is_error"] == true || content["type"] == Value::String(format!("{block_type}_error"));
        let result = ToolResult {
            tool_use_id: call_id.clone(),
            is_error,
            content: Some(content.clone().into()),
            tool_use_result: ToolUseResult::default(),
            denied: false,
            stopped_by_user: false,
            decision_source: None,
        };
        Some((call_id, ReturnedResult { result, returned_at: returned_at.to_owned() }))
    })
}
