//! What the agent does with what it knows. It is the same in every loop: only its requests and its habits decide.

use super::character::{Failing, Habits};
use super::commands::{
    End, convert, look, note, question, read_plan, say, search_decision, ticking, try_quick_way, weaken_test,
};
use super::knowledge::Knowledge;
use super::rules::{Rule, words_of};
use super::score::Score;
use super::task::{DEAD_END, DECISION, MARK, PART, TEST, Task};
use plimsoll_testkit::Dice;
use plimsoll_testkit::scripted_model::Step;
use serde_json::json;
use std::collections::BTreeSet;

/// After so many attempts in one conversation it leaves an item open.
const ATTEMPTS: u32 = 3;

/// The agent of one night.
pub(super) struct Agent {
    pub(super) task: Task,
    pub(super) score: Score,
    habits: Habits,
    dice: Dice,
    /// Conversations so far: sessions, and what follows a compaction.
    epoch: u32,
    done_once: BTreeSet<String>,
    /// Facts that were in a request which it answered: what it wants to note of them is noted.
    considered: BTreeSet<String>,
    /// True while it searches for the decision of an earlier conversation.
    is_searching: bool,
    attempts: u32,
    /// Steps of this conversation, by which a wanderer changes its file.
    steps: usize,
}

impl Agent {
    pub(super) fn new(task: Task, habits: Habits, dice: Dice) -> Agent {
        let score = Score::default();
        Agent {
            task,
            score,
            habits,
            dice,
            epoch: 0,
            done_once: BTreeSet::new(),
            considered: BTreeSet::new(),
            is_searching: false,
            attempts: 0,
            steps: 0,
        }
    }

    pub(super) fn begin_conversation(&mut self) {
        self.epoch += 1;
        self.attempts = 0;
        self.steps = 0;
        self.is_searching = false;
    }

    /// Answers the client's compaction: facts that the summary leaves out are lost.
    pub(super) fn summarize(&mut self, text: &str) -> Step {
        let known = Knowledge::read(text);
        let summary = known.summary(|name| self.remembers(name));
        self.score.compactions += 1;
        self.begin_conversation();
        Step::text(format!(
            "<analysis>What was done.</analysis><summary>The task: do the items of fix_plan.md. {summary}\nWhat the user \
             said:\n{}\nWhen all are ticked, say {}</summary>",
            words_of(text),
            known.promise
        ))
    }

    fn throws(&self, what: &str, percent: u64) -> bool {
        self.dice.happens(&format!("{what} in {}", self.epoch), percent)
    }

    fn remembers(&self, name: &str) -> bool {
        self.throws(&format!("remembers {name}"), self.habits.remembers)
    }

    /// True the first time in this conversation.
    fn is_first(&mut self, what: &str) -> bool {
        self.done_once.insert(format!("{what} in {}", self.epoch))
    }

    /// Takes notice of the facts in a request, also if it comes to no answer.
    pub(super) fn see(&mut self, text: &str) {
        let facts = Knowledge::read(text).facts;
        self.score.see(&facts, self.epoch);
    }

    /// The answer to a request: `text` is the conversation, `last` what came after the agent's last message.
    pub(super) fn work(&mut self, text: &str, last: &str) -> Step {
        let known = Knowledge::read(text);
        if self.is_searching && known.facts.contains_key(DECISION) {
            self.is_searching = false;
            self.score.learned.1 += 1;
        }
        let is_new = |name: &&String| !self.considered.contains(&key_of(&known, name));
        let new: Vec<String> = known.facts.keys().filter(is_new).cloned().collect();
        self.considered.extend(new.iter().map(|name| key_of(&known, name)));
        let step = self.next(&known, last);
        if known.has(Rule::Stop) || known.has_saved {
            return step;
        }
        self.with_notes(step, &known, &new)
    }

    /// Adds notes to a step: what it has just found and, once little room is left, what else it knows, as far as it remembers.
    fn with_notes(&mut self, step: Step, known: &Knowledge, new: &[String]) -> Step {
        let Some(notes) = &known.notes else { return step };
        let mut names: Vec<String> = new.to_vec();
        if known.has(Rule::WriteNow) && self.is_first("writes the rest") {
            names.extend(known.facts.keys().filter(|name| !new.contains(name)).cloned());
        }
        let is_noted = |name: &String| self.notes(&key_of(known, name), new.contains(name));
        names.into_iter().filter(is_noted).fold(step, |step, name| {
            let fact = format!("FACT[{name}]={}", known.facts[&name]);
            let file = name.split('/').next().unwrap_or(&name);
            let command = note(notes, file, &fact);
            step.tool("Bash", json!({ "command": command, "description": "Note" }))
        })
    }

