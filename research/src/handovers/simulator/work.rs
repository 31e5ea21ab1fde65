//! The work of a harder night: items of several steps in several source-like files, and the texts of these
//! files.

use plimsoll_testkit::Dice;
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
    fn choose(dice: Dice) -> Language {
        [Language::Rust, Language::TypeScript, Language::Python][dice.roll("language", 3) as usize]
    }

    fn extension(self) -> &'static str {
        match self {
            Language::Rust => "rs",
            Language::TypeScript => "ts",
            Language::Python => "py",
        }
    }

    fn function_head(self, name: &str) -> String {
        match self {
            Language::Rust => format!("pub fn {name}(input: u32) -> u32 {{"),
            Language::TypeScript => format!("export function {name}(input: number): number {{"),
            Language::Python => format!("def {name}(value):"),
        }
    }

    fn body_line(self, number: usize) -> String {
        match self {
            Language::Rust => format!("    let v{number} = input + {number};"),
            Language::TypeScript => format!("    const v{number} = input + {number};"),
            Language::Python => format!("    v{number} = value + {number}"),
        }
    }

    fn function_end(self) -> &'static str {
        match self {
            Language::Rust | Language::TypeScript => "}",
            Language::Python => "    return value",
        }
    }

    fn comment_marker(self) -> &'static str {
        if self == Language::Python { "#" } else { "//" }
    }

    fn function_text(self, name: &str) -> String {
        let body: Vec<String> = (1..=BODY_LINES).map(|number| self.body_line(number)).collect();
        format!("{}\n{}\n{}\n\n", self.function_head(name), body.join("\n"), self.function_end())
    }

    fn file_text(self, stem: &str) -> String {
        FUNCTION_NAMES.iter().map(|function| self.function_text(&format!("{stem}_{function}"))).collect()
    }
}

/// One step of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Some lines of one function are rewritten, and a line may be added.
    Edit {
        file: String,
        function: String,
        first_line: usize,
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
    /// Returns the file that the step leaves behind or deletes.
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

/// The items to do, and the files at the start.
#[derive(Clone, Debug)]
pub struct NightWork {
    pub(super) language: Language,
    pub(super) items: Vec<WorkItem>,
    pub(super) files: Vec<(String, String)>,
}

/// A change of a file: the lines from `first` to `last` (counted from 1) are replaced.
pub(super) struct TextChange {
    pub(super) first_line: usize,
    pub(super) last_line: usize,
    pub(super) old_text: String,
    pub(super) new_text: String,
}

impl NightWork {
    /// Creates the work of a seed: three or four items.
    pub fn new(dice: Dice) -> NightWork {
        let language = Language::choose(dice);
        let count = 3 + dice.roll("items", 2) as usize;
        let first_theme = dice.roll("themes", THEMES.len() as u64) as usize;
        let themes = (0..count).map(|offset| THEMES[(first_theme + offset) % THEMES.len()]);
        let mut work = NightWork { language, items: Vec::new(), files: Vec::new() };
        let extension = language.extension();
        let helper_file = format!("src/a_helper.{extension}");
        let mut helper_text = language.function_text("helper_noise");
        for (item_number, (theme, name)) in themes.enumerate() {
            helper_text += &language.function_text(&format!("helper_{theme}"));
            work.files.extend(
                [
                    format!("src/{theme}.{extension}"),
                    format!("src/{theme}/detail.{extension}"),
                    format!("lib/{theme}_old.{extension}"),
                    format!("src/{theme}_legacy.{extension}"),
                ]
                .map(|path| (path.clone(), language.file_text(&file_stem(&path)))),
            );
            let steps = choose_steps(dice, item_number, theme, extension, &helper_file);
            work.items.push(WorkItem { name: name.to_owned(), steps });
        }
        helper_text += &language.function_text("helper_last");
        work.files.push((helper_file, helper_text));
        work.files.push(("docs/guide.md".to_owned(), "# Guide\n\nWords.\n".to_owned()));
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

    /// The paths and texts of the files at the start.
    pub fn files(&self) -> &[(String, String)] {
        &self.files
    }

    pub(super) fn existed_at_start(&self, path: &str) -> bool {
        self.files.iter().any(|(file, _)| file == path)
    }

    pub(super) fn find_item(&self, name: &str) -> Option<usize> {
        self.items.iter().position(|item| item.name == name)
    }

    /// Returns the mark that a step leaves in each line that it writes.
    pub(super) fn step_mark(item: usize, step: usize) -> String {
        format!("DONE {}.{}", item + 1, step + 1)
    }

    /// Returns the change that an edit step makes to the text of its file, or `None` if its place is not in
    /// the text.
    pub(super) fn text_change(&self, item: usize, step: usize, text: &str) -> Option<TextChange> {
        let Operation::Edit { function, first_line, line_count, adds_line, .. } =
            &self.items[item].steps[step]
        else {
            return None;
        };
        let head = self.language.function_head(function);
        let text_lines: Vec<&str> = text.lines().collect();
        let start = text_lines.iter().position(|line| *line == head)? + first_line;
        let old_lines = text_lines.get(start..start + line_count)?;
        let (comment, mark) = (self.language.comment_marker(), NightWork::step_mark(item, step));
        let mut new_lines: Vec<String> =
            old_lines.iter().map(|line| format!("{line} {comment} {mark}")).collect();
        if *adds_line {
            new_lines.push(format!("{} {comment} {mark}", self.language.body_line(BODY_LINES + 1)));
        }
        Some(TextChange {
            first_line: start + 1,
            last_line: start + line_count,
            old_text: old_lines.join("\n"),
            new_text: new_lines.join("\n"),
        })
    }

    /// Returns the text of a file that a step creates.
    pub(super) fn new_file_text(&self, item: usize, step: usize, path: &str) -> String {
        let (comment, mark) = (self.language.comment_marker(), NightWork::step_mark(item, step));
        format!(
            "{comment} begun, {mark}\n{}{comment} ended, {mark}\n",
            self.language.file_text(&file_stem(path))
        )
    }
}

fn file_stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path).split('.').next().unwrap_or(path);
    if name == "detail" {
        path.split('/').nth(1).unwrap_or(name).to_owned() + "_detail"
    } else {
        name.to_owned()
    }
}

