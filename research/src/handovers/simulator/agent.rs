//! The simulated agent: it continues where its requests say, makes the steps that it believes to be left, and
//! stops on request.

use super::NightResults;
use super::ledger::{EditedWith, Ledger, LedgerEvent, Truth, UserChange};
use super::prompt_facts::PromptFacts;
use super::style::{BreakKind, BreakPoint, CommitHabit, NightStyle, SessionScript};
use super::verdict::{self, ResumeScore};
use super::work::{NightWork, Operation};
use crate::nights::simulator::usage_limit_response;
use plimsoll_testkit::Dice;
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
const TOKENS_WITHOUT_ROOM_FOR_ITEM: u64 = 640_000;
/// The percentage of agents that notice when their next step is already done.
const NOTICE_PERCENT: u64 = 50;

pub(super) struct Agent {
    pub(super) work: NightWork,
    pub(super) style: NightStyle,
    pub(super) dice: Dice,
    pub(super) ledger: Ledger,
    pub(super) session: AgentSession,
    /// Changes by users since the last session.
    pub(super) user_changes: Vec<UserChange>,
    pub(super) resumes: Vec<ResumeScore>,
    pub(super) results: NightResults,
    pub(super) has_made_flawed_promise: bool,
    pub(super) items_left_unticked: Vec<usize>,
    pub(super) limit_ends_at: Option<SystemTime>,
    pub(super) session_end: &'static str,
}

/// The state of one session. The agent knows only what its requests contained.
pub(super) struct AgentSession {
    pub(super) id: String,
    pub(super) number: u32,
    pub(super) script: SessionScript,
    pub(super) facts: PromptFacts,
    pub(super) item: Option<usize>,
    /// The next step of the item.
    pub(super) next_step: usize,
    pub(super) phase: Phase,
    /// A file of another item and a line in it that the prompt named.
    pub(super) stray_place: Option<(String, u32)>,
    /// A step that the prompt named although it is done.
    pub(super) step_to_repeat: Option<usize>,
    pub(super) must_inspect: bool,
    pub(super) made_count: u32,
    pub(super) answer_count: u64,
    pub(super) has_reached_break: bool,
    pub(super) is_window_full: bool,
    pub(super) has_committed: bool,
    pub(super) steps_before_stop: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Opening,
    Looking,
    Working,
    Ticked,
    Stopping,
    Over,
}

impl AgentSession {
    pub(super) fn new(id: String, number: u32, script: SessionScript, facts: PromptFacts) -> AgentSession {
        AgentSession {
            id,
            number,
            script,
            facts,
            item: None,
            next_step: 0,
            phase: Phase::Opening,
            stray_place: None,
            step_to_repeat: None,
            must_inspect: false,
            made_count: 0,
            answer_count: 0,
            has_reached_break: false,
            is_window_full: false,
            has_committed: false,
            steps_before_stop: 0,
        }
    }
}

/// Returns the command line that commits everything.
pub(super) fn commit_command(message: &str) -> String {
    format!("git add -A 2>/dev/null && git commit -qm '{message}' || true")
}

impl Agent {
    pub(super) fn new(work: NightWork, style: NightStyle, project: PathBuf, dice: Dice) -> Agent {
        Agent {
            results: NightResults { items: work.items.len() as u32, ..NightResults::default() },
            work,
            style,
            dice,
            ledger: Ledger::new(project),
            session: AgentSession::new(
                String::new(),
                0,
                SessionScript::new(dice, &style, 0),
                PromptFacts::default(),
            ),
            user_changes: Vec::new(),
            resumes: Vec::new(),
            has_made_flawed_promise: false,
            items_left_unticked: Vec::new(),
            limit_ends_at: None,
            session_end: "nothing",
        }
    }

    pub(super) fn truth_for_next_session(&self) -> Option<Truth> {
        self.ledger.truth_for_next_session(&self.work, self.style.folder, &self.user_changes)
    }

    pub(super) fn answer_request(&mut self, request: &Request) -> Step {
        let session_id = request.body["metadata"]["user_id"].to_string();
        if self.session.id != session_id {
            self.begin_session(session_id, request);
        }
        if let Some(limit_ends_at) = self.limit_ends_at {
            if SystemTime::now() < limit_ends_at {
                return usage_limit_response(limit_ends_at);
            }
            self.limit_ends_at = None;
        }
        self.session.answer_count += 1;
        let step = self.choose_step(request);
        let base_tokens = if self.session.is_window_full { TOKENS_ABOVE_L2 } else { FIRST_ANSWER_TOKENS };
        let tokens = base_tokens + TOKENS_PER_ANSWER * self.session.answer_count;
        if !self.session.has_reached_break {
            return step.with_input_tokens(tokens);
        }
        match self.session.script.break_kind {
            BreakKind::L3 if !self.session.is_window_full => {
                self.session.is_window_full = true;
                step.with_input_tokens(TOKENS_ABOVE_L3)
            }
            BreakKind::NoRoomForItem => {
                step.with_input_tokens(TOKENS_WITHOUT_ROOM_FOR_ITEM + self.session.answer_count)
            }
            _ => step.with_input_tokens(tokens),
        }
    }

