//! What `plimsoll start --adopt` takes of a state that another program wrote, field by field. The file is in the
//! project and may come from anywhere: it says what the task is and how far it is, never which commands
//! run or what may be spent.

use crate::todo_list::shell_word;
use plimsoll_domain::promise::PromiseWord;
use plimsoll_domain::state::{Checkpoint, HistoryEntry, ItemWork};
use plimsoll_domain::status::Status;
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::{RunState, TodoList};
use serde_json::Value;
use std::path::{Component, Path};

/// What became of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldOutcome {
    /// It is in the run, as shown.
    Taken(String),
    /// It was missing; the run has this.
    Filled(String),
    /// It is not in the run, and why.
    Ignored(String),
    /// Nothing of ours has this name: it stays in the file.
    Kept,
}

/// One field of the file, or of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub field: String,
    /// What became of it.
    pub outcome: FieldOutcome,
}

/// What the run would be.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The run.
    pub state: RunState,
    /// The fields, in the order in which they are shown.
    pub rows: Vec<Row>,
    /// The plan file to be written, where there is none yet.
    pub list: Option<TodoList>,
    /// True if the checkpoint's handoff is not there and has to be written.
    pub lacks_handoff: bool,
}

/// What is known beside the file.
#[derive(Debug)]
pub struct Ground<'a> {
    /// A new run with what the command line says; its objective is PROMPT.md where there is one.
    pub new: RunState,
    /// True if `--name` was given.
    pub named: bool,
    /// `--max-iterations`.
    pub max_iterations: Option<u32>,
    /// What a run may have without being asked.
    pub usual_iterations: u32,
    /// `--promise`.
    pub promise: Option<PromiseWord>,
    /// True if PROMPT.md or the command line is the task.
    pub has_task: bool,
    /// The plan file where none is named and none is there.
    pub default_list: &'a str,
    /// True if the checkpoint's handoff ([`handoff_of`]) is there.
    pub has_handoff: bool,
}

/// Only the command line says which commands run, and what a run may use.
const AUTHORITY: [&str; 10] = [
    "verify",
    "notify",
    "client",
    "client_arguments",
    "limits",
    "commit",
    "pack",
    "memory",
    "idle_timeout_seconds",
    "prompt_made",
];
/// The breaker of a new run counts from nothing.
const COUNTERS: [&str; 3] = ["no_change_count", "last_diff_hash", "error_hashes"];
/// How much of a name, an item or a text is taken.
const NAME: usize = 60;
const ITEM: usize = 500;
const TEXT: usize = 2_000;
/// How much of a value is shown.
const SHOWN: usize = 60;

/// What the run would be, and what becomes of each field.
pub fn adopt(document: &Value, ground: &Ground<'_>) -> Offer {
    let mut adoption = Adoption { document, state: ground.new.clone(), rows: Vec::new(), taken: Vec::new() };
    adoption.task(ground);
    adoption.place(ground);
    let list = adoption.items(ground);
    let lacks_handoff = adoption.checkpoint(ground);
    adoption.history();
    adoption.ours(ground);
    adoption.rest();
    Offer { state: adoption.state, rows: adoption.rows, list, lacks_handoff }
}

struct Adoption<'a> {
    document: &'a Value,
    state: RunState,
    rows: Vec<Row>,
    /// The fields that have a row.
    taken: Vec<&'a str>,
}

/// A field of the file.
enum Found<T> {
    Missing,
    Wrong(String),
    Value(T),
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", clip(&one_line(text), SHOWN))
}

impl<'a> Adoption<'a> {
    fn row(&mut self, field: &'a str, outcome: FieldOutcome) {
        self.taken.push(field);
        self.rows.push(Row { field: field.to_owned(), outcome });
    }

    fn field<T>(&self, name: &str, kind: &str, take: impl FnOnce(&Value) -> Option<T>) -> Found<T> {
        match self.document.get(name).filter(|value| !value.is_null()) {
            None => Found::Missing,
            Some(value) => match take(value) {
                Some(taken) => Found::Value(taken),
                None => {
                    let shown = clip(&one_line(&value.to_string()), SHOWN);
                    Found::Wrong(format!("{shown} is not {kind}"))
                }
            },
        }
    }

    fn text(&self, name: &str) -> Found<String> {
        let text = |value: &Value| Some(value.as_str()?.to_owned());
        match self.field(name, "a text", text) {
            Found::Value(text) if text.trim().is_empty() => Found::Missing,
            found => found,
        }
    }

