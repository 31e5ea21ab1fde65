//! A sentence for each event of the journal.

use super::phrase::{Tone, brief};
use super::verdict::verdict;
use plimsoll_domain::journal::{
    BreakerOpened, CheckpointWritten, JournalEntry, JournalEvent, LevelReached, Room, RunBegun,
    TicksTakenBack, VerdictReached, Verification, Verified, Weight, WipCommit,
};
use plimsoll_domain::review::Reviewed;
use plimsoll_domain::state::Cause;
use plimsoll_domain::taken_back;
use plimsoll_domain::text::{clip, counted, one_line, tokens};
use plimsoll_protocol::event::Source;
use plimsoll_terminal::worker_words;

/// What is said of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sentence {
    /// This.
    Shown(String, Tone),
    /// Nothing: another line says it.
    LeftOut,
}

/// Puts an entry into words.
pub(super) fn sentence(entry: &JournalEntry) -> Sentence {
    let shown = |text: String| Sentence::Shown(text, tone(entry.event.traits().weight));
    match &entry.event {
        // SessionStart tells that a session begins; the final verdict follows the provisional one.
        JournalEvent::Planned(_) | JournalEvent::Spawned { .. } | JournalEvent::ProvisionalVerdict { .. } => {
            Sentence::LeftOut
        }
        // The last response is measured only when the iteration is closed: that line tells the end and the peak.
        JournalEvent::SessionEnd(_) if entry.run_id.is_some() => Sentence::LeftOut,
        JournalEvent::IterationClosed(closed) => shown(session_end(Some(closed.peak_percent), None)),
        JournalEvent::SessionEnd(ended) => shown(session_end(ended.peak_percent, ended.reason.as_deref())),
        JournalEvent::RunStarted(run) => shown(run_started(run)),
        JournalEvent::Resumed(run) => shown(run_resumed(run)),
        JournalEvent::Adopted { pid } => shown(client_adopted(*pid)),
        JournalEvent::Cancelled => shown("run cancelled with `plimsoll stop`".to_owned()),
        JournalEvent::SessionStart { source } => shown(session_start(*source)),
        JournalEvent::Warning(reached) => shown(format!("warning {} at {}%", reached.level, reached.percent)),
        JournalEvent::Checkpoint(written) => shown(checkpoint(written)),
        JournalEvent::Ended(reached) => shown(ended_by_us(reached)),
        JournalEvent::ClientEnded { reason } => shown(client_ended(reason)),
        JournalEvent::WipCommit(made) => wip_commit(made),
        JournalEvent::Verdict(reached) => judged(reached),
        JournalEvent::SetAside { item } => shown(set_aside(item)),
        JournalEvent::Parked { item, question } => shown(parked(item, question)),
        JournalEvent::TicksTakenBack(taken) => shown(ticks_taken_back(taken)),
        JournalEvent::Reviewed(reviewed) => review(reviewed),
        JournalEvent::Verified(verified) => shown(before_sessions(verified)),
        JournalEvent::BreakerOpened(opened) => shown(breaker_opened(opened)),
        JournalEvent::Packed(room) => shown(packed(room)),
        JournalEvent::NotPacked(room) => shown(not_packed(room)),
        JournalEvent::NoRoomForStep(room) => shown(no_room_for_step(room)),
        JournalEvent::CutOffByClient { item, .. } => shown(cut_off(item)),
        JournalEvent::Notified { what, program, trouble } => notified(what, program, trouble.as_deref()),
        JournalEvent::LinearDelivered(note) => shown(format!("Linear notified: {}", brief(&note.issue))),
        JournalEvent::LinearFailed { trouble, .. } => shown(linear_failed(trouble)),
        JournalEvent::TelemetryLost { spans, logs, trouble } => shown(telemetry_lost(*spans, *logs, trouble)),
        JournalEvent::Unguarded { client_version } => shown(unguarded(client_version)),
        JournalEvent::LeftBehind { processes } => shown(left_behind(processes)),
        JournalEvent::Fault { error, then, .. } => shown(format!("{}; {}", brief(error), brief(then))),
        JournalEvent::PromptMended { old_file } => shown(prompt_restored(old_file)),
        JournalEvent::TodoMended { file } => shown(plan_restored(file)),
        JournalEvent::WorkerBegan(_)
        | JournalEvent::WorkerEnded(_)
        | JournalEvent::Landed(_)
        | JournalEvent::SentBack(_) => shown(worker_words::words(&entry.event).unwrap_or_default()),
        JournalEvent::StateMended { what } => shown(format!("state repaired: {}", brief(what))),
        // All that it says.
        JournalEvent::Note { .. } | JournalEvent::Unknown(_) => shown(all_facts(&entry.event)),
    }
}

fn tone(weight: Weight) -> Tone {
    match weight {
        Weight::Usual | Weight::Notice => Tone::Plain,
        Weight::Milestone => Tone::Bold,
        Weight::Trouble | Weight::Alarm => Tone::Bad,
    }
}

fn plain(text: String) -> Sentence {
    Sentence::Shown(text, Tone::Plain)
}