    /// Begins a session and scores its first request, which is all that the agent knows.
    pub(super) fn begin_session(&mut self, id: String, request: &Request) {
        let number = self.session.number + 1;
        let script = SessionScript::new(self.dice, &self.style, number);
        let facts = PromptFacts::parse(&request.text_since_last_answer());
        if number > 1
            && let Some(truth) = self.truth_for_next_session()
        {
            let mut resume = verdict::score_resume(&facts, &truth, &self.work, &self.ledger, &self.style);
            resume.session = number;
            resume.previous_session_end = self.session_end.to_owned();
            self.resumes.push(resume);
        }
        self.user_changes.clear();
        self.session_end = "broken off";
        self.results.sessions += 1;
        self.ledger.events.push(LedgerEvent::SessionStarted);
        self.session = AgentSession::new(id, number, script, facts);
    }

    pub(super) fn choose_step(&mut self, request: &Request) -> Step {
        let last_text = request.text_since_last_answer();
        if last_text.contains("CCS_CHECKPOINT_TRIGGERED|")
            && !matches!(self.session.phase, Phase::Stopping | Phase::Over)
        {
            self.session.phase = Phase::Stopping;
            self.session.steps_before_stop = u32::from(self.session.script.makes_one_more_step);
        }
        if let Some(item) = item_offered_by_pack(&last_text).and_then(|name| self.work.find_item(&name)) {
            self.session.item = Some(item);
            self.session.next_step = 0;
            self.session.phase = Phase::Working;
        }
        match self.session.phase {
            Phase::Opening => self.choose_item(),
            Phase::Looking => {
                self.inspect_files();
                self.session.phase = Phase::Working;
                self.continue_item()
            }
            Phase::Working => self.continue_item(),
            Phase::Ticked => self.continue_after_tick(),
            Phase::Stopping => self.stop_session(),
            Phase::Over => Step::from_text("I have stopped."),
        }
    }

    /// Chooses the item and the place to begin, from the prompt. The first answer only looks around, because
    /// a session that is full at its first answer would be a different test.
    pub(super) fn choose_item(&mut self) -> Step {
        if self.session.answer_count == 1 {
            return Step::bash_call("git status --short 2>/dev/null | head -5; cat fix_plan.md");
        }
        self.session.phase = Phase::Working;
        let facts = self.session.facts.clone();
        let item_name =
            facts.prompt_item.as_ref().or(facts.item_in_progress.as_ref()).or(facts.item_to_begin.as_ref());
        self.session.item = item_name.and_then(|name| self.work.find_item(name));
        let Some(item) = self.session.item else { return self.make_promise() };
        self.choose_place(&facts, item);
        if self.reaches_break(BreakPoint::Start) {
            return match self.session.script.break_kind {
                BreakKind::UsageLimit => self.hit_usage_limit(),
                _ => Step::bash_call("cat docs/guide.md; ls src"),
            };
        }
        self.continue_item()
    }

