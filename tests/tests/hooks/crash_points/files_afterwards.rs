//! What is on the disk afterwards: whether each file of ours is whole, and what they say together, times and other
//! numbers of chance apart.

use crate::crash_points::prepared_world::Stage;
use plimsoll_store::{Project, TurnLog};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Faults of the files as they lie there; with `mended` also those that the next writer mends.
pub fn faults(stage: &Stage, mended: bool) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, bytes) in files(stage) {
        let text = String::from_utf8_lossy(&bytes);
        let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
        let is_whole = match name.rsplit('.').next() {
            Some("json") => is_json(&text),
            // The line that is being written when a program dies is whole or not there.
            Some("jsonl") => text.lines().all(is_json) && (text.is_empty() || text.ends_with('\n')),
            Some("md") if name.contains("/handoffs/") => {
                // The last section but the notes says what to do next, or how to continue an ordinary session.
                let has_end =
                    text.contains("\n## What to do next\n\n") || text.contains("before you build on it.\n");
                text.starts_with("# ") && has_end && text.ends_with('\n')
            }
            _ => true,
        };
        if !is_whole {
            faults.push(format!("{name} is torn: {text}"));
        }
    }
    let project = Project::with_local_files(&stage.world.project()).with_runs_folder(&stage.world.runs());
    if mended {
        let logs = TurnLog::all_sessions(&project);
        let found = logs.iter().map(|log| (log.session_id(), log.verify()));
        faults.extend(found.filter_map(|(id, report)| match report {
            Ok(report) if report.is_intact() => None,
            report => Some(format!("the turn log of {id}: {report:?}")),
        }));
        faults.extend(unnamed_handoff(stage));
        faults.extend(second_handoff(stage));
    }
    match (plimsoll_store::memory::load_memory(&project), plimsoll_store::memory::read_changes(&project)) {
        (Ok(memory), Ok(changes)) => {
            let mut folded = plimsoll_domain::memory::Memory::default();
            for change in &changes {
                folded.step_number = folded.step_number.max(change.step);
                faults.extend(folded.apply(&change.op).err().map(|refusal| format!("refused: {refusal}")));
            }
            let revisions: Vec<u64> = changes.iter().map(|change| change.rev).collect();
            if revisions != (1..=memory.revision).collect::<Vec<_>>() {
                faults.push(format!("the memory is at {} by {revisions:?}", memory.revision));
            }
            // Steps are only counted, not logged.
            folded.step_number = memory.step_number;
            if folded != memory {
                faults.push(format!("the memory is {memory:?}, and its log comes to {folded:?}"));
            }
        }
        (memory, changes) => faults.push(format!("the memory cannot be read: {memory:?} {changes:?}")),
    }
    faults
}

/// A checkpoint in the state names a handoff that is there.
fn unnamed_handoff(stage: &Stage) -> Option<String> {
    let path = stage.world.path(".claude/ralph-state.json");
    let state: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let checkpoint = &state["context_checkpoint"];
    let file = checkpoint["handoff_file"].as_str().filter(|file| !file.is_empty())?;
    (!stage.world.exists(file)).then(|| format!("there is no {file}: {checkpoint}"))
}

/// A session has one handoff, and each scenario has one session.
fn second_handoff(stage: &Stage) -> Option<String> {
    let is_handoff = |name: &String| name.contains("/handoffs/") && name.ends_with(".md");
    let handoffs: Vec<String> = files(stage).into_keys().filter(is_handoff).collect();
    (handoffs.len() > 1).then(|| format!("one session has several handoffs: {handoffs:?}"))
}

/// Drafts that lie about.
pub fn drafts(stage: &Stage) -> Vec<String> {
    all_files(stage).into_keys().filter(|name| name.ends_with("plimsoll-draft")).collect()
}

/// What the files say, by their names.
pub type Words = BTreeMap<String, String>;

/// Everything that must be the same, whoever was killed on the way to it.
pub fn words(stage: &Stage) -> Words {
    let mut words = Words::new();
    for (name, bytes) in files(stage) {
        // Made of the log whenever it is not there.
        let is_derived = [".head", ".torn", "/memory/state.json"].iter().any(|end| name.ends_with(end));
        if is_derived || name.ends_with("faults.jsonl") || name.contains(".corrupt-") {
            continue;
        }
        let text = String::from_utf8_lossy(&bytes);
        if name.ends_with("journal.jsonl") {
            for (event, count) in told(&text) {
                words.insert(format!("{name}: {event}"), count.to_string());
            }
        } else {
            words.insert(steady(&name), steady(&text));
        }
    }
    words
}

/// How often the journal tells of each thing.
fn told(journal: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in journal.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        let of = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        *counts.entry(format!("{} {} {}", of("event"), of("level"), steady(&of("marker")))).or_default() += 1;
    }
    counts
}

fn files(stage: &Stage) -> BTreeMap<String, Vec<u8>> {
    let is_ours = |name: &String| {
        let of_git =
            name.contains("/.git/") && !name.contains("/.git/plimsoll/") && !name.ends_with("/info/exclude");
        !of_git && !name.ends_with(".lock") && !name.ends_with("plimsoll-draft")
    };
    let mut files = all_files(stage);
    files.retain(|name, _| is_ours(name));
    files
}

fn all_files(stage: &Stage) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for part in [stage.world.home(), stage.world.project()] {
        collect(&part, part.parent().expect("a world"), &mut found);
    }
    found
}

fn collect(folder: &Path, root: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, root, found);
        } else {
            let name = path.strip_prefix(root).expect("below the world").display().to_string();
            found.insert(format!("/{name}"), std::fs::read(&path).unwrap_or_default());
        }
    }
}

/// Keys whose numbers are chance; `file` begins with the number of an inode.
const CHANCE: [&str; 8] =
    ["pid", "process_started", "waits", "waited_ms", "seconds", "revision", "age_seconds", "file"];

/// The text with every moment, digest, process and handoff's name replaced.
fn steady(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut word, mut last) = (String::new(), String::new());
    let mut end = |word: &mut String, out: &mut String| {
        if !word.is_empty() {
            out.push_str(&steady_word(word, &last));
            last = std::mem::take(word);
        }
    };
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric()
            || matches!(letter, '-' | ':' | '.' | '_' | '+') && !is_alone(&word, letter)
        {
            word.push(letter);
        } else {
            end(&mut word, &mut out);
            out.push(letter);
        }
    }
    end(&mut word, &mut out);
    out
}

/// A colon belongs to a moment, not to a key.
fn is_alone(word: &str, letter: char) -> bool {
    letter == ':' && !word.contains('T')
}

fn steady_word(word: &str, last: &str) -> String {
    let shape: String =
        word.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    // The time of a file is in seconds.
    if ["0000-00-00T", "00000000T", "0000000000."].iter().any(|moment| shape.starts_with(moment)) {
        return "MOMENT".to_owned();
    }
    if let Some(rest) = shape.strip_prefix("0000-00-00-0000") {
        return format!("HANDOFF{}", if rest.contains("md") { ".md" } else { "" });
    }
    let is_digest = word.len() >= 7
        && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        && word.bytes().any(|byte| byte.is_ascii_digit());
    if is_digest {
        return "DIGEST".to_owned();
    }
    if CHANCE.contains(&last) && word.bytes().all(|byte| byte.is_ascii_digit()) {
        return "N".to_owned();
    }
    word.to_owned()
}