fn bad(text: String) -> Sentence {
    Sentence::Shown(text, Tone::Bad)
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

fn run_started(run: &RunBegun) -> String {
    let verify: Vec<String> = run.verify.iter().flatten().map(|command| brief(command)).collect();
    let verify = if verify.is_empty() { String::new() } else { format!(", verify: {}", verify.join("; ")) };
    let most = run.max_iterations.map_or("? sessions".to_owned(), |most| counted(most as usize, "session"));
    let branch =
        run.branch.as_ref().map_or(String::new(), |branch| format!(", on the branch {}", brief(branch)));
    format!(
        "run \"{}\" started: {}, at most {most}{branch}{verify}",
        clip(&or_unknown(run.task_name.as_deref()), 60),
        or_unknown(run.items.as_deref()),
    )
}

fn run_resumed(run: &RunBegun) -> String {
    let breaker = if run.reset_breaker == Some(true) { ", and the circuit breaker reset" } else { "" };
    format!("run resumed{breaker}")
}

fn client_adopted(pid: u32) -> String {
    format!("run resumed; its client (process {pid}) was still running")
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

fn ended_by_us(reached: &LevelReached) -> String {
    format!("session ended by Plimsoll at {}%{}", reached.percent, colon(reached.reason.as_deref()))
}

fn client_ended(reason: &str) -> String {
    format!("client ended by Plimsoll{}", colon(Some(reason)))
}

fn wip_commit(made: &WipCommit) -> Sentence {
    match &made.trouble {
        None => plain(work_committed(made)),
        Some(trouble) => bad(format!("the uncommitted work could not be committed: {}", brief(trouble))),
    }
}

fn work_committed(made: &WipCommit) -> String {
    let files = made.files.map(|files| format!(" ({})", counted(files, "file"))).unwrap_or_default();
    let left_out: Vec<String> = made.left_out.iter().flatten().map(|file| brief(file)).collect();
    let left_out =
        if left_out.is_empty() { String::new() } else { format!(", but not {}", left_out.join(", ")) };
    format!(
        "uncommitted work committed as {}{files}{left_out}{}",
        clip(&or_unknown(made.commit.as_deref()), 13),
        colon(made.message.as_deref())
    )
}

fn set_aside(item: &str) -> String {
    format!("set aside: {}, no session made progress on it", quoted(item))
}

fn parked(item: &str, question: &str) -> String {
    format!("{} waits for your answer: {}", quoted(item), or_unknown(Some(question)))
}

fn judged(reached: &VerdictReached) -> Sentence {
    let (text, tone) = verdict(reached);
    Sentence::Shown(text, tone)
}

fn ticks_taken_back(taken: &TicksTakenBack) -> String {
    let failed = taken.failed.iter().map(String::as_str);
    taken_back::sentence(&taken.items, failed, taken.findings.len(), &taken.protected)
}

fn review(reviewed: &Reviewed) -> Sentence {
    let has_passed = reviewed.trouble.is_none() && reviewed.findings.is_empty();
    if has_passed { plain(reviewed.words()) } else { bad(reviewed.words()) }
}

fn before_sessions(verified: &Verified) -> String {
    let one = |outcome: &Verification| {
        let how = if outcome.passed { "passes" } else { "fails" };
        format!("`{}` {how}", brief(&outcome.command))
    };
    let all: Vec<String> = verified.verify.iter().map(one).collect();
    let seconds: u64 = verified.verify.iter().filter_map(|outcome| outcome.seconds).sum();
    format!("before the session: {} ({seconds} s)", all.join(", "))
}

fn breaker_opened(opened: &BreakerOpened) -> String {
    format!("circuit breaker opened: {}{}", opened.cause.word(), colon(Some(&opened.evidence)))
}

fn packed(room: &Room) -> String {
    format!("continues in the same session with {}", item_and_room(room))
}

fn no_room_for_step(room: &Room) -> String {
    format!("no room in this session for its next step{}", free(room))
}

fn cut_off(item: &str) -> String {
    format!("the client ended the turn before {} was begun", quoted(item))
}

fn notified(what: &str, program: &[String], trouble: Option<&str>) -> Sentence {
    let program = clip(&brief(&program.join(" ")), 60);
    match trouble {
        None if what == "question" => plain(format!("`{program}` was notified of a question")),
        None => plain(format!("`{program}` was notified that the run has {}", brief(what))),
        Some(trouble) => bad(format!("`{program}` was not notified: it {}", brief(trouble))),
    }
}

fn linear_failed(trouble: &str) -> String {
    format!("Linear was not notified: {}", brief(trouble))
}

fn not_packed(room: &Room) -> String {
    format!("no room in this session for {}", item_and_room(room))
}

fn telemetry_lost(spans: u64, logs: u64, trouble: &str) -> String {
    let counted = |count: u64, what| counted(usize::try_from(count).unwrap_or(usize::MAX), what);
    let what = format!("{} and {}", counted(spans, "span"), counted(logs, "log"));
    format!("telemetry: {what} did not reach the collector: {}", brief(trouble))
}

fn unguarded(client_version: &str) -> String {
    format!("our hooks did not run in this session (client {})", brief(client_version))
}

fn left_behind(processes: &[String]) -> String {
    let processes: Vec<String> = processes.iter().map(|process| brief(process)).collect();
    format!("the session left processes running: {}", processes.join("; "))
}

fn prompt_restored(old_file: &str) -> String {
    format!("PROMPT.md had lost the task; it was restored, and the old file is {}", brief(old_file))
}

fn plan_restored(file: &str) -> String {
    format!("{} was missing and has been restored", brief(file))
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

/// The text, or `?` where the journal has none.
fn or_unknown(words: Option<&str>) -> String {
    words.filter(|words| !words.is_empty()).map_or("?".to_owned(), brief)
}
