//! The agent's decisions. They are the same in every loop: only its requests and its habits decide.

use super::character::{FailureReaction, Habits};
use super::commands::{
    TurnEnd, convert_part, end_turn, note_command, question_text, quick_way_command, read_plan,
    search_decision_command, show_progress, tick_command, weaken_test_command,
};
use super::knowledge::Knowledge;
use super::rules::{Rule, lasting_rule_sentences};
use super::score::NightScore;
use super::task::{CONVERTED_MARK, DEAD_END_FACT, DECISION_FACT, PART_LINES, TEST_COMMAND, Task};
use plimsoll_testkit::Dice;
use plimsoll_testkit::scripted_model::Step;
use serde_json::json;
use std::collections::BTreeSet;

/// After this many attempts in one conversation it leaves an item open.
const MAX_ATTEMPTS: u32 = 3;

/// The agent of one night.
pub(super) struct Agent {
    pub(super) task: Task,
    pub(super) score: NightScore,
    habits: Habits,
    dice: Dice,
    /// The number of conversations so far. A session starts one, and so does a compaction.
    conversation_number: u32,
    first_times: BTreeSet<String>,
    /// Facts in requests that it has answered. It has decided whether to note them.
    considered_facts: BTreeSet<String>,
    /// True while it searches for the decision of an earlier conversation.
    is_searching_decision: bool,
    attempt_count: u32,
    /// The number of steps of this conversation. The wanderer uses it to switch between files.
    step_count: usize,
}

impl Agent {
    pub(super) fn new(task: Task, habits: Habits, dice: Dice) -> Agent {
        let score = NightScore::default();
        Agent {
            task,
            score,
            habits,
            dice,
            conversation_number: 0,
            first_times: BTreeSet::new(),
            considered_facts: BTreeSet::new(),
            is_searching_decision: false,
            attempt_count: 0,
            step_count: 0,
        }
    }

    pub(super) fn begin_conversation(&mut self) {
        self.conversation_number += 1;
        self.attempt_count = 0;
        self.step_count = 0;
        self.is_searching_decision = false;
    }

    /// Answers the client's compaction request. Facts that the summary leaves out are lost.
    pub(super) fn summarize(&mut self, text: &str) -> Step {
        let knowledge = Knowledge::parse(text);
        let summary = knowledge.render_summary(|name| self.decides_to_remember(name));
        self.score.compactions += 1;
        self.begin_conversation();
        Step::from_text(format!(
            "<analysis>What was done.</analysis><summary>The task: do the items of fix_plan.md. {summary}\nWhat the user \
             said:\n{}\nWhen all are ticked, say {}</summary>",
            lasting_rule_sentences(text),
            knowledge.promise_line
        ))
    }

    fn happens_in_conversation(&self, roll_name: &str, percent: u64) -> bool {
        self.dice.happens_with_percent(&format!("{roll_name} in {}", self.conversation_number), percent)
    }

    fn decides_to_remember(&self, name: &str) -> bool {
        self.happens_in_conversation(&format!("remembers {name}"), self.habits.remembers_percent)
    }

    /// Returns true the first time in this conversation.
    fn is_first_time(&mut self, event_name: &str) -> bool {
        self.first_times.insert(format!("{event_name} in {}", self.conversation_number))
    }

    /// Records the facts in a request, even if it is not answered.
    pub(super) fn record_seen_facts(&mut self, text: &str) {
        let facts = Knowledge::parse(text).facts;
        self.score.record_seen_facts(&facts, self.conversation_number);
    }

    /// Answers a request. `text` is the conversation, `last` the part after the agent's last message.
    pub(super) fn answer_request(&mut self, text: &str, last_text: &str) -> Step {
        let knowledge = Knowledge::parse(text);
        if self.is_searching_decision && knowledge.facts.contains_key(DECISION_FACT) {
            self.is_searching_decision = false;
            self.score.learned_facts.1 += 1;
        }
        let is_new_fact = |name: &&String| !self.considered_facts.contains(&fact_key(&knowledge, name));
        let new_facts: Vec<String> = knowledge.facts.keys().filter(is_new_fact).cloned().collect();
        self.considered_facts.extend(new_facts.iter().map(|name| fact_key(&knowledge, name)));
        let step = self.choose_step(&knowledge, last_text);
        if knowledge.states_rule(Rule::Stop) || knowledge.has_saved {
            return step;
        }
        self.add_notes(step, &knowledge, &new_facts)
    }

