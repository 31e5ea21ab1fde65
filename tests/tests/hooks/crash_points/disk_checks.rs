//! Checks of the files on disk after a kill or an I/O error: whether each of our files is intact, and what they contain, without
//! times and other values that differ between runs.

use crate::crash_points::prepared_world::PreparedWorld;
use plimsoll_store::{Project, TurnLog};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Returns the faults of the files. With `is_after_repair` it includes those that the next writer would have repaired.
pub fn file_faults(prepared: &PreparedWorld, is_after_repair: bool) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, bytes) in our_files(prepared) {
        let text = String::from_utf8_lossy(&bytes);
        let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
        let is_whole = match name.rsplit('.').next() {
            Some("json") => is_json(&text),
            // A line that is being written when the program dies is either complete or missing.
            Some("jsonl") => text.lines().all(is_json) && (text.is_empty() || text.ends_with('\n')),
            Some("md") if name.contains("/handoffs/") => {
                // The last section before the notes says what to do next, or how to continue a session outside a run.
                let has_end = text.contains("\n## What to do next\n\n")
                    || text.contains("check them before you rely on them.\n");
                text.starts_with("# ") && has_end && text.ends_with('\n')
            }
            _ => true,
        };
        if !is_whole {
            faults.push(format!("{name} is torn: {text}"));
        }
    }
    let project =
        Project::with_local_files(&prepared.world.project()).with_runs_folder(&prepared.world.runs_folder());
    if is_after_repair {
        let logs = TurnLog::one_per_session_oldest_modified_first(&project);
        let reports = logs.iter().map(|log| (log.session_id(), log.verify()));
        faults.extend(reports.filter_map(|(id, report)| match report {
            Ok(report) if report.is_intact() => None,
            report => Some(format!("the turn log of {id}: {report:?}")),
        }));
        faults.extend(missing_handoff(prepared));
        faults.extend(duplicate_handoff(prepared));
    }
    match (plimsoll_store::memory::load_memory(&project), plimsoll_store::memory::read_changes(&project)) {
        (Ok(memory), Ok(changes)) => {
            let mut replayed = plimsoll_domain::memory::Memory::default();
            for change in &changes {
                replayed.step_number = replayed.step_number.max(change.step);
                faults.extend(replayed.apply(&change.op).err().map(|refusal| format!("refused: {refusal}")));
            }
            let revisions: Vec<u64> = changes.iter().map(|change| change.rev).collect();
            if revisions != (1..=memory.revision).collect::<Vec<_>>() {
                faults.push(format!("the memory is at {} by {revisions:?}", memory.revision));
            }
            // Steps are only counted, not logged.
            replayed.step_number = memory.step_number;
            if replayed != memory {
                faults.push(format!("the memory is {memory:?}, and its log comes to {replayed:?}"));
            }
        }
        (memory, changes) => faults.push(format!("the memory cannot be read: {memory:?} {changes:?}")),
    }
    faults
}

/// Returns a fault if the checkpoint in the state names a handoff that does not exist.
fn missing_handoff(prepared: &PreparedWorld) -> Option<String> {
    let path = prepared.world.path(".claude/ralph-state.json");
    let state: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let checkpoint = &state["context_checkpoint"];
    let file = checkpoint["handoff_file"].as_str().filter(|file| !file.is_empty())?;
    (!prepared.world.exists(file)).then(|| format!("there is no {file}: {checkpoint}"))
}

/// Returns a fault if there are several handoffs: each scenario has one session, and a session has one handoff.
fn duplicate_handoff(prepared: &PreparedWorld) -> Option<String> {
    let is_handoff = |name: &String| name.contains("/handoffs/") && name.ends_with(".md");
    let handoffs: Vec<String> = our_files(prepared).into_keys().filter(is_handoff).collect();
    (handoffs.len() > 1).then(|| format!("one session has several handoffs: {handoffs:?}"))
}

/// Returns the drafts that were left behind.
pub fn draft_files(prepared: &PreparedWorld) -> Vec<String> {
    all_files(prepared).into_keys().filter(|name| name.ends_with("plimsoll-draft")).collect()
}

/// The comparable content of the files, by their names.
pub type FileContents = BTreeMap<String, String>;

/// Returns the content that must be the same no matter which program was killed on the way.
pub fn comparable_contents(prepared: &PreparedWorld) -> FileContents {
    let mut contents = FileContents::new();
    for (name, bytes) in our_files(prepared) {
        // These files are derived from the log if they are missing.
        let is_derived = [".head", ".torn", "/memory/state.json"].iter().any(|end| name.ends_with(end));
        if is_derived || name.ends_with("faults.jsonl") || name.contains(".corrupt-") {
            continue;
        }
        let text = String::from_utf8_lossy(&bytes);
        if name.ends_with("journal.jsonl") {
            for (event, count) in count_journal_events(&text) {
                contents.insert(format!("{name}: {event}"), count.to_string());
            }
        } else {
            contents.insert(normalize(&name), normalize(&text));
        }
    }
    contents
}

/// Counts the events of the journal by event, level and marker.
fn count_journal_events(journal: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in journal.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        let text_of = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        *counts
            .entry(format!("{} {} {}", text_of("event"), text_of("level"), normalize(&text_of("marker"))))
            .or_default() += 1;
    }
    counts
}

fn our_files(prepared: &PreparedWorld) -> BTreeMap<String, Vec<u8>> {
    let is_ours = |name: &String| {
        let is_git_file =
            name.contains("/.git/") && !name.contains("/.git/plimsoll/") && !name.ends_with("/info/exclude");
        !is_git_file && !name.ends_with(".lock") && !name.ends_with("plimsoll-draft")
    };
    let mut files = all_files(prepared);
    files.retain(|name, _| is_ours(name));
    files
}

fn all_files(prepared: &PreparedWorld) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for part in [prepared.world.home(), prepared.world.project()] {
        collect_files(&part, part.parent().expect("a world"), &mut files);
    }
    files
}

fn collect_files(folder: &Path, root: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect_files(&path, root, files);
        } else {
            let name = path.strip_prefix(root).expect("below the world").display().to_string();
            files.insert(format!("/{name}"), std::fs::read(&path).unwrap_or_default());
        }
    }
}

/// Keys whose numbers differ between runs; `file` begins with an inode number.
const VOLATILE_KEYS: [&str; 8] =
    ["pid", "process_started", "waits", "waited_ms", "seconds", "revision", "age_seconds", "file"];

/// Returns the text with every time, digest, process ID and handoff name replaced.
fn normalize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut word, mut last_word) = (String::new(), String::new());
    let mut flush_word = |word: &mut String, out: &mut String| {
        if !word.is_empty() {
            out.push_str(&normalize_word(word, &last_word));
            last_word = std::mem::take(word);
        }
    };
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric()
            || matches!(letter, '-' | ':' | '.' | '_' | '+') && !is_separator_colon(&word, letter)
        {
            word.push(letter);
        } else {
            flush_word(&mut word, &mut out);
            out.push(letter);
        }
    }
    flush_word(&mut word, &mut out);
    out
}

/// Whether the letter is a colon after a key, and not part of a time.
fn is_separator_colon(word: &str, letter: char) -> bool {
    letter == ':' && !word.contains('T')
}

fn normalize_word(word: &str, last_word: &str) -> String {
    let shape: String =
        word.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    // The last form is a file time in seconds.
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
    if VOLATILE_KEYS.contains(&last_word) && word.bytes().all(|byte| byte.is_ascii_digit()) {
        return "N".to_owned();
    }
    word.to_owned()
}
