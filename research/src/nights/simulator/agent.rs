//! The agent's decisions. They are the same in every loop: they depend only on its requests and its behavior.

use super::commands::{
    TurnEnd, convert_part, end_turn_with_promise_or_status, note_command, question_text, read_plan_and_notes,
    search_for_decision_command, shortcut_command, show_file_progress, tick_command, weaken_test_command,
};
use super::knowledge::Knowledge;
use super::persona::{Behavior, FailureReaction};
use super::rules::{Rule, quote_rules_except_write_now_and_stop};
use super::score::SimulationScore;
use super::task::{CONVERTED_MARKER, DEAD_END_FACT, DECISION_FACT, PART_LINES, TEST_COMMAND, Task};
use plimsoll_testkit::SeededRng;
use plimsoll_testkit::scripted_model::Step;
use serde_json::json;
use std::collections::BTreeSet;

/// The agent repeats a failing test at most this often in one conversation. Then it leaves the item open.
const MAX_REPEATED_TESTS: u32 = 3;

/// The agent of one simulation.
pub(super) struct Agent {
    pub(super) task: Task,
    pub(super) score: SimulationScore,
    behavior: Behavior,
    rng: SeededRng,
    /// The number of conversations so far. A session starts one, and so does a compaction.
    conversation_number: u32,
    events_by_conversation: BTreeSet<String>,
    /// Facts in requests that the agent has answered. It has already decided whether to note them.
    considered_facts: BTreeSet<String>,
    /// True while the agent searches for the decision of an earlier conversation.
    is_searching_for_earlier_decision: bool,
    repeated_test_count: u32,
    /// The number of steps in this conversation. An agent that does several items at once uses it to
    /// switch between files.
    step_count: usize,
}

impl Agent {
    pub(super) fn new(task: Task, behavior: Behavior, rng: SeededRng) -> Agent {
        let score = SimulationScore::default();
        Agent {
            task,
            score,
            behavior,
            rng,
            conversation_number: 0,
            events_by_conversation: BTreeSet::new(),
            considered_facts: BTreeSet::new(),
            is_searching_for_earlier_decision: false,
            repeated_test_count: 0,
            step_count: 0,
        }
    }

    pub(super) fn begin_conversation(&mut self) {
        self.conversation_number += 1;
        self.repeated_test_count = 0;
        self.step_count = 0;
        self.is_searching_for_earlier_decision = false;
    }

    /// Answers the client's compaction request and begins a new conversation. Facts that the summary leaves out
    /// are lost.
    pub(super) fn answer_compaction_and_begin_conversation(&mut self, text: &str) -> Step {
        let knowledge = Knowledge::parse(text);
        let summary = knowledge.render_summary(|name| self.decides_to_remember(name));
        self.score.compactions += 1;
        self.begin_conversation();
        Step::from_text(format!(
            "<analysis>What was done.</analysis><summary>The task: do the items of fix_plan.md. {summary}\nWhat the user \
             said:\n{}\nWhen all are ticked, say {}</summary>",
            quote_rules_except_write_now_and_stop(text),
            knowledge.promise_line
        ))
    }

    fn random_bool_for_conversation(&self, choice_name: &str, percent: u64) -> bool {
        self.rng.random_bool_for_name(&format!("{choice_name} in {}", self.conversation_number), percent)
    }

    fn decides_to_remember(&self, name: &str) -> bool {
        self.random_bool_for_conversation(&format!("remembers {name}"), self.behavior.remembers_percent)
    }

    /// Records an event and returns true if it is its first time in this conversation.
    fn record_if_first_time_in_conversation(&mut self, event_name: &str) -> bool {
        self.events_by_conversation.insert(format!("{event_name} in {}", self.conversation_number))
    }

    /// Records the facts in a request, even if the request is not answered.
    pub(super) fn record_facts_in_request(&mut self, text: &str) {
        let facts = Knowledge::parse(text).facts;
        self.score.record_first_conversation_of_facts(&facts, self.conversation_number);
    }

