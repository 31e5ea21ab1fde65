//! Edits of source files, and what else changes their line numbers.

use super::super::events::{Change, ToolCall};
use super::super::project_files::LineChange;
use super::super::truth::EditMeans;
use super::author::{Author, TrackedEdit};

impl Author {
    /// Writes an edit of a source file by one of the means that the model has.
    pub(super) fn write_edit(&mut self) {
        let means = self.draws.pick_weighted(&[
            (74, EditMeans::EditTool),
            (10, EditMeans::NewFile),
            (5, EditMeans::WholeFile),
            (11, EditMeans::ShellCommand),
        ]);
        if means == EditMeans::NewFile {
            return self.write_new_file();
        }
        let path = self.path_to_edit();
        let change = self.change_some_lines(&path);
        let call = match means {
            EditMeans::ShellCommand => self.shell_edit(&path, &change),
            EditMeans::WholeFile => {
                let hunk = Some(change.hunk.clone());
                let write = Change::Write { path: path.clone(), content: change.content.clone() };
                ToolCall::new_write(&path, &change.content, Some(&change.original), hunk)
                    .with_changes(vec![write])
            }
            EditMeans::EditTool | EditMeans::NewFile => edit_call(&path, &change),
        };
        self.write_call(call);
        self.record_last_edit(&path, change.first_line, change.last_line, means);
    }

    fn write_new_file(&mut self) {
        let path = self.new_source_path();
        let line_count = self.draws.number_between(10, 55);
        let lines = self.code_lines(line_count);
        self.files.insert(&path, lines);
        let content = self.files.content(&path);
        let call = ToolCall::new_write(&path, &content, None, None);
        self.write_call(call.with_changes(vec![Change::Write { path: path.clone(), content }]));
        self.record_last_edit(&path, 1, line_count, EditMeans::NewFile);
    }

    /// Returns the file that was edited last, or another one.
    fn path_to_edit(&mut self) -> String {
        let last_path = self.work.last_edit.as_ref().map(|edit| edit.path.clone());
        match last_path {
            Some(path) if self.draws.bool_with_percent(60) => path,
            _ => self.random_source_path(),
        }
    }

    /// Replaces, inserts or deletes a few consecutive lines.
    fn change_some_lines(&mut self, path: &str) -> LineChange {
        let line_count = self.files.lines(path).len();
        let (removed_count, new_count) = match self.draws.number_below(100) {
            0..62 => (self.draws.number_between(1, 5), self.draws.number_between(1, 8)),
            62..92 => (0, self.draws.number_between(1, 12)),
            _ => (self.draws.number_between(1, 4), 0),
        };
        // Files never become so short that there is nothing left to change.
        let removed_count = removed_count.min(line_count / 3);
        let start = self.draws.number_between(1, line_count - removed_count - 1);
        let new_lines = self.code_lines(new_count);
        self.files.replace_lines(path, start, removed_count, &new_lines)
    }

    /// Returns a call that makes the change without the client's edit tools, so it has no `structuredPatch`.
    fn shell_edit(&mut self, path: &str, change: &LineChange) -> ToolCall {
        let write = Change::Write { path: path.to_owned(), content: change.content.clone() };
        let (old, new) = (&change.old_string, &change.new_string);
        let first = change.first_line;
        let command = match change.removed_count {
            1.. if self.draws.bool_with_percent(50) => {
                let last = first + change.removed_count - 1;
                let action = if change.new_count == 0 { "d".to_owned() } else { format!("c\\{new}") };
                format!("sed -i '{first},{last}{action}' '{path}'")
            }
            _ => format!(
                "python3 - <<'EOF'\nfrom pathlib import Path\np = Path(\"{path}\")\ns = p.read_text()\n\
                 s = s.replace('''{old}''', '''{new}''')\np.write_text(s)\nEOF"
            ),
        };
        ToolCall::new_bash(&command, "").with_changes(vec![write])
    }

    fn record_last_edit(&mut self, path: &str, first_line: usize, last_line: usize, means: EditMeans) {
        let work = &mut self.work;
        work.last_edit = Some(TrackedEdit {
            path: path.to_owned(),
            first_line,
            last_line,
            means,
            segment: self.segment,
            is_committed: false,
            call_number: self.call_count,
        });
        work.recent_files.retain(|recent| recent != path);
        work.recent_files.insert(0, path.to_owned());
        work.outdated_statements.reverted_files.retain(|reverted| reverted != path);
        if !work.touched_files.iter().any(|touched| touched == path) {
            work.touched_files.push(path.to_owned());
        }
    }

