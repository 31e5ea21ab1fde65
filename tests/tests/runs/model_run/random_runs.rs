//! Random scenarios of a run: what its sessions do, how they end, and what interrupts them.

use proptest::collection::vec;
use proptest::prelude::*;

/// Change that a session makes to the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionWork {
    Nothing,
    /// Changes a file and finishes nothing.
    ChangesFile,
    /// Finishes the item that its prompt names.
    FinishesItem,
    /// Removes an open item from the plan, and changes a file.
    RemovesItem,
    /// Adds an item to the plan, and changes a file.
    AddsItem,
}

/// How much of its context window a session uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextUsage {
    Low,
    /// L2: the session is told to end its turn.
    Checkpoint,
    /// L3: the session is ended.
    Emergency,
}

/// How a session ends if nothing ends it earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnding {
    PlainMessage,
    Promise,
    /// The promise of another run.
    WrongPromise,
    Blocked,
    Overloaded,
    BadRequest,
    LoggedOut,
    Crashes,
}

/// Event that interrupts the run during a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    None,
    /// `plimsoll run` is killed at a moment, and resumed while the session works or after it has ended.
    Killed {
        moment: KillMoment,
        resumed_at_once: bool,
    },
    /// Ctrl-C.
    CtrlC,
    /// `plimsoll stop`, after the work.
    Cancelled,
}

/// Moment within a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillMoment {
    BeforeHooks,
    BeforeWork,
    AfterWork,
    AfterResult,
}

#[derive(Clone, Copy, Debug)]
pub struct ScriptedSession {
    pub work: SessionWork,
    pub fill: ContextUsage,
    pub end: SessionEnding,
    pub accident: Interruption,
}

/// A run: the number of items, the limit and the sessions. Sessions after these do nothing.
#[derive(Clone, Debug)]
pub struct RunScenario {
    pub items: usize,
    pub max_iterations: u32,
    pub sessions: Vec<ScriptedSession>,
}

pub fn any_scenario() -> impl Strategy<Value = RunScenario> {
    (1_usize..4, 2_u32..7, vec(any_session(), 1..8))
        .prop_map(|(items, max_iterations, sessions)| RunScenario { items, max_iterations, sessions })
}

fn any_session() -> impl Strategy<Value = ScriptedSession> {
    let work = prop_oneof![
        2 => Just(SessionWork::Nothing), 3 => Just(SessionWork::ChangesFile), 6 => Just(SessionWork::FinishesItem), 1 => Just(SessionWork::RemovesItem), 1 => Just(SessionWork::AddsItem)
    ];
    let fill = prop_oneof![4 => Just(ContextUsage::Low), 2 => Just(ContextUsage::Checkpoint), 1 => Just(ContextUsage::Emergency)];
    let end = prop_oneof![
        5 => Just(SessionEnding::PlainMessage), 4 => Just(SessionEnding::Promise), 1 => Just(SessionEnding::WrongPromise), 1 => Just(SessionEnding::Blocked),
        2 => Just(SessionEnding::Overloaded), 1 => Just(SessionEnding::BadRequest), 1 => Just(SessionEnding::LoggedOut), 2 => Just(SessionEnding::Crashes)
    ];
    let moment = prop_oneof![
        Just(KillMoment::BeforeHooks),
        Just(KillMoment::BeforeWork),
        Just(KillMoment::AfterWork),
        Just(KillMoment::AfterResult)
    ];
    let accident = prop_oneof![
        6 => Just(Interruption::None),
        3 => (moment, any::<bool>()).prop_map(|(when, resumed_at_once)| Interruption::Killed { moment: when, resumed_at_once }),
        1 => Just(Interruption::CtrlC),
        1 => Just(Interruption::Cancelled),
    ];
    (work, fill, end, accident).prop_map(|(work, fill, end, accident)| ScriptedSession {
        work,
        fill,
        end,
        accident,
    })
}

impl ScriptedSession {
    /// Returns the script for the stand-in client.
    pub fn stand_in_script(&self, number: usize) -> String {
        let killed_at = match self.accident {
            Interruption::Killed { moment: when, .. } => Some(when),
            _ => None,
        };
        let kill = |moment| if killed_at == Some(moment) { "kill -9 $parent; sleep 0.2\n" } else { "" };
        let interrupt =
            if self.accident == Interruption::CtrlC { "kill -INT $parent; sleep 0.1\n" } else { "" };
        let cancel = if self.accident == Interruption::Cancelled { "person plimsoll stop\n" } else { "" };
        let part = format!("echo 'part {number}' >> src/dates.txt\n");
        let work = match self.work {
            SessionWork::Nothing => String::new(),
            SessionWork::ChangesFile => part,
            SessionWork::FinishesItem => "tick \"$item\"\n".to_owned(),
            SessionWork::RemovesItem => format!("{part}sed -i \"/^- \\[ \\] $item\\$/d\" fix_plan.md\n"),
            SessionWork::AddsItem => format!("{part}echo '- [ ] Found in {number}' >> fix_plan.md\n"),
        };
        let tokens = match self.fill {
            ContextUsage::Low => 40_000,
            ContextUsage::Checkpoint => 880_000,
            ContextUsage::Emergency => 990_000,
        };
        let end = match self.end {
            SessionEnding::PlainMessage => "says 'That is all for now.'",
            SessionEnding::Promise => "says \"Done.\\\\n\\\\n$promise\"",
            SessionEnding::WrongPromise => "says 'Done.\\n\\n<promise>COMPLETE another</promise>'",
            SessionEnding::Blocked => "says \"$blocked\"",
            SessionEnding::Overloaded => "fails 529 Overloaded",
            SessionEnding::BadRequest => "fails 400 'Bad request'",
            SessionEnding::LoggedOut => "fails 401 'Please log in'",
            SessionEnding::Crashes => "crashes",
        };
        [
            kill(KillMoment::BeforeHooks),
            "begin\nanswers 30000\n",
            interrupt,
            kill(KillMoment::BeforeWork),
            &work,
            cancel,
            kill(KillMoment::AfterWork),
            &format!("answers {tokens}\n{end}\n"),
            kill(KillMoment::AfterResult),
        ]
        .concat()
    }
}