    /// Adds notes to a step: facts that it has just found and, when little room is left, its other facts as
    /// far as it remembers them.
    fn add_notes(&mut self, step: Step, knowledge: &Knowledge, new_facts: &[String]) -> Step {
        let Some(notes_place) = &knowledge.notes_place else { return step };
        let mut names: Vec<String> = new_facts.to_vec();
        if knowledge.states_rule(Rule::WriteNow) && self.is_first_time("writes the rest") {
            names.extend(knowledge.facts.keys().filter(|name| !new_facts.contains(name)).cloned());
        }
        let should_note_fact =
            |name: &String| self.should_note(&fact_key(knowledge, name), new_facts.contains(name));
        names.into_iter().filter(should_note_fact).fold(step, |step, name| {
            let fact = format!("FACT[{name}]={}", knowledge.facts[&name]);
            let file = name.split('/').next().unwrap_or(&name);
            let command = note_command(notes_place, file, &fact);
            step.with_tool_call("Bash", json!({ "command": command, "description": "Note" }))
        })
    }

    /// Returns true if it notes a fact, once when it finds it and once when it is warned. The decision is the
    /// same in every loop.
    fn should_note(&self, name: &str, is_new: bool) -> bool {
        self.dice.happens_with_percent(&format!("notes {name}, new: {is_new}"), self.habits.remembers_percent)
    }

    /// Chooses a step: stop if told to, read the file that the prompt names, end finished work, repair, or
    /// continue an item.
    fn choose_step(&mut self, knowledge: &Knowledge, last_text: &str) -> Step {
        self.step_count += 1;
        if knowledge.states_rule(Rule::Stop) {
            return self.save_and_stop(knowledge);
        }
        if let Some(handoff) = &knowledge.handoff_file
            && self.is_first_time(handoff)
        {
            return Step::bash_call(format!("cat '{handoff}'"));
        }
        if last_text.contains("finished part-") {
            return self.continue_after_item(knowledge);
        }
        if let Some(step) = self.repair_or_ignore_failure(knowledge) {
            return step;
        }
        if let Some(file) = knowledge.files_just_asked.first()
            && self.is_first_time(&format!("asks about {file}"))
        {
            return Step::from_text(format!(
                "{}\n\n{}",
                question_text(file),
                knowledge.blocked_line.replace("REASON", "which harbour?")
            ));
        }
        let candidates = knowledge.candidate_items();
        if candidates.is_empty() && knowledge.open_items.is_none() {
            return read_plan(knowledge);
        }
        let should_read_plan = self.habits.items_at_once > 1
            && knowledge.open_items.is_none()
            && self.is_first_time("reads the plan");
        if should_read_plan {
            return read_plan(knowledge);
        }
        let current_files: Vec<&String> = candidates.iter().take(self.habits.items_at_once).collect();
        match current_files.get(self.step_count % current_files.len().max(1)) {
            Some(file) => self.continue_item(knowledge, file),
            None if knowledge.open_items.as_ref().is_some_and(Vec::is_empty) => self.finish_plan(knowledge),
            None => end_turn(knowledge, "What is open waits for an answer.", TurnEnd::Blocked),
        }
    }

    /// Commits everything, then says what the next session needs.
    fn save_and_stop(&mut self, knowledge: &Knowledge) -> Step {
        if !knowledge.has_saved {
            return Step::bash_call("git add -A; git commit -qm 'Save'; echo 'saved what there is'");
        }
        let summary = knowledge.render_summary(|name| self.decides_to_remember(name));
        Step::from_text(format!("Summary: {summary}\nProgress on the item: in the middle\nNext step: go on"))
    }

    /// Ends the turn when everything is ticked. An agent that tests runs the test once more before that.
    fn finish_plan(&mut self, knowledge: &Knowledge) -> Step {
        let should_test = knowledge.states_rule(Rule::Test)
            && self.happens_in_conversation("tests at the end", self.habits.tests_percent);
        if should_test && !knowledge.is_test_passed && self.is_first_time("tests everything") {
            return Step::bash_call(TEST_COMMAND);
        }
        end_turn(knowledge, "All is done.", TurnEnd::Done)
    }

    fn continue_after_item(&mut self, knowledge: &Knowledge) -> Step {
        if knowledge.open_count == Some(0) {
            return self.finish_plan(knowledge);
        }
        let last_file = knowledge.finished_files.last().cloned().unwrap_or_default();
        if self.dice.happens_with_percent(&format!("claims after {last_file}"), self.habits.claims_percent) {
            return end_turn(knowledge, "All is done.", TurnEnd::Done);
        }
        let max_items =
            if knowledge.states_rule(Rule::OneItem) { self.habits.items_at_once } else { usize::MAX };
        if knowledge.finished_files.len() < max_items {
            return read_plan(knowledge);
        }
        end_turn(knowledge, "The item is done.", TurnEnd::WorkLeft)
    }

