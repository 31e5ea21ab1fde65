//! The simulated agent: it continues where its requests say, performs the steps that it believes to be pending,
//! and stops on request.

use super::SimulationResults;
use super::ledger::{EditMethod, GroundTruth, Ledger, LedgerEvent, UserChange};
use super::prompt_parser::ParsedPrompt;
use super::resume_score::{self, ResumeScore};
use super::style::{AgentStyle, CommitTiming, InterruptionKind, InterruptionPoint, SessionScript};
use super::work::{Operation, SimulatedWork};
use crate::nights::simulator::usage_limit_response;
use plimsoll_testkit::SeededRng;
use plimsoll_testkit::scripted_model::{Request, Step};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The duration of a usage limit in this simulation.
const USAGE_LIMIT_DURATION: Duration = Duration::from_secs(2);
/// Input tokens of a session's first answer, and the growth with each answer. The window has 1,000,000
/// tokens.
const FIRST_ANSWER_TOKENS: u64 = 40_000;
const TOKENS_PER_ANSWER: u64 = 6_000;
/// Input tokens above L2 (85%), above L3 (95%), and at which the next item does not fit below L2.
const TOKENS_ABOVE_L2: u64 = 870_000;
const TOKENS_ABOVE_L3: u64 = 960_000;
const TOKENS_LEAVING_NO_ROOM_FOR_ITEM: u64 = 640_000;
/// The probability, in percent, that the agent notices that work is already done.
const NOTICES_EXISTING_WORK_PERCENT: u64 = 50;

pub(super) struct Agent {
    pub(super) work: SimulatedWork,
    pub(super) style: AgentStyle,
    pub(super) rng: SeededRng,
    pub(super) ledger: Ledger,
    pub(super) session: AgentSession,
    /// Changes by users since the last session.
    pub(super) user_changes: Vec<UserChange>,
    pub(super) resume_scores: Vec<ResumeScore>,
    pub(super) results: SimulationResults,
    pub(super) has_made_flawed_promise: bool,
    pub(super) items_with_forgotten_tick: Vec<usize>,
    pub(super) usage_limit_ends_at: Option<SystemTime>,
    pub(super) session_end_label: &'static str,
}

/// The state of one session. The agent knows only what its requests contained.
pub(super) struct AgentSession {
    pub(super) id: String,
    pub(super) number: u32,
    pub(super) script: SessionScript,
    pub(super) prompt: ParsedPrompt,
    pub(super) item: Option<usize>,
    /// The next step of the item.
    pub(super) next_step: usize,
    pub(super) phase: Phase,
    /// A file and line that the prompt names although they do not belong to the item.
    pub(super) location_outside_item: Option<(String, u32)>,
    /// A step that is already done although the prompt says to continue there.
    pub(super) step_to_repeat: Option<usize>,
    pub(super) must_inspect_files: bool,
    pub(super) performed_step_count: u32,
    pub(super) answer_count: u64,
    pub(super) has_been_interrupted: bool,
    pub(super) is_window_full: bool,
    pub(super) has_committed: bool,
    pub(super) steps_left_before_stop: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Starting,
    Inspecting,
    Working,
    Ticked,
    Stopping,
    Ended,
}

impl AgentSession {
    pub(super) fn new(id: String, number: u32, script: SessionScript, prompt: ParsedPrompt) -> AgentSession {
        AgentSession {
            id,
            number,
            script,
            prompt,
            item: None,
            next_step: 0,
            phase: Phase::Starting,
            location_outside_item: None,
            step_to_repeat: None,
            must_inspect_files: false,
            performed_step_count: 0,
            answer_count: 0,
            has_been_interrupted: false,
            is_window_full: false,
            has_committed: false,
            steps_left_before_stop: 0,
        }
    }
}

/// Returns the command line that commits everything.
pub(super) fn commit_command(message: &str) -> String {
    format!("git add -A 2>/dev/null && git commit -qm '{message}' || true")
}

impl Agent {
    pub(super) fn new(work: SimulatedWork, style: AgentStyle, project: PathBuf, rng: SeededRng) -> Agent {
        Agent {
            results: SimulationResults { items: work.items.len() as u32, ..SimulationResults::default() },
            work,
            style,
            rng,
            ledger: Ledger::new(project),
            session: AgentSession::new(
                String::new(),
                0,
                SessionScript::random(rng, &style, 0),
                ParsedPrompt::default(),
            ),
            user_changes: Vec::new(),
            resume_scores: Vec::new(),
            has_made_flawed_promise: false,
            items_with_forgotten_tick: Vec::new(),
            usage_limit_ends_at: None,
            session_end_label: "nothing",
        }
    }

