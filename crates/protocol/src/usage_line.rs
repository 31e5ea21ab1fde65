//! The lines of a transcript that the usage of all sessions is computed from.

use crate::MalformedJson;
use crate::billing::{BilledUsage, ReportedUsage};
use crate::lenient;
use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::LazyLock;

// Parsing whole lines would take most of the time: nearly all bytes are the results of tools, which have no usage, and the
// contents of responses. Both are skipped by their position in the line. A line in which they are elsewhere is parsed whole.
// This halves the instructions a byte and the time (1 GB in 2,000 files).

/// The client writes the keys of a line up to the content of its message within this many bytes.
const MAX_BYTES_BEFORE_CONTENT: usize = 512;
/// The keys after the content take about 1,200 bytes.
const MAX_BYTES_AFTER_CONTENT: usize = 4096;
static MESSAGE_KEY: LazyLock<Finder> = LazyLock::new(|| Finder::new("\"message\":"));
static USER_KIND: LazyLock<Finder> = LazyLock::new(|| Finder::new("\"type\":\"user\""));
static CONTENT_START: LazyLock<Finder> = LazyLock::new(|| Finder::new("\"content\":["));
static CONTENT_END: LazyLock<Finder> = LazyLock::new(|| Finder::new("],\"stop_reason\":"));
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// A line with usage contains one of these markers. A text in the transcript cannot contain them, because its quotation marks
/// are escaped.
static USAGE_MARKERS: LazyLock<[Finder; 3]> =
    LazyLock::new(|| ["\"usage\"", "\"cost-state\"", "\"compact_boundary\""].map(Finder::new));

/// Returns true if the client wrote before the message that the line is the user's, or a tool's result.
fn is_user_line(line: &[u8]) -> bool {
    let start = &line[..line.len().min(MAX_BYTES_BEFORE_CONTENT)];
    let start = MESSAGE_KEY.find(start).map_or(start, |end| &start[..end]);
    USER_KIND.find(start).is_some()
}

/// Copies the line of a response without the content of the message. Returns `None` if the content is not where the client
/// writes it. The copy is not valid JSON if something else was removed.
fn copy_without_content<'a>(line: &[u8], buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let start = &line[..line.len().min(MAX_BYTES_BEFORE_CONTENT)];
    let message = MESSAGE_KEY.find(start)?;
    let content = message + CONTENT_START.find(&start[message..])? + CONTENT_START.needle().len();
    let tail_start = line.len().saturating_sub(MAX_BYTES_AFTER_CONTENT).max(content);
    let content_end = tail_start + CONTENT_END.find_iter(&line[tail_start..]).last()?;
    buffer.clear();
    buffer.extend_from_slice(&line[..content]);
    buffer.extend_from_slice(&line[content_end..]);
    Some(buffer)
}

/// A line of a transcript that has usage, or marks a compaction.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly every value is a response, and none is kept")]
pub enum UsageLine<'a> {
    Response(ResponseLine<'a>),
    /// The client's own totals, which it writes when a process ends.
    CostState(Box<CostState>),
    /// The client compacted the main conversation.
    Compaction,
}

/// A part of a response. All parts of one response have the same id, and nearly always the same usage.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseLine<'a> {
    #[serde(rename = "type", borrow, default, deserialize_with = "lenient::borrowed_text")]
    kind: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "lenient::flag")]
    is_api_error_message: bool,
    /// True for a subagent's response, and for the answer to a side question.
    #[serde(default, deserialize_with = "lenient::flag")]
    pub is_sidechain: bool,
    #[serde(borrow, default, deserialize_with = "lenient::borrowed_text")]
    requested_model: Option<Cow<'a, str>>,
    /// RFC 3339.
    #[serde(borrow, default, deserialize_with = "lenient::borrowed_text")]
    pub timestamp: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "lenient::borrowed_text")]
    request_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "lenient::borrowed_text")]
    uuid: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "lenient::borrowed_text")]
    pub session_id: Option<Cow<'a, str>>,
    /// The session that sent the request, if the line was copied from it.
    #[serde(borrow, default, deserialize_with = "lenient::borrowed_text")]
    request_session_id: Option<Cow<'a, str>>,
    /// Older clients mark the lines of a forked session with this.
    #[serde(borrow)]
    forked_from: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "lenient::borrowed_text")]
    pub cwd: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "lenient::borrowed_text")]
    pub git_branch: Option<Cow<'a, str>>,
    /// The client's own figure for this response, which only old clients wrote (before 1.0.9).
    #[serde(rename = "costUSD", default, deserialize_with = "lenient::non_negative_number")]
    pub cost_usd: Option<f64>,
    #[serde(borrow)]
    message: ResponseMessage<'a>,
}

