//! The result object: how `claude -p` says that it ended. Its `subtype` and the exit status prove nothing.

use crate::lenient;
use crate::{Malformed, parse};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The last word of `claude -p`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RunResult {
    /// `result`.
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    pub kind: Option<String>,
    /// `success` even for errors of the API: do not decide by it.
    #[serde(deserialize_with = "lenient::text")]
    pub subtype: Option<String>,
    /// True for every ending that is an error.
    #[serde(deserialize_with = "lenient::field")]
    pub is_error: bool,
    /// `completed`, `hook_stopped`, `api_error`, `prompt_too_long`, …; missing before client 2.1.
    #[serde(deserialize_with = "lenient::text")]
    pub terminal_reason: Option<String>,
    /// The HTTP status of the API's error.
    #[serde(deserialize_with = "lenient::count")]
    pub api_error_status: Option<u64>,
    /// What the API's error was: `usage_limit_reached`, `autocompact_thrashing`, …; missing in older clients.
    #[serde(deserialize_with = "lenient::text")]
    pub api_error: Option<String>,
    /// The last text.
    #[serde(deserialize_with = "lenient::whole_text")]
    pub result: Option<String>,
    /// The session.
    #[serde(deserialize_with = "lenient::text")]
    pub session_id: Option<String>,
    /// Cost of the session in US dollars, as reported by the client.
    #[serde(deserialize_with = "lenient::field")]
    pub total_cost_usd: Option<f64>,
    /// Figures by model id (with the `[1m]` suffix), since the session's beginning: a later result of the same
    /// session counts the earlier ones in.
    #[serde(rename = "modelUsage", deserialize_with = "lenient::map")]
    pub model_usage: BTreeMap<String, ModelUsage>,
    /// Tools the client refused to run.
    #[serde(deserialize_with = "lenient::list")]
    pub permission_denials: Vec<PermissionDenial>,
    /// Diagnostics.
    #[serde(deserialize_with = "lenient::texts")]
    pub errors: Vec<String>,
}

/// Figures of one model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ModelUsage {
    /// Its window in tokens.
    #[serde(deserialize_with = "lenient::count")]
    pub context_window: Option<u64>,
    /// Tokens it read for the first time.
    #[serde(deserialize_with = "lenient::count")]
    pub input_tokens: Option<u64>,
    /// Tokens it wrote.
    #[serde(deserialize_with = "lenient::count")]
    pub output_tokens: Option<u64>,
    /// Tokens it read from the cache.
    #[serde(deserialize_with = "lenient::count")]
    pub cache_read_input_tokens: Option<u64>,
    /// Tokens it put into the cache.
    #[serde(deserialize_with = "lenient::count")]
    pub cache_creation_input_tokens: Option<u64>,
    /// Of those, the tokens that are kept for an hour; missing in older clients.
    #[serde(rename = "cacheCreationEphemeral1hInputTokens", deserialize_with = "lenient::count")]
    pub cache_creation_1h: Option<u64>,
    /// Web searches that the API ran for it.
    #[serde(deserialize_with = "lenient::count")]
    pub web_search_requests: Option<u64>,
}

impl ModelUsage {
    fn tokens(&self) -> u64 {
        [
            self.input_tokens,
            self.output_tokens,
            self.cache_read_input_tokens,
            self.cache_creation_input_tokens,
        ]
        .into_iter()
        .flatten()
        .fold(0, u64::saturating_add)
    }
}

/// A tool the client refused to run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PermissionDenial {
    /// The tool.
    #[serde(deserialize_with = "lenient::text")]
    pub tool_name: Option<String>,
    /// The call.
    #[serde(deserialize_with = "lenient::text")]
    pub tool_use_id: Option<String>,
}

impl RunResult {
    /// Reads a result object; fails only where it is not one JSON object.
    pub fn parse(bytes: &[u8]) -> Result<RunResult, Malformed> {
        parse(bytes)
    }

    /// The result in what a client printed: the object alone (`--output-format json`), the last one of a stream, or of
    /// a list (`--verbose`). None if there is none.
    pub fn find(bytes: &[u8]) -> Option<RunResult> {
        let read = |bytes: &[u8]| {
            parse::<RunResult>(bytes).ok().filter(|found| found.kind.as_deref() == Some("result"))
        };
        // The last one: with tasks in the background a stream has several results (2.1.329).
        let in_lines = || bytes.split(|byte| *byte == b'\n').rev().find_map(read);
        let in_list = || {
            let list: Vec<&serde_json::value::RawValue> = serde_json::from_slice(bytes).ok()?;
            list.iter().rev().find_map(|entry| read(entry.get().as_bytes()))
        };
        read(bytes).or_else(in_lines).or_else(in_list)
    }

    /// All tokens of all models since the session's beginning, those from the cache among them.
    pub fn tokens(&self) -> u64 {
        self.model_usage.values().map(ModelUsage::tokens).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_found_in_each_form_in_which_the_client_prints_it() {
        let result = r#"{"type":"result","result":"done","total_cost_usd":0.5}"#;
        let other = r#"{"type":"assistant","message":{}}"#;
        for printed in [
            result.to_owned(),
            format!("\n  {result}\n\n"),
            format!("{other}\n{result}\n"),
            format!("[{other},{result}]"),
            format!("a warning\n{result}"),
        ] {
            let found = RunResult::find(printed.as_bytes()).expect(&printed);
            assert_eq!(
                (found.result.as_deref(), found.total_cost_usd),
                (Some("done"), Some(0.5)),
                "{printed}"
            );
        }
        for printed in ["", "All done.", other, "[]", &result[..result.len() - 1], r#"{"type":"result""#] {
            assert!(RunResult::find(printed.as_bytes()).is_none(), "{printed}");
        }
    }
}
