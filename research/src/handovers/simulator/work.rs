//! The work of a harder simulation: items of several steps in several source files, and the texts of these
//! files.

use plimsoll_testkit::SeededRng;
use std::fmt::Write as _;

/// The names of the functions, in the order in which they are in a file.
const FUNCTION_NAMES: [&str; 10] =
    ["open", "read", "check", "split", "merge", "count", "format", "store", "close", "reset"];
const THEMES: [(&str, &str); 6] = [
    ("parser", "Write the parser"),
    ("printer", "Rework the printer"),
    ("ledger", "Move the ledger to cents"),
    ("oauth", "Add the OAuth callback"),
    ("dates", "Read dates of the old form"),
    ("report", "Split the report into pages"),
];
/// The number of lines in the body of a function.
const BODY_LINES: usize = 9;
/// The largest number of steps of an item.
const MAX_STEPS: usize = 6;

/// The programming language of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    TypeScript,
    Python,
}

impl Language {
    fn random(rng: SeededRng) -> Language {
        [Language::Rust, Language::TypeScript, Language::Python]
            [rng.random_number_for_name("language", 3) as usize]
    }

    fn extension(self) -> &'static str {
        match self {
            Language::Rust => "rs",
            Language::TypeScript => "ts",
            Language::Python => "py",
        }
    }

    fn function_signature_line(self, name: &str) -> String {
        match self {
            Language::Rust => format!("pub fn {name}(input: u32) -> u32 {{"),
            Language::TypeScript => format!("export function {name}(input: number): number {{"),
            Language::Python => format!("def {name}(value):"),
        }
    }

    fn function_body_line(self, number: usize) -> String {
        match self {
            Language::Rust => format!("    let v{number} = input + {number};"),
            Language::TypeScript => format!("    const v{number} = input + {number};"),
            Language::Python => format!("    v{number} = value + {number}"),
        }
    }

    fn function_last_line(self) -> &'static str {
        match self {
            Language::Rust | Language::TypeScript => "}",
            Language::Python => "    return value",
        }
    }

    fn line_comment_prefix(self) -> &'static str {
        if self == Language::Python { "#" } else { "//" }
    }

    fn function_text(self, name: &str) -> String {
        let body: Vec<String> = (1..=BODY_LINES).map(|number| self.function_body_line(number)).collect();
        format!(
            "{}\n{}\n{}\n\n",
            self.function_signature_line(name),
            body.join("\n"),
            self.function_last_line()
        )
    }

    fn file_text(self, name_prefix: &str) -> String {
        FUNCTION_NAMES
            .iter()
            .map(|function| self.function_text(&format!("{name_prefix}_{function}")))
            .collect()
    }
}

/// One step of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Some lines of one function are rewritten, and a line may be added.
    Edit {
        file: String,
        function: String,
        first_line_offset: usize,
        line_count: usize,
        adds_line: bool,
    },
    /// A file is created.
    Create {
        file: String,
    },
    Rename {
        from: String,
        to: String,
    },
    Delete {
        file: String,
    },
}

