//! The properties of a seed's run: how the agent works, the kind of folder, and where its sessions are
//! interrupted.

use plimsoll_testkit::SeededRng;
use serde::{Deserialize, Serialize};

/// Sessions after this one are not interrupted, so that every run ends.
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
    #[serde(rename = "OnTheWay")]
    AfterEachStep,
    /// When an item is finished, and when the agent is asked to stop.
    #[serde(rename = "AtTheEnd")]
    AtItemEnd,
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

/// The folder, agent and settings of one simulated run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStyle {
    pub folder: FolderKind,
    /// The run has `--pack`.
    #[serde(rename = "pack")]
    pub uses_pack_option: bool,
    /// The run has a `--verify` command.
    #[serde(rename = "verify")]
    pub uses_verify_command: bool,
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
    pub does_several_items_per_session: bool,
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
        let uses_pack_option = rng.random_bool_for_name("pack", 30);
        AgentStyle {
            folder,
            uses_pack_option,
            uses_verify_command: rng.random_bool_for_name("verify", 50),
            has_user_changes: folder == FolderKind::Repository && rng.random_bool_for_name("people", 35),
            commits: [CommitTiming::AfterEachStep, CommitTiming::AtItemEnd, CommitTiming::Never]
                [rng.random_number_for_name("commits", 3) as usize],
            has_wip_messages: rng.random_bool_for_name("wip", 40),
            edit_tools: [EditTools::Shell, EditTools::Tools, EditTools::Both]
                [rng.random_number_for_name("hands", 3) as usize],
            does_several_items_per_session: !uses_pack_option && rng.random_bool_for_name("several", 35),
            ticks_uncommitted: rng.random_bool_for_name("ticks uncommitted", 40),
            promise_flaw: rng.random_bool_for_name("sloppy", 30).then(|| {
                [PromiseFlaw::Bold, PromiseFlaw::TrailingText, PromiseFlaw::WithoutCode]
                    [rng.random_number_for_name("sloppiness", 3) as usize]
            }),
        }
    }
}

/// The point of a session at which its planned interruption happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InterruptionPoint {
    /// At the first inspection, before any work.
    Start,
    /// At the step with this number, counted in this session.
    Step(u32),
    /// At the step with this number, after its commit.
    AfterCommitOfStep(u32),
    /// When an item is ticked.
    Tick,
    Never,
}

/// The kind of an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InterruptionKind {
    /// The window is full enough for a checkpoint.
    L2,
    /// The window is so full that the session is ended immediately.
    L3,
    /// The window is so full that, with `--pack`, the next item does not fit.
    NoRoomForNextItem,
    /// The client is killed.
    Crash,
    /// The usage limit of the user's subscription is reached.
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
    PlainSentence,
}

/// The plan of one session: its interruption and its closing message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionScript {
    pub(super) interruption_point: InterruptionPoint,
    pub(super) interruption_kind: InterruptionKind,
    pub(super) message_form: MessageForm,
    /// The agent makes one more step after it is asked to stop.
    pub(super) makes_one_more_step: bool,
    /// The agent does not tick the item that it finishes.
    pub(super) forgets_tick: bool,
}

impl SessionScript {
    pub(super) fn random(rng: SeededRng, style: &AgentStyle, session_number: u32) -> SessionScript {
        let random_number_in_session = |choice_name: &str, upper_bound| {
            rng.random_number_for_name(&format!("{choice_name} in session {session_number}"), upper_bound)
        };
        let step = 1 + random_number_in_session("step", 3) as u32;
        let interruption_point = match random_number_in_session("at", 100) {
            _ if session_number > LAST_INTERRUPTED_SESSION => InterruptionPoint::Never,
            0..=49 => InterruptionPoint::Step(step),
            50..=73 => InterruptionPoint::Tick,
            74..=83 => InterruptionPoint::AfterCommitOfStep(step),
            84..=91 => InterruptionPoint::Start,
            // Without an interruption, an agent that does several items would finish them all in the first
            // session.
            _ if session_number == 1 => InterruptionPoint::Step(step),
            _ => InterruptionPoint::Never,
        };
        let interruption_kind = match (interruption_point, random_number_in_session("comes", 100)) {
            (InterruptionPoint::Tick, 0..=49) if style.uses_pack_option => {
                InterruptionKind::NoRoomForNextItem
            }
            (InterruptionPoint::Start | InterruptionPoint::Tick, 0..=92) => InterruptionKind::L2,
            (InterruptionPoint::Start, _) => InterruptionKind::UsageLimit,
            (_, 0..=64) => InterruptionKind::L2,
            (_, 65..=72) => InterruptionKind::L3,
            (_, 73..=81) => InterruptionKind::Crash,
            (_, 82..=85) => InterruptionKind::UsageLimit,
            (_, 86..=93) => InterruptionKind::EarlyEnd,
            _ => InterruptionKind::ManualCheckpoint,
        };
        let message_form = match random_number_in_session("words", 100) {
            0..=39 => MessageForm::NamesLocation,
            40..=69 => MessageForm::DescribesWork,
            _ => MessageForm::PlainSentence,
        };
        SessionScript {
            interruption_point,
            interruption_kind,
            message_form,
            makes_one_more_step: random_number_in_session("finishes", 100) < 20,
            forgets_tick: interruption_point != InterruptionPoint::Tick
                && session_number <= LAST_INTERRUPTED_SESSION
                && random_number_in_session("forgets", 100) < 18,
        }
    }
}