#[derive(Debug, Deserialize)]
struct ResponseMessage<'a> {
    #[serde(borrow, default, deserialize_with = "lenient::borrowed_text")]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "lenient::borrowed_text")]
    model: Option<Cow<'a, str>>,
    usage: Option<BilledUsage>,
}

/// The client's own totals of everything since `start_time`. A process that resumes or forks a session continues them.
#[derive(Debug, Clone, Default)]
pub struct CostState {
    /// When the first of these processes started, in milliseconds since the Unix epoch.
    pub start_time: Option<u64>,
    /// True if the client did not know the price of a model, so that a part of the cost is its guess.
    pub has_unknown_model_cost: bool,
    pub totals: ReportedUsage,
}

/// The fields of lines that are not responses.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OtherLine {
    #[serde(rename = "type", deserialize_with = "lenient::non_empty_text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    subtype: Option<String>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    is_sidechain: bool,
    #[serde(deserialize_with = "lenient::rounded_count")]
    start_time: Option<u64>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    has_unknown_model_cost: bool,
}

impl<'a> UsageLine<'a> {
    /// Parses a line. Returns `None` for a line without usage: a tool's result can have the markers of one, too, and the client
    /// writes an API error as a response with empty usage. `buffer` is only there to be reused.
    pub fn parse(bytes: &'a [u8], buffer: &'a mut Vec<u8>) -> Result<Option<UsageLine<'a>>, MalformedJson> {
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        if is_user_line(bytes) {
            return Ok(None);
        }
        // Checked once as a whole, because serde_json checks the strings of bytes one by one.
        let short_line = copy_without_content(bytes, buffer).and_then(|line| str::from_utf8(line).ok());
        if let Some(line) = short_line.and_then(|line| serde_json::from_str::<ResponseLine>(line).ok())
            // The usage may have been removed with the content.
            && line.message.usage.is_some()
        {
            return Ok(line.into_usage_line());
        }
        if !USAGE_MARKERS.iter().any(|marker| marker.find(bytes).is_some()) {
            return Ok(None);
        }
        let other: OtherLine = crate::parse_json_object(bytes)?;
        match (other.kind.as_deref(), other.subtype.as_deref()) {
            (Some("assistant"), _) => {
                let line: ResponseLine = serde_json::from_slice(bytes).map_err(MalformedJson)?;
                Ok(line.into_usage_line())
            }
            (Some("cost-state"), _) => Ok(Some(UsageLine::CostState(Box::new(CostState {
                start_time: other.start_time,
                has_unknown_model_cost: other.has_unknown_model_cost,
                totals: crate::parse_json_object(bytes)?,
            })))),
            (_, Some("compact_boundary")) if !other.is_sidechain => Ok(Some(UsageLine::Compaction)),
            _ => Ok(None),
        }
    }
}

