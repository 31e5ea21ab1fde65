//! A sentence for each event of the journal.

use super::phrase::{Tone, brief};
use super::verdict::verdict;
use plimsoll_domain::journal::{
    BreakerOpened, CheckpointWritten, JournalEntry, JournalEvent, LevelReached, Room, RunBegun, WipCommit,
};
use plimsoll_domain::state::Cause;
use plimsoll_domain::text::{clip, counted, one_line, tokens};
use plimsoll_protocol::event::Source;

/// What is said of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sentence {
    /// This.
    Said(String, Tone),
    /// Nothing: another line says it.
    LeftOut,
}

/// Puts an entry into words.
pub(super) fn sentence(entry: &JournalEntry) -> Sentence {
    let plain = |words: String| Sentence::Said(words, Tone::Plain);
    let bold = |words: &str| Sentence::Said(words.to_owned(), Tone::Bold);
    let bad = |words: String| Sentence::Said(words, Tone::Bad);
    match &entry.event {
        // SessionStart tells that a session begins, and how it was planned; the final verdict follows the
        // provisional one.
        JournalEvent::Planned(_) | JournalEvent::Spawned { .. } | JournalEvent::ProvisionalVerdict { .. } => {
            Sentence::LeftOut
        }
        // The last response is measured only when the iteration is closed: that line tells the end and the peak.
        JournalEvent::SessionEnd(_) if entry.run_id.is_some() => Sentence::LeftOut,
        JournalEvent::IterationClosed(closed) => plain(session_end(Some(closed.peak_percent), None)),
        JournalEvent::SessionEnd(ended) => plain(session_end(ended.peak_percent, ended.reason.as_deref())),
        JournalEvent::RunStarted(begun) => bold(&run_started(begun)),
        JournalEvent::Resumed(RunBegun { reset_breaker: Some(true), .. }) => {
            plain("run resumed, and the circuit breaker reset".to_owned())
        }
        JournalEvent::Resumed(_) => plain("run resumed".to_owned()),
        JournalEvent::Adopted { pid } => {
            plain(format!("run resumed; its client (process {pid}) was still running"))
        }
        JournalEvent::SessionStart { source } => plain(session_start(*source)),
        JournalEvent::Warning(LevelReached { level, percent, .. }) => {
            plain(format!("warning {level} at {percent}%"))
        }
        JournalEvent::Checkpoint(written) => plain(checkpoint(written)),
        JournalEvent::Ended(LevelReached { percent, reason, .. }) => {
            plain(format!("session ended by Plimsoll at {percent}%{}", colon(reason.as_deref())))
        }
        JournalEvent::WipCommit(WipCommit { trouble: Some(trouble), .. }) => {
            bad(format!("the uncommitted work could not be committed: {}", brief(trouble)))
        }
        JournalEvent::WipCommit(made) => plain(wip_commit(made)),
        JournalEvent::Verdict(reached) => {
            let (words, tone) = verdict(reached);
            Sentence::Said(words, tone)
        }
        JournalEvent::SetAside { item } => {
            bad(format!("set aside: {}, no session made progress on it", quoted(item)))
        }
        JournalEvent::BreakerOpened(BreakerOpened { cause, evidence, .. }) => {
            bad(format!("circuit breaker opened: {}{}", cause.word(), colon(Some(evidence))))
        }
        JournalEvent::Packed(room) => {
            plain(format!("continues in the same session with {}", item_and_room(room)))
        }
        JournalEvent::NotPacked(room) => {
            plain(format!("no room in this session for {}", item_and_room(room)))
        }
        JournalEvent::NoRoomForStep(room) => {
            plain(format!("no room in this session for its next step{}", free(room)))
        }
        JournalEvent::CutOffByClient { item, .. } => {
            plain(format!("the client ended the turn before {} was begun", quoted(item)))
        }
        JournalEvent::Notified { what, program, trouble } => {
            let program = clip(&brief(&program.join(" ")), 60);
            match trouble {
                None => plain(format!("`{program}` was notified that the run has {}", brief(what))),
                Some(trouble) => bad(format!("`{program}` was not notified: it {}", brief(trouble))),
            }
        }
        JournalEvent::LinearDelivered(told) => plain(format!("Linear notified: {}", brief(&told.issue))),
        JournalEvent::LinearFailed { trouble, .. } => {
            bad(format!("Linear was not notified: {}", brief(trouble)))
        }
        JournalEvent::Cancelled => bold("run cancelled with `plimsoll stop`"),
        JournalEvent::Unguarded { client_version } => {
            bad(format!("our hooks did not run in this session (client {})", brief(client_version)))
        }
        JournalEvent::ClientEnded { reason } => {
            plain(format!("client ended by Plimsoll{}", colon(Some(reason))))
        }
        JournalEvent::LeftBehind { processes } => {
            let processes: Vec<String> = processes.iter().map(|process| brief(process)).collect();
            plain(format!("the session left processes running: {}", processes.join("; ")))
        }
        JournalEvent::Fault { error, then, .. } => bad(format!("{}; {}", brief(error), brief(then))),
        JournalEvent::PromptMended { old_file } => plain(format!(
            "PROMPT.md had lost the task; it was restored, and the old file is {}",
            brief(old_file)
        )),
        JournalEvent::TodoMended { file } => {
            plain(format!("{} was missing and has been restored", brief(file)))
        }
        JournalEvent::StateMended { what } => plain(format!("state repaired: {}", brief(what))),
        // Only in the stream of `run --json`, or of another version: all that it says.
        JournalEvent::Client { .. }
        | JournalEvent::Tool { .. }
        | JournalEvent::Retry { .. }
        | JournalEvent::StopRequested
        | JournalEvent::ToolsDenied { .. }
        | JournalEvent::Compacted
        | JournalEvent::Reading(_)
        | JournalEvent::Pause { .. }
        | JournalEvent::PauseOver
        | JournalEvent::Note { .. }
        | JournalEvent::RunEnded(_)
        | JournalEvent::Unknown(_) => plain(all_facts(&entry.event)),
    }
}

