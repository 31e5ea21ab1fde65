//! Why it acted: the figures and reasons that a line of the journal carries, in sentences.

use plimsoll_domain::journal::{
    BreakerOpened, CheckpointWritten, JournalEntry, JournalEvent, LevelReached, Room, TicksTakenBack,
    VerdictReached, Verification, Verified,
};
use plimsoll_domain::level::{Level, Thresholds};
use plimsoll_domain::reading::UsedSource;
use plimsoll_domain::review::Reviewed;
use plimsoll_domain::taken_back;
use plimsoll_domain::text::{clip, counted, one_line, tokens};
use plimsoll_domain::verdict::ContinueKind;
use plimsoll_domain::{Ending, Marker, Reading};

/// The reasons behind an entry of the journal, a sentence each; `beside` are the entries of the same session that belong
/// to it, such as what opened the breaker.
pub fn reasons(entry: &JournalEntry, beside: &[JournalEntry]) -> Vec<String> {
    match &entry.event {
        JournalEvent::Warning(reached) | JournalEvent::Ended(reached) => level(reached),
        JournalEvent::Checkpoint(written) => checkpoint(written),
        JournalEvent::Verdict(reached) => verdict(reached, beside),
        JournalEvent::ProvisionalVerdict { marker } => provisional(marker),
        JournalEvent::Verified(Verified { verify }) => verify.iter().map(verified).collect(),
        JournalEvent::Reviewed(reviewed) => review(reviewed),
        JournalEvent::Packed(room) => vec![fits(room, "item", true)],
        JournalEvent::NotPacked(room) => vec![fits(room, "item", false)],
        JournalEvent::NoRoomForStep(room) => vec![fits(room, "step (from one commit to the next)", false)],
        // What the others say is all there is to know.
        other => facts(other),
    }
}

fn level(reached: &LevelReached) -> Vec<String> {
    let LevelReached { level, reading, thresholds, waited_ms, reason, .. } = reached;
    let mut lines = measured(*level, reading.as_ref(), thresholds.as_ref(), *waited_ms);
    let reason = reason.as_deref().and_then(said);
    lines.extend(reason.map(|reason| format!("The reason given to the session: {reason}.")));
    lines
}

fn checkpoint(written: &CheckpointWritten) -> Vec<String> {
    let CheckpointWritten { level, reading, thresholds, waited_ms, .. } = written;
    let mut lines = measured(*level, reading.as_ref(), thresholds.as_ref(), *waited_ms);
    lines.extend(what_was_kept(written));
    lines
}

fn measured(
    level: Level,
    reading: Option<&Reading>,
    thresholds: Option<&Thresholds>,
    waited_ms: Option<u64>,
) -> Vec<String> {
    let mut lines: Vec<String> = reading.map(figures).unwrap_or_default();
    lines.extend(thresholds.map(|thresholds| mark(level, thresholds)));
    lines.extend(waited_ms.map(|waited| {
        format!(
            "The hook waited {waited} ms for the client to write its answer, because a threshold was near."
        )
    }));
    lines
}

fn figures(reading: &Reading) -> Vec<String> {
    let window = reading.window.as_ref();
    let of = window.map_or(String::new(), |window| format!(" of {}", tokens(window.tokens)));
    let percent = reading.percent().map_or("?".to_owned(), |percent| percent.to_string());
    let estimated = match reading.source {
        UsedSource::Compaction => "system prompt, tools and tool results not sent yet",
        _ => "tool results not sent yet",
    };
    let mut lines = vec![format!(
        "The next request would have held about {}{of} tokens ({percent}%): {} input, {} output, {} estimated for {estimated}.",
        tokens(reading.projected()),
        tokens(reading.used),
        tokens(reading.output),
        tokens(reading.added),
    )];
    if let Some(percent) = reading.percent_used() {
        lines.push(format!("The client showed {percent}%: it counts input tokens only."));
    }
    let at = reading.at.as_ref().map(|at| format!(" of {at}")).unwrap_or_default();
    let behind = if reading.behind {
        "; the current answer was not written yet, so the figure is one request old"
    } else {
        ""
    };
    lines.push(format!("Source of the figure: {}{at}{behind}.", reading.source.words()));
    if let Some(window) = window {
        let model = reading.model.as_deref().unwrap_or("an unnamed model");
        lines.push(format!(
            "The window of {model}: {} tokens ({}).",
            tokens(window.tokens),
            window.source.words()
        ));
    }
    lines
}

