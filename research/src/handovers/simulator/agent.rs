//! The simulated agent: it continues where its requests say, makes the steps that it believes to be left, and stops on
//! request.

use super::Morning;
use super::ledger::{By, ByPerson, Event, Ledger, Truth};
use super::style::{At, Break, Commits, Course, Style};
use super::told::PromptFacts;
use super::verdict::{self, Resume};
use super::work::{Op, Work};
use crate::nights::simulator::usage_limit;
use plimsoll_testkit::Dice;
use plimsoll_testkit::scripted_model::{Request, Step};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The duration of a usage limit in this simulation.
const LIMIT: Duration = Duration::from_secs(2);
/// Input tokens of a session's first answer, and the growth with each answer, in a window of 1,000,000.
const BASE: u64 = 40_000;
const GROWTH: u64 = 6_000;
/// Above L2 (85 %), above L3 (95 %), and where the next item does not fit below L2.
const L2: u64 = 870_000;
const L3: u64 = 960_000;
const BUDGET: u64 = 640_000;
/// The percentage of agents that notice when their next step is already done.
const NOTICES: u64 = 50;

pub(super) struct Agent {
    pub(super) work: Work,
    pub(super) style: Style,
    pub(super) dice: Dice,
    pub(super) ledger: Ledger,
    pub(super) session: Session,
    /// What people did since the last session.
    pub(super) people: Vec<ByPerson>,
    pub(super) resumes: Vec<Resume>,
    pub(super) morning: Morning,
    pub(super) has_promised_badly: bool,
    pub(super) forgot: Vec<usize>,
    pub(super) limit: Option<SystemTime>,
    pub(super) ended: &'static str,
}

/// The knowledge of one session: only what its requests contained.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) number: u32,
    pub(super) course: Course,
    pub(super) told: PromptFacts,
    pub(super) item: Option<usize>,
    /// The next step of it.
    pub(super) next: usize,
    pub(super) phase: Phase,
    /// A place that the prompt named in a file of another item.
    pub(super) stray: Option<(String, u32)>,
    /// A step that the prompt named although it is done.
    pub(super) again: Option<usize>,
    pub(super) must_look: bool,
    pub(super) made: u32,
    pub(super) answers: u64,
    pub(super) has_broken: bool,
    pub(super) is_full: bool,
    pub(super) has_committed: bool,
    pub(super) finishes: u32,
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

impl Session {
    pub(super) fn new(id: String, number: u32, course: Course, told: PromptFacts) -> Session {
        Session {
            id,
            number,
            course,
            told,
            item: None,
            next: 0,
            phase: Phase::Opening,
            stray: None,
            again: None,
            must_look: false,
            made: 0,
            answers: 0,
            has_broken: false,
            is_full: false,
            has_committed: false,
            finishes: 0,
        }
    }
}

/// The command line that commits everything.
pub(super) fn commit(message: &str) -> String {
    format!("git add -A 2>/dev/null && git commit -qm '{message}' || true")
}

impl Agent {
    pub(super) fn new(work: Work, style: Style, project: PathBuf, dice: Dice) -> Agent {
        Agent {
            morning: Morning { items: work.items.len() as u32, ..Morning::default() },
            work,
            style,
            dice,
            ledger: Ledger::new(project),
            session: Session::new(String::new(), 0, Course::new(dice, &style, 0), PromptFacts::default()),
            people: Vec::new(),
            resumes: Vec::new(),
            has_promised_badly: false,
            forgot: Vec::new(),
            limit: None,
            ended: "nothing",
        }
    }

    pub(super) fn truth(&self) -> Option<Truth> {
        self.ledger.truth(&self.work, self.style.folder, &self.people)
    }

    pub(super) fn answer(&mut self, request: &Request) -> Step {
        let id = request.body["metadata"]["user_id"].to_string();
        if self.session.id != id {
            self.begin(id, request);
        }
        if let Some(until) = self.limit {
            if SystemTime::now() < until {
                return usage_limit(until);
            }
            self.limit = None;
        }
        self.session.answers += 1;
        let step = self.next(request);
        let full = if self.session.is_full { L2 } else { BASE };
        let tokens = full + GROWTH * self.session.answers;
        if !self.session.has_broken {
            return step.usage(tokens);
        }
        match self.session.course.comes {
            Break::L3 if !self.session.is_full => {
                self.session.is_full = true;
                step.usage(L3)
            }
            Break::Budget => step.usage(BUDGET + self.session.answers),
            _ => step.usage(tokens),
        }
    }

