//! The items of the work: a plan file, or the client's own task list.

use super::super::events::{Change, ToolCall};
use super::ListKind;
use super::author::Author;
use serde_json::{Value, json};

pub(super) const PLAN_FILE: &str = "fix_plan.md";
/// The lines of the plan file before its first item.
const PLAN_HEAD_LINES: usize = 2;

/// The items in the order of the list, and in the order in which they are done.
#[derive(Debug, Default)]
pub(super) struct WorkList {
    items: Vec<String>,
    /// Indexes of items, in the order in which they are done.
    order: Vec<usize>,
    done_count: usize,
    /// The list's value at the client's last `TodoWrite`.
    todos: Value,
    /// The number that the client gave to the first task of this list.
    first_task_number: usize,
}

impl WorkList {
    pub(super) fn current_item(&self) -> Option<String> {
        self.order.get(self.done_count).map(|index| self.items[*index].clone())
    }

    fn is_done(&self, index: usize) -> bool {
        self.order[..self.done_count].contains(&index)
    }

    fn status(&self, index: usize) -> &'static str {
        match self.order.get(self.done_count) {
            _ if self.is_done(index) => "completed",
            Some(current) if *current == index => "in_progress",
            _ => "pending",
        }
    }

    fn todo_values(&self) -> Value {
        let to_value = |(index, item): (usize, &String)| json!({ "content": item, "status": self.status(index), "activeForm": format!("Working on: {item}") });
        self.items.iter().enumerate().map(to_value).collect()
    }
}

impl Author {
    pub(super) fn create_plan_file(&mut self) {
        self.draw_new_items();
        self.work.list.done_count = self.draws.number_between(0, 3);
        if self.traits.takes_items_out_of_order {
            let count = self.work.list.items.len();
            for position in (self.work.list.done_count + 1..count).rev() {
                let other = self.draws.number_between(self.work.list.done_count, position);
                self.work.list.order.swap(position, other);
            }
        }
        let list = &self.work.list;
        let mut lines = vec!["# Plan".to_owned(), String::new()];
        for (index, item) in list.items.iter().enumerate() {
            lines.push(format!("- [{}] {item}", if list.is_done(index) { 'x' } else { ' ' }));
        }
        self.files.insert(PLAN_FILE, lines);
    }

    fn draw_new_items(&mut self) {
        let count = self.draws.number_between(7, 14);
        self.work.list.items = (0..count).map(|_| self.phrases.plan_item()).collect();
        self.work.list.order = (0..count).collect();
        self.work.list.done_count = 0;
    }

    /// Writes the calls with which the assistant starts a list for a new request.
    pub(super) fn start_list_for_request(&mut self) {
        match self.traits.list_kind {
            ListKind::TodoWrite => {
                self.draw_new_items();
                let (old_todos, new_todos) = (self.work.list.todos.take(), self.work.list.todo_values());
                self.work.list.todos = new_todos.clone();
                self.write_call(ToolCall::new_todo_write(&old_todos, &new_todos));
            }
            ListKind::Tasks => {
                // The client's tasks stay until they are done, so the open ones of the last request are finished first.
                self.complete_remaining_tasks();
                let first_number = self.work.list.first_task_number + self.work.list.items.len();
                self.draw_new_items();
                self.work.list.first_task_number = first_number;
                let items = self.work.list.items.clone();
                let create_call = |(index, item): (usize, &String)| {
                    ToolCall::new_task_create(first_number + index + 1, item)
                };
                self.write_message(None, items.iter().enumerate().map(create_call).collect());
                self.write_call(ToolCall::new_task_update(first_number + 1, "pending", "in_progress"));
            }
            ListKind::PlanFile if self.traits.takes_items_out_of_order => self.announce_current_item(),
            ListKind::PlanFile | ListKind::None => {}
        }
    }

    fn complete_remaining_tasks(&mut self) {
        let list = &mut self.work.list;
        let first_number = list.first_task_number;
        let open_items: Vec<usize> = (0..list.items.len()).filter(|index| !list.is_done(*index)).collect();
        list.done_count = list.items.len();
        for index in open_items {
            self.write_message(
                None,
                vec![ToolCall::new_task_update(first_number + index + 1, "in_progress", "completed")],
            );
        }
    }

    /// Finishes the current item and begins the next. Does nothing if there are no items, or only two are left.
    pub(super) fn finish_current_item(&mut self) {
        let list = &mut self.work.list;
        if list.done_count + 2 >= list.items.len() {
            return;
        }
        let done_index = list.order[list.done_count];
        let done_item = list.items[done_index].clone();
        list.done_count += 1;
        let next_index = list.order[list.done_count];
        self.work.outdated_statements.done_items.push(done_item.clone());
        match self.traits.list_kind {
            ListKind::PlanFile => self.tick_plan_item(done_index, &done_item),
            ListKind::TodoWrite => {
                let (old_todos, new_todos) = (self.work.list.todos.take(), self.work.list.todo_values());
                self.work.list.todos = new_todos.clone();
                self.write_call(ToolCall::new_todo_write(&old_todos, &new_todos));
            }
            ListKind::Tasks => {
                let first_number = self.work.list.first_task_number + 1;
                self.write_call(ToolCall::new_task_update(
                    first_number + done_index,
                    "in_progress",
                    "completed",
                ));
                self.write_call(ToolCall::new_task_update(
                    first_number + next_index,
                    "pending",
                    "in_progress",
                ));
            }
            ListKind::None => {}
        }
    }

    fn tick_plan_item(&mut self, index: usize, item: &str) {
        let ticked_line = format!("- [x] {item}");
        let change = self.files.replace_lines(PLAN_FILE, PLAN_HEAD_LINES + index, 1, &[ticked_line]);
        let call = ToolCall::new_edit(
            PLAN_FILE,
            &change.old_string,
            &change.new_string,
            &change.original,
            change.hunk,
        );
        let write = Change::Write { path: PLAN_FILE.to_owned(), content: change.content };
        self.write_call(call.with_changes(vec![write]));
        if self.traits.takes_items_out_of_order {
            self.announce_current_item();
        }
    }

    /// Says which item comes next, because the order of the plan does not.
    fn announce_current_item(&mut self) {
        if let Some(item) = self.work.list.current_item() {
            let text = format!("The item that I work on now is \"{item}\".");
            let call = ToolCall::new_bash("git status --short", "");
            self.write_message(Some(text), vec![call]);
        }
    }
}
