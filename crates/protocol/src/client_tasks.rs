//! The client's own task list, as the calls in a transcript leave it: TodoWrite writes the whole list, TaskCreate and
//! TaskUpdate change one entry (2.1.329 has the latter, older clients the former).

use crate::lenient;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The marks by which a line that may change the list is known without parsing it: the calls, and what the client writes beside
/// its answer to one that it carried out.
pub const MARKS: [&str; 6] =
    ["\"TodoWrite\"", "\"TaskCreate\"", "\"TaskUpdate\"", "\"newTodos\"", "Task #", "\"updatedFields\""];

/// How far a task is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskState {
    /// Not begun.
    #[default]
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Completed,
}

impl TaskState {
    fn of(word: &str) -> Option<TaskState> {
        match word {
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
    /// What is to be done.
    pub subject: String,
    /// How far it is.
    pub state: TaskState,
}

/// The list, as far as the lines that it was given say.
#[derive(Debug, Clone, Default)]
pub struct ClientTasks {
    tasks: Vec<(Option<String>, ClientTask)>,
    /// Calls that have no answer yet: one that the client refuses changes nothing.
    asked: Vec<(String, Change)>,
}

/// What a call is to change.
#[derive(Debug, Clone)]
enum Change {
    Write(Vec<ClientTask>),
    Create(String),
    Update { number: String, subject: Option<String>, status: Option<String> },
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TaskLine {
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::field")]
    is_sidechain: bool,
    #[serde(deserialize_with = "lenient::field")]
    message: TaskMessage,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TaskMessage {
    #[serde(deserialize_with = "lenient::list")]
    content: Vec<TaskBlock>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TaskBlock {
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    id: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    name: Option<String>,
    #[serde(deserialize_with = "lenient::field")]
    input: TaskInput,
    #[serde(deserialize_with = "lenient::text")]
    tool_use_id: Option<String>,
    #[serde(deserialize_with = "lenient::field")]
    is_error: bool,
    #[serde(deserialize_with = "lenient::raw")]
    content: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TaskInput {
    #[serde(deserialize_with = "lenient::list")]
    todos: Vec<Todo>,
    #[serde(deserialize_with = "lenient::text")]
    subject: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    task_id: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    status: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Todo {
    #[serde(deserialize_with = "lenient::text")]
    content: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    status: Option<String>,
}

impl ClientTasks {
    /// Takes the next line of a transcript. One that says nothing of the list changes nothing.
    pub fn take(&mut self, bytes: &[u8]) {
        let line: TaskLine = crate::parse(bytes).unwrap_or_default();
        // The client repeats messages in lines of other kinds (2.1.329), and a subagent has a list of its own.
        if line.is_sidechain || !matches!(line.kind.as_deref(), Some("assistant" | "user")) {
            return;
        }
        for block in line.message.content {
            match block.kind.as_deref() {
                Some("tool_use") => {
                    let change = change(block.name.as_deref().unwrap_or_default(), block.input);
                    self.asked.extend(block.id.zip(change));
                }
                Some("tool_result") => self.answered(&block),
                _ => {}
            }
        }
    }

    /// The tasks in their order.
    pub fn list(self) -> Vec<ClientTask> {
        self.tasks.into_iter().map(|(_, task)| task).collect()
    }

    fn answered(&mut self, block: &TaskBlock) {
        let is_asked = |(call, _): &(String, Change)| Some(call) == block.tool_use_id.as_ref();
        let Some(place) = self.asked.iter().position(is_asked) else { return };
        let (_, change) = self.asked.remove(place);
        if block.is_error {
            return;
        }
        match change {
            Change::Write(tasks) => self.tasks = tasks.into_iter().map(|task| (None, task)).collect(),
            Change::Create(subject) => {
                // `Task #3 created successfully: …` is what the model is told (2.1.329).
                let text = block.content.as_deref().map(text_of).unwrap_or_default();
                let number = text.strip_prefix("Task #").and_then(|rest| rest.split_once(" created"));
                let number = number.map(|(number, _)| number.to_owned());
                self.tasks.push((number, ClientTask { subject, ..ClientTask::default() }));
            }
            Change::Update { number, subject, status } => self.update(&number, subject, status.as_deref()),
        }
    }

    fn update(&mut self, number: &str, subject: Option<String>, status: Option<&str>) {
        let is_it = |(known, _): &(Option<String>, ClientTask)| known.as_deref() == Some(number);
        let Some(place) = self.tasks.iter().position(is_it) else { return };
        if status == Some("deleted") {
            self.tasks.remove(place);
            return;
        }
        let task = &mut self.tasks[place].1;
        task.state = status.and_then(TaskState::of).unwrap_or(task.state);
        if let Some(subject) = subject {
            task.subject = subject;
        }
    }
}

/// What a call of one of the three tools is to change.
fn change(tool: &str, input: TaskInput) -> Option<Change> {
    let task = |todo: Todo| {
        let state = todo.status.as_deref().and_then(TaskState::of).unwrap_or_default();
        Some(ClientTask { subject: todo.content?, state })
    };
    match tool {
        "TodoWrite" => Some(Change::Write(input.todos.into_iter().filter_map(task).collect())),
        "TaskCreate" => input.subject.map(Change::Create),
        "TaskUpdate" => {
            let (subject, status) = (input.subject, input.status);
            input.task_id.map(|number| Change::Update { number, subject, status })
        }
        _ => None,
    }
}

/// The words of an answer: a text, or blocks of which the first texts count.
fn text_of(content: &RawValue) -> String {
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

    fn list(lines: &[serde_json::Value]) -> Vec<(String, TaskState)> {
        let mut tasks = ClientTasks::default();
        lines.iter().for_each(|line| tasks.take(line.to_string().as_bytes()));
        tasks.list().into_iter().map(|task| (task.subject, task.state)).collect()
    }

    fn call(id: &str, name: &str, input: &serde_json::Value) -> serde_json::Value {
        json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": id, "name": name, "input": input}]}})
    }

    fn answer(id: &str, text: &str) -> serde_json::Value {
        json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": id, "content": text}]}})
    }

    fn refusal(id: &str) -> serde_json::Value {
        let mut answer = answer(id, "Error: No such tool available");
        answer["message"]["content"][0]["is_error"] = true.into();
        answer
    }

    /// What the client repeats of a message that it sends (2.1.329).
    fn repeated(mut line: serde_json::Value) -> serde_json::Value {
        line["type"] = "api-request-blob".into();
        line
    }

    #[test]
    fn tasks_are_those_that_were_created_as_they_were_updated_last() {
        let created = |id: &str, subject: &str, answered: serde_json::Value| {
            let call = call(id, "TaskCreate", &json!({"subject": subject, "description": "x"}));
            [call.clone(), answered.clone(), repeated(call), repeated(answered)]
        };
        let updated = |id: &str, input: serde_json::Value, answered: serde_json::Value| {
            [call(id, "TaskUpdate", &input), answered, json!({"type": "mode"}), json!(null)]
        };
        let done = |id: &str| answer(id, "Updated task status");
        let lines = [
            created("a", "Parse dates", answer("a", "Task #1 created successfully: Parse dates")),
            created("b", "Write docs", answer("b", "Task #2 created successfully: Write docs")),
            created("c", "Refused", refusal("c")),
            created("d", "Never mind", answer("d", "Task #3 created successfully: Never mind")),
            updated("e", json!({"taskId": "1", "status": "completed"}), done("e")),
            updated(
                "f",
                json!({"taskId": "2", "status": "in_progress", "subject": "Write the docs"}),
                done("f"),
            ),
            updated("g", json!({"taskId": "3", "status": "deleted"}), done("g")),
            updated("h", json!({"taskId": "9", "status": "completed"}), done("h")),
            updated("i", json!({"taskId": "2", "status": "completed"}), refusal("i")),
        ];
        let expected = [
            ("Parse dates".to_owned(), TaskState::Completed),
            ("Write the docs".to_owned(), TaskState::InProgress),
        ];
        assert_eq!(list(&lines.concat()), expected);
    }

    #[test]
    fn a_written_list_replaces_the_one_before_and_a_subagents_list_is_its_own() {
        let written = |id: &str, names: &[(&str, &str)], answered: serde_json::Value| {
            let todos: Vec<_> =
                names.iter().map(|(content, status)| json!({"content": content, "status": status})).collect();
            [call(id, "TodoWrite", &json!({"todos": todos})), answered]
        };
        let done = |id: &str| answer(id, "Todos have been modified successfully.");
        let of_subagent = written("c", &[("Its own", "pending")], done("c")).map(|mut line| {
            line["isSidechain"] = true.into();
            line
        });
        let lines = [
            written("a", &[("One", "in_progress"), ("Two", "pending")], done("a")),
            written("b", &[("One", "completed"), ("Two", "new word")], done("b")),
            of_subagent,
            written("d", &[("Refused", "pending")], refusal("d")),
        ];
        let expected = [("One".to_owned(), TaskState::Completed), ("Two".to_owned(), TaskState::Pending)];
        assert_eq!(list(&lines.concat()), expected);
    }
}
