//! The lines of `claude -p --output-format stream-json --verbose`.

use crate::lenient;
use crate::rate_limit::RateLimit;
use crate::result::RunResult;
use crate::transcript::Message;
use serde::Deserialize;

/// One line of the stream.
#[derive(Debug, Clone)]
pub enum StreamLine {
    /// The session has begun.
    Init {
        /// The model with its `[1m]` suffix.
        model: Option<String>,
        /// The client's version.
        version: Option<String>,
    },
    /// A message of the model (one line a block).
    Assistant {
        /// The message; its usage here is that of the first moment, not the last.
        message: Message,
        /// True when a subagent speaks.
        in_subagent: bool,
    },
    /// Tool results and injected prompts.
    User {
        /// The message.
        message: Message,
        /// True when they belong to a subagent.
        in_subagent: bool,
    },
    /// The client tries again after an error of the API.
    ApiRetry {
        /// The HTTP status.
        error_status: Option<u64>,
    },
    /// How much of the plan's quota is used; only with a subscription.
    RateLimit(Box<RateLimit>),
    /// The client has compacted.
    CompactBoundary,
    /// The end of a turn; with background tasks there may be several.
    Result(Box<RunResult>),
    /// A line this version does not act on.
    Other,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    subtype: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    model: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    claude_code_version: Option<String>,
    #[serde(deserialize_with = "lenient::field")]
    message: Message,
    #[serde(deserialize_with = "lenient::text")]
    parent_tool_use_id: Option<String>,
    #[serde(deserialize_with = "lenient::count")]
    error_status: Option<u64>,
    #[serde(deserialize_with = "lenient::field")]
    rate_limit_info: RateLimit,
}

impl StreamLine {
    /// Reads one line; a torn or foreign one is [`StreamLine::Other`].
    pub fn parse(bytes: &[u8]) -> StreamLine {
        let Ok(fields) = crate::parse::<Fields>(bytes) else { return StreamLine::Other };
        let in_subagent = fields.parent_tool_use_id.is_some();
        match (fields.kind.as_deref(), fields.subtype.as_deref()) {
            (Some("system"), Some("init")) => {
                StreamLine::Init { model: fields.model, version: fields.claude_code_version }
            }
            (Some("system"), Some("api_retry")) => StreamLine::ApiRetry { error_status: fields.error_status },
            (Some("system"), Some("compact_boundary")) => StreamLine::CompactBoundary,
            (Some("assistant"), _) => StreamLine::Assistant { message: fields.message, in_subagent },
            (Some("user"), _) => StreamLine::User { message: fields.message, in_subagent },
            (Some("rate_limit_event"), _) => StreamLine::RateLimit(Box::new(fields.rate_limit_info)),
            (Some("result"), _) => RunResult::parse(bytes)
                .map_or(StreamLine::Other, |result| StreamLine::Result(Box::new(result))),
            _ => StreamLine::Other,
        }
    }
}