/// The dice for one item.
#[derive(Clone, Copy)]
struct ItemDice {
    dice: Dice,
    item_number: usize,
}

impl ItemDice {
    fn roll(self, roll_name: &str, sides: u64) -> u64 {
        self.dice.roll(&format!("{roll_name} of item {}", self.item_number), sides)
    }

    fn happens_with_percent(self, roll_name: &str, percent: u64) -> bool {
        self.roll(roll_name, 100) < percent
    }

    fn edit_step(self, file: &str, function: String, roll_name: &str) -> Operation {
        Operation::Edit {
            file: file.to_owned(),
            function,
            first_line: 2 + self.roll(&format!("first {roll_name}"), 3) as usize,
            line_count: 1 + self.roll(&format!("lines {roll_name}"), 4) as usize,
            adds_line: self.happens_with_percent(&format!("added {roll_name}"), 40),
        }
    }

    /// Returns an edit of one of the file's own functions.
    fn edit_step_in_own_function(self, path: &str, function_index: u64, roll_name: &str) -> Operation {
        self.edit_step(
            path,
            format!("{}_{}", file_stem(path), FUNCTION_NAMES[function_index as usize]),
            roll_name,
        )
    }
}

/// Chooses an item's steps: chunks in random order. The order inside a chunk is fixed, except that some edits
/// are from bottom to top.
fn choose_steps(
    dice: Dice,
    item_number: usize,
    theme: &str,
    extension: &str,
    helper_file: &str,
) -> Vec<Operation> {
    let dice = ItemDice { dice, item_number };
    let main_file = format!("src/{theme}.{extension}");
    let mut edits = vec![
        dice.edit_step_in_own_function(&main_file, dice.roll("main 1", 4), "main 1"),
        dice.edit_step_in_own_function(&main_file, 5 + dice.roll("main 2", 4), "main 2"),
    ];
    if dice.happens_with_percent("order", 15) {
        edits.reverse();
    }
    let mut chunks = vec![edits];
    if dice.happens_with_percent("new", 50) {
        let file = format!("src/{theme}/extra_{theme}.{extension}");
        let mut chunk = vec![Operation::Create { file: file.clone() }];
        if dice.happens_with_percent("edit of new", 40) {
            chunk.push(dice.edit_step_in_own_function(&file, 2 + dice.roll("new", 6), "new"));
        }
        chunks.push(chunk);
    }
    if dice.happens_with_percent("rename", 40) {
        let (from, to) =
            (format!("lib/{theme}_old.{extension}"), format!("lib/core/{theme}_base.{extension}"));
        let mut chunk = vec![Operation::Rename { from: from.clone(), to: to.clone() }];
        if dice.happens_with_percent("edit of renamed", 75) {
            let function =
                format!("{}_{}", file_stem(&from), FUNCTION_NAMES[1 + dice.roll("renamed", 8) as usize]);
            chunk.push(dice.edit_step(&to, function, "renamed"));
        }
        chunks.push(chunk);
    }
    if dice.happens_with_percent("delete", 35) {
        chunks.push(vec![Operation::Delete { file: format!("src/{theme}_legacy.{extension}") }]);
    }
    if dice.happens_with_percent("detail", 60) {
        chunks.push(vec![dice.edit_step_in_own_function(
            &format!("src/{theme}/detail.{extension}"),
            dice.roll("detail", 10),
            "detail",
        )]);
    }
    let mut order: Vec<usize> = (0..chunks.len()).collect();
    order.sort_by_key(|index| dice.roll(&format!("chunk {index}"), 1_000));
    let helper_edit = vec![dice.edit_step(helper_file, format!("helper_{theme}"), "helper")];
    let is_helper_first = dice.happens_with_percent("helper first", 65);
    let mut steps: Vec<Operation> = if is_helper_first { helper_edit.clone() } else { Vec::new() };
    steps.extend(order.into_iter().flat_map(|index| chunks[index].clone()));
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
            let work = NightWork::new(Dice::new(seed));
            let mut files: std::collections::BTreeMap<String, String> = work.files.iter().cloned().collect();
            for (number, item) in work.items.iter().enumerate() {
                assert!(item.steps.len() >= 3, "{item:?}");
                for (step, op) in item.steps.iter().enumerate() {
                    match op {
                        Operation::Edit { file, .. } => {
                            let text = files.get_mut(file).unwrap_or_else(|| panic!("{seed} {file}"));
                            let change = work.text_change(number, step, text).expect("a place");
                            *text = text.replacen(&change.old_text, &change.new_text, 1);
                        }
                        Operation::Create { file } => {
                            files.insert(file.clone(), work.new_file_text(number, step, file));
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
