//! Following a client's stream in the file where it is written.

use super::watch::Progress;
use crate::iteration::Ended;
use policy::ending::ending;
use protocol::result::RunResult;
use protocol::stream::StreamLine;
use protocol::transcript::{Block, Message};
use session::Exit;
use session::text::{clip, one_line};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use store::{StoreError, disk};

/// How long after the client's first word our SessionStart hook may still be silent. The client waits for it
/// before it says that word, so this is only the time that two processes need to see the same file.
const HOOKS_PATIENCE: Duration = Duration::from_millis(500);

/// What has been read of a stream.
#[derive(Debug)]
pub(super) struct Follower {
    path: PathBuf,
    offset: u64,
    torn: Vec<u8>,
    result: Option<RunResult>,
    /// When the result came, while nothing has come after it.
    quiet_since: Option<Instant>,
    version: String,
    begun: Option<Instant>,
    looked: Instant,
}

impl Follower {
    pub(super) fn new(path: PathBuf) -> Follower {
        Follower {
            path,
            offset: 0,
            torn: Vec::new(),
            result: None,
            quiet_since: None,
            version: String::new(),
            begun: None,
            looked: Instant::now(),
        }
    }

    /// Reads what has come since the last time. An agent's `git clean` may have taken the file away: then
    /// there is no more to read, and the end is told by the process.
    pub(super) fn read_on(&mut self) -> Result<Vec<Progress<'static>>, StoreError> {
        if disk::size(&self.path).is_none_or(|size| size <= self.offset) {
            return Ok(Vec::new());
        }
        let bytes = disk::read_from(&self.path, self.offset)?;
        self.offset += bytes.len() as u64;
        self.torn.extend(bytes);
        let mut news = Vec::new();
        while let Some(line_break) = self.torn.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.torn.drain(..=line_break).collect();
            news.extend(self.hear(StreamLine::parse(&line)));
        }
        Ok(news)
    }

    fn hear(&mut self, line: StreamLine) -> Vec<Progress<'static>> {
        let speaks = !matches!(line, StreamLine::Other);
        if speaks {
            self.quiet_since = None;
        }
        match line {
            StreamLine::Init { model, version, .. } => {
                self.begun.get_or_insert(Instant::now());
                self.version = version.unwrap_or_default();
                vec![Progress::Client { model: model.unwrap_or_default(), version: self.version.clone() }]
            }
            StreamLine::Assistant { message, in_subagent } if !in_subagent => tools(&message),
            StreamLine::ApiRetry { error_status, .. } => {
                vec![Progress::Retry { status: error_status.unwrap_or(0) }]
            }
            StreamLine::CompactBoundary => vec![Progress::Compacted],
            StreamLine::Result(result) => {
                self.quiet_since = Some(Instant::now());
                self.result = Some(*result);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// How it ended, as far as the stream and the exit tell.
    pub(super) fn ended(&self, exit: Exit) -> Ended {
        Ended {
            ending: ending(self.result.as_ref(), exit),
            result_text: self.result.as_ref().and_then(|result| result.result.clone()),
            cost_usd: self.result.as_ref().and_then(|result| result.total_cost_usd).unwrap_or(0.0),
        }
    }

    /// True about once a second (at once when a result has just come, or the client has just begun).
    pub(super) fn time_to_look(&mut self) -> bool {
        let eager = self.begun.is_some_and(|begun| begun.elapsed() < HOOKS_PATIENCE + Duration::from_secs(1));
        let interval = if eager { Duration::from_millis(200) } else { Duration::from_secs(1) };
        let due = self.looked.elapsed() >= interval;
        if due {
            self.looked = Instant::now();
        }
        due
    }

    /// True when the client works and our SessionStart hook has not spoken.
    pub(super) fn is_unguarded(&self, hooks_seen: bool) -> bool {
        !hooks_seen && self.begun.is_some_and(|begun| begun.elapsed() > HOOKS_PATIENCE)
    }

    /// True when the result is long there, nothing has come after it, and the client lives on.
    pub(super) fn lingers(&self, limit: Duration) -> bool {
        self.quiet_since.is_some_and(|since| since.elapsed() > limit)
    }

    pub(super) fn was_stopped_by_hook(&self) -> bool {
        self.result.as_ref().and_then(|result| result.terminal_reason.as_deref()) == Some("hook_stopped")
    }

    /// True once the client has said who it is.
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

    /// What to say when the client refused a tool.
    pub(super) fn denial(&self) -> Option<String> {
        let tool = self.result.as_ref()?.permission_denials.first()?.tool_name.clone()?;
        Some(format!(
            "the client refused the tool {tool}: allow it, for example with `-- --allowedTools {tool}` or a permission mode of your choice"
        ))
    }
}

fn tools(message: &Message) -> Vec<Progress<'static>> {
    let called = message.blocks().into_iter().filter(|block| block.kind.as_deref() == Some("tool_use"));
    called
        .map(|block| Progress::Tool { detail: detail(&block), name: block.name.unwrap_or_default() })
        .collect()
}

fn detail(block: &Block) -> String {
    let words = block.input.command.as_ref().or(block.input.file_path.as_ref());
    clip(&one_line(words.map_or("", String::as_str)), 80)
}