    /// Begins a session: scores its first request, which is all that the agent knows.
    pub(super) fn begin(&mut self, id: String, request: &Request) {
        let number = self.session.number + 1;
        let course = Course::new(self.dice, &self.style, number);
        let told = PromptFacts::read(&request.last_text());
        if number > 1
            && let Some(truth) = self.truth()
        {
            let mut resume = verdict::judge(&told, &truth, &self.work, &self.ledger, &self.style);
            resume.session = number;
            resume.after = self.ended.to_owned();
            self.resumes.push(resume);
        }
        self.people.clear();
        self.ended = "broken off";
        self.morning.sessions += 1;
        self.ledger.events.push(Event::Session);
        self.session = Session::new(id, number, course, told);
    }

    pub(super) fn next(&mut self, request: &Request) -> Step {
        let last = request.last_text();
        if last.contains("CCS_CHECKPOINT_TRIGGERED|")
            && !matches!(self.session.phase, Phase::Stopping | Phase::Over)
        {
            self.session.phase = Phase::Stopping;
            self.session.finishes = u32::from(self.session.course.finishes_edit);
        }
        if let Some(item) = offered(&last).and_then(|name| self.work.find(&name)) {
            self.session.item = Some(item);
            self.session.next = 0;
            self.session.phase = Phase::Working;
        }
        match self.session.phase {
            Phase::Opening => self.open(),
            Phase::Looking => {
                self.look();
                self.session.phase = Phase::Working;
                self.work_on()
            }
            Phase::Working => self.work_on(),
            Phase::Ticked => self.after_tick(),
            Phase::Stopping => self.stop(),
            Phase::Over => Step::text("I have stopped."),
        }
    }

    /// Chooses where to begin, from the prompt. The first answer only looks around: a session that is full at its first
    /// answer would be a different test.
    pub(super) fn open(&mut self) -> Step {
        if self.session.answers == 1 {
            return Step::bash("git status --short 2>/dev/null | head -5; cat fix_plan.md");
        }
        self.session.phase = Phase::Working;
        let told = self.session.told.clone();
        let named = told.prompt_item.as_ref().or(told.item.as_ref()).or(told.begin.as_ref());
        self.session.item = named.and_then(|name| self.work.find(name));
        let Some(item) = self.session.item else { return self.promise() };
        self.aim(&told, item);
        if self.breaks(At::Start) {
            return match self.session.course.comes {
                Break::Limit => self.hit_limit(),
                _ => Step::bash("cat docs/guide.md; ls src"),
            };
        }
        self.work_on()
    }

    pub(super) fn aim(&mut self, told: &PromptFacts, item: usize) {
        let steps = self.work.items[item].steps.len();
        let Some((file, line)) = told.goal() else {
            let is_begun = told.item.is_some();
            self.session.must_look = is_begun || self.notices(&format!("item {item}"));
            if !self.session.must_look && (0..steps).any(|step| self.ledger.landed(&self.work, item, step)) {
                self.morning.begun_twice += 1;
            }
            return;
        };
        let of_file: Vec<usize> = (0..steps)
            .filter(|step| {
                self.work.items[item].steps[*step].file() == file
                    || self.ledger.file_now(&self.work, item, *step).as_ref() == Some(&file)
            })
            .collect();
        let done = of_file.iter().rfind(|step| self.ledger.landed(&self.work, item, **step));
        match (done, of_file.first()) {
            (Some(done), _) => {
                self.session.next = done + 1;
                let lines = self.ledger.marks(item, *done, &file);
                self.session.again = line.filter(|line| lines.contains(line)).map(|_| *done);
            }
            (None, Some(first)) => self.session.next = *first,
            (None, None) if file == "fix_plan.md" => self.session.must_look = self.notices("stray"),
            (None, None) => {
                self.session.stray = Some((file, line.unwrap_or(1)));
                self.session.must_look = self.notices("stray");
            }
        }
    }

    pub(super) fn notices(&self, what: &str) -> bool {
        self.dice.happens(&format!("notices {what} in session {}", self.session.number), NOTICES)
    }

    /// It looks through the files for what is done.
    pub(super) fn look(&mut self) {
        let Some(item) = self.session.item else { return };
        let steps = self.work.items[item].steps.len();
        let left = (0..steps).find(|step| self.ledger.is_left(&self.work, item, *step));
        self.session.next = left.unwrap_or(steps);
    }

