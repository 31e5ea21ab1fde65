//! A night that nobody would plan: what its sessions do, how they end, and what befalls them.

use proptest::collection::vec;
use proptest::prelude::*;

/// What a session does to the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Nothing,
    /// Changes a file and finishes nothing.
    Part,
    /// Finishes the item that its prompt names.
    Item,
    /// Removes an open item from the list, and changes a file.
    Loses,
    /// Adds an item to the list, and changes a file.
    Finds,
}

/// How full its window becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    Low,
    /// L2: it is told to end its turn.
    Checkpoint,
    /// L3: it is ended.
    Emergency,
}

/// How it ends, where nothing ends it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Says,
    Promises,
    /// The promise of another run.
    PromisesWrongly,
    Blocked,
    Overloaded,
    Fails,
    LoggedOut,
    Crashes,
}

/// What befalls the run meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accident {
    None,
    /// `plimsoll run` is killed at a moment, and resumed when the session is over, or while it works.
    Killed {
        when: Moment,
        resumed_at_once: bool,
    },
    /// Ctrl-C.
    Interrupted,
    /// `plimsoll stop`, after the work.
    Cancelled,
}

/// When in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    BeforeHooks,
    BeforeWork,
    AfterWork,
    AfterResult,
}

/// One session.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    pub work: Work,
    pub fill: Fill,
    pub end: End,
    pub accident: Accident,
}

/// A night: items, the bound, and the sessions; whatever comes after them does nothing.
#[derive(Clone, Debug)]
pub struct Night {
    pub items: usize,
    pub max_iterations: u32,
    pub sessions: Vec<Session>,
}

pub fn any_night() -> impl Strategy<Value = Night> {
    (1_usize..4, 2_u32..7, vec(any_session(), 1..8)).prop_map(|(items, max_iterations, sessions)| Night {
        items,
        max_iterations,
        sessions,
    })
}

fn any_session() -> impl Strategy<Value = Session> {
    let work = prop_oneof![
        2 => Just(Work::Nothing), 3 => Just(Work::Part), 6 => Just(Work::Item), 1 => Just(Work::Loses), 1 => Just(Work::Finds)
    ];
    let fill = prop_oneof![4 => Just(Fill::Low), 2 => Just(Fill::Checkpoint), 1 => Just(Fill::Emergency)];
    let end = prop_oneof![
        5 => Just(End::Says), 4 => Just(End::Promises), 1 => Just(End::PromisesWrongly), 1 => Just(End::Blocked),
        2 => Just(End::Overloaded), 1 => Just(End::Fails), 1 => Just(End::LoggedOut), 2 => Just(End::Crashes)
    ];
    let moment = prop_oneof![
        Just(Moment::BeforeHooks),
        Just(Moment::BeforeWork),
        Just(Moment::AfterWork),
        Just(Moment::AfterResult)
    ];
    let accident = prop_oneof![
        6 => Just(Accident::None),
        3 => (moment, any::<bool>()).prop_map(|(when, resumed_at_once)| Accident::Killed { when, resumed_at_once }),
        1 => Just(Accident::Interrupted),
        1 => Just(Accident::Cancelled),
    ];
    (work, fill, end, accident).prop_map(|(work, fill, end, accident)| Session { work, fill, end, accident })
}

impl Session {
    /// The script for the stand-in.
    pub fn script(&self, number: usize) -> String {
        let killed_at = match self.accident {
            Accident::Killed { when, .. } => Some(when),
            _ => None,
        };
        let kill = |moment| if killed_at == Some(moment) { "kill -9 $parent; sleep 0.2\n" } else { "" };
        let interrupt =
            if self.accident == Accident::Interrupted { "kill -INT $parent; sleep 0.1\n" } else { "" };
        let cancel = if self.accident == Accident::Cancelled { "person plimsoll stop\n" } else { "" };
        let part = format!("echo 'part {number}' >> src/dates.txt\n");
        let work = match self.work {
            Work::Nothing => String::new(),
            Work::Part => part,
            Work::Item => "tick \"$item\"\n".to_owned(),
            Work::Loses => format!("{part}sed -i \"/^- \\[ \\] $item\\$/d\" fix_plan.md\n"),
            Work::Finds => format!("{part}echo '- [ ] Found in {number}' >> fix_plan.md\n"),
        };
        let tokens = match self.fill {
            Fill::Low => 40_000,
            Fill::Checkpoint => 880_000,
            Fill::Emergency => 990_000,
        };
        let end = match self.end {
            End::Says => "says 'That is all for now.'",
            End::Promises => "says \"Done.\\\\n\\\\n$promise\"",
            End::PromisesWrongly => "says 'Done.\\n\\n<promise>COMPLETE another</promise>'",
            End::Blocked => "says \"$blocked\"",
            End::Overloaded => "fails 529 Overloaded",
            End::Fails => "fails 400 'Bad request'",
            End::LoggedOut => "fails 401 'Please log in'",
            End::Crashes => "crashes",
        };
        [
            kill(Moment::BeforeHooks),
            "begin\nanswers 30000\n",
            interrupt,
            kill(Moment::BeforeWork),
            &work,
            cancel,
            kill(Moment::AfterWork),
            &format!("answers {tokens}\n{end}\n"),
            kill(Moment::AfterResult),
        ]
        .concat()
    }
}
