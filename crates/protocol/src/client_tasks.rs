//! The client's own task list, rebuilt from the tool calls in a transcript: TodoWrite replaces the list; TaskCreate
//! and TaskUpdate change one entry (2.1.329 has the latter two, older clients the former).

use crate::lenient;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A line that may change the list contains one of these; checked before parsing. They match the tool calls and the
/// results of calls that succeeded.
pub const LINE_MARKERS: [&str; 6] =
    ["\"TodoWrite\"", "\"TaskCreate\"", "\"TaskUpdate\"", "\"newTodos\"", "Task #", "\"updatedFields\""];

/// The progress of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskState {
    #[default]
    Pending,
    InProgress,
    Completed,
}

impl TaskState {
    fn parse(status: &str) -> Option<TaskState> {
        match status {
            "pending" => Some(TaskState::Pending),
            "in_progress" => Some(TaskState::InProgress),
            "completed" => Some(TaskState::Completed),
            _ => None,
        }
    }
}

/// One task of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientTask {
    pub subject: String,
    pub state: TaskState,
}

/// The task list after the transcript lines that were applied.
#[derive(Debug, Clone, Default)]
pub struct ClientTaskList {
    numbered_tasks: Vec<(Option<String>, ClientTask)>,
    /// Calls without a result yet: a call that the client rejects changes nothing.
    pending_changes: Vec<(String, TaskChange)>,
}