fn mark(level: Level, thresholds: &Thresholds) -> String {
    let begins = |name: &str, at: u64| format!("{name} at {} ({}%)", tokens(at), thresholds.percent(at));
    let reached = match level {
        Level::L0 => None,
        Level::L1 => Some(thresholds.l1),
        Level::L2 => Some(thresholds.l2),
        Level::L3 => Some(thresholds.l3),
    };
    let passed =
        reached.map(|at| format!("{level} begins at {} ({}%). ", tokens(at), thresholds.percent(at)));
    let action = thresholds.auto_compact.action.words();
    let clamped = if thresholds.clamped { "; thresholds were lowered to come before that" } else { "" };
    format!(
        "{}All thresholds: {}, {}, {}; {action} {}{clamped}.",
        passed.unwrap_or_default(),
        begins("L1", thresholds.l1),
        begins("L2", thresholds.l2),
        begins("L3", thresholds.l3),
        begins("", thresholds.auto_compact.tokens).trim_start(),
    )
}

fn what_was_kept(written: &CheckpointWritten) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(handoff) = said(&written.handoff) {
        let item = written.item.as_deref().and_then(said);
        let item = item.map(|item| format!(", for the item \"{item}\"")).unwrap_or_default();
        lines.push(format!("The handoff {handoff} was written{item}."));
    }
    let files = brief(written.files.iter().flatten());
    if !files.is_empty() {
        lines.push(format!("Files in progress: {}.", files.join(", ")));
    }
    let trouble = written.trouble.as_deref().and_then(said);
    lines.extend(trouble.map(|trouble| format!("The state could not be written: {trouble}.")));
    lines
}

fn verdict(reached: &VerdictReached, beside: &[JournalEntry]) -> Vec<String> {
    let mut lines = vec![decided(&reached.marker)];
    lines.extend(reached.ending.as_ref().map(ended));
    lines.extend(items(reached));
    lines.extend(reached.verify.iter().flatten().map(verified));
    lines.extend(moved(reached));
    lines.extend(beside.iter().filter_map(followed));
    lines
}

fn provisional(marker: &Marker) -> Vec<String> {
    let until_then = "This is the Stop hook's provisional verdict, before the verify commands have run; the final one follows when the session is over.";
    vec![decided(marker), until_then.to_owned()]
}

fn verified(outcome: &Verification) -> String {
    let Verification { command, passed, words, seconds } = outcome;
    let command = said(command).unwrap_or_default();
    let took = seconds.filter(|seconds| *seconds > 0).map(|seconds| format!(" after {seconds} s"));
    let took = took.unwrap_or_default();
    if *passed {
        return format!("Verify `{command}` passed{took}.");
    }
    let words = said(words).map(|words| format!(": {words}")).unwrap_or_default();
    format!("Verify `{command}` did not pass{took}{words}.")
}

fn review(reviewed: &Reviewed) -> Vec<String> {
    let asked =
        reviewed.model.as_deref().and_then(said).map(|model| format!("The reviewing model: {model}."));
    let found = reviewed.findings.iter().filter_map(|finding| said(&finding.words));
    let found = found.map(|words| format!("It found: {words}."));
    let took = format!("It took {} s and {} tokens.", reviewed.seconds, tokens(reviewed.tokens));
    asked.into_iter().chain(found).chain([took]).collect()
}

/// What was decided together with a verdict.
fn followed(entry: &JournalEntry) -> Option<String> {
    match &entry.event {
        JournalEvent::BreakerOpened(BreakerOpened { cause, count, evidence }) => Some(format!(
            "The circuit breaker opened: {}, {count} in a row: {}.",
            cause.word(),
            said(evidence).unwrap_or_default()
        )),
        JournalEvent::SetAside { item } => Some(format!(
            "The item \"{}\" was set aside, because no session made progress on it.",
            said(item).unwrap_or_default()
        )),
        JournalEvent::TicksTakenBack(TicksTakenBack { items, failed, findings, protected }) => {
            let failed = failed.iter().map(String::as_str);
            let words = taken_back::sentence(items, failed, findings.len(), protected);
            said(&words).map(|words| format!("Then {words}."))
        }
        JournalEvent::Reviewed(reviewed) => {
            said(&reviewed.words()).map(|words| format!("Before it {words}."))
        }
        JournalEvent::Parked { item, question } => Some(format!(
            "The item \"{}\" waits for the user's answer: {}",
            said(item).unwrap_or_default(),
            said(question).unwrap_or_default()
        )),
        _ => None,
    }
}

