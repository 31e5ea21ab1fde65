//! For each seed: how the agent works, in what kind of folder, and where its sessions end.

use plimsoll_testkit::Dice;
use serde::{Deserialize, Serialize};

/// After this many sessions no session is interrupted any more, so that every night ends.
const QUIET_AFTER: u32 = 9;

/// What the project's folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Folder {
    /// A repository with the files committed.
    Repository,
    /// A repository without a commit.
    Unborn,
    /// No repository.
    Plain,
}

/// When the agent commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Commits {
    /// After each step.
    OnTheWay,
    /// When an item is finished, and when it is told to stop.
    AtTheEnd,
    /// Never.
    Never,
}

/// What it edits files with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hands {
    /// `sed`, `cat`, `mv`, `rm`.
    Shell,
    /// The client's own Edit and Write.
    Tools,
    /// Now one, now the other.
    Both,
}

/// What is wrong with its first promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sloppy {
    /// Bold.
    Bold,
    /// A sentence after it.
    After,
    /// Without the run's own word.
    Bare,
}

/// One night's folder, agent and settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Style {
    /// The folder.
    pub folder: Folder,
    /// `plimsoll run --pack`.
    pub pack: bool,
    /// With a `--verify` command.
    pub verify: bool,
    /// People change things between two sessions.
    pub people: bool,
    /// When it commits.
    pub commits: Commits,
    /// Its messages are `wip: ITEM`.
    pub wip: bool,
    /// What it edits with.
    pub hands: Hands,
    /// It continues with the next item in the same session, although the prompt asks for exactly one.
    pub several: bool,
    /// It ticks without a commit.
    pub ticks_uncommitted: bool,
    /// Its promise differs slightly from the line in the prompt.
    pub sloppy: Option<Sloppy>,
}

impl Style {
    /// The style of a seed.
    pub fn new(dice: Dice) -> Style {
        let folder = match dice.number("folder", 100) {
            0..=75 => Folder::Repository,
            76..=87 => Folder::Unborn,
            _ => Folder::Plain,
        };
        let pack = dice.happens("pack", 30);
        Style {
            folder,
            pack,
            verify: dice.happens("verify", 50),
            people: folder == Folder::Repository && dice.happens("people", 35),
            commits: [Commits::OnTheWay, Commits::AtTheEnd, Commits::Never]
                [dice.number("commits", 3) as usize],
            wip: dice.happens("wip", 40),
            hands: [Hands::Shell, Hands::Tools, Hands::Both][dice.number("hands", 3) as usize],
            several: !pack && dice.happens("several", 35),
            ticks_uncommitted: dice.happens("ticks uncommitted", 40),
            sloppy: dice
                .happens("sloppy", 30)
                .then(|| [Sloppy::Bold, Sloppy::After, Sloppy::Bare][dice.number("sloppiness", 3) as usize]),
        }
    }
}

/// Where in a session it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// At its first look, before any work.
    Start,
    /// At the step with this number of this session.
    Step(u32),
    /// At the first commit, else at the step with this number.
    Commit(u32),
    /// When an item is ticked.
    Tick,
    /// Nowhere.
    Never,
}

/// What comes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    /// The window is full enough for a checkpoint.
    L2,
    /// The window is so full that the session is ended at once.
    L3,
    /// So full that, with `--pack`, the next item does not fit.
    Budget,
    /// The client is killed.
    Crash,
    /// The plan's quota is used up.
    Limit,
    /// The agent ends its turn in the middle.
    Unfinished,
    /// The agent asks for a checkpoint itself, and ends its turn.
    Manual,
}

/// What it says at the end for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// The three lines; the next step names a file and a line.
    Place,
    /// The three lines; the next step names the work.
    Deed,
    /// A sentence.
    Prose,
}

/// What one session has before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Course {
    pub(super) at: At,
    pub(super) comes: Break,
    pub(super) words: Words,
    /// It makes one more step after it is asked to stop.
    pub(super) finishes_edit: bool,
    /// It does not tick the item that it finishes.
    pub(super) forgets_tick: bool,
}

impl Course {
    pub(super) fn new(dice: Dice, style: &Style, session: u32) -> Course {
        let throw = |what: &str, sides| dice.number(&format!("{what} in session {session}"), sides);
        let step = 1 + throw("step", 3) as u32;
        let at = match throw("at", 100) {
            _ if session > QUIET_AFTER => At::Never,
            0..=49 => At::Step(step),
            50..=73 => At::Tick,
            74..=83 => At::Commit(step),
            84..=91 => At::Start,
            // An agent that does several items would do them all in a first session that nothing ends.
            _ if session == 1 => At::Step(step),
            _ => At::Never,
        };
        let comes = match (at, throw("comes", 100)) {
            (At::Tick, 0..=49) if style.pack => Break::Budget,
            (At::Start | At::Tick, 0..=92) => Break::L2,
            (At::Start, _) => Break::Limit,
            (_, 0..=64) => Break::L2,
            (_, 65..=72) => Break::L3,
            (_, 73..=81) => Break::Crash,
            (_, 82..=85) => Break::Limit,
            (_, 86..=93) => Break::Unfinished,
            _ => Break::Manual,
        };
        let words = match throw("words", 100) {
            0..=39 => Words::Place,
            40..=69 => Words::Deed,
            _ => Words::Prose,
        };
        Course {
            at,
            comes,
            words,
            finishes_edit: throw("finishes", 100) < 20,
            forgets_tick: at != At::Tick && session <= QUIET_AFTER && throw("forgets", 100) < 18,
        }
    }
}
