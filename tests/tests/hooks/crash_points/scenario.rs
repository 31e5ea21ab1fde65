//! A program that is killed before each of its changes, or whose changes each fail, and what must hold afterwards.

use crate::crash_points::disk_checks::{self, FileContents};
use crate::crash_points::prepared_world::{Invocation, PreparedWorld};
use crate::crash_points::syscall_trace::{self, SyscallPoint};
use plimsoll_testkit::world::FinishedProgram;

/// The kind of a program, which decides how it may fail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ProgramKind {
    /// Must never break the session: exits with 0, or with 1 if its decision asks for that, and prints at most two error lines.
    Hook,
    /// Must report what failed, where, and what to do.
    Command,
}

pub struct Scenario {
    pub name: &'static str,
    pub kind: ProgramKind,
    pub prepared: PreparedWorld,
    pub invocation: Invocation,
    /// The user's files, each of which must be entirely the old or entirely the new one.
    pub user_files: &'static [&'static str],
    /// Parts of file names whose content may be lost for good if a write fails; the program reports the error.
    pub may_lose: &'static [&'static str],
    /// True if the next run of the program removes the drafts that a killed one left beside the user's files.
    pub removes_drafts: bool,
    /// Only every n-th call is tested, for a program that makes very many.
    pub step: usize,
}

impl Scenario {
    pub fn new(
        name: &'static str,
        kind: ProgramKind,
        prepared: PreparedWorld,
        invocation: Invocation,
    ) -> Scenario {
        Scenario {
            name,
            kind,
            prepared,
            invocation,
            user_files: &[],
            may_lose: &[],
            removes_drafts: false,
            step: 1,
        }
    }