    pub(super) fn ground_truth_for_next_session(&self) -> Option<GroundTruth> {
        self.ledger.ground_truth_for_next_session(&self.work, self.style.folder, &self.user_changes)
    }

    pub(super) fn answer_with_step_or_usage_limit(&mut self, request: &Request) -> Step {
        let session_id = request.body["metadata"]["user_id"].to_string();
        if self.session.id != session_id {
            self.begin_session_and_score_resume(session_id, request);
        }
        if let Some(limit_ends_at) = self.usage_limit_ends_at {
            if SystemTime::now() < limit_ends_at {
                return usage_limit_response(limit_ends_at);
            }
            self.usage_limit_ends_at = None;
        }
        self.session.answer_count += 1;
        let step = self.choose_step_from_phase_and_hook_messages(request);
        let base_tokens = if self.session.is_window_full { TOKENS_ABOVE_L2 } else { FIRST_ANSWER_TOKENS };
        let tokens = base_tokens + TOKENS_PER_ANSWER * self.session.answer_count;
        if !self.session.has_been_interrupted {
            return step.with_input_tokens(tokens);
        }
        match self.session.script.interruption_kind {
            InterruptionKind::L3 if !self.session.is_window_full => {
                self.session.is_window_full = true;
                step.with_input_tokens(TOKENS_ABOVE_L3)
            }
            InterruptionKind::NoRoomForNextItem => {
                step.with_input_tokens(TOKENS_LEAVING_NO_ROOM_FOR_ITEM + self.session.answer_count)
            }
            _ => step.with_input_tokens(tokens),
        }
    }

    /// Begins a session and scores its first request, which contains all that the agent knows.
    pub(super) fn begin_session_and_score_resume(&mut self, id: String, request: &Request) {
        let number = self.session.number + 1;
        let script = SessionScript::random(self.rng, &self.style, number);
        let prompt = ParsedPrompt::parse(&request.text_since_last_assistant_message());
        if number > 1
            && let Some(truth) = self.ground_truth_for_next_session()
        {
            let mut score =
                resume_score::score_resume(&prompt, &truth, &self.work, &self.ledger, &self.style);
            score.session = number;
            score.previous_session_end = self.session_end_label.to_owned();
            self.resume_scores.push(score);
        }
        self.user_changes.clear();
        self.session_end_label = "broken off";
        self.results.sessions += 1;
        self.ledger.events.push(LedgerEvent::SessionStarted);
        self.session = AgentSession::new(id, number, script, prompt);
    }

    pub(super) fn choose_step_from_phase_and_hook_messages(&mut self, request: &Request) -> Step {
        let last_text = request.text_since_last_assistant_message();
        if last_text.contains("CCS_CHECKPOINT_TRIGGERED|")
            && !matches!(self.session.phase, Phase::Stopping | Phase::Ended)
        {
            self.session.phase = Phase::Stopping;
            self.session.steps_left_before_stop = u32::from(self.session.script.makes_one_more_step);
        }
        if let Some(item) = item_named_in_pack_message(&last_text).and_then(|name| self.work.find_item(&name))
        {
            self.session.item = Some(item);
            self.session.next_step = 0;
            self.session.phase = Phase::Working;
        }
        match self.session.phase {
            Phase::Starting => self.inspect_then_choose_item_or_promise(),
            Phase::Inspecting => {
                self.set_next_step_from_files();
                self.session.phase = Phase::Working;
                self.continue_or_finish_item()
            }
            Phase::Working => self.continue_or_finish_item(),
            Phase::Ticked => self.continue_or_end_after_tick(),
            Phase::Stopping => self.make_one_more_step_or_commit_or_close(),
            Phase::Ended => Step::from_text("I have stopped."),
        }
    }

    /// Chooses the item and the step to start with, from the prompt. The first answer only inspects the project,
    /// because a session whose window is full at its first answer would be a different test.
    pub(super) fn inspect_then_choose_item_or_promise(&mut self) -> Step {
        if self.session.answer_count == 1 {
            return Step::bash_call("git status --short 2>/dev/null | head -5; cat fix_plan.md");
        }
        self.session.phase = Phase::Working;
        let prompt = self.session.prompt.clone();
        let item_name = prompt
            .requested_item
            .as_ref()
            .or(prompt.item_in_progress.as_ref())
            .or(prompt.item_to_begin.as_ref());
        self.session.item = item_name.and_then(|name| self.work.find_item(name));
        let Some(item) = self.session.item else { return self.end_session_with_correct_or_flawed_promise() };
        self.set_start_step_or_inspection_from_prompt(&prompt, item);
        if self.trigger_planned_interruption_once(InterruptionPoint::Start) {
            return match self.session.script.interruption_kind {
                InterruptionKind::UsageLimit => self.start_usage_limit(),
                _ => Step::bash_call("cat docs/guide.md; ls src"),
            };
        }
        self.continue_or_finish_item()
    }