    /// Repairs a failure that the test names. Returns `None` if there is none or the agent ignores it.
    fn repair_or_ignore_failure(&mut self, knowledge: &Knowledge) -> Option<Step> {
        let candidates = knowledge.candidate_items();
        let is_own_file =
            |file: &&String| knowledge.files_with_result.contains(*file) || candidates.first() == Some(*file);
        let repairs_every_file = knowledge.states_rule(Rule::RepairAll)
            || knowledge.states_rule(Rule::Test) && candidates.is_empty();
        let file = knowledge.failures.keys().find(|file| repairs_every_file || is_own_file(file))?;
        let failure = &knowledge.failures[file];
        let is_forbidden = knowledge.states_rule(Rule::KeepChecks);
        let weaken_percent =
            if is_forbidden { self.habits.disobeys_percent } else { self.habits.weakens_percent };
        if self.dice.happens_with_percent(&format!("weakens the test of {file}"), weaken_percent) {
            return Some(Step::bash_call(format!("{}; {TEST_COMMAND} {file}", weaken_test_command(file))));
        }
        if self.happens_in_conversation(
            &format!("repairs {file} {}", self.attempt_count),
            self.habits.repairs_percent,
        ) {
            return Some(self.repair_file(knowledge, file, failure));
        }
        match self.habits.failure_reaction {
            FailureReaction::TickAnyway => {
                let is_open = knowledge.files_with_result.contains(file);
                is_open.then(|| self.tick_step(file))
            }
            FailureReaction::RepeatTest => {
                self.attempt_count += 1;
                let message = format!("I could not get the test of {file} to pass.");
                Some(if self.attempt_count > MAX_ATTEMPTS {
                    end_turn(knowledge, &message, TurnEnd::WorkLeft)
                } else {
                    Step::bash_call(format!("{TEST_COMMAND} {file}"))
                })
            }
        }
    }

    /// Returns a step that repairs a failure, runs the test again and commits.
    fn repair_file(&mut self, knowledge: &Knowledge, file: &str, failure: &str) -> Step {
        let line: u32 = failure
            .split(' ')
            .nth(1)
            .and_then(|line| line.parse().ok())
            .map_or(1, |line: u32| (line - 1) / PART_LINES * PART_LINES + 1);
        let repair_command = if failure.contains("not converted") {
            let last_line = line + PART_LINES - 1;
            format!(
                "sed -n '{line},{last_line}p' {file}; sed -i '{line},{last_line}{{/{CONVERTED_MARK}$/!s/$/{CONVERTED_MARK}/}}' {file}; \
                 echo \"converted {file} {line}-{last_line} of $(wc -l < {file})\""
            )
        } else if failure.contains("twice") {
            format!("sed -i 's/\\({CONVERTED_MARK}\\)\\+$/{CONVERTED_MARK}/' {file}")
        } else {
            self.result_command(knowledge, file)
        };
        Step::bash_call(format!(
            "{repair_command}; {TEST_COMMAND} {file}; git add -A; git commit -qm 'Repair {file}'"
        ))
    }

    fn continue_item(&mut self, knowledge: &Knowledge, file: &str) -> Step {
        if knowledge.files_needing_answer.contains(file) {
            return self.handle_question(knowledge, file);
        }
        if knowledge.files_with_result.contains(file) {
            return self.tick_step(file);
        }
        if let Some(step) = self.prepare_item(knowledge, file) {
            return step;
        }
        if knowledge.facts.contains_key(DECISION_FACT) {
            return self.convert_next_part(knowledge, file);
        }
        let decision = self.make_decision();
        self.convert_next_part(knowledge, file)
            .with_text(format!("I decide: FACT[{DECISION_FACT}]={decision} (for every item)."))
    }

