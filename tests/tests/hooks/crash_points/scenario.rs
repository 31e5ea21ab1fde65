//! A program that is killed before each of its changes, or refused each of them, and what must hold afterwards.

use crate::crash_points::files_afterwards::{self, Words};
use crate::crash_points::prepared_world::{Play, Stage};
use crate::crash_points::syscall_trace::{self, Point};
use plimsoll_testkit::world::Finished;

/// Whose program it is: that says how it may fail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Never breaks the session: exit code 0, or what it says anyway; a line on standard error.
    Hook,
    /// Says what, where and what to do.
    Command,
}

pub struct Scenario {
    pub name: &'static str,
    pub kind: Kind,
    pub stage: Stage,
    pub play: Play,
    /// Files of the user's that are wholly old or wholly new.
    pub users: &'static [&'static str],
    /// What is given up for good where it was refused, and said so.
    pub may_lose: &'static [&'static str],
    /// True if the next one of its kind removes what a killed one left beside the user's files.
    pub removes_drafts: bool,
    /// Which calls are tried, of a program that makes very many: every so-manieth.
    pub every: usize,
}

impl Scenario {
    pub fn new(name: &'static str, kind: Kind, stage: Stage, play: Play) -> Scenario {
        Scenario { name, kind, stage, play, users: &[], may_lose: &[], removes_drafts: false, every: 1 }
    }

    pub fn users(self, users: &'static [&'static str]) -> Scenario {
        Scenario { users, ..self }
    }

    pub fn may_lose(self, may_lose: &'static [&'static str]) -> Scenario {
        Scenario { may_lose, ..self }
    }

    pub fn removes_drafts(self) -> Scenario {
        Scenario { removes_drafts: true, ..self }
    }

    pub fn every(self, every: usize) -> Scenario {
        Scenario { every, ..self }
    }

    /// Tries everything; panics with all that was found amiss.
    pub fn check(self) {
        self.stage.keep();
        let started = std::time::Instant::now();
        let (first, kills) = syscall_trace::kill_points(&self.stage, &self.play);
        let reference = Reference::of(&self, first);
        let mut amiss: Vec<String> = Vec::new();
        for point in kills.iter().step_by(self.every) {
            amiss.extend(self.kill(point, &reference));
        }
        self.stage.put_back();
        let refusals = syscall_trace::error_points(&self.stage, &self.play);
        for (place, point) in refusals.iter().enumerate().step_by(self.every) {
            // In turn once, and from then on.
            amiss.extend(self.refuse(point, place / self.every % 2 == 1, &reference));
        }
        println!(
            "{}: {} kills, {} refusals, {:.1} s",
            self.name,
            kills.len().div_ceil(self.every),
            refusals.len().div_ceil(self.every),
            started.elapsed().as_secs_f32()
        );
        assert!(amiss.is_empty(), "{}: {} amiss\n{}", self.name, amiss.len(), amiss.join("\n"));
    }

    fn kill(&self, point: &Point, reference: &Reference) -> Vec<String> {
        self.stage.put_back();
        let killed = syscall_trace::killed(&self.stage, &self.play, point);
        let mut amiss = Vec::new();
        // How often threads wake each other is chance: then the call may not come.
        if killed.signal != Some(9) && !self.play.has_threads {
            amiss.push(format!("it was not killed: {killed:?}"));
        }
        amiss.extend(files_afterwards::faults(&self.stage, false));
        amiss.extend(self.torn(reference));
        amiss.extend(self.go_on(reference, true, true));
        named(amiss, &format!("killed before {point}"))
    }

    fn refuse(&self, point: &Point, for_good: bool, reference: &Reference) -> Vec<String> {
        self.stage.put_back();
        let finished = syscall_trace::refused(&self.stage, &self.play, point, for_good);
        let mut amiss = Vec::new();
        amiss.extend(self.bad_manners(&finished));
        amiss.extend(files_afterwards::faults(&self.stage, false));
        amiss.extend(self.torn(reference));
        let said = finished.stderr.clone();
        amiss.extend(self.go_on(reference, false, point.call.starts_with("unlink")));
        if !amiss.is_empty() && !said.is_empty() {
            amiss.push(format!("it had said: {said}"));
        }
        let word = if for_good { "from then on" } else { "once" };
        named(amiss, &format!("{} {word} at {point}", point.refusal()))
    }

    /// What happens next, and whether all is then as if nothing had been.
    fn go_on(&self, reference: &Reference, was_killed: bool, may_leave: bool) -> Vec<String> {
        let mut amiss = Vec::new();
        // The event comes again, or the user asks again.
        let finished = self.stage.run(&self.play);
        if !reference.codes.contains(&finished.code) {
            amiss.push(format!("afterwards: {finished:?}"));
        }
        amiss.extend(files_afterwards::faults(&self.stage, true));
        // The copy of the state comes with its next change; what a turn log was refused comes in another order.
        let later: &[&str] = &["/.git/plimsoll/", "/plimsoll/turns/"];
        let mut differences = reference.differences(&files_afterwards::words(&self.stage), was_killed);
        differences.retain(|difference| {
            was_killed || !self.may_lose.iter().chain(later).any(|name| difference.contains(name))
        });
        amiss.extend(differences);
        let drafts = files_afterwards::drafts(&self.stage);
        if drafts.len() > usize::from((was_killed || may_leave) && !self.removes_drafts) {
            amiss.push(format!("left behind: {drafts:?}"));
        }
        amiss
    }

    /// Each file of the user's that is neither old nor new.
    fn torn(&self, reference: &Reference) -> Vec<String> {
        let is_torn = |(path, new): &(&str, Option<Vec<u8>>)| {
            let now = std::fs::read(self.stage.world.path(path)).ok();
            now != self.stage.kept(path) && now != *new
        };
        let torn = reference.users.iter().filter(|pair| is_torn(pair));
        torn.map(|(path, _)| format!("{path} is neither old nor new")).collect()
    }

    fn bad_manners(&self, finished: &Finished) -> Vec<String> {
        let program = self.play.program;
        let mut amiss = Vec::new();
        let codes: &[i32] = match self.kind {
            // 1 at L3 and where the gate goes on.
            Kind::Hook => &[0, 1],
            Kind::Command => &[0, 1, 70],
        };
        if !finished.code.is_some_and(|code| codes.contains(&code)) {
            amiss.push(format!("exit {:?}, signal {:?}", finished.code, finished.signal));
        }
        let lines: Vec<&str> = finished.stderr.lines().collect();
        let is_hook = self.kind == Kind::Hook;
        // One for the turn log, one for the rest.
        if is_hook && (lines.len() > 2 || lines.iter().any(|line| !line.starts_with(program))) {
            amiss.push(format!("it says {lines:?}"));
        }
        if finished.stderr.contains("internal error") || finished.stderr.contains("panicked") {
            amiss.push(format!("it panics: {}", finished.stderr));
        }
        if is_hook
            && !finished.stdout.is_empty()
            && program != "plimsoll-pre-compact"
            && program != "plimsoll-statusline"
        {
            let reply = serde_json::from_str::<serde_json::Value>(&finished.stdout);
            if !reply.is_ok_and(|reply| reply.is_object()) {
                amiss.push(format!("it answers {:?}", finished.stdout));
            }
        }
        amiss
    }
}

