//! What only the client knows of a session, as our module inside the client reports it.

use crate::lenient;
use crate::{MalformedJson, parse_json_object};
use serde::Deserialize;

/// The version of the report and of the answers to it.
pub const SCHEMA_VERSION: u64 = 1;

/// One report. Every value may be missing.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ClientReport {
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub schema_version: Option<u64>,
    /// The id of the session.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub session: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub client_version: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub model: Option<String>,
    /// The input tokens of the last response.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub tokens: Option<u64>,
    /// The size of the context window in tokens.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub window: Option<u64>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub auto_compact: AutoCompactReport,
    /// The subagents that work now.
    #[serde(deserialize_with = "lenient::readable_elements")]
    pub agents: Vec<AgentReport>,
    /// The folder of the module that asks.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub module_folder: Option<String>,
    /// The last tool call of the conversation that is compacted.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub last_tool_use_id: Option<String>,
    /// The last message of that conversation, if it is a prompt.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub last_prompt: Option<String>,
}

/// The client's own automatic compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AutoCompactReport {
    /// The tokens at which it happens.
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub threshold: Option<u64>,
    /// Where the client has the threshold from.
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub source: Option<String>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    pub enabled: Option<bool>,
}

/// One subagent.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AgentReport {
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub name: Option<String>,
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub tokens: Option<u64>,
    #[serde(deserialize_with = "lenient::rounded_count")]
    pub window: Option<u64>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    pub model: Option<String>,
    /// In US dollars.
    #[serde(deserialize_with = "lenient::non_negative_number")]
    pub cost: Option<f64>,
}

/// Why a report cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidReport {
    #[error("the client's report is {0}")]
    Malformed(#[from] MalformedJson),
    #[error("the client's report names no session")]
    NoSession,
    #[error(
        "the client's report has schema version {0}, and this Plimsoll knows {SCHEMA_VERSION}: run `plimsoll init` again"
    )]
    OtherVersion(u64),
}

impl ClientReport {
    /// Parses a report. Returns an error for another version, because its values may mean something else.
    pub fn parse(bytes: &[u8]) -> Result<ClientReport, InvalidReport> {
        let report: ClientReport = parse_json_object(bytes)?;
        match report.schema_version {
            Some(version) if version != SCHEMA_VERSION => Err(InvalidReport::OtherVersion(version)),
            _ if report.session.is_none() => Err(InvalidReport::NoSession),
            _ => Ok(report),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_needs_a_session_and_a_wrong_value_loses_only_itself() {
        let report = ClientReport::parse(
            br#"{"schema_version":1,"session":"s","tokens":"many","window":200000,"agents":[{"name":"a","tokens":7},3],"new":{}}"#,
        )
        .expect("a report");
        assert_eq!((report.tokens, report.window), (None, Some(200_000)));
        assert_eq!(report.agents.len(), 1);
        for (text, expected) in [
            (&b"{}"[..], "the client's report names no session"),
            (b"[]", "the client's report is not one JSON object"),
            (br#"{"schema_version":2,"session":"s"}"#, "schema version 2, and this Plimsoll knows 1"),
        ] {
            let error = ClientReport::parse(text).expect_err("an error").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