    /// Answers a request with this conversation. `text_since_last_answer` is the part after the agent's last message.
    pub(super) fn choose_step_and_note_new_facts(
        &mut self,
        conversation_text: &str,
        text_since_last_answer: &str,
    ) -> Step {
        let knowledge = Knowledge::parse(conversation_text);
        if self.is_searching_for_earlier_decision && knowledge.facts.contains_key(DECISION_FACT) {
            self.is_searching_for_earlier_decision = false;
            self.score.learned_facts_visible_found_all.1 += 1;
        }
        let is_new_fact = |name: &&String| !self.considered_facts.contains(&fact_key(&knowledge, name));
        let new_facts: Vec<String> = knowledge.facts.keys().filter(is_new_fact).cloned().collect();
        self.considered_facts.extend(new_facts.iter().map(|name| fact_key(&knowledge, name)));
        let step = self.choose_step(&knowledge, text_since_last_answer);
        if knowledge.states_rule(Rule::Stop) || knowledge.has_committed_before_stop {
            return step;
        }
        self.add_notes_of_remembered_facts(step, &knowledge, &new_facts)
    }

    /// Adds commands to a step that write down facts: the new ones and, the first time in a conversation that little room
    /// is left, the others as well. Facts that the agent forgets to note are skipped.
    fn add_notes_of_remembered_facts(
        &mut self,
        step: Step,
        knowledge: &Knowledge,
        new_facts: &[String],
    ) -> Step {
        let Some(notes_location) = &knowledge.notes_location else { return step };
        let mut fact_names: Vec<String> = new_facts.to_vec();
        if knowledge.states_rule(Rule::WriteNow)
            && self.record_if_first_time_in_conversation("writes the rest")
        {
            fact_names.extend(knowledge.facts.keys().filter(|name| !new_facts.contains(name)).cloned());
        }
        let should_note_fact =
            |name: &String| self.should_note(&fact_key(knowledge, name), new_facts.contains(name));
        fact_names.into_iter().filter(should_note_fact).fold(step, |step, name| {
            let fact_text = format!("FACT[{name}]={}", knowledge.facts[&name]);
            let file = name.split('/').next().unwrap_or(&name);
            let command = note_command(notes_location, file, &fact_text);
            step.with_tool_call("Bash", json!({ "command": command, "description": "Note" }))
        })
    }

    /// Returns true if the agent notes a fact. Decided separately for a new fact and for one that it writes down
    /// when it is warned. The decision is the same in every loop.
    fn should_note(&self, key: &str, is_new: bool) -> bool {
        self.rng.random_bool_for_name(&format!("notes {key}, new: {is_new}"), self.behavior.remembers_percent)
    }

    /// Chooses a step: stops if told to, reads the handoff that the prompt names, ends finished work, reacts to a
    /// test failure, or continues an item.
    fn choose_step(&mut self, knowledge: &Knowledge, text_since_last_answer: &str) -> Step {
        self.step_count += 1;
        if knowledge.states_rule(Rule::Stop) {
            return self.commit_once_then_stop_with_summary(knowledge);
        }
        if let Some(handoff) = &knowledge.handoff_file
            && self.record_if_first_time_in_conversation(handoff)
        {
            return Step::bash_call(format!("cat '{handoff}'"));
        }
        if text_since_last_answer.contains("finished part-") {
            return self.read_plan_or_end_turn_after_item(knowledge);
        }
        if let Some(step) = self.react_to_test_failure_by_behavior(knowledge) {
            return step;
        }
        if let Some(file) = knowledge.files_with_new_question.first()
            && self.record_if_first_time_in_conversation(&format!("asks about {file}"))
        {
            return Step::from_text(format!(
                "{}\n\n{}",
                question_text(file),
                knowledge.blocked_line.replace("REASON", "which harbour?")
            ));
        }
        let candidates = knowledge.candidate_items();
        if candidates.is_empty() && knowledge.open_items.is_none() {
            return read_plan_and_notes(knowledge);
        }
        let should_read_plan = self.behavior.items_at_once > 1
            && knowledge.open_items.is_none()
            && self.record_if_first_time_in_conversation("reads the plan");
        if should_read_plan {
            return read_plan_and_notes(knowledge);
        }
        let current_files: Vec<&String> = candidates.iter().take(self.behavior.items_at_once).collect();
        match current_files.get(self.step_count % current_files.len().max(1)) {
            Some(file) => self.continue_or_tick_item(knowledge, file),
            None if knowledge.open_items.as_ref().is_some_and(Vec::is_empty) => {
                self.run_final_test_or_end_turn(knowledge)
            }
            None => end_turn_with_promise_or_status(
                knowledge,
                "What is open waits for an answer.",
                TurnEnd::Blocked,
            ),
        }
    }

