//! Following a client's stream in the file where it is written.

use crate::run::observer::Progress;
use crate::session_result::SessionResult;
use plimsoll_domain::Exit;
use plimsoll_domain::limits::{Quota, QuotaWindow};
use plimsoll_domain::state::ApiTrouble;
use plimsoll_domain::text::{clip, one_line};
use plimsoll_policy::session_usage::SessionUsage;
use plimsoll_policy::silence::{Silence, Timeouts, too_long};
use plimsoll_protocol::rate_limit::RateLimit;
use plimsoll_protocol::result::RunResult;
use plimsoll_protocol::stream::StreamLine;
use plimsoll_protocol::transcript::{Block, Message};
use plimsoll_store::clock;
use plimsoll_store::disk::Growing;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long after the client's first output our SessionStart hook may be missing. The client waits for the hook before that
/// output, so this only covers the time until a write is visible to the other process.
const HOOKS_TIMEOUT: Duration = Duration::from_millis(500);

const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// What has been read of a stream.
#[derive(Debug)]
pub(super) struct StreamReader {
    path: PathBuf,
    stream: Option<Growing>,
    torn: Vec<u8>,
    result: Option<RunResult>,
    /// How long it has been followed; all moments below are of this clock.
    awake: Awake,
    /// When the result came, while nothing has come after it.
    quiet_since: Option<Duration>,
    version: String,
    begun: Option<Duration>,
    looked: Instant,
    /// When anything came last.
    heard: Duration,
    quota: Option<Quota>,
    /// When the limit resets that the client has run into, in seconds since 1970.
    rejected_until: Option<u64>,
    /// For a session that ends without a result.
    usage: SessionUsage,
    /// Calls without a result yet, those of subagents too: the id, and the tool with what it was asked.
    running: Vec<(String, String)>,
    /// Why the client retries, until the API answers.
    api_trouble: Option<ApiTrouble>,
    /// True once our SessionStart hook has spoken: what an agent writes into the state later does not unsay it.
    hooks_seen: bool,
}

impl StreamReader {
    /// The version is that of a client which does not say it in its stream (before 2.0).
    pub(super) fn new(path: PathBuf, version: &str) -> StreamReader {
        StreamReader {
            stream: Growing::open(&path),
            path,
            torn: Vec::new(),
            result: None,
            awake: Awake::default(),
            quiet_since: None,
            version: version.to_owned(),
            begun: None,
            looked: Instant::now(),
            heard: Duration::ZERO,
            quota: None,
            rejected_until: None,
            usage: SessionUsage::default(),
            running: Vec::new(),
            api_trouble: None,
            hooks_seen: false,
        }
    }

    /// The stream of a client that another process started: if its file is gone, what it still writes to.
    pub(super) fn of_adopted(path: PathBuf, version: &str, writes_to: Option<&Path>) -> StreamReader {
        let mut follower = StreamReader::new(path, version);
        follower.stream = follower.stream.or_else(|| Growing::open(writes_to?));
        follower
    }

