//! The facts that a session needs after a compaction, as the generator placed them.

use super::events::PROJECT_PLACEHOLDER;
use serde::{Deserialize, Serialize};

/// What is true at the moment of a compaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Truth {
    /// The request that the session works on, in the user's words.
    pub request: String,
    /// A secret inside the request. The other words of the request must be kept, but not the secret.
    pub secret_in_request: Option<String>,
    /// The number of the segment in which the request was made, from 1.
    pub request_segment: usize,
    /// How the request reached the transcript.
    pub request_form: PromptForm,
    /// Additions that the user made to the request afterwards. Encouragements such as "go on" are not among them.
    pub additions: Vec<String>,
    /// What the assistant had proposed, if the request is an answer such as "yes".
    pub proposal: Option<String>,
    pub decision: Decision,
    /// The last command that failed and was not repaired.
    pub failure: Option<FailedCommand>,
    pub last_edit: LastEdit,
    /// The files that were edited last, newest first, at most three; without the plan and without reverted files.
    pub recent_files: Vec<String>,
    pub unprocessed_result: Option<UnprocessedResult>,
    pub next_step: Option<NextStep>,
    /// The item in progress of the plan or of the client's task list.
    pub item: Option<String>,
    pub outdated_statements: OutdatedStatements,
    /// Secrets that occurred anywhere in the conversation.
    pub secrets: Vec<String>,
}

impl Truth {
    /// Returns the truth with the project's folder in place of the placeholder.
    pub fn in_project_folder(&self, folder: &str) -> Truth {
        let json = serde_json::to_string(self).expect("a truth is JSON");
        serde_json::from_str(&json.replace(PROJECT_PLACEHOLDER, folder)).expect("a folder needs no escapes")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PromptForm {
    /// The content of the row is a string.
    Typed,
    /// The content is a list with a text block.
    Blocks,
    /// The content is a list with an image and a text block.
    WithImage,
    /// The user typed it while the model was working.
    Queued,
    /// The arguments of a slash command.
    SlashCommand,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Decision {
    pub choice: String,
    pub reason: String,
    pub segment: usize,
    pub place: DecisionPlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DecisionPlace {
    /// The assistant writes it before a tool call.
    BeforeCall,
    /// The assistant writes it in the middle of the last message of a turn.
    EndOfTurn,
    /// The user writes it in a prompt.
    Prompt,
    /// The user chooses an answer to a question of the client's dialog.
    Answer,
    /// The plan that the user approved in plan mode contains it.
    ApprovedPlan,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailedCommand {
    pub command: String,
    pub error_line: String,
    pub segment: usize,
    /// The command ends in a pipe, so the client reports success.
    pub is_reported_as_success: bool,
    /// The tool calls that followed until the compaction.
    pub calls_since: usize,
}

/// The last edit, with the line numbers that the lines have at the compaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LastEdit {
    pub path: String,
    pub first_line: usize,
    pub last_line: usize,
    pub means: EditMeans,
    pub segment: usize,
    pub is_committed: bool,
    pub calls_since: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EditMeans {
    EditTool,
    NewFile,
    WholeFile,
    ShellCommand,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnprocessedResult {
    pub line: String,
    pub tool: String,
    pub is_last_line: bool,
    pub result_chars: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NextStep {
    pub text: String,
    pub source: NextStepSource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NextStepSource {
    /// The assistant said it this many messages before the last one.
    Announced { messages_since: usize },
    /// Nobody said it; it is the open item of the plan or of the task list.
    OpenItem,
}

/// What a handoff must not present as current.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OutdatedStatements {
    pub finished_requests: Vec<String>,
    /// Commands that failed and passed later.
    pub repaired_commands: Vec<String>,
    /// Files whose edits were reverted.
    pub reverted_files: Vec<String>,
    pub done_items: Vec<String>,
    /// Next steps that were announced and done.
    pub done_steps: Vec<String>,
}