    pub fn with_user_files(self, user_files: &'static [&'static str]) -> Scenario {
        Scenario { user_files, ..self }
    }

    pub fn allowing_loss_of(self, may_lose: &'static [&'static str]) -> Scenario {
        Scenario { may_lose, ..self }
    }

    pub fn expecting_draft_removal(self) -> Scenario {
        Scenario { removes_drafts: true, ..self }
    }

    pub fn with_step(self, step: usize) -> Scenario {
        Scenario { step, ..self }
    }

    /// Tests every kill and every failing call; panics with all problems.
    pub fn assert_survives_kills_and_io_errors(self) {
        self.prepared.save();
        let started = std::time::Instant::now();
        let (first, kills) = syscall_trace::trace_kill_points(&self.prepared, &self.invocation);
        let reference = Reference::record(&self, first);
        let mut problems: Vec<String> = Vec::new();
        for point in kills.iter().step_by(self.step) {
            problems.extend(self.check_kill(point, &reference));
        }
        self.prepared.restore();
        let refusals = syscall_trace::trace_refusable_points(&self.prepared, &self.invocation);
        for (index, point) in refusals.iter().enumerate().step_by(self.step) {
            // Alternately the call fails once, or from then on.
            problems.extend(self.check_refusal(point, index / self.step % 2 == 1, &reference));
        }
        println!(
            "{}: {} kills, {} refusals, {:.1} s",
            self.name,
            kills.len().div_ceil(self.step),
            refusals.len().div_ceil(self.step),
            started.elapsed().as_secs_f32()
        );
        assert!(problems.is_empty(), "{}: {} amiss\n{}", self.name, problems.len(), problems.join("\n"));
    }

    fn check_kill(&self, point: &SyscallPoint, reference: &Reference) -> Vec<String> {
        self.prepared.restore();
        let killed = syscall_trace::run_killed_before(&self.prepared, &self.invocation, point);
        let mut problems = Vec::new();
        // Threads wake each other at random, so the call may not occur again.
        if killed.signal != Some(9) && !self.invocation.has_threads {
            problems.push(format!("it was not killed: {killed:?}"));
        }
        problems.extend(disk_checks::file_faults(&self.prepared, false));
        problems.extend(self.torn_user_files(reference));
        problems.extend(self.check_recovery(reference, true, true));
        label_problems(problems, &format!("killed before {point}"))
    }

    fn check_refusal(&self, point: &SyscallPoint, is_permanent: bool, reference: &Reference) -> Vec<String> {
        self.prepared.restore();
        let finished =
            syscall_trace::run_with_refused_syscall(&self.prepared, &self.invocation, point, is_permanent);
        let mut problems = Vec::new();
        problems.extend(self.check_response(&finished));
        problems.extend(disk_checks::file_faults(&self.prepared, false));
        problems.extend(self.torn_user_files(reference));
        let stderr = finished.stderr.clone();
        problems.extend(self.check_recovery(reference, false, point.syscall.starts_with("unlink")));
        if !problems.is_empty() && !stderr.is_empty() {
            problems.push(format!("it had said: {stderr}"));
        }
        let duration_text = if is_permanent { "from then on" } else { "once" };
        label_problems(problems, &format!("{} {duration_text} at {point}", point.injected_errno()))
    }

    /// Runs the program again and returns what then differs from a run without a fault.
    fn check_recovery(&self, reference: &Reference, was_killed: bool, may_leave_drafts: bool) -> Vec<String> {
        let mut problems = Vec::new();
        // The event is sent again, or the user runs the command again.
        let finished = self.prepared.run(&self.invocation);
        if !reference.exit_codes.contains(&finished.code) {
            problems.push(format!("afterwards: {finished:?}"));
        }
        problems.extend(disk_checks::file_faults(&self.prepared, true));
        // The copy of the state is written with its next change, and a failed turn log is completed in a different order.
        let restored_later: &[&str] = &["/.git/plimsoll/", "/plimsoll/turns/"];
        let mut differences =
            reference.differences(&disk_checks::comparable_contents(&self.prepared), was_killed);
        differences.retain(|difference| {
            was_killed || !self.may_lose.iter().chain(restored_later).any(|name| difference.contains(name))
        });
        problems.extend(differences);
        let drafts = disk_checks::draft_files(&self.prepared);
        if drafts.len() > usize::from((was_killed || may_leave_drafts) && !self.removes_drafts) {
            problems.push(format!("left behind: {drafts:?}"));
        }
        problems
    }

    /// Returns each of the user's files that is neither the old nor the new one.
    fn torn_user_files(&self, reference: &Reference) -> Vec<String> {
        let is_torn = |(path, new): &(&str, Option<Vec<u8>>)| {
            let current = std::fs::read(self.prepared.world.path(path)).ok();
            current != self.prepared.saved_file(path) && current != *new
        };
        let torn = reference.user_files.iter().filter(|pair| is_torn(pair));
        torn.map(|(path, _)| format!("{path} is neither old nor new")).collect()
    }

    fn check_response(&self, finished: &FinishedProgram) -> Vec<String> {
        let program = self.invocation.program;
        let mut problems = Vec::new();
        let codes: &[i32] = match self.kind {
            // Hooks exit with 1 at L3 and if the gate continues the run.
            ProgramKind::Hook => &[0, 1],
            ProgramKind::Command => &[0, 1, 70],
        };
        if !finished.code.is_some_and(|code| codes.contains(&code)) {
            problems.push(format!("exit {:?}, signal {:?}", finished.code, finished.signal));
        }
        let lines: Vec<&str> = finished.stderr.lines().collect();
        let is_hook = self.kind == ProgramKind::Hook;
        // One line for the turn log and one for the rest.
        if is_hook && (lines.len() > 2 || lines.iter().any(|line| !line.starts_with(program))) {
            problems.push(format!("it says {lines:?}"));
        }
        if finished.stderr.contains("internal error") || finished.stderr.contains("panicked") {
            problems.push(format!("it panics: {}", finished.stderr));
        }
        if is_hook
            && !finished.stdout.is_empty()
            && program != "plimsoll-pre-compact"
            && program != "plimsoll-statusline"
        {
            let reply = serde_json::from_str::<serde_json::Value>(&finished.stdout);
            if !reply.is_ok_and(|reply| reply.is_object()) {
                problems.push(format!("it answers {:?}", finished.stdout));
            }
        }
        problems
    }
}

fn label_problems(problems: Vec<String>, point: &str) -> Vec<String> {
    if problems.is_empty() { problems } else { vec![format!("- {point}\n    {}", problems.join("\n    "))] }
}

