//! What happens in a conversation, independent of the rows of the transcript that record it.

use super::truth::PromptForm;
use serde_json::{Value, json};

/// Stands for the project's folder in all texts of a conversation.
pub const PROJECT_PLACEHOLDER: &str = "<project-folder>";

#[derive(Clone, Debug)]
pub enum Event {
    Prompt {
        text: String,
        form: PromptForm,
    },
    /// A message of the assistant, with parallel calls and their results.
    Message {
        thinking: bool,
        text: Option<String>,
        calls: Vec<ToolCall>,
    },
    TurnEnd,
    /// The user stops the model, which may have a call in progress.
    Interruption {
        rejected_call: Option<ToolCall>,
    },
    /// Rows of a subagent, as older clients write them into the same file: its prompt and its answer.
    Subagent {
        prompt: String,
        answer: String,
    },
    ClientNote(ClientNote),
}

/// Rows that the client adds and that are not part of the conversation.
#[derive(Clone, Debug)]
pub enum ClientNote {
    HookFeedback(String),
    LocalCommand(String),
    TaskNotification(String),
    ApiError,
    StopHookSummary,
    FileHistorySnapshot,
    TodoReminder,
    ExternallyEditedFile { path: String, snippet: String },
}

#[derive(Clone, Debug)]
pub struct ToolCall {
    pub name: &'static str,
    pub input: Value,
    /// The text of the result that the model reads.
    pub result_text: String,
    /// `toolUseResult` of the row.
    pub result_detail: Value,
    pub is_error: bool,
    /// What the call changes in the project, in this order.
    pub changes: Vec<Change>,
}

/// A change of the project's files or of its repository.
#[derive(Clone, Debug)]
pub enum Change {
    Write { path: String, content: String },
    Git(Vec<String>),
}

impl Change {
    pub fn new_git(arguments: &[&str]) -> Change {
        Change::Git(arguments.iter().map(|argument| (*argument).to_owned()).collect())
    }
}

impl ToolCall {
    fn new(
        name: &'static str,
        input: Value,
        result_text: impl Into<String>,
        result_detail: Value,
    ) -> ToolCall {
        let result_text = result_text.into();
        ToolCall { name, input, result_text, result_detail, is_error: false, changes: Vec::new() }
    }

    pub fn with_changes(self, changes: Vec<Change>) -> ToolCall {
        ToolCall { changes, ..self }
    }

    /// Returns a shell command that succeeds with this output.
    pub fn new_bash(command: &str, output: &str) -> ToolCall {
        let shown = if output.is_empty() { "(Bash completed with no output)" } else { output };
        let detail = json!({ "stdout": output, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false });
        ToolCall::new("Bash", bash_input(command), shown, detail)
    }

    /// Returns a search that ends with exit code 1 because there is no match. The client does not report this as
    /// an error (2.1.329).
    pub fn new_bash_search_without_matches(command: &str) -> ToolCall {
        let mut call = ToolCall::new_bash(command, "");
        call.result_detail["returnCodeInterpretation"] = "No matches found".into();
        call
    }

    /// Returns a shell command that fails with this exit code.
    pub fn new_failed_bash(command: &str, exit_code: u8, output: &str) -> ToolCall {
        let text = format!("Exit code {exit_code}\n{output}").trim_end().to_owned();
        let detail = json!(format!("Error: {text}"));
        ToolCall { is_error: true, ..ToolCall::new("Bash", bash_input(command), text, detail) }
    }

    /// Returns a call that reads the lines of a file from `start_line`.
    pub fn new_read(path: &str, lines: &[String], start_line: usize, total_lines: usize) -> ToolCall {
        let absolute_path = format!("{PROJECT_PLACEHOLDER}/{path}");
        let is_whole_file = start_line == 1 && lines.len() == total_lines;
        let input = if is_whole_file {
            json!({ "file_path": absolute_path })
        } else {
            json!({ "file_path": absolute_path, "offset": start_line, "limit": lines.len() })
        };
        let numbered_lines: Vec<String> =
            lines.iter().enumerate().map(|(index, line)| format!("{}\t{line}", start_line + index)).collect();
        let file = json!({
            "filePath": absolute_path, "content": lines.join("\n"), "numLines": lines.len(), "startLine": start_line,
            "totalLines": total_lines,
        });
        ToolCall::new("Read", input, numbered_lines.join("\n"), json!({ "type": "text", "file": file }))
    }

    pub fn new_grep(pattern: &str, matches: &[String]) -> ToolCall {
        let input = json!({ "pattern": pattern, "output_mode": "content", "-n": true });
        let content = if matches.is_empty() { "No matches found".to_owned() } else { matches.join("\n") };
        let detail = json!({
            "mode": "content", "numFiles": 0, "filenames": [], "content": content, "numLines": matches.len(),
        });
        ToolCall::new("Grep", input, content, detail)
    }

    pub fn new_glob(pattern: &str, paths: &[String]) -> ToolCall {
        let detail =
            json!({ "filenames": paths, "durationMs": 12, "numFiles": paths.len(), "truncated": false });
        ToolCall::new("Glob", json!({ "pattern": pattern }), paths.join("\n"), detail)
    }

