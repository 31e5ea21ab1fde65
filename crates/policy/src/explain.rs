//! Why it acted: the figures and reasons that a line of the journal carries, in sentences.

use serde_json::{Value, from_value};
use session::Reading;
use session::level::{CeilingAction, Marks};
use session::text::{clip, counted, one_line, tokens};

/// The reasons behind an entry of the journal, a sentence each; `beside` are the entries of the same session that belong
/// to it, such as what opened the breaker.
pub fn reasons(entry: &Value, beside: &[Value]) -> Vec<String> {
    match word(entry, "event") {
        Some("warning" | "checkpoint" | "ended") => level(entry),
        Some("verdict" | "provisional_verdict") => verdict(entry, beside),
        Some("packed" | "not_packed" | "no_room_for_step") => room(entry),
        _ => facts(entry),
    }
}

fn level(entry: &Value) -> Vec<String> {
    let part = |name: &str| entry.get(name).cloned().unwrap_or_default();
    let reading: Option<Reading> = from_value(part("reading")).ok();
    let marks: Option<Marks> = from_value(part("marks")).ok();
    let mut lines = Vec::new();
    if let Some(reading) = &reading {
        lines.extend(figures(reading));
    }
    if let Some(marks) = &marks {
        lines.extend(mark(entry, marks));
    }
    lines.extend(number(entry, "waited_ms").map(|waited| {
        format!("It waited {waited} ms for the client to write its answer down, because a level was near.")
    }));
    lines.extend(
        said(entry, "reason").map(|reason| format!("The reason that the session was given: {reason}.")),
    );
    lines.extend(what_was_kept(entry));
    lines
}