    /// Commits everything first. The next time, states what the next session needs.
    fn commit_once_then_stop_with_summary(&mut self, knowledge: &Knowledge) -> Step {
        if !knowledge.has_committed_before_stop {
            return Step::bash_call("git add -A; git commit -qm 'Save'; echo 'saved what there is'");
        }
        let summary = knowledge.render_summary(|name| self.decides_to_remember(name));
        Step::from_text(format!("Summary: {summary}\nProgress on the item: in the middle\nNext step: go on"))
    }

    /// Ends the turn when everything is ticked. An agent that tests runs the test once more first.
    fn run_final_test_or_end_turn(&mut self, knowledge: &Knowledge) -> Step {
        let should_test = knowledge.states_rule(Rule::Test)
            && self.random_bool_for_conversation("tests at the end", self.behavior.tests_percent);
        if should_test
            && !knowledge.is_test_passed
            && self.record_if_first_time_in_conversation("tests everything")
        {
            return Step::bash_call(TEST_COMMAND);
        }
        end_turn_with_promise_or_status(knowledge, "All is done.", TurnEnd::Done)
    }

    fn read_plan_or_end_turn_after_item(&mut self, knowledge: &Knowledge) -> Step {
        if knowledge.open_count == Some(0) {
            return self.run_final_test_or_end_turn(knowledge);
        }
        let last_file = knowledge.finished_files.last().cloned().unwrap_or_default();
        if self.rng.random_bool_for_name(
            &format!("claims after {last_file}"),
            self.behavior.falsely_claims_done_percent,
        ) {
            return end_turn_with_promise_or_status(knowledge, "All is done.", TurnEnd::Done);
        }
        let max_items =
            if knowledge.states_rule(Rule::OneItem) { self.behavior.items_at_once } else { usize::MAX };
        if knowledge.finished_files.len() < max_items {
            return read_plan_and_notes(knowledge);
        }
        end_turn_with_promise_or_status(knowledge, "The item is done.", TurnEnd::WorkLeft)
    }

    /// Reacts to a failure that the test names: weakens the test, repairs the file, ticks the item or repeats the
    /// test. Returns `None` if there is no failure for this agent or it ignores the failure.
    fn react_to_test_failure_by_behavior(&mut self, knowledge: &Knowledge) -> Option<Step> {
        let candidates = knowledge.candidate_items();
        let is_current_file =
            |file: &&String| knowledge.files_with_result.contains(*file) || candidates.first() == Some(*file);
        let repairs_every_file = knowledge.states_rule(Rule::RepairAll)
            || knowledge.states_rule(Rule::Test) && candidates.is_empty();
        let file = knowledge.failures.keys().find(|file| repairs_every_file || is_current_file(file))?;
        let failure = &knowledge.failures[file];
        let is_forbidden = knowledge.states_rule(Rule::KeepTests);
        let weaken_percent =
            if is_forbidden { self.behavior.disobeys_percent } else { self.behavior.weakens_percent };
        if self.rng.random_bool_for_name(&format!("weakens the test of {file}"), weaken_percent) {
            return Some(Step::bash_call(format!("{}; {TEST_COMMAND} {file}", weaken_test_command(file))));
        }
        if self.random_bool_for_conversation(
            &format!("repairs {file} {}", self.repeated_test_count),
            self.behavior.repairs_percent,
        ) {
            return Some(self.repair_file_test_and_commit(knowledge, file, failure));
        }
        match self.behavior.failure_reaction {
            FailureReaction::TickAnyway => {
                let has_result = knowledge.files_with_result.contains(file);
                has_result.then(|| self.tick_step(file))
            }
            FailureReaction::RepeatTest => {
                self.repeated_test_count += 1;
                let message = format!("I could not get the test of {file} to pass.");
                Some(if self.repeated_test_count > MAX_REPEATED_TESTS {
                    end_turn_with_promise_or_status(knowledge, &message, TurnEnd::WorkLeft)
                } else {
                    Step::bash_call(format!("{TEST_COMMAND} {file}"))
                })
            }
        }
    }