    fn number(&self, name: &str) -> Found<u32> {
        self.field(name, "a whole number", |value| u32::try_from(value.as_u64()?).ok())
    }

    /// What it is about.
    fn task(&mut self, ground: &Ground<'_>) {
        let objective = self.text("objective");
        let outcome = match objective {
            Found::Value(text) if !ground.has_task => {
                self.state.options.objective.clone_from(&text);
                FieldOutcome::Taken(quoted(&text))
            }
            Found::Value(text) if text.trim() == self.state.options.objective.trim() => {
                FieldOutcome::Taken(quoted(&text))
            }
            Found::Value(_) => {
                FieldOutcome::Ignored(format!("the task is {}", quoted(&self.state.options.objective)))
            }
            Found::Wrong(why) => FieldOutcome::Ignored(why),
            Found::Missing => FieldOutcome::Filled(quoted(&self.state.options.objective)),
        };
        self.row("objective", outcome);
        let outcome = match self.text("task_name") {
            Found::Value(_) if ground.named => FieldOutcome::Ignored("--name is given".to_owned()),
            Found::Value(name) => {
                self.state.options.task_name = clip(&one_line(&name), NAME);
                FieldOutcome::Taken(quoted(&name))
            }
            found => {
                if self.state.options.task_name.is_empty() || !ground.has_task {
                    let line = self.state.options.objective.lines().find(|line| !line.trim().is_empty());
                    self.state.options.task_name = clip(&one_line(line.unwrap_or("a run")), NAME);
                }
                filled_or_wrong(found, quoted(&self.state.options.task_name))
            }
        };
        self.row("task_name", outcome);
    }

    /// How far it is.
    fn place(&mut self, ground: &Ground<'_>) {
        let outcome = match self.number("iteration") {
            Found::Value(number) => {
                self.state.iteration = number;
                FieldOutcome::Taken(number.to_string())
            }
            found => filled_or_wrong(found, "0".to_owned()),
        };
        self.row("iteration", outcome);
        let usual = ground.usual_iterations;
        self.state.options.max_iterations = ground.max_iterations.unwrap_or(usual);
        let outcome = match (self.number("max_iterations"), ground.max_iterations) {
            (Found::Value(_), Some(given)) => {
                FieldOutcome::Ignored(format!("--max-iterations {given} is given"))
            }
            (Found::Value(number), None) if (1..=usual).contains(&number) => {
                self.state.options.max_iterations = number;
                FieldOutcome::Taken(number.to_string())
            }
            (Found::Value(number), None) => FieldOutcome::Ignored(format!(
                "{number} is not between 1 and {usual}: the run has {usual}, or what --max-iterations says"
            )),
            (found, _) => filled_or_wrong(found, self.state.options.max_iterations.to_string()),
        };
        self.row("max_iterations", outcome);
        self.standing();
        self.promise(ground);
    }

    /// Since when it runs, and whether it does.
    fn standing(&mut self) {
        let is_moment = |text: &String| chrono::DateTime::parse_from_rfc3339(text).is_ok();
        let outcome = match self.text("started_at") {
            Found::Value(text) if is_moment(&text) => {
                self.state.at_start.started_at = text.as_str().into();
                FieldOutcome::Taken(text)
            }
            Found::Value(text) => FieldOutcome::Ignored(format!("{} is not a time", quoted(&text))),
            found => filled_or_wrong(found, "now".to_owned()),
        };
        self.row("started_at", outcome);
        let open = [Status::Running.word(), Status::Paused.word()];
        let outcome = match self.text("status") {
            Found::Value(text) if open.contains(&text.as_str()) => {
                FieldOutcome::Taken(quoted(Status::Running.word()))
            }
            Found::Value(text) => {
                FieldOutcome::Ignored(format!("{}: an adopted run begins as \"running\"", quoted(&text)))
            }
            found => filled_or_wrong(found, quoted(Status::Running.word())),
        };
        self.state.lifecycle = plimsoll_domain::state::Lifecycle::default();
        self.row("status", outcome);
    }

    fn promise(&mut self, ground: &Ground<'_>) {
        let outcome = match (self.text("completion_promise"), &ground.promise) {
            (Found::Value(_), Some(given)) => FieldOutcome::Ignored(format!("--promise {given} is given")),
            (Found::Value(word), None) => match word.parse() {
                Ok(valid) => {
                    self.state.options.completion_promise = valid;
                    FieldOutcome::Taken(quoted(&word))
                }
                Err(_) => FieldOutcome::Ignored(format!(
                    "{} is not a plain word: the run has {}",
                    quoted(&word),
                    self.state.options.completion_promise
                )),
            },
            (found, _) => filled_or_wrong(found, quoted(&self.state.options.completion_promise)),
        };
        self.row("completion_promise", outcome);
    }