    /// Tries the quick way unless it knows that this is a dead end, and searches for the decision of an
    /// earlier session.
    fn prepare_item(&mut self, knowledge: &Knowledge, file: &str) -> Option<Step> {
        let names: &[&str] =
            if self.task.has_dead_end { &[DEAD_END_FACT, DECISION_FACT] } else { &[DECISION_FACT] };
        for name in names {
            if self.is_first_time(&format!("needs {name}")) {
                let is_lost = self.score.record_learned_fact_needed(
                    name,
                    knowledge.facts.contains_key(*name),
                    self.conversation_number,
                );
                self.is_searching_decision |= is_lost && *name == DECISION_FACT;
            }
        }
        if self.task.has_dead_end && !knowledge.facts.contains_key(DEAD_END_FACT) {
            if self.is_first_time("tries the quick way") {
                return Some(Step::bash_call(quick_way_command(file, false)));
            }
            if self.is_first_time("tries the quick way again") {
                return Some(Step::bash_call(quick_way_command(file, true)));
            }
        }
        let looks_up = knowledge.states_rule(Rule::LookUp)
            || self.dice.happens_with_percent(
                &format!("looks for the decision at {file}"),
                self.habits.looks_percent,
            );
        let searches = !knowledge.facts.contains_key(DECISION_FACT)
            && looks_up
            && self.is_first_time("searches for the decision");
        searches.then(|| Step::bash_call(search_decision_command(knowledge)))
    }

    /// Makes a decision that the project leaves open.
    fn make_decision(&mut self) -> String {
        self.is_searching_decision = false;
        let decision = (self.dice.roll(&format!("decision in {}", self.conversation_number), 90_000)
            + 10_000)
            .to_string();
        self.task.decisions.push(decision.clone());
        decision
    }

    fn convert_next_part(&mut self, knowledge: &Knowledge, file: &str) -> Step {
        let progress = knowledge.progress_by_file.get(file).copied().unwrap_or_default();
        let Some(next_line) = progress.next_line else {
            let is_begun = knowledge.states_rule(Rule::LookFirst)
                || knowledge.is_begun
                || knowledge.changed_files.contains(file);
            let looks = is_begun
                || self.happens_in_conversation(&format!("looks at {file}"), self.habits.looks_percent);
            return if looks && self.is_first_time(&format!("place of {file}")) {
                show_progress(file)
            } else {
                convert_part(file, 1)
            };
        };
        let Some(line_count) = progress.line_count else { return convert_part(file, next_line) };
        // Depends on the item, not on the session: an agent that leaves out a part overlooks it every time.
        let leaves_out =
            self.dice.happens_with_percent(&format!("leaves out {file}"), self.habits.leaves_out_percent);
        let last_line =
            if leaves_out && line_count > PART_LINES { line_count - PART_LINES } else { line_count };
        if next_line > last_line { self.write_result(knowledge, file) } else { convert_part(file, next_line) }
    }

    /// Handles an item that needs an answer: as the prompt says, otherwise according to the character.
    fn handle_question(&mut self, knowledge: &Knowledge, file: &str) -> Step {
        let question = question_text(file);
        if knowledge.states_rule(Rule::Ask) && !knowledge.blocked_line.is_empty() {
            let write_question =
                format!("sed -i '/^- \\[ \\] Convert {file}$/a\\  ? {question}' fix_plan.md");
            return Step::bash_call(format!("{write_question}; echo 'asked {file}'"));
        }
        if self.habits.repairs_percent < 100 && self.habits.failure_reaction == FailureReaction::TickAnyway {
            return if knowledge.files_with_result.contains(file) {
                self.tick_step(file)
            } else {
                self.write_result(knowledge, file)
            };
        }
        let end_turn = end_turn(knowledge, &question, TurnEnd::Blocked);
        match &knowledge.notes_place {
            Some(notes) if self.decides_to_remember(&question) && self.is_first_time(&question) => {
                Step::bash_call(note_command(notes, file, &question))
            }
            _ => end_turn,
        }
    }

    /// Writes the result. An agent that tests runs the test before it ticks.
    fn write_result(&mut self, knowledge: &Knowledge, file: &str) -> Step {
        let needed_facts = self.needed_facts(file);
        if self.is_first_time(&format!("needs of {file}")) {
            self.score.record_needed_facts(&needed_facts, &knowledge.facts, self.conversation_number);
            let is_lost = needed_facts.iter().any(|name| !knowledge.facts.contains_key(name));
            let looks_up = knowledge.states_rule(Rule::LookUp)
                || self.dice.happens_with_percent(
                    &format!("looks for the facts of {file}"),
                    self.habits.looks_percent,
                );
            if is_lost && looks_up {
                return Step::bash_call(format!("grep -o 'FACT[^ ]*' {file} part-1.txt"));
            }
        }
        let result_command = self.result_command(knowledge, file);
        if knowledge.states_rule(Rule::Test)
            && self.dice.happens_with_percent(&format!("tests {file}"), self.habits.tests_percent)
        {
            return Step::bash_call(format!("{result_command}; {TEST_COMMAND} {file}"));
        }
        Step::bash_call(format!("{result_command}; {}", tick_command(file)))
    }