fn named(amiss: Vec<String>, point: &str) -> Vec<String> {
    if amiss.is_empty() { amiss } else { vec![format!("- {point}\n    {}", amiss.join("\n    "))] }
}

/// How it ends without a fault: after one run, and after a second one, for who dies when all is done is asked again.
struct Reference {
    once: Words,
    twice: Words,
    codes: Vec<Option<i32>>,
    users: Vec<(&'static str, Option<Vec<u8>>)>,
}

impl Reference {
    fn of(scenario: &Scenario, first: Finished) -> Reference {
        let stage = &scenario.stage;
        let once = files_afterwards::words(stage);
        let users =
            scenario.users.iter().map(|path| (*path, std::fs::read(stage.world.path(path)).ok())).collect();
        let second = stage.run(&scenario.play);
        let twice = files_afterwards::words(stage);
        let faults = files_afterwards::faults(stage, true);
        assert!(faults.is_empty(), "{}: {faults:?}", scenario.name);
        // The same once more: what differs by chance is no measure.
        stage.put_back();
        stage.run(&scenario.play);
        let again = files_afterwards::words(stage);
        let reference = Reference { once, twice, codes: vec![first.code, second.code], users };
        let chance = reference.differences(&again, false);
        assert!(chance.is_empty(), "{}: chance: {chance:?}", scenario.name);
        assert!(first.signal.is_none() && second.signal.is_none(), "{first:?} {second:?}");
        reference
    }

    /// What is not as after one run or two.
    fn differences(&self, found: &Words, was_killed: bool) -> Vec<String> {
        let mut differences = Vec::new();
        let names = self.once.keys().chain(self.twice.keys()).chain(found.keys());
        for name in names.collect::<std::collections::BTreeSet<_>>() {
            let (once, twice, now) = (self.once.get(name), self.twice.get(name), found.get(name));
            let is_count = name.contains("journal.jsonl: ");
            let same = if is_count {
                is_between(once, twice, now, was_killed, name)
            } else {
                // A hook that dies between writing a handoff and naming it leaves one that nobody names.
                now == once || now == twice || (was_killed && name.contains("/HANDOFF-"))
            };
            if !same {
                differences.push(format!(
                    "{name}:\n      once {}\n      now  {}",
                    shown(once, now),
                    shown(now, once)
                ));
            }
        }
        differences
    }
}

/// The journal tells of a thing as often as after one run, or after two. A disk that takes no line loses that line.
/// A checkpoint is told before its claim is settled: a kill between the two, or a trouble, brings a second line, never
/// none. A warning is said once: who dies before it is said does not say it.
fn is_between(
    once: Option<&String>,
    twice: Option<&String>,
    now: Option<&String>,
    was_killed: bool,
    name: &str,
) -> bool {
    let count = |text: Option<&String>| text.and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
    let (once, twice, now) = (count(once), count(twice), count(now));
    let is_again = name.contains(": checkpoint ") || !was_killed && name.contains(": warning ");
    let more = usize::from(is_again);
    let may_miss = !was_killed || name.contains(": warning ");
    (now >= once.min(twice) || may_miss) && now <= once.max(twice) + more
}

/// Where two texts begin to differ.
fn shown(text: Option<&String>, other: Option<&String>) -> String {
    let Some(text) = text else { return "nothing".to_owned() };
    let other = other.map(String::as_str).unwrap_or_default();
    let same = text.bytes().zip(other.bytes()).take_while(|(one, two)| one == two).count();
    let from = text.char_indices().map(|(at, _)| at).rfind(|at| *at <= same.saturating_sub(60)).unwrap_or(0);
    let shown: String = text[from..].chars().take(260).collect();
    format!("{} bytes …{shown}", text.len()).replace('\n', "⏎")
}