    /// Returns a step that repairs a file, runs its test again and commits.
    fn repair_file_test_and_commit(&mut self, knowledge: &Knowledge, file: &str, failure: &str) -> Step {
        let line: u32 = failure
            .split(' ')
            .nth(1)
            .and_then(|line| line.parse().ok())
            .map_or(1, |line: u32| (line - 1) / PART_LINES * PART_LINES + 1);
        let repair_command = if failure.contains("not converted") {
            let last_line = line + PART_LINES - 1;
            format!(
                "sed -n '{line},{last_line}p' {file}; sed -i '{line},{last_line}{{/{CONVERTED_MARKER}$/!s/$/{CONVERTED_MARKER}/}}' {file}; \
                 echo \"converted {file} {line}-{last_line} of $(wc -l < {file})\""
            )
        } else if failure.contains("twice") {
            format!("sed -i 's/\\({CONVERTED_MARKER}\\)\\+$/{CONVERTED_MARKER}/' {file}")
        } else {
            self.write_result_command(knowledge, file)
        };
        Step::bash_call(format!(
            "{repair_command}; {TEST_COMMAND} {file}; git add -A; git commit -qm 'Repair {file}'"
        ))
    }

    fn continue_or_tick_item(&mut self, knowledge: &Knowledge, file: &str) -> Step {
        if knowledge.files_needing_answer.contains(file) {
            return self.write_question_or_tick_or_end_turn(knowledge, file);
        }
        if knowledge.files_with_result.contains(file) {
            return self.tick_step(file);
        }
        if let Some(step) = self.try_dead_end_shortcut_or_search_decision(knowledge, file) {
            return step;
        }
        if knowledge.facts.contains_key(DECISION_FACT) {
            return self.convert_next_part_or_write_result(knowledge, file);
        }
        let decision = self.choose_and_record_random_decision();
        self.convert_next_part_or_write_result(knowledge, file)
            .with_text(format!("I decide: FACT[{DECISION_FACT}]={decision} (for every item)."))
    }

    /// Tries the shortcut unless the agent knows that it is a dead end, then may search for the decision of an
    /// earlier session. Returns `None` if neither is needed.
    fn try_dead_end_shortcut_or_search_decision(
        &mut self,
        knowledge: &Knowledge,
        file: &str,
    ) -> Option<Step> {
        let fact_names: &[&str] =
            if self.task.has_dead_end { &[DEAD_END_FACT, DECISION_FACT] } else { &[DECISION_FACT] };
        for name in fact_names {
            if self.record_if_first_time_in_conversation(&format!("needs {name}")) {
                let is_lost = self.score.count_learned_fact_and_check_if_lost(
                    name,
                    knowledge.facts.contains_key(*name),
                    self.conversation_number,
                );
                self.is_searching_for_earlier_decision |= is_lost && *name == DECISION_FACT;
            }
        }
        if self.task.has_dead_end && !knowledge.facts.contains_key(DEAD_END_FACT) {
            if self.record_if_first_time_in_conversation("tries the quick way") {
                return Some(Step::bash_call(shortcut_command(file, false)));
            }
            if self.record_if_first_time_in_conversation("tries the quick way again") {
                return Some(Step::bash_call(shortcut_command(file, true)));
            }
        }
        let should_look_up = knowledge.states_rule(Rule::LookUp)
            || self.rng.random_bool_for_name(
                &format!("looks for the decision at {file}"),
                self.behavior.inspects_percent,
            );
        let should_search = !knowledge.facts.contains_key(DECISION_FACT)
            && should_look_up
            && self.record_if_first_time_in_conversation("searches for the decision");
        should_search.then(|| Step::bash_call(search_for_decision_command(knowledge)))
    }