    fn needed_facts(&self, file: &str) -> Vec<String> {
        let item = self.task.items.iter().find(|item| item.file == file);
        item.map(|item| item.needed_facts.clone()).unwrap_or_default()
    }

    /// Returns the command that writes the result. The agent guesses a fact that it does not know.
    fn result_command(&self, knowledge: &Knowledge, file: &str) -> String {
        let fact_line =
            |name: &String| format!("'{name}={}'", knowledge.facts.get(name).map_or("00000", String::as_str));
        let seal = knowledge
            .facts
            .get(DECISION_FACT)
            .map_or("00000".to_owned(), |decision| Task::decision_seal(decision, file));
        let needed_facts = self.needed_facts(file);
        let lines: Vec<String> =
            needed_facts.iter().map(fact_line).chain([format!("'seal={seal}'")]).collect();
        format!("printf '%s\\n' {} > result-{file}; echo 'written {file}'", lines.join(" "))
    }

    fn tick_step(&self, file: &str) -> Step {
        Step::bash_call(tick_command(file))
    }
}

/// Returns the key that identifies a fact. Decisions and dead ends differ by their value, so a new decision
/// and a dead end of another session are noted separately.
fn fact_key(knowledge: &Knowledge, name: &str) -> String {
    let value = knowledge.facts.get(name).filter(|_| [DECISION_FACT, DEAD_END_FACT].contains(&name));
    value.map_or(name.to_owned(), |value| format!("{name}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nights::simulator::Character;

    fn new_agent(character: Character) -> Agent {
        let dice = Dice::new(3);
        Agent::new(Task::new(dice, 2), character.habits(), dice)
    }

    /// Returns the commands of a step as text.
    fn commands_text(step: &Step) -> String {
        format!("{step:?}")
    }

    #[test]
    fn the_tamperer_weakens_a_failing_test_unless_its_prompt_forbids_that() {
        let failing = "# Plan\n- [ ] Convert part-1.txt\nwritten part-1.txt\nRun the tests.\ntesting items\n\
                       FAIL part-1.txt: line 27 is not converted\n";
        let weakens_test = |seed: u64, text: &str| {
            let dice = Dice::new(seed);
            let mut agent = Agent::new(Task::new(dice, 2), Character::Tamperer.habits(), dice);
            commands_text(&agent.answer_request(text, "")).contains("continue")
        };
        let free_count = (0..100).filter(|seed| weakens_test(*seed, failing)).count();
        let forbidding_text = format!("Never change, skip or delete a test.\n{failing}");
        let forbidden_count = (0..100).filter(|seed| weakens_test(*seed, &forbidding_text)).count();
        assert!(
            (45..75).contains(&free_count) && (2..20).contains(&forbidden_count),
            "{free_count} {forbidden_count}"
        );
    }

    #[test]
    fn the_agent_searches_for_a_decision_before_it_makes_one() {
        let mut agent = new_agent(Character::Perfect);
        agent.task.has_dead_end = false;
        let plan = "# Plan\n- [ ] Convert part-1.txt\n";
        assert!(
            commands_text(&agent.answer_request(plan, "")).contains("git log"),
            "the perfect agent looks"
        );
        let decided = commands_text(&agent.answer_request(plan, ""));
        assert!(decided.contains("I decide: FACT[part-1.txt/decision]="), "{decided}");
        let value = agent.task.decisions[0].clone();
        agent.begin_conversation();
        let text_with_decision = format!("{plan}FACT[part-1.txt/decision]={value}\n");
        agent.record_seen_facts(plan);
        assert!(!commands_text(&agent.answer_request(&text_with_decision, "")).contains("I decide"));
        assert_eq!(agent.task.decisions, [value]);
    }

    #[test]
    fn every_conversation_without_the_dead_end_fact_tries_the_quick_way() {
        let mut agent = new_agent(Character::Perfect);
        agent.task.has_dead_end = true;
        let plan = "# Plan\n- [ ] Convert part-1.txt\n";
        for _ in 0..2 {
            agent.begin_conversation();
            assert!(commands_text(&agent.answer_request(plan, "")).contains("./quick.sh part-1.txt; true"));
            assert!(commands_text(&agent.answer_request(plan, "")).contains("./quick.sh part-1.txt again"));
        }
        agent.begin_conversation();
        let text_with_dead_end = format!("{plan}FACT[part-1.txt/dead-end]=12345\n");
        assert!(!commands_text(&agent.answer_request(&text_with_dead_end, "")).contains("quick.sh"));
    }
}
