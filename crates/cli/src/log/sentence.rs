//! A sentence for every event that the flows write.

use super::entry::Entry;
use super::verdict::verdict;
use session::text::{clip, counted, tokens};

/// What is said of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sentence {
    /// This.
    Said(String, Tone),
    /// Nothing: another line says it.
    LeftOut,
    /// The event is not known here: perhaps a newer Plimsoll wrote it.
    Unknown,
}

/// How a line sounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As most do.
    Plain,
    /// A step of the run.
    Bold,
    /// It went well.
    Good,
    /// A person should look.
    Bad,
}

/// Puts an entry into words.
pub(super) fn sentence(entry: &Entry) -> Sentence {
    let plain = |words: String| Sentence::Said(words, Tone::Plain);
    let bad = |words: String| Sentence::Said(words, Tone::Bad);
    match entry.event() {
        // The session itself says that it begins, and how it was planned; the final verdict follows the
        // provisional one.
        "planned" | "spawned" | "provisional_verdict" => Sentence::LeftOut,
        // The last answer is measured only when the iteration is closed: that line tells the end and the peak.
        "session_end" if entry.run_id().is_some() => Sentence::LeftOut,
        "iteration_closed" => plain(session_end(entry)),
        "run_started" => Sentence::Said(run_started(entry), Tone::Bold),
        "session_start" => plain(session_start(entry)),
        "session_end" => plain(session_end(entry)),
        "warning" => plain(format!("warning {}{}", entry.known("level"), at(entry))),
        "checkpoint" => plain(checkpoint(entry)),
        "ended" => plain(format!("session ended by us{}{}", at(entry), colon(entry, "reason"))),
        "wip_commit" if entry.words("trouble").is_some() => {
            bad(format!("the uncommitted work could not be committed: {}", entry.known("trouble")))
        }
        "wip_commit" => plain(wip_commit(entry)),
        "verdict" => {
            let (words, tone) = verdict(entry);
            Sentence::Said(words, tone)
        }
        "set_aside" => bad(format!("set aside: {}, nobody got anywhere with it", item(entry))),
        "breaker_opened" => {
            bad(format!("circuit breaker opened: {}{}", entry.known("cause"), colon(entry, "evidence")))
        }
        "packed" => plain(format!("goes on in the same session with {}{}", item(entry), room(entry))),
        "not_packed" => plain(format!("no room in this session for {}{}", item(entry), room(entry))),
        "no_room_for_step" => plain(format!("no room in this session for its next step{}", room(entry))),
        "cut_off_by_client" => plain(format!("the client ended the turn before {} was begun", item(entry))),
        "notified" => notified(entry),
        "linear_delivered" => plain(format!("told Linear: {}", entry.known("issue"))),
        "linear_failed" => bad(format!("Linear is not told: {}", entry.known("trouble"))),
        "cancelled" => Sentence::Said("run cancelled with `plimsoll stop`".to_owned(), Tone::Bold),
        "resumed" if entry.truth("reset_breaker") == Some(true) => {
            plain("run resumed, and the circuit breaker reset".to_owned())
        }
        "resumed" => plain("run resumed".to_owned()),
        "adopted" => plain(format!("run resumed; its client (process {}) still worked", entry.known("pid"))),
        "unguarded" => {
            bad(format!("our hooks did not run in this session (client {})", entry.known("client_version")))
        }
        "client_ended" => plain(format!("client ended by us{}", colon(entry, "reason"))),
        "left_behind" => {
            plain(format!("the session left processes at work: {}", entry.list("processes").join("; ")))
        }
        "fault" => bad(format!("{}; {}", entry.known("error"), entry.known("then"))),
        "prompt_mended" => plain(format!(
            "PROMPT.md had lost the task, and has it again; the old file is {}",
            entry.known("old_file")
        )),
        "todo_mended" => plain(format!("{} was gone, and is there again", entry.known("file"))),
        "state_mended" => plain(format!("state mended: {}", entry.known("what"))),
        _ => Sentence::Unknown,
    }
}

fn run_started(entry: &Entry) -> String {
    let verify = entry.list("verify");
    let verify = if verify.is_empty() { String::new() } else { format!(", verify: {}", verify.join("; ")) };
    format!(
        "run \"{}\" started: {}, at most {} sessions{verify}",
        clip(&entry.known("task_name"), 60),
        entry.known("items"),
        entry.known("max_iterations")
    )
}

fn session_start(entry: &Entry) -> String {
    match entry.words("source").as_deref() {
        None | Some("startup") => "session began".to_owned(),
        Some("compact") => "session goes on after a compaction".to_owned(),
        Some(source) => format!("session began ({source})"),
    }
}

/// `other` is the client's word for a headless end: it tells nothing.
fn session_end(entry: &Entry) -> String {
    let peak = entry.number("peak_percent").filter(|peak| *peak > 0);
    let peak = peak.map(|peak| format!(", peak {peak}%")).unwrap_or_default();
    let reason = entry.words("reason").filter(|reason| reason != "other");
    format!("session ended{peak}{}", reason.map(|reason| format!(" ({reason})")).unwrap_or_default())
}

fn checkpoint(entry: &Entry) -> String {
    let kind = match entry.words("cause").as_deref() {
        None | Some("level") => entry.known("level"),
        Some("budget") => "before the next item".to_owned(),
        Some("compact") => "before a compaction".to_owned(),
        Some("step") => "after a commit".to_owned(),
        Some("crash") => "after a session that was cut short".to_owned(),
        Some("unfinished") => "after a session that left its item open".to_owned(),
        Some("manual") => "on demand".to_owned(),
        Some(other) => other.to_owned(),
    };
    let item = entry.words("item").map(|item| format!(" (item \"{}\")", clip(&item, 80)));
    format!("checkpoint {kind}{}{}{}", at(entry), colon(entry, "handoff"), item.unwrap_or_default())
}

fn wip_commit(entry: &Entry) -> String {
    let files = entry.number("files").map(|files| format!(" ({})", counted(files as usize, "file")));
    let left_out = entry.list("left_out");
    let left_out =
        if left_out.is_empty() { String::new() } else { format!(", but not {}", left_out.join(", ")) };
    format!(
        "uncommitted work committed as {}{}{left_out}{}",
        clip(&entry.known("commit"), 13),
        files.unwrap_or_default(),
        colon(entry, "message")
    )
}

fn notified(entry: &Entry) -> Sentence {
    let program = clip(&entry.list("program").join(" "), 60);
    match entry.words("trouble") {
        None => Sentence::Said(
            format!("`{program}` was told that the run has {}", entry.known("what")),
            Tone::Plain,
        ),
        Some(trouble) => Sentence::Said(format!("`{program}` was not told: it {trouble}"), Tone::Bad),
    }
}

fn item(entry: &Entry) -> String {
    format!("\"{}\"", clip(&entry.known("item"), 80))
}

/// ` at 87%`
fn at(entry: &Entry) -> String {
    entry.number("percent").map(|percent| format!(" at {percent}%")).unwrap_or_default()
}

/// `: reason`
fn colon(entry: &Entry, fact: &str) -> String {
    entry.words(fact).map(|words| format!(": {words}")).unwrap_or_default()
}

/// ` (takes about 40k tokens, 300k are free; from 3 items)`
fn room(entry: &Entry) -> String {
    let amount = |name: &str| entry.number(name).map_or("?".to_owned(), tokens);
    let source = entry.words("estimate_source").map(|source| format!("; {source}")).unwrap_or_default();
    format!(
        " (it takes about {} tokens, {} are free{source})",
        amount("estimate_tokens"),
        amount("room_tokens")
    )
}