/// The change that a call requests.
#[derive(Debug, Clone)]
enum TaskChange {
    ReplaceAll(Vec<ClientTask>),
    Create(String),
    Update { number: String, subject: Option<String>, status: Option<String> },
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TaskLine {
    #[serde(rename = "type", deserialize_with = "lenient::non_empty_text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    is_sidechain: bool,
    #[serde(deserialize_with = "lenient::field_or_default")]
    message: TaskMessage,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TaskMessage {
    #[serde(deserialize_with = "lenient::readable_elements")]
    content: Vec<TaskBlock>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TaskBlock {
    #[serde(rename = "type", deserialize_with = "lenient::non_empty_text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    id: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    name: Option<String>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    input: TaskInput,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    tool_use_id: Option<String>,
    #[serde(deserialize_with = "lenient::field_or_default")]
    is_error: bool,
    #[serde(deserialize_with = "lenient::raw_json")]
    content: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TaskInput {
    #[serde(deserialize_with = "lenient::readable_elements")]
    todos: Vec<Todo>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    subject: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    task_id: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    status: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Todo {
    #[serde(deserialize_with = "lenient::non_empty_text")]
    content: Option<String>,
    #[serde(deserialize_with = "lenient::non_empty_text")]
    status: Option<String>,
}

impl ClientTaskList {
    /// Applies the next line of a transcript. Ignores lines that do not concern the list.
    pub fn apply_transcript_line(&mut self, line_bytes: &[u8]) {
        let line: TaskLine = crate::parse_json_object(line_bytes).unwrap_or_default();
        // The client repeats messages in lines of other kinds (2.1.329), and a subagent has its own list.
        if line.is_sidechain || !matches!(line.kind.as_deref(), Some("assistant" | "user")) {
            return;
        }
        for block in line.message.content {
            match block.kind.as_deref() {
                Some("tool_use") => {
                    let change = parse_task_change(block.name.as_deref().unwrap_or_default(), block.input);
                    self.pending_changes.extend(block.id.zip(change));
                }
                Some("tool_result") => self.apply_tool_result(&block),
                _ => {}
            }
        }
    }

    /// Returns the tasks in their order.
    pub fn into_tasks(self) -> Vec<ClientTask> {
        self.numbered_tasks.into_iter().map(|(_, task)| task).collect()
    }

    fn apply_tool_result(&mut self, tool_result: &TaskBlock) {
        let is_call_of_result =
            |(call_id, _): &(String, TaskChange)| Some(call_id) == tool_result.tool_use_id.as_ref();
        let Some(index) = self.pending_changes.iter().position(is_call_of_result) else { return };
        let (_, change) = self.pending_changes.remove(index);
        if tool_result.is_error {
            return;
        }
        match change {
            TaskChange::ReplaceAll(tasks) => {
                self.numbered_tasks = tasks.into_iter().map(|task| (None, task)).collect();
            }
            TaskChange::Create(subject) => {
                // The model receives `Task #3 created successfully: …` (2.1.329).
                let text = tool_result.content.as_deref().map(joined_content_text).unwrap_or_default();
                let number_and_tail =
                    text.strip_prefix("Task #").and_then(|tail| tail.split_once(" created"));
                let number = number_and_tail.map(|(number, _)| number.to_owned());
                self.numbered_tasks.push((number, ClientTask { subject, ..ClientTask::default() }));
            }
            TaskChange::Update { number, subject, status } => {
                self.update_or_delete_task(&number, subject, status.as_deref());
            }
        }
    }

    fn update_or_delete_task(&mut self, number: &str, subject: Option<String>, status: Option<&str>) {
        let has_number =
            |(task_number, _): &(Option<String>, ClientTask)| task_number.as_deref() == Some(number);
        let Some(index) = self.numbered_tasks.iter().position(has_number) else { return };
        if status == Some("deleted") {
            self.numbered_tasks.remove(index);
            return;
        }
        let task = &mut self.numbered_tasks[index].1;
        task.state = status.and_then(TaskState::parse).unwrap_or(task.state);
        if let Some(subject) = subject {
            task.subject = subject;
        }
    }
}

/// Parses the change that a call of one of the three tools requests. Returns `None` for other tools and for calls without
/// the necessary fields.
fn parse_task_change(tool_name: &str, input: TaskInput) -> Option<TaskChange> {
    let to_client_task = |todo: Todo| {
        let state = todo.status.as_deref().and_then(TaskState::parse).unwrap_or_default();
        Some(ClientTask { subject: todo.content?, state })
    };
    match tool_name {
        "TodoWrite" => {
            Some(TaskChange::ReplaceAll(input.todos.into_iter().filter_map(to_client_task).collect()))
        }
        "TaskCreate" => input.subject.map(TaskChange::Create),
        "TaskUpdate" => {
            let (subject, status) = (input.subject, input.status);
            input.task_id.map(|number| TaskChange::Update { number, subject, status })
        }
        _ => None,
    }
}

/// Returns the text of a tool result: a string, or the joined texts of its blocks.
fn joined_content_text(content: &RawValue) -> String {
    let message = crate::transcript::Message {
        content: Some(content.to_owned()),
        ..crate::transcript::Message::default()
    };
    message.blocks().iter().filter_map(|block| block.text.as_deref()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tasks_after(lines: &[serde_json::Value]) -> Vec<(String, TaskState)> {
        let mut tasks = ClientTaskList::default();
        lines.iter().for_each(|line| tasks.apply_transcript_line(line.to_string().as_bytes()));
        tasks.into_tasks().into_iter().map(|task| (task.subject, task.state)).collect()
    }

    fn tool_call_line(id: &str, name: &str, input: &serde_json::Value) -> serde_json::Value {
        json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": id, "name": name, "input": input}]}})
    }

    fn tool_result_line(id: &str, text: &str) -> serde_json::Value {
        json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": id, "content": text}]}})
    }

    fn refused_call_line(id: &str) -> serde_json::Value {
        let mut answer = tool_result_line(id, "Error: No such tool available");
        answer["message"]["content"][0]["is_error"] = true.into();
        answer
    }

    /// A copy of a message, as the client repeats it in other lines (2.1.329).
    fn repeated_by_client(mut line: serde_json::Value) -> serde_json::Value {
        line["type"] = "api-request-blob".into();
        line
    }

    #[test]
    fn created_tasks_have_their_last_update() {
        let create_lines = |id: &str, subject: &str, answered: serde_json::Value| {
            let call = tool_call_line(id, "TaskCreate", &json!({"subject": subject, "description": "x"}));
            [call.clone(), answered.clone(), repeated_by_client(call), repeated_by_client(answered)]
        };
        let update_lines = |id: &str, input: serde_json::Value, answered: serde_json::Value| {
            [tool_call_line(id, "TaskUpdate", &input), answered, json!({"type": "mode"}), json!(null)]
        };
        let accepted = |id: &str| tool_result_line(id, "Updated task status");
        let lines = [
            create_lines(
                "a",
                "Parse dates",
                tool_result_line("a", "Task #1 created successfully: Parse dates"),
            ),
            create_lines(
                "b",
                "Write docs",
                tool_result_line("b", "Task #2 created successfully: Write docs"),
            ),
            create_lines("c", "Refused", refused_call_line("c")),
            create_lines(
                "d",
                "Never mind",
                tool_result_line("d", "Task #3 created successfully: Never mind"),
            ),
            update_lines("e", json!({"taskId": "1", "status": "completed"}), accepted("e")),
            update_lines(
                "f",
                json!({"taskId": "2", "status": "in_progress", "subject": "Write the docs"}),
                accepted("f"),
            ),
            update_lines("g", json!({"taskId": "3", "status": "deleted"}), accepted("g")),
            update_lines("h", json!({"taskId": "9", "status": "completed"}), accepted("h")),
            update_lines("i", json!({"taskId": "2", "status": "completed"}), refused_call_line("i")),
        ];
        let expected = [
            ("Parse dates".to_owned(), TaskState::Completed),
            ("Write the docs".to_owned(), TaskState::InProgress),
        ];
        assert_eq!(tasks_after(&lines.concat()), expected);
    }

    #[test]
    fn a_todo_write_replaces_the_list_but_not_from_a_subagent() {
        let todo_write_lines = |id: &str, names: &[(&str, &str)], answered: serde_json::Value| {
            let todos: Vec<_> =
                names.iter().map(|(content, status)| json!({"content": content, "status": status})).collect();
            [tool_call_line(id, "TodoWrite", &json!({"todos": todos})), answered]
        };
        let accepted = |id: &str| tool_result_line(id, "Todos have been modified successfully.");
        let subagent_lines =
            todo_write_lines("c", &[("Its own", "pending")], accepted("c")).map(|mut line| {
                line["isSidechain"] = true.into();
                line
            });
        let lines = [
            todo_write_lines("a", &[("One", "in_progress"), ("Two", "pending")], accepted("a")),
            todo_write_lines("b", &[("One", "completed"), ("Two", "new word")], accepted("b")),
            subagent_lines,
            todo_write_lines("d", &[("Refused", "pending")], refused_call_line("d")),
        ];
        let expected = [("One".to_owned(), TaskState::Completed), ("Two".to_owned(), TaskState::Pending)];
        assert_eq!(tasks_after(&lines.concat()), expected);
    }
}