    pub(super) fn set_start_step_or_inspection_from_prompt(&mut self, prompt: &ParsedPrompt, item: usize) {
        let step_count = self.work.items[item].steps.len();
        let Some((file, line)) = prompt.location_to_continue() else {
            let is_in_progress = prompt.item_in_progress.is_some();
            self.session.must_inspect_files =
                is_in_progress || self.notices_existing_work_at_random(&format!("item {item}"));
            if !self.session.must_inspect_files
                && (0..step_count).any(|step| self.ledger.is_step_done_in_files(&self.work, item, step))
            {
                self.results.restarted_items += 1;
            }
            return;
        };
        let steps_in_file: Vec<usize> = (0..step_count)
            .filter(|step| {
                self.work.items[item].steps[*step].affected_file() == file
                    || self.ledger.current_file_of_step(&self.work, item, *step).as_ref() == Some(&file)
            })
            .collect();
        let last_done_step =
            steps_in_file.iter().rfind(|step| self.ledger.is_step_done_in_files(&self.work, item, **step));
        match (last_done_step, steps_in_file.first()) {
            (Some(done), _) => {
                self.session.next_step = done + 1;
                let lines = self.ledger.line_numbers_written_by_step(item, *done, &file);
                self.session.step_to_repeat = line.filter(|line| lines.contains(line)).map(|_| *done);
            }
            (None, Some(first)) => self.session.next_step = *first,
            (None, None) if file == "fix_plan.md" => {
                self.session.must_inspect_files = self.notices_existing_work_at_random("stray")
            }
            (None, None) => {
                self.session.location_outside_item = Some((file, line.unwrap_or(1)));
                self.session.must_inspect_files = self.notices_existing_work_at_random("stray");
            }
        }
    }

    pub(super) fn notices_existing_work_at_random(&self, choice_name: &str) -> bool {
        self.rng.random_bool_for_name(
            &format!("notices {choice_name} in session {}", self.session.number),
            NOTICES_EXISTING_WORK_PERCENT,
        )
    }

    /// Sets the next step to the first pending one, as the files show.
    pub(super) fn set_next_step_from_files(&mut self) {
        let Some(item) = self.session.item else { return };
        let step_count = self.work.items[item].steps.len();
        let first_pending_step =
            (0..step_count).find(|step| self.ledger.is_step_pending_and_possible(&self.work, item, *step));
        self.session.next_step = first_pending_step.unwrap_or(step_count);
    }

    pub(super) fn continue_or_finish_item(&mut self) -> Step {
        let Some(item) = self.session.item else { return self.end_session_with_correct_or_flawed_promise() };
        if let Some((file, line)) = self.session.location_outside_item.take() {
            let is_finished = self.work.items.iter().enumerate().any(|(item_index, work_item)| {
                work_item.steps.iter().any(|operation| operation.affected_file() == file)
                    && self.ledger.is_item_ticked(&self.work, item_index)
            });
            self.results.returns_to_finished_items += u32::from(is_finished);
            return Step::bash_call(format!(
                "[ -e '{file}' ] && sed -i '{line}s/$/ /' '{file}'; git diff --stat | tail -3"
            ));
        }
        if std::mem::take(&mut self.session.must_inspect_files) {
            self.session.phase = Phase::Inspecting;
            return Step::bash_call(
                "git status --short | head; git log --oneline | head -5; grep -rn DONE src lib | tail -3",
            );
        }
        if let Some(step) = self.session.step_to_repeat.take()
            && !self.notices_existing_work_at_random(&format!("step {step}"))
        {
            return self.repeat_done_step(item, step);
        }
        while self.session.next_step < self.work.items[item].steps.len() {
            let step = self.session.next_step;
            self.session.next_step += 1;
            let is_pending = self.ledger.is_step_pending_and_possible(&self.work, item, step);
            // Every agent notices if a file was moved or deleted.
            let writes_marker = matches!(
                self.work.items[item].steps[step],
                Operation::Edit { .. } | Operation::Create { .. }
            );
            let should_repeat_done_step = !is_pending
                && writes_marker
                && self.ledger.is_step_done_in_files(&self.work, item, step)
                && !self.notices_existing_work_at_random(&format!("step {step}"));
            if is_pending {
                return self.perform_step_with_commit_and_interruption(item, step);
            } else if should_repeat_done_step {
                return self.repeat_done_step(item, step);
            }
        }
        self.tick_unless_forgotten_and_commit_item(item)
    }

