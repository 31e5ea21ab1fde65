//! The lines of `claude -p --output-format stream-json --verbose`.

use crate::lenient;
use crate::rate_limit::RateLimit;
use crate::result::ClientResult;
use crate::transcript::Message;
use serde::Deserialize;

/// One line of the stream.
#[derive(Debug, Clone)]
pub enum StreamLine {
    /// A session starts. Occurs again when the client resumes after background tasks.
    Init {
        /// The model with its `[1m]` suffix.
        model: Option<String>,
        version: Option<String>,
    },
    /// A message from the model; the client writes one line per content block.
    Assistant {
        /// The message; its usage is the initial one, not the final one.
        message: Message,
        /// True if a subagent sent the message.
        is_from_subagent: bool,
    },
    /// Tool results and injected prompts.
    User {
        message: Message,
        /// True if the message belongs to a subagent's conversation.
        is_from_subagent: bool,
    },
    /// The client retries after an API error.
    ApiRetry {
        /// The HTTP status.
        error_status: Option<u64>,
    },
    /// Usage of the plan's quota; only with a subscription.
    RateLimit(Box<RateLimit>),
    /// The client has compacted.
    CompactBoundary,
    /// The end of a turn; with background tasks there may be several.
    Result(Box<ClientResult>),
    /// A line that this version ignores.
    Other,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StreamFields {
    #[serde(rename = "type", deserialize_with = "lenient::non_empty_text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    subtype: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    model: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    claude_code_version: Option<String>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    message: Message,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    parent_tool_use_id: Option<String>,
    #[serde(deserialize_with = "lenient::rounded_count")]
    error_status: Option<u64>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    rate_limit_info: RateLimit,
}

impl StreamLine {
    /// Parses one line. A truncated or unknown line is [`StreamLine::Other`].
    pub fn parse(bytes: &[u8]) -> StreamLine {
        let Ok(fields) = crate::parse_json_object::<StreamFields>(bytes) else { return StreamLine::Other };
        let is_from_subagent = fields.parent_tool_use_id.is_some();
        match (fields.kind.as_deref(), fields.subtype.as_deref()) {
            (Some("system"), Some("init")) => {
                StreamLine::Init { model: fields.model, version: fields.claude_code_version }
            }
            (Some("system"), Some("api_retry")) => StreamLine::ApiRetry { error_status: fields.error_status },
            (Some("system"), Some("compact_boundary")) => StreamLine::CompactBoundary,
            (Some("assistant"), _) => StreamLine::Assistant { message: fields.message, is_from_subagent },
            (Some("user"), _) => StreamLine::User { message: fields.message, is_from_subagent },
            (Some("rate_limit_event"), _) => StreamLine::RateLimit(Box::new(fields.rate_limit_info)),
            (Some("result"), _) => ClientResult::parse(bytes)
                .map_or(StreamLine::Other, |result| StreamLine::Result(Box::new(result))),
            _ => StreamLine::Other,
        }
    }
}
