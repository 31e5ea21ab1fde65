//! The result object that `claude -p` prints at its end. Neither its `subtype` nor the exit status proves success.

use crate::lenient;
use crate::{MalformedJson, parse_json_object};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The result object of `claude -p`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ClientResult {
    /// Always `result`.
    #[serde(rename = "type", deserialize_with = "lenient::non_empty_text")]
    pub kind: Option<String>,
    /// `success` even for API errors, so nothing may depend on it.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub subtype: Option<String>,
    /// True if the session ended with an error.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub is_error: bool,
    /// `completed`, `hook_stopped`, `api_error`, `prompt_too_long`, …; missing before client 2.1.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub terminal_reason: Option<String>,
    /// The HTTP status of the API error.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub api_error_status: Option<u64>,
    /// The API error: `usage_limit_reached`, `autocompact_thrashing`, …; missing in older clients.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub api_error: Option<String>,
    /// The model's last text.
    #[serde(deserialize_with = "lenient::possibly_empty_text")]
    pub result: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub session_id: Option<String>,
    /// Cost of the session in US dollars, as reported by the client.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub total_cost_usd: Option<f64>,
    /// Usage by model id (with the `[1m]` suffix) since the session began. A later result of the same session
    /// includes the earlier ones.
    #[serde(rename = "modelUsage", deserialize_with = "lenient::readable_entries")]
    pub model_usage: BTreeMap<String, ModelUsage>,
    /// Tools the client refused to run.
    #[serde(deserialize_with = "lenient::readable_elements")]
    pub permission_denials: Vec<PermissionDenial>,
    /// Diagnostic messages.
    #[serde(deserialize_with = "lenient::text_elements")]
    pub errors: Vec<String>,
}

/// Usage of one model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ModelUsage {
    /// Its context window in tokens.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub context_window: Option<u64>,
    /// Input tokens outside the cache.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub input_tokens: Option<u64>,
    /// Output tokens.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub output_tokens: Option<u64>,
    /// Input tokens read from the cache.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub cache_read_input_tokens: Option<u64>,
    /// Input tokens written to the cache.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub cache_creation_input_tokens: Option<u64>,
    /// The part of `cache_creation_input_tokens` that is kept for an hour; missing in older clients.
    #[serde(rename = "cacheCreationEphemeral1hInputTokens", deserialize_with = "lenient::rounded_count")]
    pub cache_creation_1h: Option<u64>,
    /// Web searches that the API ran for the model.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub web_search_requests: Option<u64>,
    /// The model's part of the cost in US dollars.
    #[serde(rename = "costUSD", deserialize_with = "lenient::non_negative_number")]
    pub cost_usd: Option<f64>,
}

impl ModelUsage {
    fn total_tokens(&self) -> u64 {
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
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub tool_name: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub tool_use_id: Option<String>,
}

impl ClientResult {
    /// Parses a result object. Fails only if the bytes are not one JSON object.
    pub fn parse(bytes: &[u8]) -> Result<ClientResult, MalformedJson> {
        parse_json_object(bytes)
    }

    /// Finds the last result in a client's output: an object alone (`--output-format json`), a stream, or a list
    /// (`--verbose`).
    pub fn find_last_in_output(client_output: &[u8]) -> Option<ClientResult> {
        let parse_result = |bytes: &[u8]| {
            parse_json_object::<ClientResult>(bytes)
                .ok()
                .filter(|result| result.kind.as_deref() == Some("result"))
        };
        // The last one, because with background tasks a stream has several results (2.1.329).
        let find_last_in_lines = || client_output.split(|byte| *byte == b'\n').rev().find_map(parse_result);
        let find_last_in_list = || {
            let list: Vec<&serde_json::value::RawValue> = serde_json::from_slice(client_output).ok()?;
            list.iter().rev().find_map(|entry| parse_result(entry.get().as_bytes()))
        };
        parse_result(client_output).or_else(find_last_in_lines).or_else(find_last_in_list)
    }

    /// Returns the tokens of all models since the session began, including the cache.
    pub fn total_tokens(&self) -> u64 {
        self.model_usage.values().map(ModelUsage::total_tokens).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_found_in_each_output_format_of_the_client() {
        let result = r#"{"type":"result","result":"done","total_cost_usd":0.5}"#;
        let assistant_line = r#"{"type":"assistant","message":{}}"#;
        for printed in [
            result.to_owned(),
            format!("\n  {result}\n\n"),
            format!("{assistant_line}\n{result}\n"),
            format!("[{assistant_line},{result}]"),
            format!("a warning\n{result}"),
        ] {
            let parsed = ClientResult::find_last_in_output(printed.as_bytes()).expect(&printed);
            assert_eq!(
                (parsed.result.as_deref(), parsed.total_cost_usd),
                (Some("done"), Some(0.5)),
                "{printed}"
            );
        }
        for printed in
            ["", "All done.", assistant_line, "[]", &result[..result.len() - 1], r#"{"type":"result""#]
        {
            assert!(ClientResult::find_last_in_output(printed.as_bytes()).is_none(), "{printed}");
        }
    }
}
