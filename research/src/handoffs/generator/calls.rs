//! Tool calls that carry no fact: reading, searching, running commands.

use super::super::events::ToolCall;
use super::super::random_draws::Draws;
use super::author::Author;

/// The longest output of a command in characters; the client moves longer ones into a file.
const MAX_OUTPUT_CHARS: usize = 30_000;
/// The lines of a large read; they have about 75 kB.
const LARGE_READ_LINES: (usize, usize) = (1_500, 2_100);

#[derive(Clone, Copy)]
enum RoutineKind {
    Read,
    Grep,
    Glob,
    ShortCommand,
    LongCommand,
    FetchedPage,
}

impl Author {
    /// Writes a message with one routine call, an edit, or several parallel calls.
    pub(super) fn write_routine_message(&mut self) {
        if self.draws.number_below(100) < self.edit_percent {
            return self.write_edit();
        }
        if self.draws.bool_with_percent(12) {
            let calls = (0..self.draws.number_between(2, 3)).map(|_| self.routine_call()).collect();
            let text = self.draws.bool_with_percent(40).then(|| self.phrases.filler_text());
            return self.write_message(text, calls);
        }
        let call = self.routine_call();
        self.write_call(call);
    }

    pub(super) fn routine_call(&mut self) -> ToolCall {
        let kind = self.draws.pick_weighted(&[
            (34, RoutineKind::Read),
            (12, RoutineKind::Grep),
            (4, RoutineKind::Glob),
            (26, RoutineKind::ShortCommand),
            (22, RoutineKind::LongCommand),
            (2, RoutineKind::FetchedPage),
        ]);
        match kind {
            RoutineKind::Read => self.read_of_source_file().0,
            RoutineKind::Grep => self.search_with_matches().0,
            RoutineKind::Glob => {
                let paths: Vec<String> = self.source_paths().into_iter().take(20).collect();
                ToolCall::new_glob(&format!("**/*.{}", self.phrases.theme.extension), &paths)
            }
            RoutineKind::ShortCommand => self.short_command(),
            RoutineKind::LongCommand => {
                let chars = self.draws.log_uniform_number(200, MAX_OUTPUT_CHARS);
                let (command, output) = (self.passing_command(), self.log_output(chars).join("\n"));
                ToolCall::new_bash(&command, &output)
            }
            RoutineKind::FetchedPage => {
                let url = format!("https://docs.example.org/{}", self.phrases.noun());
                let answer = self.log_output(1_500).join("\n");
                ToolCall::new_web_fetch(&url, "What does it say?", &answer)
            }
        }
    }

    /// Returns a read of a part of a source file, and the lines that it shows.
    pub(super) fn read_of_source_file(&mut self) -> (ToolCall, Vec<String>) {
        let path = self.random_source_path();
        let lines = self.files.lines(&path).to_vec();
        let is_partial = lines.len() > 60 && self.draws.bool_with_percent(40);
        let (start, count) = if is_partial {
            let count = self.draws.number_between(20, lines.len() / 2);
            (self.draws.number_below(lines.len() - count), count)
        } else {
            (0, lines.len())
        };
        let shown_lines = lines[start..start + count].to_vec();
        (ToolCall::new_read(&path, &shown_lines, start + 1, lines.len()), shown_lines)
    }

    /// Returns a search for a word that has matches, and its lines.
    pub(super) fn search_with_matches(&mut self) -> (ToolCall, Vec<String>) {
        let word = self.phrases.noun();
        let max_matches = self.draws.log_uniform_number(3, 60);
        let mut matches = Vec::new();
        for path in self.source_paths() {
            let matching_lines =
                self.files.lines(&path).iter().enumerate().filter(|(_, line)| line.contains(word));
            matches.extend(matching_lines.map(|(index, line)| format!("{path}:{}:{line}", index + 1)));
        }
        matches.truncate(max_matches);
        (ToolCall::new_grep(word, &matches), matches)
    }

    fn short_command(&mut self) -> ToolCall {
        let (noun, path) = (self.phrases.noun(), self.random_source_path());
        match self.draws.number_below(6) {
            0 => ToolCall::new_bash("git status --short", &format!(" M {path}")),
            1 => ToolCall::new_bash("ls", "README.md\ndata\nlogs"),
            2 => {
                let line_count = self.files.lines(&path).len();
                ToolCall::new_bash(&format!("wc -l '{path}'"), &format!("{line_count} {path}"))
            }
            3 => ToolCall::new_bash_search_without_matches(&format!(
                "grep -rn {} .",
                self.phrases.identifier()
            )),
            // It fails, but nothing is wrong: the model only looked whether the folder exists.
            4 if self.draws.bool_with_percent(50) => {
                let folder = format!("build/{}", self.phrases.identifier());
                let error = format!("ls: cannot access '{folder}': No such file or directory");
                ToolCall::new_failed_bash(&format!("ls {folder}"), 2, &error)
            }
            4 => ToolCall::new_bash(
                &format!("git log --oneline -5 -- '{path}'"),
                &self.log_output(200).join("\n"),
            ),
            _ => ToolCall::new_bash(&format!("mkdir -p build/{noun}"), ""),
        }
    }

    /// Returns a command that no other call runs.
    pub(super) fn passing_command(&mut self) -> String {
        let theme = self.phrases.theme;
        let identifier = self.phrases.identifier();
        let command = if self.draws.bool_with_percent(70) { theme.test_command } else { theme.build_command };
        format!("{command} {identifier}")
    }

    /// Returns the lines of an output with about this many characters.
    pub(super) fn log_output(&mut self, chars: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let mut length = 0;
        while length < chars {
            let line = self.phrases.log_line();
            length += line.len() + 1;
            lines.push(line);
        }
        lines
    }

    pub(super) fn write_large_read(&mut self) {
        let path = self.draws.pick(&self.data_files).clone();
        let lines = self.files.lines(&path);
        let count = self.draws.number_between(LARGE_READ_LINES.0, LARGE_READ_LINES.1).min(lines.len());
        let start = self.draws.number_below(lines.len() - count + 1);
        let call = ToolCall::new_read(&path, &lines[start..start + count], start + 1, lines.len());
        self.write_call(call);
    }
}

/// Inserts the line at the end of an output, or somewhere in it. Returns true if it is at the end.
pub(super) fn insert_line_at_end_or_anywhere(
    draws: &mut Draws,
    lines: &mut Vec<String>,
    line: &str,
    last_percent: usize,
) -> bool {
    let is_last = draws.bool_with_percent(last_percent);
    let position = if is_last { lines.len() } else { draws.number_below(lines.len().max(1)) };
    lines.insert(position, line.to_owned());
    is_last || position + 1 == lines.len()
}