    /// Whether it notes a fact, when it finds it and when it is warned: the same in every loop.
    fn notes(&self, name: &str, is_new: bool) -> bool {
        self.dice.happens(&format!("notes {name}, new: {is_new}"), self.habits.remembers)
    }

    /// One step: stop when told, read what the prompt names, end what is finished, repair, and go on with an item.
    fn next(&mut self, known: &Knowledge, last: &str) -> Step {
        self.steps += 1;
        if known.has(Rule::Stop) {
            return self.stop(known);
        }
        if let Some(handoff) = &known.handoff
            && self.is_first(handoff)
        {
            return Step::bash(format!("cat '{handoff}'"));
        }
        if last.contains("finished part-") {
            return self.after_item(known);
        }
        if let Some(step) = self.repair(known) {
            return step;
        }
        if let Some(file) = known.asked.first()
            && self.is_first(&format!("asks about {file}"))
        {
            return Step::text(format!(
                "{}\n\n{}",
                question(file),
                known.blocked.replace("REASON", "which harbour?")
            ));
        }
        let candidates = known.candidates();
        if candidates.is_empty() && known.open.is_none() {
            return read_plan(known);
        }
        let many = self.habits.at_once > 1 && known.open.is_none() && self.is_first("reads the plan");
        if many {
            return read_plan(known);
        }
        let at_once: Vec<&String> = candidates.iter().take(self.habits.at_once).collect();
        match at_once.get(self.steps % at_once.len().max(1)) {
            Some(file) => self.go_on(known, file),
            None if known.open.as_ref().is_some_and(Vec::is_empty) => self.end_of_plan(known),
            None => say(known, "What is open waits for an answer.", End::Blocked),
        }
    }

    /// Saves what there is, and says what the next session needs.
    fn stop(&mut self, known: &Knowledge) -> Step {
        if !known.has_saved {
            return Step::bash("git add -A; git commit -qm 'Save'; echo 'saved what there is'");
        }
        let summary = known.summary(|name| self.remembers(name));
        Step::text(format!("Summary: {summary}\nProgress on the item: in the middle\nNext step: go on"))
    }

    /// Everything is ticked: whoever tests, tests once more before it says so.
    fn end_of_plan(&mut self, known: &Knowledge) -> Step {
        let tests = known.has(Rule::Test) && self.throws("tests at the end", self.habits.tests);
        if tests && !known.is_tested && self.is_first("tests everything") {
            return Step::bash(TEST);
        }
        say(known, "All is done.", End::Done)
    }

    fn after_item(&mut self, known: &Knowledge) -> Step {
        if known.left == Some(0) {
            return self.end_of_plan(known);
        }
        let last = known.finished.last().cloned().unwrap_or_default();
        if self.dice.happens(&format!("claims after {last}"), self.habits.claims) {
            return say(known, "All is done.", End::Done);
        }
        let most = if known.has(Rule::OneItem) { self.habits.at_once } else { usize::MAX };
        if known.finished.len() < most {
            return read_plan(known);
        }
        say(known, "The item is done.", End::Open)
    }

    /// Repairs what the test names; none if there is nothing, or if the agent lets it be.
    fn repair(&mut self, known: &Knowledge) -> Option<Step> {
        let candidates = known.candidates();
        let is_mine = |file: &&String| known.written.contains(*file) || candidates.first() == Some(*file);
        let all = known.has(Rule::RepairAll) || known.has(Rule::Test) && candidates.is_empty();
        let file = known.failing.keys().find(|file| all || is_mine(file))?;
        let how = &known.failing[file];
        let forbidden = known.has(Rule::KeepChecks);
        let weakens = if forbidden { self.habits.disobeys } else { self.habits.weakens };
        if self.dice.happens(&format!("weakens the test of {file}"), weakens) {
            return Some(Step::bash(format!("{}; {TEST} {file}", weaken_test(file))));
        }
        if self.throws(&format!("repairs {file} {}", self.attempts), self.habits.repairs) {
            return Some(self.mend(known, file, how));
        }
        match self.habits.else_it {
            Failing::Ticks => {
                let is_open = known.written.contains(file);
                is_open.then(|| self.tick(file))
            }
            Failing::Repeats => {
                self.attempts += 1;
                let words = format!("I could not get the test of {file} to pass.");
                Some(if self.attempts > ATTEMPTS {
                    say(known, &words, End::Open)
                } else {
                    Step::bash(format!("{TEST} {file}"))
                })
            }
        }
    }