impl Operation {
    /// Returns the file that the step changes, creates or deletes; for a rename, the new path.
    pub(super) fn affected_file(&self) -> &str {
        match self {
            Operation::Edit { file, .. } | Operation::Create { file } | Operation::Delete { file } => file,
            Operation::Rename { to, .. } => to,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct WorkItem {
    pub(super) name: String,
    pub(super) steps: Vec<Operation>,
}

/// The items to do, and the initial files.
#[derive(Clone, Debug)]
pub struct SimulatedWork {
    pub(super) language: Language,
    pub(super) items: Vec<WorkItem>,
    pub(super) initial_files: Vec<(String, String)>,
}

/// A change of a file: the lines from `first_line` to `last_line` (counted from 1) are replaced.
pub(super) struct TextChange {
    pub(super) first_line: usize,
    pub(super) last_line: usize,
    pub(super) old_text: String,
    pub(super) new_text: String,
}

impl SimulatedWork {
    /// Creates random work: three or four items.
    pub fn random(rng: SeededRng) -> SimulatedWork {
        let language = Language::random(rng);
        let item_count = 3 + rng.random_number_for_name("items", 2) as usize;
        let first_theme = rng.random_number_for_name("themes", THEMES.len() as u64) as usize;
        let themes = (0..item_count).map(|offset| THEMES[(first_theme + offset) % THEMES.len()]);
        let mut work = SimulatedWork { language, items: Vec::new(), initial_files: Vec::new() };
        let extension = language.extension();
        let helper_file = format!("src/a_helper.{extension}");
        let mut helper_text = language.function_text("helper_noise");
        for (item_number, (theme, name)) in themes.enumerate() {
            helper_text += &language.function_text(&format!("helper_{theme}"));
            work.initial_files.extend(
                [
                    format!("src/{theme}.{extension}"),
                    format!("src/{theme}/detail.{extension}"),
                    format!("lib/{theme}_old.{extension}"),
                    format!("src/{theme}_legacy.{extension}"),
                ]
                .map(|path| (path.clone(), language.file_text(&function_name_prefix_from_file_name(&path)))),
            );
            let steps = random_item_steps(rng, item_number, theme, extension, &helper_file);
            work.items.push(WorkItem { name: name.to_owned(), steps });
        }
        helper_text += &language.function_text("helper_last");
        work.initial_files.push((helper_file, helper_text));
        work.initial_files.push(("docs/guide.md".to_owned(), "# Guide\n\nWords.\n".to_owned()));
        work
    }

    /// Returns the text of the plan.
    pub fn plan_text(&self) -> String {
        let mut plan = String::from("# Plan\n\n");
        for item in &self.items {
            let _ = writeln!(plan, "- [ ] {}", item.name);
        }
        plan
    }

    /// The paths and texts of the initial files.
    pub fn initial_files(&self) -> &[(String, String)] {
        &self.initial_files
    }

    pub(super) fn existed_at_start(&self, path: &str) -> bool {
        self.initial_files.iter().any(|(file, _)| file == path)
    }

    pub(super) fn find_item(&self, name: &str) -> Option<usize> {
        self.items.iter().position(|item| item.name == name)
    }

    /// Returns the marker that a step leaves in each line that it writes.
    pub(super) fn step_marker(item: usize, step: usize) -> String {
        format!("DONE {}.{}", item + 1, step + 1)
    }

    /// Returns the change that an edit step makes to the text of its file. Returns `None` if the step is not an
    /// edit or the text does not contain the function.
    pub(super) fn text_change_of_edit_step(
        &self,
        item: usize,
        step: usize,
        text: &str,
    ) -> Option<TextChange> {
        let Operation::Edit { function, first_line_offset: first_line, line_count, adds_line, .. } =
            &self.items[item].steps[step]
        else {
            return None;
        };
        let signature_line = self.language.function_signature_line(function);
        let text_lines: Vec<&str> = text.lines().collect();
        let first_line_index = text_lines.iter().position(|line| *line == signature_line)? + first_line;
        let old_lines = text_lines.get(first_line_index..first_line_index + line_count)?;
        let (comment, marker) = (self.language.line_comment_prefix(), SimulatedWork::step_marker(item, step));
        let mut new_lines: Vec<String> =
            old_lines.iter().map(|line| format!("{line} {comment} {marker}")).collect();
        if *adds_line {
            new_lines
                .push(format!("{} {comment} {marker}", self.language.function_body_line(BODY_LINES + 1)));
        }
        Some(TextChange {
            first_line: first_line_index + 1,
            last_line: first_line_index + line_count,
            old_text: old_lines.join("\n"),
            new_text: new_lines.join("\n"),
        })
    }

    /// Returns the text of a file that a step creates.
    pub(super) fn new_file_text(&self, item: usize, step: usize, path: &str) -> String {
        let (comment, marker) = (self.language.line_comment_prefix(), SimulatedWork::step_marker(item, step));
        format!(
            "{comment} begun, {marker}\n{}{comment} ended, {marker}\n",
            self.language.file_text(&function_name_prefix_from_file_name(path))
        )
    }
}

fn function_name_prefix_from_file_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path).split('.').next().unwrap_or(path);
    if name == "detail" {
        path.split('/').nth(1).unwrap_or(name).to_owned() + "_detail"
    } else {
        name.to_owned()
    }
}

/// The random number generator for one item.
#[derive(Clone, Copy)]
struct ItemRng {
    rng: SeededRng,
    item_number: usize,
}

impl ItemRng {
    fn random_number_for_item(self, choice_name: &str, upper_bound: u64) -> u64 {
        self.rng.random_number_for_name(&format!("{choice_name} of item {}", self.item_number), upper_bound)
    }

    fn random_bool_for_item(self, choice_name: &str, percent: u64) -> bool {
        self.random_number_for_item(choice_name, 100) < percent
    }

    fn random_edit_step(self, file: &str, function: String, choice_name: &str) -> Operation {
        Operation::Edit {
            file: file.to_owned(),
            function,
            first_line_offset: 2 + self.random_number_for_item(&format!("first {choice_name}"), 3) as usize,
            line_count: 1 + self.random_number_for_item(&format!("lines {choice_name}"), 4) as usize,
            adds_line: self.random_bool_for_item(&format!("added {choice_name}"), 40),
        }
    }

