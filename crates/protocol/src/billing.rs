//! Billed usage: the tokens of a response by kind, and the client's own totals of a session.
//!
//! One parser serves the transcript and the stream of `claude -p`: both write a response as an `assistant` line.

use crate::lenient;
use crate::result::ModelUsage;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The billed usage of one response, with the API's field names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct BilledUsage {
    /// Input tokens that were not cached.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub output_tokens: Option<u64>,
    /// Input tokens that were read from the cache.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub cache_read_input_tokens: Option<u64>,
    /// Input tokens that were written to the cache, for any duration.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub cache_creation_input_tokens: Option<u64>,
    /// The cache writes by duration; missing in older clients.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub cache_creation: CacheCreation,
    /// Calls of tools that the API itself runs.
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub server_tool_use: ServerToolUse,
    /// `fast` or `standard`.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub speed: Option<String>,
    /// The region of inference, if the request demanded one: `us`.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub inference_geo: Option<String>,
}

/// Tokens that were written to the cache, by how long they are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CacheCreation {
    /// Kept for five minutes.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub ephemeral_5m_input_tokens: Option<u64>,
    /// Kept for an hour.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub ephemeral_1h_input_tokens: Option<u64>,
}

/// Calls of tools that the API itself runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ServerToolUse {
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub web_search_requests: Option<u64>,
}

impl BilledUsage {
    /// Parses a usage object. A wrong type in one field loses only that field.
    pub fn from_value(usage: &Value) -> BilledUsage {
        lenient::parse_last_key_wins(&usage.to_string()).unwrap_or_default()
    }
}

/// The client's own totals of a session's usage and cost.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ReportedUsage {
    /// US dollars: `total_cost_usd` in a result, `totalCostUSD` in a transcript, `usd` in the turn log.
    #[serde(
        rename = "total_cost_usd",
        alias = "totalCostUSD",
        alias = "usd",
        deserialize_with = "lenient::non_negative_number"
    )]
    pub cost_usd: Option<f64>,
    /// Usage by model id.
    #[serde(rename = "modelUsage", alias = "models", deserialize_with = "lenient::readable_entries")]
    pub models: BTreeMap<String, ModelUsage>,
}

impl ReportedUsage {
    /// Parses totals that are already a JSON value.
    pub fn from_value(report: &Value) -> ReportedUsage {
        lenient::parse_last_key_wins(&report.to_string()).unwrap_or_default()
    }
}

/// A line that contains usage.
#[derive(Debug, Clone)]
pub enum BilledLine {
    /// A part of a response; all parts of one response have its id.
    Response {
        /// The response's id.
        id: String,
        /// The model whose price applies: the requested one, else the one that responded.
        model: Option<String>,
        usage: BilledUsage,
    },
    /// The client's own totals.
    Reported(ReportedUsage),
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BilledLineFields {
    #[serde(rename = "type", deserialize_with = "lenient::non_empty_text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    is_api_error_message: bool,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    requested_model: Option<String>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    message: BilledMessage,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BilledMessage {
    #[serde(deserialize_with = "lenient::non_empty_text")]
    id: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    model: Option<String>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    usage: Option<BilledUsage>,
}

impl BilledLine {
    /// Parses a line of a transcript or a stream: a response with usage, or the client's own totals. Returns `None` for any
    /// other line.
    pub fn parse_response_or_reported_totals(bytes: &[u8]) -> Option<BilledLine> {
        let fields: BilledLineFields = crate::parse_json_object(bytes).ok()?;
        match fields.kind.as_deref()? {
            // The client writes an API error as a response without usage (2.1.329).
            "assistant" if !fields.is_api_error_message => Some(BilledLine::Response {
                id: fields.message.id?,
                model: fields.requested_model.or(fields.message.model),
                usage: fields.message.usage?,
            }),
            "result" | "cost-state" => crate::parse_json_object(bytes).ok().map(BilledLine::Reported),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_has_the_requested_model_and_every_kind_of_token() {
        let line = br#"{"type":"assistant","requestedModel":"claude-sonnet-4-5[1m]","message":{"id":"m1",
            "model":"claude-sonnet-4-5","usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,
            "cache_creation_input_tokens":9,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":5},
            "server_tool_use":{"web_search_requests":6},"speed":"fast","inference_geo":"us","service_tier":7}}}"#;
        let Some(BilledLine::Response { id, model, usage }) =
            BilledLine::parse_response_or_reported_totals(line)
        else {
            panic!()
        };
        assert_eq!((id.as_str(), model.as_deref()), ("m1", Some("claude-sonnet-4-5[1m]")));
        let expected = BilledUsage {
            input_tokens: Some(1),
            output_tokens: Some(2),
            cache_read_input_tokens: Some(3),
            cache_creation_input_tokens: Some(9),
            cache_creation: CacheCreation {
                ephemeral_5m_input_tokens: Some(4),
                ephemeral_1h_input_tokens: Some(5),
            },
            server_tool_use: ServerToolUse { web_search_requests: Some(6) },
            speed: Some("fast".to_owned()),
            inference_geo: Some("us".to_owned()),
        };
        assert_eq!(usage, expected);
    }