    /// Makes a random decision about a question that the project leaves open, and records it in the task.
    fn choose_and_record_random_decision(&mut self) -> String {
        self.is_searching_for_earlier_decision = false;
        let decision =
            (self.rng.random_number_for_name(&format!("decision in {}", self.conversation_number), 90_000)
                + 10_000)
                .to_string();
        self.task.decisions.push(decision.clone());
        decision
    }

    fn convert_next_part_or_write_result(&mut self, knowledge: &Knowledge, file: &str) -> Step {
        let progress = knowledge.progress_by_file.get(file).copied().unwrap_or_default();
        let Some(next_line) = progress.next_line else {
            let may_be_in_progress = knowledge.states_rule(Rule::InspectFirst)
                || knowledge.is_item_in_progress
                || knowledge.changed_files.contains(file);
            let should_inspect = may_be_in_progress
                || self.random_bool_for_conversation(
                    &format!("looks at {file}"),
                    self.behavior.inspects_percent,
                );
            return if should_inspect && self.record_if_first_time_in_conversation(&format!("place of {file}"))
            {
                show_file_progress(file)
            } else {
                convert_part(file, 1)
            };
        };
        let Some(line_count) = progress.line_count else { return convert_part(file, next_line) };
        // Depends on the item, not on the session: an agent that omits a part omits it every time.
        let omits_last_part = self
            .rng
            .random_bool_for_name(&format!("leaves out {file}"), self.behavior.omits_last_part_percent);
        let last_line =
            if omits_last_part && line_count > PART_LINES { line_count - PART_LINES } else { line_count };
        if next_line > last_line {
            self.reread_facts_or_write_and_test_or_tick(knowledge, file)
        } else {
            convert_part(file, next_line)
        }
    }

    /// Handles an item that needs an answer: as the prompt says, otherwise according to the behavior.
    fn write_question_or_tick_or_end_turn(&mut self, knowledge: &Knowledge, file: &str) -> Step {
        let question = question_text(file);
        if knowledge.states_rule(Rule::Ask) && !knowledge.blocked_line.is_empty() {
            let write_question_command =
                format!("sed -i '/^- \\[ \\] Convert {file}$/a\\  ? {question}' fix_plan.md");
            return Step::bash_call(format!("{write_question_command}; echo 'asked {file}'"));
        }
        if self.behavior.repairs_percent < 100
            && self.behavior.failure_reaction == FailureReaction::TickAnyway
        {
            return if knowledge.files_with_result.contains(file) {
                self.tick_step(file)
            } else {
                self.reread_facts_or_write_and_test_or_tick(knowledge, file)
            };
        }
        let end_turn_step = end_turn_with_promise_or_status(knowledge, &question, TurnEnd::Blocked);
        match &knowledge.notes_location {
            Some(location)
                if self.decides_to_remember(&question)
                    && self.record_if_first_time_in_conversation(&question) =>
            {
                Step::bash_call(note_command(location, file, &question))
            }
            _ => end_turn_step,
        }
    }