    /// Edits a file that was not touched before, and reverts the edit.
    pub(super) fn write_reverted_edit(&mut self) {
        let untouched_paths: Vec<String> =
            self.source_paths().into_iter().filter(|path| !self.work.touched_files.contains(path)).collect();
        if untouched_paths.is_empty() {
            return;
        }
        let path = self.draws.pick(&untouched_paths).clone();
        let change = self.change_some_lines(&path);
        let removed_lines: Vec<String> = change
            .original
            .lines()
            .skip(change.first_line - 1)
            .take(change.removed_count)
            .map(str::to_owned)
            .collect();
        self.write_call(edit_call(&path, &change));
        for _ in 0..self.draws.number_between(0, 2) {
            let call = self.routine_call();
            self.write_call(call);
        }
        let reversal =
            self.files.replace_lines(&path, change.first_line - 1, change.new_count, &removed_lines);
        let call = if self.draws.bool_with_percent(50) {
            let restore = Change::Write { path: path.clone(), content: reversal.content };
            ToolCall::new_bash(&format!("git checkout -- '{path}'"), "Updated 1 path from the index")
                .with_changes(vec![restore])
        } else {
            edit_call(&path, &reversal)
        };
        let text = format!("That was the wrong place, so I revert the change in {path}.");
        self.write_message(Some(text), vec![call]);
        self.work.touched_files.push(path.clone());
        self.work.outdated_statements.reverted_files.push(path);
    }

    /// Renames the file that was edited last.
    pub(super) fn write_rename(&mut self) {
        let Some(old_path) = self.work.last_edit.as_ref().map(|edit| edit.path.clone()) else { return };
        let new_path = self.new_source_path();
        self.files.rename(&old_path, &new_path);
        let changes =
            vec![Change::new_git(&["add", "--", &old_path]), Change::new_git(&["mv", &old_path, &new_path])];
        let call = ToolCall::new_bash(&format!("git add -A && git mv '{old_path}' '{new_path}'"), "");
        self.write_call(call.with_changes(changes));
        let work = &mut self.work;
        for path in work.recent_files.iter_mut().chain(&mut work.touched_files) {
            if *path == old_path {
                path.clone_from(&new_path);
            }
        }
        if let Some(edit) = &mut work.last_edit {
            edit.path = new_path;
        }
    }

    /// Runs a formatter that inserts a line at the beginning of every source file. The last edit stays the last
    /// one that somebody meant, one line further down.
    pub(super) fn format_all_files_and_shift_last_edit(&mut self) {
        let header = format!("{} {}", self.phrases.theme.comment_prefix, self.phrases.identifier());
        let mut writes = Vec::new();
        for path in self.source_paths() {
            let change = self.files.replace_lines(&path, 0, 0, std::slice::from_ref(&header));
            writes.push(Change::Write { path, content: change.content });
        }
        let output = format!("{} files reformatted", writes.len());
        let call = ToolCall::new_bash(self.phrases.theme.format_command, &output).with_changes(writes);
        self.write_call(call);
        if let Some(edit) = &mut self.work.last_edit {
            edit.first_line += 1;
            edit.last_line += 1;
        }
        // Their content is no longer what it was before the conversation.
        self.work.outdated_statements.reverted_files.clear();
        self.work.touched_files = self.source_paths();
    }

    pub(super) fn write_commit(&mut self) {
        let (verb, noun, number) = (self.phrases.verb(), self.phrases.noun(), self.phrases.unique_number());
        let subject = format!("{verb} the {noun} ({number})");
        let changes =
            vec![Change::new_git(&["add", "-A"]), Change::new_git(&["commit", "--quiet", "-m", &subject])];
        let call = ToolCall::new_bash(
            &format!("git add -A && git commit -m \"{subject}\""),
            &format!("[main 3f2a9c1] {subject}\n 2 files changed, 14 insertions(+), 3 deletions(-)"),
        );
        self.write_call(call.with_changes(changes));
        if let Some(edit) = &mut self.work.last_edit {
            edit.is_committed = true;
        }
    }
}

fn edit_call(path: &str, change: &LineChange) -> ToolCall {
    let write = Change::Write { path: path.to_owned(), content: change.content.clone() };
    ToolCall::new_edit(path, &change.old_string, &change.new_string, &change.original, change.hunk.clone())
        .with_changes(vec![write])
}