    pub(super) fn choose_place(&mut self, facts: &PromptFacts, item: usize) {
        let step_count = self.work.items[item].steps.len();
        let Some((file, line)) = facts.place_to_continue() else {
            let is_begun = facts.item_in_progress.is_some();
            self.session.must_inspect = is_begun || self.notices_done_step(&format!("item {item}"));
            if !self.session.must_inspect
                && (0..step_count).any(|step| self.ledger.is_step_visible(&self.work, item, step))
            {
                self.results.items_begun_twice += 1;
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
            steps_in_file.iter().rfind(|step| self.ledger.is_step_visible(&self.work, item, **step));
        match (last_done_step, steps_in_file.first()) {
            (Some(done), _) => {
                self.session.next_step = done + 1;
                let lines = self.ledger.lines_of_step(item, *done, &file);
                self.session.step_to_repeat = line.filter(|line| lines.contains(line)).map(|_| *done);
            }
            (None, Some(first)) => self.session.next_step = *first,
            (None, None) if file == "fix_plan.md" => {
                self.session.must_inspect = self.notices_done_step("stray")
            }
            (None, None) => {
                self.session.stray_place = Some((file, line.unwrap_or(1)));
                self.session.must_inspect = self.notices_done_step("stray");
            }
        }
    }

    pub(super) fn notices_done_step(&self, roll_name: &str) -> bool {
        self.dice.happens_with_percent(
            &format!("notices {roll_name} in session {}", self.session.number),
            NOTICE_PERCENT,
        )
    }

    /// Finds the first step that is left, by looking at the files.
    pub(super) fn inspect_files(&mut self) {
        let Some(item) = self.session.item else { return };
        let step_count = self.work.items[item].steps.len();
        let first_left = (0..step_count).find(|step| self.ledger.is_step_left(&self.work, item, *step));
        self.session.next_step = first_left.unwrap_or(step_count);
    }

    pub(super) fn continue_item(&mut self) -> Step {
        let Some(item) = self.session.item else { return self.make_promise() };
        if let Some((file, line)) = self.session.stray_place.take() {
            let is_finished = self.work.items.iter().enumerate().any(|(item_index, one)| {
                one.steps.iter().any(|op| op.affected_file() == file)
                    && self.ledger.is_item_ticked(&self.work, item_index)
            });
            self.results.returns_to_finished_items += u32::from(is_finished);
            return Step::bash_call(format!(
                "[ -e '{file}' ] && sed -i '{line}s/$/ /' '{file}'; git diff --stat | tail -3"
            ));
        }
        if std::mem::take(&mut self.session.must_inspect) {
            self.session.phase = Phase::Looking;
            return Step::bash_call(
                "git status --short | head; git log --oneline | head -5; grep -rn DONE src lib | tail -3",
            );
        }
        if let Some(step) = self.session.step_to_repeat.take()
            && !self.notices_done_step(&format!("step {step}"))
        {
            return self.repeat_step(item, step);
        }
        while self.session.next_step < self.work.items[item].steps.len() {
            let step = self.session.next_step;
            self.session.next_step += 1;
            let is_left = self.ledger.is_step_left(&self.work, item, step);
            // Every agent notices if a file was moved or deleted.
            let leaves_mark = matches!(
                self.work.items[item].steps[step],
                Operation::Edit { .. } | Operation::Create { .. }
            );
            let repeats = !is_left
                && leaves_mark
                && self.ledger.is_step_visible(&self.work, item, step)
                && !self.notices_done_step(&format!("step {step}"));
            if is_left {
                return self.make_step(item, step);
            } else if repeats {
                return self.repeat_step(item, step);
            }
        }
        self.finish_item(item)
    }

    pub(super) fn repeat_step(&mut self, item: usize, step: usize) -> Step {
        self.results.steps_made_twice += 1;
        self.ledger.events.push(LedgerEvent::StepMade { item, step, edited_with: EditedWith::Shell });
        let mark = NightWork::step_mark(item, step);
        let file = self
            .ledger
            .current_file_of_step(&self.work, item, step)
            .unwrap_or_else(|| "fix_plan.md".to_owned());
        Step::bash_call(format!("sed -i 's/{mark}$/& again/' '{file}'"))
    }

    pub(super) fn continue_after_tick(&mut self) -> Step {
        let open_item = self.ledger.first_open_item(&self.work);
        match open_item {
            None => self.make_promise(),
            Some(item) if self.style.does_several_items && !self.session.is_window_full => {
                self.session.item = Some(item);
                self.session.next_step = 0;
                self.session.phase = Phase::Working;
                self.continue_item()
            }
            Some(_) => {
                self.session.phase = Phase::Over;
                self.session_end = "end of the item";
                Step::from_text("The item is done.")
            }
        }
    }

    /// Returns true once: when the session's break is planned for this point.
    pub(super) fn reaches_break(&mut self, point: BreakPoint) -> bool {
        let is_here = match (self.session.script.break_point, point) {
            (BreakPoint::Commit(step), BreakPoint::Step(made_count)) => step == made_count,
            (planned, at) => planned == at,
        };
        if !is_here || self.session.has_reached_break {
            return false;
        }
        self.session.has_reached_break = true;
        self.session.is_window_full = self.session.script.break_kind == BreakKind::L2;
        if self.session.script.break_kind == BreakKind::L3 {
            self.session_end = "L3";
        }
        true
    }

    pub(super) fn hit_usage_limit(&mut self) -> Step {
        let ends_at = SystemTime::now() + USAGE_LIMIT_DURATION;
        self.limit_ends_at = Some(ends_at);
        self.session_end = "usage limit";
        usage_limit_response(ends_at)
    }

    /// Ends the turn, on request or because the agent stops by itself.
    pub(super) fn stop_session(&mut self) -> Step {
        let break_kind = self.session.script.break_kind;
        let item = self.session.item;
        if let Some(item) = item
            && std::mem::take(&mut self.session.steps_before_stop) > 0
            && break_kind == BreakKind::L2
            && !self.ledger.is_item_ticked(&self.work, item)
            && let Some(step) = (self.session.next_step..self.work.items[item].steps.len())
                .find(|step| self.ledger.is_step_left(&self.work, item, *step))
        {
            self.session.next_step = step + 1;
            return self.make_step(item, step);
        }
        let should_commit = match self.style.commits {
            CommitHabit::OnTheWay => true,
            CommitHabit::AtTheEnd => break_kind == BreakKind::L2 && self.style.has_wip_messages,
            CommitHabit::Never => false,
        };
        if should_commit
            && break_kind != BreakKind::ManualCheckpoint
            && !std::mem::replace(&mut self.session.has_committed, true)
        {
            self.ledger.events.push(LedgerEvent::Committed);
            return Step::bash_call(commit_command(
                &item.map_or("wip".to_owned(), |item| self.commit_message(item, None)),
            ));
        }
        self.write_closing_message(break_kind)
    }
}

/// Returns the item that a message of `--pack` tells the session to continue with.
fn item_offered_by_pack(last_text: &str) -> Option<String> {
    let marker = "exactly this item: \"";
    let rest = &last_text[last_text.find(marker)? + marker.len()..];
    Some(rest[..rest.find('"')?].to_owned())
}