/// The marker in a sentence.
fn decided(marker: &Marker) -> String {
    let because = |why: &str| said(why).map(|why| format!(", because: {why}")).unwrap_or_default();
    match marker {
        Marker::Stop { status, reason } => format!("The gate ended the run as {status}{}.", because(reason)),
        Marker::Pause { until: None, reason } => format!("The gate paused the run{}.", because(reason)),
        Marker::Pause { until: Some(until), reason } => {
            format!("The gate paused the run until {}{}.", one_line(until.as_str()), because(reason))
        }
        Marker::Continue { kind: ContinueKind::Refused, reason } => {
            format!("The gate did not believe the promise{}; a fresh session continues.", because(reason))
        }
        Marker::Continue { kind: ContinueKind::Checkpoint, reason } => {
            format!(
                "The run continues with a fresh session that resumes from {}.",
                said(reason).unwrap_or_default()
            )
        }
        Marker::Continue { kind: ContinueKind::Next, reason } => {
            format!("The run continues with a fresh session{}.", because(reason))
        }
        // No gate says so.
        Marker::Warning { .. } | Marker::Checkpoint { .. } => format!("The decision: {marker}."),
    }
}

fn ended(ending: &Ending) -> String {
    let how = ending.traits().how;
    let detail = ending.detail().and_then(said).map(|detail| format!(" ({detail})")).unwrap_or_default();
    format!("The session: {how}{detail}.")
}

fn items(reached: &VerdictReached) -> Option<String> {
    let (open, done) = (reached.open?, reached.done?);
    let ticked = brief(reached.ticked.iter().flatten());
    let ticked = match ticked.as_slice() {
        [] => "nothing was ticked in this session".to_owned(),
        ticked => format!("ticked in this session: {}", ticked.join(", ")),
    };
    Some(format!("Items: {done} done, {open} open; {ticked}."))
}

fn moved(reached: &VerdictReached) -> Vec<String> {
    let idle = reached.no_change_count.unwrap_or(0).max(1) as usize;
    let progress = reached.progress.as_ref().map(|progress| match brief(progress.iter()).as_slice() {
        [] => format!("No progress, {} in a row.", counted(idle, "session")),
        moved => format!("Progress: {}.", moved.join(", ")),
    });
    let same = reached.same_errors.filter(|count| *count > 1);
    let same = same.map(|count| format!(", the same {count} times")).unwrap_or_default();
    let error = reached.error.as_deref().and_then(said).map(|error| format!("Its error{same}: {error}."));
    let cost = reached.cost_usd.map(|cost| {
        let tokens = reached.tokens.map(|number| format!(", {} tokens", tokens(number)));
        let cost = reached.cost_basis.format_usd(cost);
        format!("So far: {cost}{}.", tokens.unwrap_or_default())
    });
    progress.into_iter().chain(error).chain(cost).collect()
}

fn fits(room: &Room, what: &str, fits: bool) -> String {
    let amount = |number: Option<u64>| number.map_or("?".to_owned(), tokens);
    let source = room.estimate_source.as_deref().and_then(said);
    format!(
        "The next {what} takes about {} tokens{}, and {} are free below L2: {}.",
        amount(room.estimate_tokens),
        source.map(|source| format!(" ({source})")).unwrap_or_default(),
        amount(room.room_tokens),
        if fits { "it fits" } else { "it does not fit" }
    )
}

/// All that an event says, a line for each fact.
fn facts(event: &JournalEvent) -> Vec<String> {
    let words = |value: &serde_json::Value| match value {
        serde_json::Value::Null => None,
        serde_json::Value::String(words) => said(words),
        other => said(&other.to_string()),
    };
    event.facts().iter().filter_map(|(name, value)| Some(format!("{name}: {}", words(value)?))).collect()
}

/// A fact on one line, not too long; none if it says nothing.
fn said(words: &str) -> Option<String> {
    let words = clip(&one_line(words), 400);
    let words = words.trim_end_matches('.').to_owned();
    (!words.is_empty()).then_some(words)
}

fn brief<'a>(words: impl Iterator<Item = &'a String>) -> Vec<String> {
    words.map(|item| clip(&one_line(item), 100)).collect()
}

#[cfg(test)]
mod tests;