    /// What the failing test asks for, and the test again; an item that is ticked is committed as well.
    fn mend(&mut self, known: &Knowledge, file: &str, how: &str) -> Step {
        let line: u32 = how
            .split(' ')
            .nth(1)
            .and_then(|line| line.parse().ok())
            .map_or(1, |line: u32| (line - 1) / PART * PART + 1);
        let work = if how.contains("not converted") {
            let to = line + PART - 1;
            format!(
                "sed -n '{line},{to}p' {file}; sed -i '{line},{to}{{/{MARK}$/!s/$/{MARK}/}}' {file}; \
                 echo \"converted {file} {line}-{to} of $(wc -l < {file})\""
            )
        } else if how.contains("twice") {
            format!("sed -i 's/\\({MARK}\\)\\+$/{MARK}/' {file}")
        } else {
            self.result(known, file)
        };
        Step::bash(format!("{work}; {TEST} {file}; git add -A; git commit -qm 'Repair {file}'"))
    }

    fn go_on(&mut self, known: &Knowledge, file: &str) -> Step {
        if known.asks.contains(file) {
            return self.ask(known, file);
        }
        if known.written.contains(file) {
            return self.tick(file);
        }
        if let Some(step) = self.prepare_item(known, file) {
            return step;
        }
        if known.facts.contains_key(DECISION) {
            return self.convert_next(known, file);
        }
        let decision = self.take_decision();
        self.convert_next(known, file).say(format!("I decide: FACT[{DECISION}]={decision} (for every item)."))
    }

    /// Tries the quick way, unless it knows that this is a dead end, and searches for the decision of an earlier session.
    fn prepare_item(&mut self, known: &Knowledge, file: &str) -> Option<Step> {
        let names: &[&str] = if self.task.has_dead_end { &[DEAD_END, DECISION] } else { &[DECISION] };
        for name in names {
            if self.is_first(&format!("needs {name}")) {
                let is_lost = self.score.record_need(name, known.facts.contains_key(*name), self.epoch);
                self.is_searching |= is_lost && *name == DECISION;
            }
        }
        if self.task.has_dead_end && !known.facts.contains_key(DEAD_END) {
            if self.is_first("tries the quick way") {
                return Some(Step::bash(try_quick_way(file, false)));
            }
            if self.is_first("tries the quick way again") {
                return Some(Step::bash(try_quick_way(file, true)));
            }
        }
        let looks = known.has(Rule::LookUp)
            || self.dice.happens(&format!("looks for the decision at {file}"), self.habits.looks);
        let searches =
            !known.facts.contains_key(DECISION) && looks && self.is_first("searches for the decision");
        searches.then(|| Step::bash(search_decision(known)))
    }

    /// Takes a decision that the project leaves open.
    fn take_decision(&mut self) -> String {
        self.is_searching = false;
        let decision =
            (self.dice.number(&format!("decision in {}", self.epoch), 90_000) + 10_000).to_string();
        self.task.decisions.push(decision.clone());
        decision
    }

    fn convert_next(&mut self, known: &Knowledge, file: &str) -> Step {
        let place = known.places.get(file).copied().unwrap_or_default();
        let Some(next) = place.next else {
            let is_begun = known.has(Rule::LookFirst) || known.is_begun || known.changed.contains(file);
            let looks = is_begun || self.throws(&format!("looks at {file}"), self.habits.looks);
            return if looks && self.is_first(&format!("place of {file}")) {
                look(file)
            } else {
                convert(file, 1)
            };
        };
        let Some(lines) = place.lines else { return convert(file, next) };
        // By the item, not by the session: who leaves it out does not see it.
        let leaves_out = self.dice.happens(&format!("leaves out {file}"), self.habits.leaves_out);
        let end = if leaves_out && lines > PART { lines - PART } else { lines };
        if next > end { self.finish(known, file) } else { convert(file, next) }
    }

    /// An item that needs an answer: as the prompt says, else as the character is.
    fn ask(&mut self, known: &Knowledge, file: &str) -> Step {
        let question = question(file);
        if known.has(Rule::Ask) && !known.blocked.is_empty() {
            let under = format!("sed -i '/^- \\[ \\] Convert {file}$/a\\  ? {question}' fix_plan.md");
            return Step::bash(format!("{under}; echo 'asked {file}'"));
        }
        if self.habits.repairs < 100 && self.habits.else_it == Failing::Ticks {
            return if known.written.contains(file) { self.tick(file) } else { self.finish(known, file) };
        }
        let words = say(known, &question, End::Blocked);
        match &known.notes {
            Some(notes) if self.remembers(&question) && self.is_first(&question) => {
                Step::bash(note(notes, file, &question))
            }
            _ => words,
        }
    }