    /// Returns a call of a subagent.
    pub fn new_agent(description: &str, prompt: &str, answer: &str) -> ToolCall {
        let input = json!({ "description": description, "prompt": prompt, "subagent_type": "Explore", "run_in_background": false });
        let detail = json!({
            "status": "completed", "prompt": prompt, "agentId": "a60bf2aa187041951", "agentType": "Explore",
            "content": [{ "type": "text", "text": answer }], "totalDurationMs": 41_062, "totalTokens": 70_060,
            "totalToolUseCount": 9,
        });
        ToolCall::new("Agent", input, answer, detail)
    }

    pub fn new_web_fetch(url: &str, prompt: &str, answer: &str) -> ToolCall {
        let detail = json!({
            "bytes": answer.len(), "code": 200, "codeText": "OK", "result": answer, "durationMs": 2_041, "url": url,
        });
        ToolCall::new("WebFetch", json!({ "url": url, "prompt": prompt }), answer, detail)
    }

    pub fn new_mcp(answer: &str) -> ToolCall {
        let detail = json!([{ "type": "text", "text": answer }]);
        ToolCall::new("mcp__tracker__get_issue", json!({ "id": "412" }), answer, detail)
    }

    /// Returns a question of the client's dialog and the user's answer.
    pub fn new_question(question: &str, options: &[String], answer: &str) -> ToolCall {
        let option_values: Vec<Value> =
            options.iter().map(|option| json!({ "label": option, "description": "" })).collect();
        let questions = json!([{ "question": question, "header": "Choice", "options": option_values, "multiSelect": false }]);
        let text = format!(
            "User has answered your questions: \"{question}\"=\"{answer}\". You can now continue with the user's answers in mind."
        );
        let detail = json!({ "questions": questions, "answers": { question: answer } });
        ToolCall::new("AskUserQuestion", json!({ "questions": questions }), text, detail)
    }

    /// Returns the call that ends plan mode, with a plan that the user approves.
    pub fn new_approved_plan(plan: &str) -> ToolCall {
        let text = format!(
            "User has approved your plan. You can now start coding. Start with updating your todo list if applicable\n\n## Approved Plan:\n{plan}"
        );
        ToolCall::new(
            "ExitPlanMode",
            json!({ "plan": plan }),
            text,
            json!({ "plan": plan, "isAgent": false }),
        )
    }

    pub fn new_todo_write(old_todos: &Value, new_todos: &Value) -> ToolCall {
        let text = "Todos have been modified successfully. Ensure that you continue to use the todo list to track your \
                    progress. Please proceed with the current tasks if applicable";
        let detail = json!({ "oldTodos": old_todos, "newTodos": new_todos });
        ToolCall::new("TodoWrite", json!({ "todos": new_todos }), text, detail)
    }

    pub fn new_task_create(number: usize, subject: &str) -> ToolCall {
        let text = format!("Task #{number} created successfully: {subject}");
        let detail = json!({ "task": { "id": number.to_string(), "subject": subject } });
        let input = json!({ "subject": subject, "description": subject, "activeForm": format!("Working on {subject}") });
        ToolCall::new("TaskCreate", input, text, detail)
    }

    pub fn new_task_update(number: usize, old_status: &str, status: &str) -> ToolCall {
        let detail = json!({
            "success": true, "taskId": number.to_string(), "updatedFields": ["status"],
            "statusChange": { "from": old_status, "to": status },
        });
        let input = json!({ "taskId": number.to_string(), "status": status });
        ToolCall::new("TaskUpdate", input, format!("Updated task #{number} status"), detail)
    }

    pub fn new_edit(path: &str, old_string: &str, new_string: &str, original: &str, hunk: Value) -> ToolCall {
        let absolute_path = format!("{PROJECT_PLACEHOLDER}/{path}");
        let input = json!({
            "replace_all": false, "file_path": absolute_path, "old_string": old_string, "new_string": new_string,
        });
        let detail = json!({
            "filePath": absolute_path, "oldString": old_string, "newString": new_string, "originalFile": original,
            "structuredPatch": [hunk], "userModified": false, "replaceAll": false,
        });
        ToolCall::new("Edit", input, updated_file_text(&absolute_path), detail)
    }

    /// Returns a call that writes a whole file. `original` and `hunk` are `None` if the file is new.
    pub fn new_write(path: &str, content: &str, original: Option<&str>, hunk: Option<Value>) -> ToolCall {
        let absolute_path = format!("{PROJECT_PLACEHOLDER}/{path}");
        let (kind, text) = match original {
            None => (
                "create",
                format!(
                    "File created successfully at: {absolute_path} (file state is current in your context — no need to Read it back)"
                ),
            ),
            Some(_) => ("update", updated_file_text(&absolute_path)),
        };
        let hunks: Vec<Value> = hunk.into_iter().collect();
        let detail = json!({
            "type": kind, "filePath": absolute_path, "content": content, "structuredPatch": hunks,
            "originalFile": original, "userModified": false,
        });
        ToolCall::new("Write", json!({ "file_path": absolute_path, "content": content }), text, detail)
    }

    /// The size of the call in the model's context, in bytes.
    pub fn byte_count(&self) -> usize {
        self.input.to_string().len() + self.result_text.len()
    }
}

fn bash_input(command: &str) -> Value {
    json!({ "command": command, "description": "Runs a command" })
}

fn updated_file_text(absolute_path: &str) -> String {
    format!(
        "The file {absolute_path} has been updated successfully. (file state is current in your context — no need to Read it back)"
    )
}