    pub(super) fn work_on(&mut self) -> Step {
        let Some(item) = self.session.item else { return self.promise() };
        if let Some((file, line)) = self.session.stray.take() {
            let is_finished = self.work.items.iter().enumerate().any(|(of, one)| {
                one.steps.iter().any(|op| op.file() == file) && self.ledger.is_ticked(&self.work, of)
            });
            self.morning.reopened += u32::from(is_finished);
            return Step::bash(format!(
                "[ -e '{file}' ] && sed -i '{line}s/$/ /' '{file}'; git diff --stat | tail -3"
            ));
        }
        if std::mem::take(&mut self.session.must_look) {
            self.session.phase = Phase::Looking;
            return Step::bash(
                "git status --short | head; git log --oneline | head -5; grep -rn DONE src lib | tail -3",
            );
        }
        if let Some(step) = self.session.again.take()
            && !self.notices(&format!("step {step}"))
        {
            return self.again(item, step);
        }
        while self.session.next < self.work.items[item].steps.len() {
            let step = self.session.next;
            self.session.next += 1;
            let is_left = self.ledger.is_left(&self.work, item, step);
            // Every agent notices a file that was moved or deleted.
            let is_text = matches!(self.work.items[item].steps[step], Op::Edit { .. } | Op::New { .. });
            let redoes = !is_left
                && is_text
                && self.ledger.landed(&self.work, item, step)
                && !self.notices(&format!("step {step}"));
            if is_left {
                return self.make(item, step);
            } else if redoes {
                return self.again(item, step);
            }
        }
        self.finish(item)
    }

    pub(super) fn again(&mut self, item: usize, step: usize) -> Step {
        self.morning.steps_twice += 1;
        self.ledger.events.push(Event::Step { item, step, by: By::Shell });
        let mark = Work::mark(item, step);
        let file = self.ledger.file_now(&self.work, item, step).unwrap_or_else(|| "fix_plan.md".to_owned());
        Step::bash(format!("sed -i 's/{mark}$/& again/' '{file}'"))
    }

    pub(super) fn after_tick(&mut self) -> Step {
        let open = self.ledger.first_open(&self.work);
        match open {
            None => self.promise(),
            Some(item) if self.style.several && !self.session.is_full => {
                self.session.item = Some(item);
                self.session.next = 0;
                self.session.phase = Phase::Working;
                self.work_on()
            }
            Some(_) => {
                self.session.phase = Phase::Over;
                self.ended = "end of the item";
                Step::text("The item is done.")
            }
        }
    }

    /// Whether the session's break comes here; once.
    pub(super) fn breaks(&mut self, at: At) -> bool {
        let is_here = match (self.session.course.at, at) {
            (At::Commit(step), At::Step(made)) => step == made,
            (planned, at) => planned == at,
        };
        if !is_here || self.session.has_broken {
            return false;
        }
        self.session.has_broken = true;
        self.session.is_full = self.session.course.comes == Break::L2;
        if self.session.course.comes == Break::L3 {
            self.ended = "L3";
        }
        true
    }

    pub(super) fn hit_limit(&mut self) -> Step {
        let until = SystemTime::now() + LIMIT;
        self.limit = Some(until);
        self.ended = "usage limit";
        usage_limit(until)
    }

    /// Ends the turn: on request, or because the agent stops by itself.
    pub(super) fn stop(&mut self) -> Step {
        let comes = self.session.course.comes;
        let item = self.session.item;
        if let Some(of) = item
            && std::mem::take(&mut self.session.finishes) > 0
            && comes == Break::L2
            && !self.ledger.is_ticked(&self.work, of)
            && let Some(step) = (self.session.next..self.work.items[of].steps.len())
                .find(|step| self.ledger.is_left(&self.work, of, *step))
        {
            self.session.next = step + 1;
            return self.make(of, step);
        }
        let commits = match self.style.commits {
            Commits::OnTheWay => true,
            Commits::AtTheEnd => comes == Break::L2 && self.style.wip,
            Commits::Never => false,
        };
        if commits && comes != Break::Manual && !std::mem::replace(&mut self.session.has_committed, true) {
            self.ledger.events.push(Event::Commit);
            return Step::bash(commit(&item.map_or("wip".to_owned(), |item| self.message(item, None))));
        }
        self.say(comes)
    }
}

/// The item that a session is told to continue with, by `--pack`.
fn offered(last: &str) -> Option<String> {
    let mark = "exactly this item: \"";
    let rest = &last[last.find(mark)? + mark.len()..];
    Some(rest[..rest.find('"')?].to_owned())
}