    /// Returns an edit of the function with this index in the file.
    fn random_edit_step_in_indexed_function(
        self,
        path: &str,
        function_index: u64,
        choice_name: &str,
    ) -> Operation {
        self.random_edit_step(
            path,
            format!(
                "{}_{}",
                function_name_prefix_from_file_name(path),
                FUNCTION_NAMES[function_index as usize]
            ),
            choice_name,
        )
    }
}

/// Returns random steps for an item: groups of steps in random order. The order within a group is fixed,
/// except that the two edits of the main file may be swapped.
fn random_item_steps(
    rng: SeededRng,
    item_number: usize,
    theme: &str,
    extension: &str,
    helper_file: &str,
) -> Vec<Operation> {
    let item_rng = ItemRng { rng, item_number };
    let main_file = format!("src/{theme}.{extension}");
    let mut edits = vec![
        item_rng.random_edit_step_in_indexed_function(
            &main_file,
            item_rng.random_number_for_item("main 1", 4),
            "main 1",
        ),
        item_rng.random_edit_step_in_indexed_function(
            &main_file,
            5 + item_rng.random_number_for_item("main 2", 4),
            "main 2",
        ),
    ];
    if item_rng.random_bool_for_item("order", 15) {
        edits.reverse();
    }
    let mut step_groups = vec![edits];
    if item_rng.random_bool_for_item("new", 50) {
        let file = format!("src/{theme}/extra_{theme}.{extension}");
        let mut step_group = vec![Operation::Create { file: file.clone() }];
        if item_rng.random_bool_for_item("edit of new", 40) {
            step_group.push(item_rng.random_edit_step_in_indexed_function(
                &file,
                2 + item_rng.random_number_for_item("new", 6),
                "new",
            ));
        }
        step_groups.push(step_group);
    }
    if item_rng.random_bool_for_item("rename", 40) {
        let (from, to) =
            (format!("lib/{theme}_old.{extension}"), format!("lib/core/{theme}_base.{extension}"));
        let mut step_group = vec![Operation::Rename { from: from.clone(), to: to.clone() }];
        if item_rng.random_bool_for_item("edit of renamed", 75) {
            let function = format!(
                "{}_{}",
                function_name_prefix_from_file_name(&from),
                FUNCTION_NAMES[1 + item_rng.random_number_for_item("renamed", 8) as usize]
            );
            step_group.push(item_rng.random_edit_step(&to, function, "renamed"));
        }
        step_groups.push(step_group);
    }
    if item_rng.random_bool_for_item("delete", 35) {
        step_groups.push(vec![Operation::Delete { file: format!("src/{theme}_legacy.{extension}") }]);
    }
    if item_rng.random_bool_for_item("detail", 60) {
        step_groups.push(vec![item_rng.random_edit_step_in_indexed_function(
            &format!("src/{theme}/detail.{extension}"),
            item_rng.random_number_for_item("detail", 10),
            "detail",
        )]);
    }
    let mut group_order: Vec<usize> = (0..step_groups.len()).collect();
    group_order.sort_by_key(|index| item_rng.random_number_for_item(&format!("chunk {index}"), 1_000));
    let helper_edit = vec![item_rng.random_edit_step(helper_file, format!("helper_{theme}"), "helper")];
    let is_helper_first = item_rng.random_bool_for_item("helper first", 65);
    let mut steps: Vec<Operation> = if is_helper_first { helper_edit.clone() } else { Vec::new() };
    steps.extend(group_order.into_iter().flat_map(|index| step_groups[index].clone()));
    if !is_helper_first {
        steps.truncate(MAX_STEPS - 1);
        steps.extend(helper_edit);
    }
    steps.truncate(MAX_STEPS);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_every_seed_can_be_applied_in_order() {
        for seed in 1..300 {
            let work = SimulatedWork::random(SeededRng::new(seed));
            let mut files: std::collections::BTreeMap<String, String> =
                work.initial_files.iter().cloned().collect();
            for (item_number, item) in work.items.iter().enumerate() {
                assert!(item.steps.len() >= 3, "{item:?}");
                for (step, operation) in item.steps.iter().enumerate() {
                    match operation {
                        Operation::Edit { file, .. } => {
                            let text = files.get_mut(file).unwrap_or_else(|| panic!("{seed} {file}"));
                            let change =
                                work.text_change_of_edit_step(item_number, step, text).expect("a place");
                            *text = text.replacen(&change.old_text, &change.new_text, 1);
                        }
                        Operation::Create { file } => {
                            files.insert(file.clone(), work.new_file_text(item_number, step, file));
                        }
                        Operation::Rename { from, to } => {
                            let text = files.remove(from).expect("the file");
                            files.insert(to.clone(), text);
                        }
                        Operation::Delete { file } => assert!(files.remove(file).is_some(), "{seed} {file}"),
                    }
                }
            }
        }
    }
}