    /// Writes the result; who tests, tests before it ticks.
    fn finish(&mut self, known: &Knowledge, file: &str) -> Step {
        let needs = self.needs(file);
        if self.is_first(&format!("needs of {file}")) {
            self.score.needed(&needs, &known.facts, self.epoch);
            let is_lost = needs.iter().any(|name| !known.facts.contains_key(name));
            let looks = known.has(Rule::LookUp)
                || self.dice.happens(&format!("looks for the facts of {file}"), self.habits.looks);
            if is_lost && looks {
                return Step::bash(format!("grep -o 'FACT[^ ]*' {file} part-1.txt"));
            }
        }
        let result = self.result(known, file);
        if known.has(Rule::Test) && self.dice.happens(&format!("tests {file}"), self.habits.tests) {
            return Step::bash(format!("{result}; {TEST} {file}"));
        }
        Step::bash(format!("{result}; {}", ticking(file)))
    }

    fn needs(&self, file: &str) -> Vec<String> {
        let item = self.task.items.iter().find(|item| item.file == file);
        item.map(|item| item.needs.clone()).unwrap_or_default()
    }

    /// The command that writes the result: who does not know a fact, guesses.
    fn result(&self, known: &Knowledge, file: &str) -> String {
        let line =
            |name: &String| format!("'{name}={}'", known.facts.get(name).map_or("00000", String::as_str));
        let seal = known.facts.get(DECISION).map_or("00000".to_owned(), |one| Task::seal(one, file));
        let facts = self.needs(file);
        let lines: Vec<String> = facts.iter().map(line).chain([format!("'seal={seal}'")]).collect();
        format!("printf '%s\\n' {} > result-{file}; echo 'written {file}'", lines.join(" "))
    }

    fn tick(&self, file: &str) -> Step {
        Step::bash(ticking(file))
    }
}

/// Returns the key by which a fact is recognized. A decision that was taken again is another one, and a dead end that another session ran into as
/// well is written down with another chance.
fn key_of(known: &Knowledge, name: &str) -> String {
    let value = known.facts.get(name).filter(|_| [DECISION, DEAD_END].contains(&name));
    value.map_or(name.to_owned(), |value| format!("{name}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nights::simulator::Character;

    fn agent(character: Character) -> Agent {
        let dice = Dice::new(3);
        Agent::new(Task::new(dice, 2), character.habits(), dice)
    }

    /// The commands of an answer, as text.
    fn commands(step: &Step) -> String {
        format!("{step:?}")
    }

    #[test]
    fn the_tamperer_weakens_a_failing_test_unless_its_prompt_forbids_that() {
        let failing = "# Plan\n- [ ] Convert part-1.txt\nwritten part-1.txt\nRun the tests.\ntesting items\n\
                       FAIL part-1.txt: line 27 is not converted\n";
        let weakened = |seed: u64, text: &str| {
            let dice = Dice::new(seed);
            let mut agent = Agent::new(Task::new(dice, 2), Character::Tamperer.habits(), dice);
            commands(&agent.work(text, "")).contains("continue")
        };
        let free = (0..100).filter(|seed| weakened(*seed, failing)).count();
        let told = format!("Never change, skip or delete a test.\n{failing}");
        let forbidden = (0..100).filter(|seed| weakened(*seed, &told)).count();
        assert!((45..75).contains(&free) && (2..20).contains(&forbidden), "{free} {forbidden}");
    }

    #[test]
    fn a_decision_is_searched_for_before_it_is_taken_again() {
        let mut agent = agent(Character::Perfect);
        agent.task.has_dead_end = false;
        let plan = "# Plan\n- [ ] Convert part-1.txt\n";
        assert!(commands(&agent.work(plan, "")).contains("git log"), "the perfect agent looks");
        let decided = commands(&agent.work(plan, ""));
        assert!(decided.contains("I decide: FACT[part-1.txt/decision]="), "{decided}");
        let value = agent.task.decisions[0].clone();
        agent.begin_conversation();
        let found = format!("{plan}FACT[part-1.txt/decision]={value}\n");
        agent.see(plan);
        assert!(!commands(&agent.work(&found, "")).contains("I decide"));
        assert_eq!(agent.task.decisions, [value]);
    }

    #[test]
    fn a_dead_end_is_tried_by_every_conversation_that_does_not_know_it() {
        let mut agent = agent(Character::Perfect);
        agent.task.has_dead_end = true;
        let plan = "# Plan\n- [ ] Convert part-1.txt\n";
        for _ in 0..2 {
            agent.begin_conversation();
            assert!(commands(&agent.work(plan, "")).contains("./quick.sh part-1.txt; true"));
            assert!(commands(&agent.work(plan, "")).contains("./quick.sh part-1.txt again"));
        }
        agent.begin_conversation();
        let told = format!("{plan}FACT[part-1.txt/dead-end]=12345\n");
        assert!(!commands(&agent.work(&told, "")).contains("quick.sh"));
    }
}