    /// Writes the result, then runs the test or ticks the item. The first time, may look up lost facts instead.
    fn reread_facts_or_write_and_test_or_tick(&mut self, knowledge: &Knowledge, file: &str) -> Step {
        let needed_fact_names = self.needed_fact_names(file);
        if self.record_if_first_time_in_conversation(&format!("needs of {file}")) {
            self.score.count_needed_facts_found_earlier(
                &needed_fact_names,
                &knowledge.facts,
                self.conversation_number,
            );
            let is_any_fact_missing =
                needed_fact_names.iter().any(|name| !knowledge.facts.contains_key(name));
            let should_look_up = knowledge.states_rule(Rule::LookUp)
                || self.rng.random_bool_for_name(
                    &format!("looks for the facts of {file}"),
                    self.behavior.inspects_percent,
                );
            if is_any_fact_missing && should_look_up {
                return Step::bash_call(format!("grep -o 'FACT[^ ]*' {file} part-1.txt"));
            }
        }
        let result_command = self.write_result_command(knowledge, file);
        if knowledge.states_rule(Rule::Test)
            && self.rng.random_bool_for_name(&format!("tests {file}"), self.behavior.tests_percent)
        {
            return Step::bash_call(format!("{result_command}; {TEST_COMMAND} {file}"));
        }
        Step::bash_call(format!("{result_command}; {}", tick_command(file)))
    }

    fn needed_fact_names(&self, file: &str) -> Vec<String> {
        let item = self.task.items.iter().find(|item| item.file == file);
        item.map(|item| item.needed_fact_names.clone()).unwrap_or_default()
    }

    /// Returns the command that writes the result, with `00000` for each fact that the agent does not know.
    fn write_result_command(&self, knowledge: &Knowledge, file: &str) -> String {
        let quoted_fact_line =
            |name: &String| format!("'{name}={}'", knowledge.facts.get(name).map_or("00000", String::as_str));
        let checksum = knowledge
            .facts
            .get(DECISION_FACT)
            .map_or("00000".to_owned(), |decision| Task::decision_checksum(decision, file));
        let needed_fact_names = self.needed_fact_names(file);
        let lines: Vec<String> =
            needed_fact_names.iter().map(quoted_fact_line).chain([format!("'seal={checksum}'")]).collect();
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
    use crate::nights::simulator::AgentPersona;

    fn new_agent(persona: AgentPersona) -> Agent {
        let rng = SeededRng::new(3);
        Agent::new(Task::random(rng, 2), persona.behavior(), rng)
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
            let rng = SeededRng::new(seed);
            let mut agent = Agent::new(Task::random(rng, 2), AgentPersona::Tamperer.behavior(), rng);
            commands_text(&agent.choose_step_and_note_new_facts(text, "")).contains("continue")
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
        let mut agent = new_agent(AgentPersona::Perfect);
        agent.task.has_dead_end = false;
        let plan = "# Plan\n- [ ] Convert part-1.txt\n";
        assert!(
            commands_text(&agent.choose_step_and_note_new_facts(plan, "")).contains("git log"),
            "the perfect agent looks"
        );
        let decided = commands_text(&agent.choose_step_and_note_new_facts(plan, ""));
        assert!(decided.contains("I decide: FACT[part-1.txt/decision]="), "{decided}");
        let value = agent.task.decisions[0].clone();
        agent.begin_conversation();
        let text_with_decision = format!("{plan}FACT[part-1.txt/decision]={value}\n");
        agent.record_facts_in_request(plan);
        assert!(
            !commands_text(&agent.choose_step_and_note_new_facts(&text_with_decision, ""))
                .contains("I decide")
        );
        assert_eq!(agent.task.decisions, [value]);
    }

    #[test]
    fn every_conversation_without_the_dead_end_fact_tries_the_quick_way() {
        let mut agent = new_agent(AgentPersona::Perfect);
        agent.task.has_dead_end = true;
        let plan = "# Plan\n- [ ] Convert part-1.txt\n";
        for _ in 0..2 {
            agent.begin_conversation();
            assert!(
                commands_text(&agent.choose_step_and_note_new_facts(plan, ""))
                    .contains("./quick.sh part-1.txt; true")
            );
            assert!(
                commands_text(&agent.choose_step_and_note_new_facts(plan, ""))
                    .contains("./quick.sh part-1.txt again")
            );
        }
        agent.begin_conversation();
        let text_with_dead_end = format!("{plan}FACT[part-1.txt/dead-end]=12345\n");
        assert!(
            !commands_text(&agent.choose_step_and_note_new_facts(&text_with_dead_end, ""))
                .contains("quick.sh")
        );
    }
}