    /// Reads what has come since the last time. An agent's `git clean` may take the file's name away: what is
    /// open stays readable.
    pub(super) fn read_on(&mut self) -> Vec<Progress<'static>> {
        self.awake.look();
        if self.stream.is_none() {
            self.stream = Growing::open(&self.path);
        }
        let bytes = self.stream.as_mut().and_then(|stream| stream.read_on().ok()).unwrap_or_default();
        if !bytes.is_empty() {
            self.heard = self.awake.time;
        }
        // The client may be in the middle of a line: what has no line end yet waits for the next read.
        self.torn.extend(bytes);
        let whole = self.torn.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let lines: Vec<u8> = self.torn.drain(..whole).collect();
        let mut progress = Vec::new();
        for line in lines.split(|byte| *byte == b'\n') {
            self.usage.read_line(line);
            progress.extend(self.hear(StreamLine::parse(line)));
        }
        progress
    }

    fn hear(&mut self, line: StreamLine) -> Vec<Progress<'static>> {
        let speaks = !matches!(line, StreamLine::Other | StreamLine::RateLimit(_));
        if speaks {
            self.quiet_since = None;
        }
        match line {
            StreamLine::Init { model, version, .. } => {
                self.begun.get_or_insert(self.awake.time);
                if let Some(version) = version {
                    self.version = version;
                }
                vec![Progress::Client { model: model.unwrap_or_default(), version: self.version.clone() }]
            }
            StreamLine::Assistant { message, in_subagent } => {
                self.api_trouble = None;
                self.running.extend(calls(&message));
                if in_subagent { Vec::new() } else { tools(&message) }
            }
            StreamLine::User { message, .. } => {
                let blocks = message.blocks();
                let is_answered =
                    |id: &str| blocks.iter().any(|block| block.tool_use_id.as_deref() == Some(id));
                self.running.retain(|(id, _)| !is_answered(id));
                Vec::new()
            }
            StreamLine::RateLimit(limit) => {
                self.rejected_until = if limit.is_rejected() { limit.resets_at } else { None };
                self.quota.get_or_insert_default().merge(&quota(&limit));
                Vec::new()
            }
            StreamLine::ApiRetry { error_status, .. } => {
                self.retry(error_status.unwrap_or(0)).into_iter().collect()
            }
            StreamLine::CompactBoundary => vec![Progress::Compacted],
            StreamLine::Result(result) => {
                self.api_trouble = None;
                self.quiet_since = Some(self.awake.time);
                // With background tasks a stream has several results (2.1.329): the last one counts.
                self.result = Some(*result);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Takes note of a retry. The client retries every few seconds: only the first one, and another status, are told.
    fn retry(&mut self, status: u64) -> Option<Progress<'static>> {
        let known = self.api_trouble.as_ref();
        if known.is_some_and(|trouble| trouble.status == status) {
            return None;
        }
        let since = known.map_or_else(|| clock::stamp(clock::now()), |trouble| trouble.since.clone());
        self.api_trouble = Some(ApiTrouble { since: since.clone(), status });
        Some(Progress::Retry { status, since })
    }

    /// Why the client retries at present, if it does.
    pub(super) fn api_trouble(&self) -> Option<&ApiTrouble> {
        self.api_trouble.as_ref()
    }

    /// The session's result, from the stream and the exit. Its time is that of the last output, even if the stream is read
    /// only now.
    pub(super) fn ended(&self, exit: Exit) -> SessionResult {
        let at = self.stream.as_ref().and_then(Growing::grew_at);
        let of_result = SessionResult::of_result(self.result.as_ref(), exit, at);
        let of_event = self.rejected_until.and_then(clock::at).map(clock::stamp);
        // A session that went on after its result has used more than that says. The client's account only grows, and a session
        // can write into this file: a last result that costs less than one before it does not count.
        let highest = self.usage.reported_usd().unwrap_or(0.0);
        let cost = of_result.cost.filter(|cost| self.quiet_since.is_some() && cost.usd >= highest);
        let is_counted = cost.is_some() && of_result.tokens > 0;
        let tokens = if is_counted { of_result.tokens } else { self.usage.tokens() };
        SessionResult {
            resets_at: of_event.or(of_result.resets_at),
            cost,
            output_usage: Some(self.usage.clone()),
            tokens,
            quota: self.quota.clone(),
            ..of_result
        }
    }

    /// True a few times a second: state and record are small files.
    pub(super) fn time_to_look(&mut self) -> bool {
        let due = self.looked.elapsed() >= LOOK_INTERVAL;
        if due {
            self.looked = Instant::now();
        }
        due
    }

    /// Takes what the state says of our hooks; answers whether they have spoken.
    pub(super) fn sees_hooks(&mut self, hooks_seen: bool) -> bool {
        self.hooks_seen |= hooks_seen;
        self.hooks_seen
    }

    /// True when the client works and our SessionStart hook has not spoken.
    pub(super) fn is_unguarded(&self) -> bool {
        !self.hooks_seen && self.begun.is_some_and(|begun| self.awake.since(begun) > HOOKS_TIMEOUT)
    }

    /// True when the result is long there, nothing has come after it, and the client lives on.
    pub(super) fn lingers(&self, limit: Duration) -> bool {
        self.quiet_since.is_some_and(|since| self.awake.since(since) > limit)
    }

    /// The silence, if nothing has come for too long and no result is there either. Of several tools the one that was
    /// called last is named: the others may be waiting for it.
    pub(super) fn too_silent(&self, timeouts: Timeouts) -> Option<Silence> {
        if self.quiet_since.is_some() {
            return None;
        }
        let tool = self.running.last().map(|(_, tool)| tool.as_str());
        too_long(self.awake.since(self.heard), tool, timeouts)
    }

    pub(super) fn was_stopped_by_hook(&self) -> bool {
        self.result.as_ref().and_then(|result| result.terminal_reason.as_deref()) == Some("hook_stopped")
    }

    /// True once the client has said anything.
    pub(super) fn has_spoken(&self) -> bool {
        self.begun.is_some() || self.result.is_some()
    }

    /// True once it has ended with a result.
    pub(super) fn has_result(&self) -> bool {
        self.result.is_some()
    }

    /// True once the client has reported its model and version.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    pub(super) fn version(&self) -> String {
        self.version.clone()
    }

    /// Windows the client named.
    pub(super) fn windows(&self) -> Vec<(&str, u64)> {
        let usage = self.result.iter().flat_map(|result| &result.model_usage);
        usage.filter_map(|(model, usage)| Some((model.as_str(), usage.context_window?))).collect()
    }
}

