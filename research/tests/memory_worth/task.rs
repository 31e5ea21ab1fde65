//! The task: six phases, each of the same tool calls whoever makes them, and two facts found in each.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub(crate) const PHASES: usize = 6;

/// How much there is to read in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Size {
    /// Ten calls, about 20,000 tokens of output.
    Large,
    /// Two calls, a few hundred tokens of output.
    Small,
}

/// What is found on the way, two in each phase, word for word as it stands in the files.
pub(crate) const FACTS: [&str; 2 * PHASES] = [
    "Ledger ids are signed 53-bit: import refuses anything above 9007199254740991.",
    "The staging gateway listens on 48213, not on 8443 as its README says.",
    "Rows with status Q7 are duplicates by design and must not be merged.",
    "Amounts are in tenths of a cent; the export divides by 1000 exactly once.",
    "The retry window of the mailer is 4370 ms; below it the provider answers 421.",
    "Table acct_shadow is written by the trigger trg_acct_92 and by nobody else.",
    "Dates before 1997-03-30 have no zone: they are to be read as Europe/Lisbon.",
    "The archive key rotates on the 19th; files of before need the suffix .k18.",
    "Worker 3 holds the advisory lock 771204 for the whole of a migration.",
    "Column memo_txt is latin-1 in partitions p01 to p17 and UTF-8 from p18 on.",
    "The reconciliation tolerates a drift of 0.0035 percent and not more.",
    "Batch size 612 is the largest that the replica survives without lag alarms.",
];

/// The two facts of a phase, counted from 0.
pub(crate) fn found_in(phase: usize) -> &'static [&'static str] {
    &FACTS[2 * phase..2 * phase + 2]
}

/// What a phase must know at its last step: what the first phase and the one before it found; the last phase needs
/// everything that was found before it.
fn needed_by(phase: usize) -> Vec<&'static str> {
    let of = |phases: &[usize]| phases.iter().flat_map(|phase| found_in(*phase)).copied().collect();
    match phase {
        0 => Vec::new(),
        1 => of(&[0]),
        last if last == PHASES - 1 => FACTS[..2 * last].to_vec(),
        later => of(&[0, later - 1]),
    }
}

/// One call of the task, and what whoever makes it must know by then.
pub(crate) struct Call {
    pub(crate) step: Step,
    pub(crate) about: String,
    pub(crate) needs: Vec<&'static str>,
}

/// The calls of a phase: files are read, then searched, then the result is written.
pub(crate) fn calls(world: &World, phase: usize, size: Size) -> Vec<Call> {
    let call = |step: Step, about: String| Call { step, about, needs: Vec::new() };
    let read = |part: usize| {
        let file = file(phase, part);
        call(read(Step::default(), &world.path(&file)), format!("read {file}"))
    };
    let mut calls: Vec<Call> = (0..parts(size)).map(read).collect();
    if size == Size::Large {
        let search = format!("grep -n -e commit -e session phase-{phase}/part-*.txt | head -c 6000");
        calls.push(call(Step::bash(search), "searched the parts".to_owned()));
    }
    // Named and not repeated: who no longer sees a fact shall not find it in what was written with it.
    let result = format!("Phase {phase} is done with what was found.\n");
    let path = world.path(format!("result-{phase}.txt")).display().to_string();
    let write = Step::default().tool("Write", json!({ "file_path": path, "content": result }));
    calls.push(Call { needs: needed_by(phase), ..call(write, "wrote the result".to_owned()) });
    calls
}

/// The same step with a file read.
pub(crate) fn read(step: Step, path: &Path) -> Step {
    step.tool("Read", json!({ "file_path": path.display().to_string() }))
}

/// Where each fact stands.
pub(crate) fn places(world: &World, size: Size) -> BTreeMap<&'static str, PathBuf> {
    let place = |number: usize| world.path(file(number / 2, part_of(number, size)));
    FACTS.iter().enumerate().map(|(number, fact)| (*fact, place(number))).collect()
}

/// In which part of its phase a fact stands.
fn part_of(number: usize, size: Size) -> usize {
    match size {
        Size::Large => 2 + 3 * (number % 2),
        Size::Small => 0,
    }
}

fn parts(size: Size) -> usize {
    match size {
        Size::Large => 8,
        Size::Small => 1,
    }
}

fn file(phase: usize, part: usize) -> String {
    format!("phase-{phase}/part-{part}.txt")
}

/// Writes what there is to read, the same in every world: notes about some service, 8 KB or 0.8 KB a file.
pub(crate) fn write_files(world: &World, size: Size) {
    for phase in 0..PHASES {
        for part in 0..parts(size) {
            let bytes = if size == Size::Large { 8_000 } else { 800 };
            let mut text = prose(1_000 * phase + part, bytes);
            let facts = found_in(phase).iter().enumerate();
            for (_, fact) in facts.filter(|(number, _)| part_of(*number, size) == part) {
                let _ = writeln!(text, "# {fact}");
            }
            world.write(file(phase, part), &text);
        }
    }
}

const WORDS: [&str; 24] = [
    "commit", "the", "session", "reads", "every", "record", "before", "writing", "a", "batch", "of",
    "pending", "entries", "and", "checks", "its", "sum", "against", "table", "index", "when", "lock", "is",
    "free",
];

/// Numbered sentences by a fixed rule, so that no two files and no two lines are the same.
fn prose(seed: usize, bytes: usize) -> String {
    let (mut text, mut state) = (String::new(), seed as u64 + 1);
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    while text.len() < bytes {
        let words: Vec<&str> = (0..9).map(|_| WORDS[next(WORDS.len())]).collect();
        let _ = writeln!(text, "{:05}  {}.", next(100_000), words.join(" "));
    }
    text
}