/// The results without a fault, after one run and after two: a program that is killed after its last change is run again.
struct Reference {
    after_one_run: FileContents,
    after_two_runs: FileContents,
    exit_codes: Vec<Option<i32>>,
    user_files: Vec<(&'static str, Option<Vec<u8>>)>,
}

impl Reference {
    fn record(scenario: &Scenario, first: FinishedProgram) -> Reference {
        let prepared = &scenario.prepared;
        let once = disk_checks::comparable_contents(prepared);
        let users = scenario
            .user_files
            .iter()
            .map(|path| (*path, std::fs::read(prepared.world.path(path)).ok()))
            .collect();
        let second = prepared.run(&scenario.invocation);
        let twice = disk_checks::comparable_contents(prepared);
        let faults = disk_checks::file_faults(prepared, true);
        assert!(faults.is_empty(), "{}: {faults:?}", scenario.name);
        // A repetition without a fault must give the same result, or the comparison would mean nothing.
        prepared.restore();
        prepared.run(&scenario.invocation);
        let again = disk_checks::comparable_contents(prepared);
        let reference = Reference {
            after_one_run: once,
            after_two_runs: twice,
            exit_codes: vec![first.code, second.code],
            user_files: users,
        };
        let random_differences = reference.differences(&again, false);
        assert!(random_differences.is_empty(), "{}: chance: {random_differences:?}", scenario.name);
        assert!(first.signal.is_none() && second.signal.is_none(), "{first:?} {second:?}");
        reference
    }

    /// Returns the contents that differ from those after one run and after two.
    fn differences(&self, contents: &FileContents, was_killed: bool) -> Vec<String> {
        let mut differences = Vec::new();
        let names = self.after_one_run.keys().chain(self.after_two_runs.keys()).chain(contents.keys());
        for name in names.collect::<std::collections::BTreeSet<_>>() {
            let (once, twice, now) =
                (self.after_one_run.get(name), self.after_two_runs.get(name), contents.get(name));
            let is_count = name.contains("journal.jsonl: ");
            let is_same = if is_count {
                is_allowed_count(once, twice, now, was_killed, name)
            } else {
                // A hook that dies between writing a handoff and recording it leaves a handoff that nothing refers to.
                now == once || now == twice || (was_killed && name.contains("/HANDOFF-"))
            };
            if !is_same {
                differences.push(format!(
                    "{name}:\n      once {}\n      now  {}",
                    excerpt_at_first_difference(once, now),
                    excerpt_at_first_difference(now, once)
                ));
            }
        }
        differences
    }
}

/// Whether the journal may have `now` events of a kind: as many as after one run or after two. A failed write loses its line.
/// A checkpoint is logged before its claim is settled, so a kill or an error between the two may add a second line. A warning
/// is lost if the program dies before it is announced.
fn is_allowed_count(
    once: Option<&String>,
    twice: Option<&String>,
    now: Option<&String>,
    was_killed: bool,
    name: &str,
) -> bool {
    let count = |text: Option<&String>| text.and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
    let (once, twice, now) = (count(once), count(twice), count(now));
    let may_repeat = name.contains(": checkpoint ") || !was_killed && name.contains(": warning ");
    let more = usize::from(may_repeat);
    let may_miss = !was_killed || name.contains(": warning ");
    (now >= once.min(twice) || may_miss) && now <= once.max(twice) + more
}

/// Returns the part of a text around its first difference from another one.
fn excerpt_at_first_difference(text: Option<&String>, other: Option<&String>) -> String {
    let Some(text) = text else { return "nothing".to_owned() };
    let other = other.map(String::as_str).unwrap_or_default();
    let common_length = text.bytes().zip(other.bytes()).take_while(|(one, two)| one == two).count();
    let start = text
        .char_indices()
        .map(|(at, _)| at)
        .rfind(|at| *at <= common_length.saturating_sub(60))
        .unwrap_or(0);
    let excerpt: String = text[start..].chars().take(260).collect();
    format!("{} bytes …{excerpt}", text.len()).replace('\n', "⏎")
}
