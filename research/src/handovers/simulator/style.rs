//! The properties of a seed's night: how the agent works, the kind of folder, and where its sessions end.

use plimsoll_testkit::SeededRng;
use serde::{Deserialize, Serialize};

/// Sessions after this one are not interrupted, so that every night ends.
const LAST_INTERRUPTED_SESSION: u32 = 9;

/// The kind of the project's folder. The names of the variants are stored in outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FolderKind {
    /// A repository with the files committed.
    Repository,
    /// A repository without a commit.
    Unborn,
    /// No repository.
    Plain,
}

/// When the agent commits. The names of the variants are stored in outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommitTiming {
    /// After each step.
    OnTheWay,
    /// When an item is finished, and when the agent is asked to stop.
    AtTheEnd,
    Never,
}

/// The tools with which the agent edits files. The names of the variants are stored in outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EditTools {
    /// Shell commands: `sed`, `cat`, `mv`, `rm`.
    Shell,
    /// The client's Edit and Write tools.
    Tools,
    /// Either of them, at random.
    Both,
}

/// The flaw of the agent's first promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PromiseFlaw {
    /// In bold.
    Bold,
    /// Followed by another sentence.
    #[serde(rename = "After")]
    TrailingText,
    /// Without the run's code.
    #[serde(rename = "Bare")]
    WithoutCode,
}

/// The folder, agent and settings of one night.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStyle {
    pub folder: FolderKind,
    /// The run has `--pack`.
    #[serde(rename = "pack")]
    pub has_pack: bool,
    /// The run has a `--verify` command.
    #[serde(rename = "verify")]
    pub has_verify: bool,
    /// Users change files between two sessions.
    #[serde(rename = "people")]
    pub has_user_changes: bool,
    /// When the agent commits.
    pub commits: CommitTiming,
    /// The agent's commit messages are `wip: ITEM`.
    #[serde(rename = "wip")]
    pub has_wip_messages: bool,
    /// The tools with which the agent edits.
    #[serde(rename = "hands")]
    pub edit_tools: EditTools,
    /// The agent continues with the next item in the same session, although the prompt asks for exactly one.
    #[serde(rename = "several")]
    pub does_several_items: bool,
    /// The agent ticks an item without a commit.
    pub ticks_uncommitted: bool,
    /// The agent's promise differs slightly from the line in the prompt.
    #[serde(rename = "sloppy")]
    pub promise_flaw: Option<PromiseFlaw>,
}

impl AgentStyle {
    /// Creates a random style.
    pub fn random(rng: SeededRng) -> AgentStyle {
        let folder = match rng.random_number_for_name("folder", 100) {
            0..=75 => FolderKind::Repository,
            76..=87 => FolderKind::Unborn,
            _ => FolderKind::Plain,
        };
        let has_pack = rng.random_bool_for_name("pack", 30);
        AgentStyle {
            folder,
            has_pack,
            has_verify: rng.random_bool_for_name("verify", 50),
            has_user_changes: folder == FolderKind::Repository && rng.random_bool_for_name("people", 35),
            commits: [CommitTiming::OnTheWay, CommitTiming::AtTheEnd, CommitTiming::Never]
                [rng.random_number_for_name("commits", 3) as usize],
            has_wip_messages: rng.random_bool_for_name("wip", 40),
            edit_tools: [EditTools::Shell, EditTools::Tools, EditTools::Both]
                [rng.random_number_for_name("hands", 3) as usize],
            does_several_items: !has_pack && rng.random_bool_for_name("several", 35),
            ticks_uncommitted: rng.random_bool_for_name("ticks uncommitted", 40),
            promise_flaw: rng.random_bool_for_name("sloppy", 30).then(|| {
                [PromiseFlaw::Bold, PromiseFlaw::TrailingText, PromiseFlaw::WithoutCode]
                    [rng.random_number_for_name("sloppiness", 3) as usize]
            }),
        }
    }
}

/// The point of a session at which its planned break happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BreakPoint {
    /// At the first inspection, before any work.
    Start,
    /// At the step with this number, counted in this session.
    Step(u32),
    /// At the step with this number, after its commit.
    Commit(u32),
    /// When an item is ticked.
    Tick,
    Never,
}

/// The kind of a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BreakKind {
    /// The window is full enough for a checkpoint.
    L2,
    /// The window is so full that the session is ended immediately.
    L3,
    /// The window is so full that, with `--pack`, the next item does not fit.
    NoRoomForItem,
    /// The client is killed.
    Crash,
    /// The plan's quota is used up.
    UsageLimit,
    /// The agent ends its turn in the middle of an item.
    EarlyEnd,
    /// The agent makes a checkpoint itself and ends its turn.
    ManualCheckpoint,
}

/// The form of a session's closing message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageForm {
    /// The three labeled lines; the next step names a file and a line.
    NamesLocation,
    /// The three labeled lines; the next step describes the work.
    DescribesWork,
    /// A plain sentence.
    Sentence,
}

/// The plan of one session: its break and its closing message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionScript {
    pub(super) break_point: BreakPoint,
    pub(super) break_kind: BreakKind,
    pub(super) message_form: MessageForm,
    /// The agent makes one more step after it is asked to stop.
    pub(super) makes_one_more_step: bool,
    /// The agent does not tick the item that it finishes.
    pub(super) forgets_tick: bool,
}

impl SessionScript {
    pub(super) fn random(rng: SeededRng, style: &AgentStyle, session_number: u32) -> SessionScript {
        let roll = |roll_name: &str, sides| {
            rng.random_number_for_name(&format!("{roll_name} in session {session_number}"), sides)
        };
        let step = 1 + roll("step", 3) as u32;
        let break_point = match roll("at", 100) {
            _ if session_number > LAST_INTERRUPTED_SESSION => BreakPoint::Never,
            0..=49 => BreakPoint::Step(step),
            50..=73 => BreakPoint::Tick,
            74..=83 => BreakPoint::Commit(step),
            84..=91 => BreakPoint::Start,
            // An agent that does several items would finish them all in a first session without a break.
            _ if session_number == 1 => BreakPoint::Step(step),
            _ => BreakPoint::Never,
        };
        let break_kind = match (break_point, roll("comes", 100)) {
            (BreakPoint::Tick, 0..=49) if style.has_pack => BreakKind::NoRoomForItem,
            (BreakPoint::Start | BreakPoint::Tick, 0..=92) => BreakKind::L2,
            (BreakPoint::Start, _) => BreakKind::UsageLimit,
            (_, 0..=64) => BreakKind::L2,
            (_, 65..=72) => BreakKind::L3,
            (_, 73..=81) => BreakKind::Crash,
            (_, 82..=85) => BreakKind::UsageLimit,
            (_, 86..=93) => BreakKind::EarlyEnd,
            _ => BreakKind::ManualCheckpoint,
        };
        let message_form = match roll("words", 100) {
            0..=39 => MessageForm::NamesLocation,
            40..=69 => MessageForm::DescribesWork,
            _ => MessageForm::Sentence,
        };
        SessionScript {
            break_point,
            break_kind,
            message_form,
            makes_one_more_step: roll("finishes", 100) < 20,
            forgets_tick: break_point != BreakPoint::Tick
                && session_number <= LAST_INTERRUPTED_SESSION
                && roll("forgets", 100) < 18,
        }
    }
}