    /// The items: the plan file's where there is one, else the state's, from which one is to be written.
    fn items(&mut self, ground: &Ground<'_>) -> Option<TodoList> {
        let texts = |found: Found<Vec<String>>| match found {
            Found::Value(items) => (items, None),
            Found::Missing => (Vec::new(), None),
            Found::Wrong(why) => (Vec::new(), Some(why)),
        };
        let all = |value: &Value| -> Option<Vec<String>> {
            let item =
                |item: &Value| Some(clip(&one_line(item.as_str()?), ITEM)).filter(|item| !item.is_empty());
            value.as_array()?.iter().map(item).collect()
        };
        let kind = "a list of texts";
        let (open, open_wrong) = texts(self.field("todo_items", kind, all));
        let (done, done_wrong) = texts(self.field("completed_items", kind, all));
        let known = self.state.items.known_items.clone();
        let fields = [("todo_items", &open, open_wrong), ("completed_items", &done, done_wrong)];
        if let Some(file) = self.state.options.todo_file.clone() {
            let list = TodoList::from_items(known.iter().map(|text| item(text, false)).collect());
            for (field, items, wrong) in fields {
                let lost = list.vanished(items);
                let words = format!("{} is the plan ({})", one_line(&file), counted(known.len(), "item"));
                let outcome = match (wrong, lost.first()) {
                    (Some(why), _) => FieldOutcome::Ignored(why),
                    (None, Some(first)) => {
                        let more = if lost.len() > 1 {
                            format!(" and {} more", lost.len() - 1)
                        } else {
                            String::new()
                        };
                        FieldOutcome::Ignored(format!("{words}, and lacks {}{more}", quoted(first)))
                    }
                    (None, None) => FieldOutcome::Ignored(words),
                };
                self.row(field, outcome);
            }
            return None;
        }
        for (field, items, wrong) in fields {
            let outcome = match wrong {
                Some(why) => FieldOutcome::Ignored(why),
                None if items.is_empty() => FieldOutcome::Filled("none".to_owned()),
                None => FieldOutcome::Taken(counted(items.len(), "item")),
            };
            self.row(field, outcome);
        }
        if open.is_empty() && done.is_empty() {
            return None;
        }
        let items = done.iter().map(|text| item(text, true)).chain(open.iter().map(|text| item(text, false)));
        let list = TodoList::from_items(items.collect());
        self.state.items.known_items = list.items.iter().map(|item| item.text.clone()).collect();
        self.state.options.todo_file = Some(ground.default_list.to_owned());
        self.state.take_items(&list);
        self.rows.push(Row {
            field: "the plan".to_owned(),
            outcome: FieldOutcome::Filled(format!("{}, written from these items", ground.default_list)),
        });
        Some(list)
    }

    /// A checkpoint that waits for its resume. True if its handoff has to be written.
    fn checkpoint(&mut self, ground: &Ground<'_>) -> bool {
        let name = "context_checkpoint";
        let read = |value: &Value| {
            let mut value = value.clone();
            value.as_object_mut()?.retain(|_, field| !field.is_null());
            serde_json::from_value::<Checkpoint>(value).ok()
        };
        let (outcome, lacks_handoff) = match self.field(name, "a checkpoint that Plimsoll understands", read)
        {
            Found::Value(found) if found.active => {
                let has_handoff = is_inside(&found.handoff_file) && ground.has_handoff;
                let outcome = FieldOutcome::Taken(checkpoint_words(&found, has_handoff));
                self.state.context_checkpoint = Checkpoint {
                    handoff_file: if has_handoff { found.handoff_file.clone() } else { String::new() },
                    resume_summary: clip(&found.resume_summary, TEXT),
                    current_todo_item: clip(&one_line(&found.current_todo_item), ITEM),
                    progress_on_item: clip(&one_line(&found.progress_on_item), ITEM),
                    iteration: self.state.iteration,
                    // What became of the work, and where, has not been checked.
                    head: None,
                    work: String::new(),
                    item_work: ItemWork::default(),
                    next_step: clip(&one_line(&found.next_step), TEXT),
                    ..found
                };
                (outcome, !has_handoff)
            }
            Found::Value(_) => {
                (FieldOutcome::Ignored("it is not active: there is nothing to resume".to_owned()), false)
            }
            found => (filled_or_wrong(found, "none".to_owned()), false),
        };
        self.row(name, outcome);
        lacks_handoff
    }