fn figures(reading: &Reading) -> Vec<String> {
    let window = reading.window.as_ref();
    let of = window.map_or(String::new(), |window| format!(" of {}", tokens(window.tokens)));
    let percent = reading.percent().map_or("?".to_owned(), |percent| percent.to_string());
    let mut lines = vec![format!(
        "The next request would have held about {}{of} tokens ({percent}%): {} sent, {} answered, {} estimated for tool results that were not sent yet.",
        tokens(reading.projected()),
        tokens(reading.used),
        tokens(reading.output),
        tokens(reading.added),
    )];
    if let Some(percent) = reading.percent_used() {
        lines.push(format!("The client itself showed {percent}%: it counts what was sent."));
    }
    let at = reading.at.as_ref().map(|at| format!(" of {at}")).unwrap_or_default();
    let behind =
        if reading.behind { "; the answer at hand was not written down yet, so one request old" } else { "" };
    lines.push(format!("The figure comes from: {}{at}{behind}.", reading.source.words()));
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

fn mark(entry: &Value, marks: &Marks) -> Vec<String> {
    let begins = |name: &str, at: u64| format!("{name} at {} ({}%)", tokens(at), marks.percent(at));
    let reached = match word(entry, "level") {
        Some("L1") => Some(marks.l1),
        Some("L2") => Some(marks.l2),
        Some("L3") => Some(marks.l3),
        _ => None,
    };
    let word = said(entry, "level").unwrap_or_default();
    let passed = reached.map(|at| format!("{word} begins at {} ({}%). ", tokens(at), marks.percent(at)));
    let action = match marks.ceiling.action {
        CeilingAction::Compacts => "the client compacts",
        CeilingAction::Refuses => "the client refuses to go on",
        CeilingAction::Rejected => "the API refuses",
    };
    let clamped = if marks.clamped { "; levels were moved down to come before that" } else { "" };
    vec![format!(
        "{}All marks: {}, {}, {}; {action} {}{clamped}.",
        passed.unwrap_or_default(),
        begins("L1", marks.l1),
        begins("L2", marks.l2),
        begins("L3", marks.l3),
        begins("", marks.ceiling.tokens).trim_start(),
    )]
}

fn what_was_kept(entry: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(handoff) = said(entry, "handoff") {
        let item = said(entry, "item").map(|item| format!(", for the item \"{item}\"")).unwrap_or_default();
        lines.push(format!("What was done: the handoff {handoff} was written{item}."));
    }
    let files = words(entry, "files");
    if !files.is_empty() {
        lines.push(format!("Files at work: {}.", files.join(", ")));
    }
    lines.extend(said(entry, "trouble").map(|trouble| format!("The state could not be written: {trouble}.")));
    lines
}

fn verdict(entry: &Value, beside: &[Value]) -> Vec<String> {
    let marker = said(entry, "marker").unwrap_or_default();
    let mut lines = vec![decided(&marker)];
    if word(entry, "event") == Some("provisional_verdict") {
        lines.push("This is the hook's word before the verify commands have run; the final one follows when the session is over.".to_owned());
    }
    if let Some(ending) = entry.get("ending") {
        lines.extend(ended(ending));
    }
    lines.extend(items(entry));
    lines.extend(verified(entry));
    lines.extend(moved(entry));
    lines.extend(beside.iter().filter_map(followed));
    lines
}

fn verified(entry: &Value) -> Vec<String> {
    let told = |outcome: &Value| {
        let passed = outcome.get("passed").and_then(Value::as_bool) == Some(true);
        let command = said(outcome, "command").unwrap_or_default();
        let words = said(outcome, "words").filter(|_| !passed).map(|words| format!(": {words}"));
        let how = if passed { "passed" } else { "did not pass" };
        format!("Verify `{command}` {how}{}.", words.unwrap_or_default())
    };
    entry.get("verify").and_then(Value::as_array).into_iter().flatten().map(told).collect()
}

/// What was decided together with a verdict.
fn followed(entry: &Value) -> Option<String> {
    let known = |name: &str| said(entry, name).unwrap_or_default();
    match word(entry, "event")? {
        "breaker_opened" => Some(format!(
            "The circuit breaker opened: {}, {} in a row: {}.",
            known("cause"),
            known("count"),
            known("evidence")
        )),
        "set_aside" => Some(format!(
            "The item \"{}\" was set aside, because nobody got anywhere with it.",
            known("item")
        )),
        _ => None,
    }
}

/// The marker in a sentence.
fn decided(marker: &str) -> String {
    let mut fields = marker.splitn(3, '|');
    let mut field = || fields.next().unwrap_or_default();
    let (kind, what, why) = (field(), field(), field());
    let because = if why.is_empty() { String::new() } else { format!(", because: {why}") };
    match (kind, what) {
        ("RALPH_STOP", status) => format!("It ended the run as {status}{because}."),
        ("RALPH_PAUSE", "-") => format!("It paused the run{because}."),
        ("RALPH_PAUSE", until) => format!("It paused the run until {until}{because}."),
        ("RALPH_CONTINUE", "refused") => {
            format!("It did not believe the promise{because}; a fresh session goes on.")
        }
        ("RALPH_CONTINUE", "checkpoint") => {
            format!("It goes on with a fresh session that resumes from {why}.")
        }
        ("RALPH_CONTINUE", _) => format!("It goes on with a fresh session{because}."),
        _ => format!("It decided: {marker}."),
    }
}

fn ended(ending: &Value) -> Option<String> {
    let how = match word(ending, "ending")? {
        "completed" => "the model ended its turn",
        "hook_stopped" => "a hook of ours ended it at a checkpoint",
        "window_full" => "the window was full",
        "client_limit" => "the client's own limit ended it",
        "fatal" => "no session can succeed like this",
        "limit" => "a usage or rate limit ended it",
        "overloaded" => "the service was overloaded or out of reach",
        "silent" => "it said nothing for too long, and was ended",
        "out_of_time" => "the deadline came",
        "interrupted" => "a person interrupted it",
        "cancelled" => "`plimsoll stop` ended it",
        "crashed" => "it broke off without a result",
        "failed" => "it ended with an error",
        _ => "nobody saw how it ended",
    };
    let detail = said(ending, "detail").map(|detail| format!(" ({detail})")).unwrap_or_default();
    Some(format!("The session: {how}{detail}."))
}

fn items(entry: &Value) -> Option<String> {
    let (open, done) = (number(entry, "open")?, number(entry, "done")?);
    let ticked = words(entry, "ticked");
    let ticked = match ticked.as_slice() {
        [] => "nothing was ticked in this session".to_owned(),
        ticked => format!("ticked in this session: {}", ticked.join(", ")),
    };
    Some(format!("Items: {done} done, {open} open; {ticked}."))
}

fn moved(entry: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(progress) = entry.get("progress").and_then(Value::as_bool) {
        let idle = number(entry, "no_change_count").unwrap_or(0) as usize;
        lines.push(match (progress, idle) {
            (true, _) => "Something moved: commits, files, items, verify commands or memory.".to_owned(),
            (false, idle) => format!("Nothing moved, {} in a row.", counted(idle.max(1), "session")),
        });
    }
    lines.extend(said(entry, "error").map(|error| {
        let same = number(entry, "same_errors").filter(|count| *count > 1);
        let same = same.map(|count| format!(", the same {count} times")).unwrap_or_default();
        format!("Its error{same}: {error}.")
    }));
    if let Some(cost) = entry.get("cost_usd").and_then(Value::as_f64) {
        let tokens = number(entry, "tokens").map(|number| format!(", {} tokens", tokens(number)));
        lines.push(format!("So far: ${cost:.2}{}.", tokens.unwrap_or_default()));
    }
    lines
}

fn room(entry: &Value) -> Vec<String> {
    let amount = |name: &str| number(entry, name).map_or("?".to_owned(), tokens);
    let source = said(entry, "estimate_source").map(|source| format!(" ({source})")).unwrap_or_default();
    let event = word(entry, "event");
    let fits = event == Some("packed");
    let what = if event == Some("no_room_for_step") { "step (from one commit to the next)" } else { "item" };
    vec![format!(
        "The next {what} takes about {} tokens{source}, and {} are free below L2: {}.",
        amount("estimate_tokens"),
        amount("room_tokens"),
        if fits { "it fits" } else { "it does not fit" }
    )]
}

/// What every entry has is told elsewhere.
const COMMON: [&str; 5] = ["at", "event", "run_id", "iteration", "session_id"];

fn facts(entry: &Value) -> Vec<String> {
    let fields = entry.as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| !COMMON.contains(&name.as_str()));
    fields.filter_map(|(name, _)| Some(format!("{name}: {}", said(entry, name)?))).collect()
}

fn word<'e>(entry: &'e Value, name: &str) -> Option<&'e str> {
    entry.get(name)?.as_str()
}

fn number(entry: &Value, name: &str) -> Option<u64> {
    entry.get(name)?.as_u64()
}

/// A fact on one line, not too long; none where it is absent or says nothing.
fn said(entry: &Value, name: &str) -> Option<String> {
    let words = match entry.get(name)? {
        Value::Null => return None,
        Value::String(words) => words.clone(),
        other => other.to_string(),
    };
    let words = clip(&one_line(&words), 400);
    let words = words.trim_end_matches('.').to_owned();
    (!words.is_empty()).then_some(words)
}

fn words(entry: &Value, name: &str) -> Vec<String> {
    let list = entry.get(name).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(|item| clip(&one_line(item), 100)).collect()
}

#[cfg(test)]
mod tests;