    #[test]
    fn a_wrong_type_loses_one_field_and_other_lines_have_no_usage() {
        let line = br#"{"type":"assistant","message":{"id":"m1","model":"m","usage":{"input_tokens":"x","output_tokens":2,
            "cache_creation":7,"server_tool_use":[],"speed":null}}}"#;
        let Some(BilledLine::Response { usage, .. }) = BilledLine::parse_response_or_reported_totals(line)
        else {
            panic!()
        };
        assert_eq!(usage, BilledUsage { output_tokens: Some(2), ..BilledUsage::default() });
        for line in [
            r#"{"type":"user","message":{"id":"m1","usage":{"input_tokens":1}}}"#,
            r#"{"type":"assistant","isApiErrorMessage":true,"message":{"id":"m1","usage":{"input_tokens":1}}}"#,
            r#"{"type":"assistant","message":{"usage":{"input_tokens":1}}}"#,
            r#"{"type":"assistant","message":{"id":"m1"}}"#,
            r#"{"type":"assistant","message":{"id":"m1","us"#,
            "[]",
        ] {
            assert!(BilledLine::parse_response_or_reported_totals(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[test]
    fn totals_are_parsed_from_a_transcript_a_result_and_the_turn_log() {
        let models = r#"{"claude-opus-5-5":{"inputTokens":10,"cacheCreationEphemeral1hInputTokens":3,"webSearchRequests":2}}"#;
        let lines = [
            format!(r#"{{"type":"cost-state","totalCostUSD":0.5,"modelUsage":{models}}}"#),
            format!(r#"{{"type":"result","total_cost_usd":0.5,"modelUsage":{models}}}"#),
        ];
        let in_lines =
            lines.iter().map(|line| match BilledLine::parse_response_or_reported_totals(line.as_bytes()) {
                Some(BilledLine::Reported(report)) => report,
                other => panic!("{line}: {other:?}"),
            });
        let turn_log_report = serde_json::from_str(&format!(r#"{{"usd":0.5,"models":{models}}}"#)).unwrap();
        for report in in_lines.chain([ReportedUsage::from_value(&turn_log_report)]) {
            let model_usage = &report.models["claude-opus-5-5"];
            assert_eq!((report.cost_usd, model_usage.input_tokens), (Some(0.5), Some(10)));
            assert_eq!((model_usage.cache_creation_1h, model_usage.web_search_requests), (Some(3), Some(2)));
        }
        let negative = br#"{"type":"cost-state","totalCostUSD":-1}"#;
        let Some(BilledLine::Reported(report)) = BilledLine::parse_response_or_reported_totals(negative)
        else {
            panic!()
        };
        assert_eq!(report.cost_usd, None, "no credit");
    }
}