    fn history(&mut self) {
        let name = "context_history";
        let read = |value: &Value| Some(value.as_array()?.clone());
        let outcome = match self.field(name, "a list", read) {
            Found::Value(entries) => {
                let known = |entry: &Value| serde_json::from_value::<HistoryEntry>(entry.clone()).ok();
                self.state.context_history = entries.iter().filter_map(known).collect();
                let taken = self.state.context_history.len();
                let number =
                    |count: usize| if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") };
                match entries.len() - taken {
                    0 => FieldOutcome::Taken(number(taken)),
                    rest => {
                        FieldOutcome::Taken(format!("{}; {} not understood", number(taken), number(rest)))
                    }
                }
            }
            found => filled_or_wrong(found, "none".to_owned()),
        };
        self.row(name, outcome);
    }

    /// What a run of ours has and other programs do not write.
    fn ours(&mut self, ground: &Ground<'_>) {
        self.row("run_id", FieldOutcome::Filled("a new one".to_owned()));
        self.row("nonce", FieldOutcome::Filled("a new one".to_owned()));
        let known = counted(self.state.items.known_items.len(), "item");
        self.row("known_items", FieldOutcome::Filled(known));
        let new = &ground.new;
        let verify: Vec<String> = new.options.verify.iter().map(|command| shell_word(command)).collect();
        let verify = if verify.is_empty() { "none: give --verify".to_owned() } else { verify.join(", ") };
        if self.document.get("verify").is_none() {
            self.row("verify", FieldOutcome::Filled(one_line(&verify)));
        }
    }

    /// Everything else in the file.
    fn rest(&mut self) {
        let ours = serde_json::to_value(RunState::default()).unwrap_or_default();
        let Some(fields) = self.document.as_object() else { return };
        for name in fields.keys() {
            let name: &'a str = name.as_str();
            if self.taken.contains(&name) {
                continue;
            }
            let outcome = if AUTHORITY.contains(&name) {
                FieldOutcome::Ignored("only the command line can set this".to_owned())
            } else if COUNTERS.contains(&name) {
                FieldOutcome::Ignored("the run counts from zero".to_owned())
            } else if ours.get(name).is_some() {
                FieldOutcome::Ignored("a new run begins without it".to_owned())
            } else {
                FieldOutcome::Kept
            };
            self.row(name, outcome);
        }
    }
}

fn filled_or_wrong<T>(found: Found<T>, filled: String) -> FieldOutcome {
    match found {
        Found::Wrong(why) => FieldOutcome::Ignored(format!("{why}: the run has {filled}")),
        _ => FieldOutcome::Filled(filled),
    }
}

fn item(text: &str, done: bool) -> plimsoll_domain::todo::Item {
    plimsoll_domain::todo::Item { text: text.to_owned(), done, ..Default::default() }
}

/// The handoff that a checkpoint names, if its path leads nowhere but into the project.
pub fn handoff_of(document: &Value) -> Option<&str> {
    document.pointer("/context_checkpoint/handoff_file")?.as_str().filter(|path| is_inside(path))
}

/// A path of the project that leads nowhere else.
fn is_inside(path: &str) -> bool {
    let is_plain = |component: Component<'_>| matches!(component, Component::Normal(_) | Component::CurDir);
    !path.is_empty() && one_line(path) == path && Path::new(path).components().all(is_plain)
}

fn checkpoint_words(found: &Checkpoint, has_handoff: bool) -> String {
    let percent = found.percent_at_checkpoint.map_or("?".to_owned(), |percent| percent.to_string());
    let handoff = if has_handoff {
        one_line(&found.handoff_file)
    } else if found.handoff_file.is_empty() {
        "no handoff is named: one is written from this".to_owned()
    } else {
        format!("its handoff {} is not there: one is written from this", quoted(&found.handoff_file))
    };
    format!("{} at {percent}%, item {}; {handoff}", found.level, quoted(&found.current_todo_item))
}

impl Row {
    /// As it is shown, the names in one column.
    pub fn line(&self, width: usize) -> String {
        let outcome = match &self.outcome {
            FieldOutcome::Taken(what) => format!("taken: {what}"),
            FieldOutcome::Filled(what) => format!("missing, filled with: {what}"),
            FieldOutcome::Ignored(why) => format!("ignored: {why}"),
            FieldOutcome::Kept => "kept in the file as it is".to_owned(),
        };
        format!("  {:width$}  {outcome}", clip(&one_line(&self.field), SHOWN))
    }
}

#[cfg(test)]
mod tests;