/// The event's name, and all its facts as `name=value`.
fn all_facts(event: &JournalEvent) -> String {
    let value = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => brief(text),
        other => brief(&other.to_string()),
    };
    let facts = event.facts();
    let facts = facts.iter().map(|(name, fact)| format!(" {name}={}", value(fact)));
    one_line(event.name()) + &facts.collect::<String>()
}

fn run_started(begun: &RunBegun) -> String {
    let verify: Vec<String> = begun.verify.iter().flatten().map(|command| brief(command)).collect();
    let verify = if verify.is_empty() { String::new() } else { format!(", verify: {}", verify.join("; ")) };
    let most = begun.max_iterations.map_or("?".to_owned(), |most| most.to_string());
    format!(
        "run \"{}\" started: {}, at most {most} sessions{verify}",
        clip(&known(begun.task_name.as_deref()), 60),
        known(begun.items.as_deref()),
    )
}

fn session_start(source: Source) -> String {
    match source {
        Source::Startup => "session began".to_owned(),
        Source::Compact => "session continues after a compaction".to_owned(),
        Source::Resume => "session began (resume)".to_owned(),
        Source::Fork => "session began (fork)".to_owned(),
        Source::Clear => "session began (clear)".to_owned(),
    }
}

/// `other` is the client's word for a headless end: it says nothing.
fn session_end(peak_percent: Option<u64>, reason: Option<&str>) -> String {
    let peak = peak_percent.filter(|peak| *peak > 0);
    let peak = peak.map(|peak| format!(", peak {peak}%")).unwrap_or_default();
    let reason = reason.filter(|reason| !matches!(*reason, "" | "other"));
    format!("session ended{peak}{}", reason.map(|reason| format!(" ({})", brief(reason))).unwrap_or_default())
}

fn checkpoint(written: &CheckpointWritten) -> String {
    let kind = match written.cause {
        None | Some(Cause::Level) => written.level.to_string(),
        Some(Cause::Budget) => "before the next item".to_owned(),
        Some(Cause::Compact) => "before a compaction".to_owned(),
        Some(Cause::Step) => "after a commit".to_owned(),
        Some(Cause::Crash) => "after a session that was cut short".to_owned(),
        Some(Cause::Unfinished) => "after a session that left its item open".to_owned(),
        Some(Cause::Manual) => "on demand".to_owned(),
    };
    let at = written.percent.map(|percent| format!(" at {percent}%")).unwrap_or_default();
    let item = written.item.as_ref().map(|item| format!(" (item {})", quoted(item))).unwrap_or_default();
    format!("checkpoint {kind}{at}{}{item}", colon(Some(&written.handoff)))
}

fn wip_commit(made: &WipCommit) -> String {
    let files = made.files.map(|files| format!(" ({})", counted(files, "file"))).unwrap_or_default();
    let left_out: Vec<String> = made.left_out.iter().flatten().map(|file| brief(file)).collect();
    let left_out =
        if left_out.is_empty() { String::new() } else { format!(", but not {}", left_out.join(", ")) };
    format!(
        "uncommitted work committed as {}{files}{left_out}{}",
        clip(&known(made.commit.as_deref()), 13),
        colon(made.message.as_deref())
    )
}

fn item_and_room(room: &Room) -> String {
    format!("{}{}", quoted(room.item.as_deref().unwrap_or("?")), free(room))
}

/// ` (it takes about 40k tokens, 300k are free; from 3 items)`
fn free(room: &Room) -> String {
    let amount = |number: Option<u64>| number.map_or("?".to_owned(), tokens);
    let source = room.estimate_source.as_ref().map(|source| format!("; {}", brief(source)));
    format!(
        " (it takes about {} tokens, {} are free{})",
        amount(room.estimate_tokens),
        amount(room.room_tokens),
        source.unwrap_or_default()
    )
}

fn quoted(item: &str) -> String {
    format!("\"{}\"", clip(&one_line(item), 80))
}

/// `: reason`
fn colon(words: Option<&str>) -> String {
    words.filter(|words| !words.is_empty()).map(|words| format!(": {}", brief(words))).unwrap_or_default()
}

fn known(words: Option<&str>) -> String {
    words.filter(|words| !words.is_empty()).map_or("?".to_owned(), brief)
}