    pub(super) fn repeat_done_step(&mut self, item: usize, step: usize) -> Step {
        self.results.repeated_steps += 1;
        self.ledger.events.push(LedgerEvent::StepPerformed { item, step, edit_method: EditMethod::Shell });
        let marker = SimulatedWork::step_marker(item, step);
        let file = self
            .ledger
            .current_file_of_step(&self.work, item, step)
            .unwrap_or_else(|| "fix_plan.md".to_owned());
        Step::bash_call(format!("sed -i 's/{marker}$/& again/' '{file}'"))
    }

    pub(super) fn continue_or_end_after_tick(&mut self) -> Step {
        let open_item = self.ledger.first_open_item(&self.work);
        match open_item {
            None => self.end_session_with_correct_or_flawed_promise(),
            Some(item) if self.style.does_several_items_per_session && !self.session.is_window_full => {
                self.session.item = Some(item);
                self.session.next_step = 0;
                self.session.phase = Phase::Working;
                self.continue_or_finish_item()
            }
            Some(_) => {
                self.session.phase = Phase::Ended;
                self.session_end_label = "end of the item";
                Step::from_text("The item is done.")
            }
        }
    }

    /// Returns true if the session's interruption is planned for this point and has not happened yet, and
    /// records it.
    pub(super) fn trigger_planned_interruption_once(&mut self, reached_point: InterruptionPoint) -> bool {
        let is_planned_point = match (self.session.script.interruption_point, reached_point) {
            (InterruptionPoint::AfterCommitOfStep(step), InterruptionPoint::Step(performed_step_count)) => {
                step == performed_step_count
            }
            (planned_point, current_point) => planned_point == current_point,
        };
        if !is_planned_point || self.session.has_been_interrupted {
            return false;
        }
        self.session.has_been_interrupted = true;
        self.session.is_window_full = self.session.script.interruption_kind == InterruptionKind::L2;
        if self.session.script.interruption_kind == InterruptionKind::L3 {
            self.session_end_label = "L3";
        }
        true
    }

    pub(super) fn start_usage_limit(&mut self) -> Step {
        let ends_at = SystemTime::now() + USAGE_LIMIT_DURATION;
        self.usage_limit_ends_at = Some(ends_at);
        self.session_end_label = "usage limit";
        usage_limit_response(ends_at)
    }

    /// Takes the next action of a session that stops: one more step, a commit, or the closing message.
    pub(super) fn make_one_more_step_or_commit_or_close(&mut self) -> Step {
        let interruption_kind = self.session.script.interruption_kind;
        let item = self.session.item;
        if let Some(item) = item
            && std::mem::take(&mut self.session.steps_left_before_stop) > 0
            && interruption_kind == InterruptionKind::L2
            && !self.ledger.is_item_ticked(&self.work, item)
            && let Some(step) = (self.session.next_step..self.work.items[item].steps.len())
                .find(|step| self.ledger.is_step_pending_and_possible(&self.work, item, *step))
        {
            self.session.next_step = step + 1;
            return self.perform_step_with_commit_and_interruption(item, step);
        }
        let should_commit = match self.style.commits {
            CommitTiming::AfterEachStep => true,
            CommitTiming::AtItemEnd => {
                interruption_kind == InterruptionKind::L2 && self.style.has_wip_messages
            }
            CommitTiming::Never => false,
        };
        if should_commit
            && interruption_kind != InterruptionKind::ManualCheckpoint
            && !std::mem::replace(&mut self.session.has_committed, true)
        {
            self.ledger.events.push(LedgerEvent::Committed);
            return Step::bash_call(commit_command(
                &item.map_or("wip".to_owned(), |item| self.commit_message(item, None)),
            ));
        }
        self.write_closing_message_or_checkpoint(interruption_kind)
    }
}

/// Returns the name of the item that a message of `--pack` tells the session to continue with.
fn item_named_in_pack_message(last_text: &str) -> Option<String> {
    let marker = "exactly this item: \"";
    let text_after_marker = &last_text[last_text.find(marker)? + marker.len()..];
    Some(text_after_marker[..text_after_marker.find('"')?].to_owned())
}