impl<'a> ResponseLine<'a> {
    fn into_usage_line(self) -> Option<UsageLine<'a>> {
        let is_response = self.kind.as_deref() == Some("assistant")
            && !self.is_api_error_message
            && self.message.model.as_deref() != Some("<synthetic>")
            && self.message.usage.is_some();
        is_response.then_some(UsageLine::Response(self))
    }

    /// Returns what identifies the response in all its lines and copies: the API's id of the message or of the request, or else
    /// the line's own id, which a copy keeps.
    pub fn id(&self) -> Option<&str> {
        self.message.id.as_deref().or(self.request_id.as_deref()).or(self.uuid.as_deref())
    }

    /// Returns true if the client marked the line as a copy from another session.
    pub fn is_copy(&self) -> bool {
        let has_other_session =
            self.request_session_id.is_some() && self.request_session_id != self.session_id;
        has_other_session || self.forked_from.is_some()
    }

    /// Returns the model whose price applies: the requested one, or else the one that responded.
    pub fn model(&self) -> Option<&str> {
        self.requested_model.as_deref().or(self.message.model.as_deref())
    }

    pub fn usage(&self) -> Option<&BilledUsage> {
        self.message.usage.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[u8]) -> Result<Option<UsageLine<'static>>, MalformedJson> {
        UsageLine::parse(line.to_vec().leak(), Box::leak(Box::default()))
    }

    fn parse_response(line: &str) -> Option<ResponseLine<'static>> {
        match parse(line.as_bytes()).unwrap()? {
            UsageLine::Response(response) => Some(response),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn each_response_is_identified_by_the_best_id_that_it_has() {
        for (ids, expected) in [
            (r#""message":{"id":"m","usage":{}},"requestId":"r","uuid":"u""#, Some("m")),
            (r#""message":{"id":"","usage":{}},"requestId":"r","uuid":"u""#, Some("r")),
            (r#""message":{"id":null,"usage":{}},"requestId":null,"uuid":"u""#, Some("u")),
            (r#""message":{"usage":{}}"#, None),
        ] {
            let response = parse_response(&format!(r#"{{"type":"assistant",{ids}}}"#)).unwrap();
            assert_eq!(response.id(), expected, "{ids}");
        }
    }

    #[test]
    fn a_field_of_the_wrong_type_loses_nothing_else() {
        let line = r#"{"type":"assistant","cwd":"C:\\work","gitBranch":7,"costUSD":-1,"isSidechain":null,"timestamp":5,
            "message":{"id":"m\u0031","model":"x","usage":{"input_tokens":5,"output_tokens":"many"}}}"#;
        let response = parse_response(line).unwrap();
        assert_eq!((response.cwd.as_deref(), response.git_branch.as_deref()), (Some("C:\\work"), None));
        assert_eq!(
            (response.usage().unwrap().input_tokens, response.usage().unwrap().output_tokens),
            (Some(5), None)
        );
        assert_eq!((response.id(), response.model(), response.cost_usd), (Some("m1"), Some("x"), None));
    }

    #[test]
    fn a_line_that_another_program_wrote_counts() {
        let spaced = r#"{"type": "assistant", "message": {"usage": {"input_tokens": 5}}}"#;
        for line in [spaced.to_owned(), format!("\u{feff}{spaced}")] {
            assert_eq!(parse_response(&line).unwrap().usage().unwrap().input_tokens, Some(5), "{line}");
        }
    }

    #[test]
    fn the_client_marks_copies_from_other_sessions() {
        for (fields, is_copy) in [
            (r#""sessionId":"s""#, false),
            (r#""sessionId":"s","requestSessionId":"s""#, false),
            (r#""sessionId":"s","requestSessionId":"t""#, true),
            (r#""sessionId":"s","forkedFrom":{"sessionId":"t"}"#, true),
            (r#""sessionId":"s","forkedFrom":null"#, false),
        ] {
            let response =
                parse_response(&format!(r#"{{"type":"assistant",{fields},"message":{{"usage":{{}}}}}}"#));
            assert_eq!(response.unwrap().is_copy(), is_copy, "{fields}");
        }
    }

    #[test]
    fn the_usage_is_found_whatever_the_content_has() {
        let usage = r#""usage":{"input_tokens":5,"output_tokens":7}"#;
        let fake =
            r#"{"usage":{"input_tokens":900},"content":[1],"stop_reason":"x","type":"user","message":{}}"#;
        for message in [
            format!(r#"{{"id":"m","content":[{{"input":{fake}}}],"stop_reason":"end_turn",{usage}}}"#),
            format!(
                r#"{{"id":"m","container":{{"content":[1]}},"content":[{fake}],"stop_reason":null,{usage}}}"#
            ),
            format!(r#"{{"id":"m","stop_reason":null,"content":[{{"input":{fake}}}],{usage}}}"#),
            format!(r#"{{"id":"m","content":[],"stop_reason":null,{usage}}}"#),
            format!(r#"{{"id":"m","content":"],\"stop_reason\":{{","stop_reason":null,{usage}}}"#),
            format!(r#"{{{usage},"id":"m","content":[{fake}],"stop_reason":null}}"#),
            format!(r#"{{"id":"m","content":[{fake}],{usage},"stop_reason":null}}"#),
            format!(
                r#"{{"id":"m","content":["{}"],"stop_reason":null,{usage}}}"#,
                "x".repeat(2 * MAX_BYTES_AFTER_CONTENT)
            ),
            format!(
                r#"{{"id":"m","more":"{}","content":[{fake}],{usage}}}"#,
                "x".repeat(2 * MAX_BYTES_BEFORE_CONTENT)
            ),
        ] {
            for line in [
                format!(r#"{{"isSidechain":false,"message":{message},"type":"assistant"}}"#),
                format!(r#"{{"type":"assistant","message":{message}}}"#),
            ] {
                let response = parse_response(&line).unwrap_or_else(|| panic!("{line}"));
                let usage = response.usage().unwrap();
                assert_eq!((usage.input_tokens, usage.output_tokens), (Some(5), Some(7)), "{line}");
                assert_eq!(response.id(), Some("m"));
            }
            let long_key = "x".repeat(2 * MAX_BYTES_BEFORE_CONTENT);
            for line in [
                format!(r#"{{"type":"user","message":{{"content":[]}},"toolUseResult":{message}}}"#),
                format!(r#"{{"cwd":"{long_key}","type":"user","message":{message}}}"#),
                r#"{"type":"assistant","message":{"content":"say \"usage\":{"}}"#.to_owned(),
                String::new(),
            ] {
                assert!(parse_response(&line).is_none(), "{line}");
            }
        }
    }

    #[test]
    fn lines_without_usage_are_told_from_lines_that_cannot_be_parsed() {
        for line in [
            r#"{"type":"user","toolUseResult":{"usage":{"input_tokens":7}},"message":{"usage":{"input_tokens":7}}}"#,
            r#"{"type":"assistant","isApiErrorMessage":true,"message":{"usage":{"input_tokens":7}}}"#,
            r#"{"type":"assistant","message":{"model":"<synthetic>","usage":{"input_tokens":7}}}"#,
            r#"{"type":"system","subtype":"compact_boundary","isSidechain":true}"#,
        ] {
            assert!(parse_response(line).is_none(), "{line}");
        }
        for line in [r#"{"type":"assistant","message":{"usage":{"input_to"#, r#"["usage":{"#] {
            assert!(parse(line.as_bytes()).is_err(), "{line}");
        }
        let invalid_utf8 =
            b"{\"type\":\"assistant\",\"message\":{\"content\":\"\xff\",\"usage\":{\"input_tokens\":7}}}";
        assert!(matches!(parse(invalid_utf8), Ok(Some(UsageLine::Response(_)))));
    }

    #[test]
    fn a_cost_state_has_the_start_of_its_count() {
        let line =
            br#"{"type":"cost-state","totalCostUSD":0.5,"startTime":1796018558109,"hasUnknownModelCost":true,
            "modelUsage":{"claude-opus-5-5":{"inputTokens":3,"costUSD":0.5}}}"#;
        let Ok(Some(UsageLine::CostState(state))) = parse(line) else { panic!() };
        assert_eq!((state.start_time, state.has_unknown_model_cost), (Some(1_796_018_558_109), true));
        assert_eq!(
            (state.totals.cost_usd, state.totals.models["claude-opus-5-5"].cost_usd),
            (Some(0.5), Some(0.5))
        );
    }
}