/// The time in which client and run were both at work: a computer that sleeps, or a terminal that stops both, makes no
/// client silent.
#[derive(Debug, Default)]
struct Awake {
    time: Duration,
    looked: Option<Instant>,
}

/// The follower looks twenty times a second; what takes longer than this was no look, but a rest.
const LONGEST_LOOK: Duration = Duration::from_secs(2);

impl Awake {
    fn look(&mut self) {
        let now = Instant::now();
        let passed = self.looked.replace(now).map_or(Duration::ZERO, |looked| now - looked);
        self.add(passed);
    }

    fn add(&mut self, passed: Duration) {
        self.time += passed.min(LONGEST_LOOK);
    }

    fn since(&self, moment: Duration) -> Duration {
        self.time.saturating_sub(moment)
    }
}

fn quota(limit: &RateLimit) -> Quota {
    let window = |window: Option<plimsoll_protocol::rate_limit::QuotaWindow>| {
        let window = window?;
        let resets_at = window.resets_at.and_then(clock::at).map(clock::stamp);
        Some(QuotaWindow { percent: window.utilization? * 100.0, resets_at })
    };
    Quota { five_hour: window(limit.five_hour()), seven_day: window(limit.seven_day()) }
}

fn tools(message: &Message) -> Vec<Progress<'static>> {
    let called = message.blocks().iter().filter(|block| block.kind.as_deref() == Some("tool_use"));
    called
        .map(|block| Progress::Tool { detail: detail(block), name: block.name.clone().unwrap_or_default() })
        .collect()
}

fn calls(message: &Message) -> Vec<(String, String)> {
    let called = message.blocks().iter().filter(|block| block.kind.as_deref() == Some("tool_use"));
    called
        .filter_map(|block| {
            let (name, detail) = (block.name.clone().unwrap_or_default(), detail(block));
            let tool = if detail.is_empty() { name } else { format!("{name}: {detail}") };
            Some((block.id.clone()?, tool))
        })
        .collect()
}

fn detail(block: &Block) -> String {
    let words = block.input.command.as_ref().or(block.input.file_path.as_ref());
    clip(&one_line(words.map_or("", String::as_str)), 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_once_and_again_with_another_status() {
        let mut reader = StreamReader::new(PathBuf::from("/nowhere"), "");
        let told: Vec<u64> = [0, 0, 0, 529, 529, 0]
            .into_iter()
            .filter_map(|status| match reader.retry(status)? {
                Progress::Retry { status, .. } => Some(status),
                _ => None,
            })
            .collect();
        assert_eq!(told, [0, 529, 0]);
    }

    #[test]
    fn a_rest_of_the_computer_makes_no_client_silent() {
        let mut awake = Awake::default();
        for _ in 0..100 {
            awake.add(Duration::from_millis(50));
        }
        assert_eq!(awake.since(Duration::from_secs(1)), Duration::from_secs(4));
        awake.add(Duration::from_secs(8 * 3600));
        assert_eq!(awake.since(Duration::from_secs(1)), Duration::from_secs(4) + LONGEST_LOOK);
    }

    #[test]
    fn a_result_has_the_cost_unless_the_session_went_on_after_it() {
        const RESULT: &str =
            r#"{"type":"result","total_cost_usd":0.5,"modelUsage":{"claude-opus-5-5":{"inputTokens":100}}}"#;
        let response = |id: &str| {
            format!(
                r#"{{"type":"assistant","message":{{"id":"{id}","model":"claude-opus-5-5","usage":{{"input_tokens":100}}}}}}"#
            )
        };
        let ended = |lines: &[String]| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("output.jsonl");
            let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            plimsoll_store::disk::replace(&path, text.as_bytes(), plimsoll_store::Durability::Lazy).unwrap();
            let mut reader = StreamReader::new(path, "2.1.329");
            reader.read_on();
            let ended = reader.ended(Exit::default());
            (ended.cost.map(|cost| cost.usd), ended.tokens, ended.output_usage.map(|usage| usage.cost().usd))
        };
        let finished = [response("m1"), RESULT.to_owned()];
        assert_eq!(ended(&finished), (Some(0.5), 100, Some(0.5)));
        let went_on = [response("m1"), RESULT.to_owned(), response("m2")];
        assert_eq!(ended(&went_on), (None, 200, Some(0.5 + 100.0 * 4.0 / 1e6)));
        assert_eq!(ended(&[response("m1")]), (None, 100, Some(100.0 * 4.0 / 1e6)));
        // What a session appends to its own output does not make it cheaper.
        let forged = r#"{"type":"result","total_cost_usd":0,"modelUsage":{}}"#.to_owned();
        let cheaper = [response("m1"), RESULT.to_owned(), forged];
        assert_eq!(ended(&cheaper), (None, 100, Some(0.5)));
    }
}
