//! The task: six phases with the same tool calls in every way of working, and two facts in each phase.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub(crate) const PHASES: usize = 6;

/// The amount of text to read in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TaskSize {
    /// Ten calls, about 20,000 tokens of output.
    Large,
    /// Two calls, a few hundred tokens of output.
    Small,
}

/// The facts in the files, two in each phase, with their exact wording.
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

/// Returns the two facts of a phase, counted from 0.
pub(crate) fn facts_of_phase(phase: usize) -> &'static [&'static str] {
    &FACTS[2 * phase..2 * phase + 2]
}

/// Returns the facts that a phase must know at its last step: those of the first phase and of the phase
/// before it. The last phase needs all earlier facts.
fn facts_needed_by_phase(phase: usize) -> Vec<&'static str> {
    let facts_of_phases =
        |phases: &[usize]| phases.iter().flat_map(|phase| facts_of_phase(*phase)).copied().collect();
    match phase {
        0 => Vec::new(),
        1 => facts_of_phases(&[0]),
        last if last == PHASES - 1 => FACTS[..2 * last].to_vec(),
        later => facts_of_phases(&[0, later - 1]),
    }
}

/// A tool call of the task and the facts that the agent must know for it.
pub(crate) struct TaskCall {
    pub(crate) step: Step,
    pub(crate) description: String,
    pub(crate) needed_facts: Vec<&'static str>,
}

/// Returns the calls of a phase: it reads files, searches them, then writes the result.
pub(crate) fn phase_calls(world: &World, phase: usize, size: TaskSize) -> Vec<TaskCall> {
    let call_without_needs =
        |step: Step, about: String| TaskCall { step, description: about, needed_facts: Vec::new() };
    let read_call = |part: usize| {
        let file = part_file(phase, part);
        call_without_needs(with_file_read(Step::default(), &world.path(&file)), format!("read {file}"))
    };
    let mut calls: Vec<TaskCall> = (0..parts_per_phase(size)).map(read_call).collect();
    if size == TaskSize::Large {
        let search = format!("grep -n -e commit -e session phase-{phase}/part-*.txt | head -c 6000");
        calls.push(call_without_needs(Step::bash_call(search), "searched the parts".to_owned()));
    }
    // The result does not repeat the facts, so that an agent that lost one cannot find it there.
    let result_text = format!("Phase {phase} is done with what was found.\n");
    let path = world.path(format!("result-{phase}.txt")).display().to_string();
    let write_step =
        Step::default().with_tool_call("Write", json!({ "file_path": path, "content": result_text }));
    calls.push(TaskCall {
        needed_facts: facts_needed_by_phase(phase),
        ..call_without_needs(write_step, "wrote the result".to_owned())
    });
    calls
}

/// Adds a call that reads a file to a step.
pub(crate) fn with_file_read(step: Step, path: &Path) -> Step {
    step.with_tool_call("Read", json!({ "file_path": path.display().to_string() }))
}

/// Returns the file that contains each fact.
pub(crate) fn fact_files(world: &World, size: TaskSize) -> BTreeMap<&'static str, PathBuf> {
    let fact_file =
        |fact_index: usize| world.path(part_file(fact_index / 2, part_with_fact(fact_index, size)));
    FACTS.iter().enumerate().map(|(number, fact)| (*fact, fact_file(number))).collect()
}

/// Returns the part of its phase that contains a fact.
fn part_with_fact(fact_index: usize, size: TaskSize) -> usize {
    match size {
        TaskSize::Large => 2 + 3 * (fact_index % 2),
        TaskSize::Small => 0,
    }
}

fn parts_per_phase(size: TaskSize) -> usize {
    match size {
        TaskSize::Large => 8,
        TaskSize::Small => 1,
    }
}

fn part_file(phase: usize, part: usize) -> String {
    format!("phase-{phase}/part-{part}.txt")
}

/// Writes the files to read, the same in every world: notes about a service, 8 KB or 0.8 KB for each file.
pub(crate) fn write_files(world: &World, size: TaskSize) {
    for phase in 0..PHASES {
        for part in 0..parts_per_phase(size) {
            let bytes = if size == TaskSize::Large { 8_000 } else { 800 };
            let mut text = generate_text(1_000 * phase + part, bytes);
            let facts = facts_of_phase(phase).iter().enumerate();
            for (_, fact) in facts.filter(|(number, _)| part_with_fact(*number, size) == part) {
                let _ = writeln!(text, "# {fact}");
            }
            world.write(part_file(phase, part), &text);
        }
    }
}

const FILLER_WORDS: [&str; 24] = [
    "commit", "the", "session", "reads", "every", "record", "before", "writing", "a", "batch", "of",
    "pending", "entries", "and", "checks", "its", "sum", "against", "table", "index", "when", "lock", "is",
    "free",
];

/// Generates numbered sentences by a fixed rule, so that no two files and no two lines are equal.
fn generate_text(seed: usize, min_bytes: usize) -> String {
    let (mut text, mut state) = (String::new(), seed as u64 + 1);
    let mut next_random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    while text.len() < min_bytes {
        let words: Vec<&str> = (0..9).map(|_| FILLER_WORDS[next_random(FILLER_WORDS.len())]).collect();
        let _ = writeln!(text, "{:05}  {}.", next_random(100_000), words.join(" "));
    }
    text
}
