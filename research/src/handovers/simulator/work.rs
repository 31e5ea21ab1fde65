//! The work of a harder night: items of several steps in several source-like files, and what the files look like.

use plimsoll_testkit::Dice;
use std::fmt::Write as _;

/// Names of functions, in the order in which they are in a file.
const FUNCTIONS: [&str; 10] =
    ["open", "read", "check", "split", "merge", "count", "format", "store", "close", "reset"];
const THEMES: [(&str, &str); 6] = [
    ("parser", "Write the parser"),
    ("printer", "Rework the printer"),
    ("ledger", "Move the ledger to cents"),
    ("oauth", "Add the OAuth callback"),
    ("dates", "Read dates of the old form"),
    ("report", "Split the report into pages"),
];
/// Body lines of a function.
const BODY: usize = 9;
/// No item takes more steps than this.
const MOST_STEPS: usize = 6;

/// What the files are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    TypeScript,
    Python,
}

impl Language {
    fn of(dice: Dice) -> Language {
        [Language::Rust, Language::TypeScript, Language::Python][dice.number("language", 3) as usize]
    }

    fn extension(self) -> &'static str {
        match self {
            Language::Rust => "rs",
            Language::TypeScript => "ts",
            Language::Python => "py",
        }
    }

    fn head(self, name: &str) -> String {
        match self {
            Language::Rust => format!("pub fn {name}(input: u32) -> u32 {{"),
            Language::TypeScript => format!("export function {name}(input: number): number {{"),
            Language::Python => format!("def {name}(value):"),
        }
    }

    fn body(self, number: usize) -> String {
        match self {
            Language::Rust => format!("    let v{number} = input + {number};"),
            Language::TypeScript => format!("    const v{number} = input + {number};"),
            Language::Python => format!("    v{number} = value + {number}"),
        }
    }

    fn tail(self) -> &'static str {
        match self {
            Language::Rust | Language::TypeScript => "}",
            Language::Python => "    return value",
        }
    }

    fn comment(self) -> &'static str {
        if self == Language::Python { "#" } else { "//" }
    }

    fn function(self, name: &str) -> String {
        let body: Vec<String> = (1..=BODY).map(|number| self.body(number)).collect();
        format!("{}\n{}\n{}\n\n", self.head(name), body.join("\n"), self.tail())
    }

    fn file(self, stem: &str) -> String {
        FUNCTIONS.iter().map(|function| self.function(&format!("{stem}_{function}"))).collect()
    }
}

/// One step of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// Some lines of one function are rewritten, and perhaps one is added.
    Edit {
        file: String,
        function: String,
        first: usize,
        lines: usize,
        added: bool,
    },
    /// A file is written.
    New {
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

impl Op {
    /// The file that the step leaves behind, or takes away.
    pub(super) fn file(&self) -> &str {
        match self {
            Op::Edit { file, .. } | Op::New { file } | Op::Delete { file } => file,
            Op::Rename { to, .. } => to,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) steps: Vec<Op>,
}

/// What there is to do, and the files at the start.
#[derive(Clone, Debug)]
pub struct Work {
    pub(super) language: Language,
    pub(super) items: Vec<Item>,
    pub(super) files: Vec<(String, String)>,
}

/// How a step changes a file: these lines (from 1) are replaced by that text.
pub(super) struct Change {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) old: String,
    pub(super) new: String,
}

impl Work {
    /// The work of a seed: three or four items.
    pub fn new(dice: Dice) -> Work {
        let language = Language::of(dice);
        let count = 3 + dice.number("items", 2) as usize;
        let start = dice.number("themes", THEMES.len() as u64) as usize;
        let themes = (0..count).map(|number| THEMES[(start + number) % THEMES.len()]);
        let mut work = Work { language, items: Vec::new(), files: Vec::new() };
        let extension = language.extension();
        let helper = format!("src/a_helper.{extension}");
        let mut helpers = language.function("helper_noise");
        for (number, (theme, name)) in themes.enumerate() {
            helpers += &language.function(&format!("helper_{theme}"));
            work.files.extend(
                [
                    format!("src/{theme}.{extension}"),
                    format!("src/{theme}/detail.{extension}"),
                    format!("lib/{theme}_old.{extension}"),
                    format!("src/{theme}_legacy.{extension}"),
                ]
                .map(|path| (path.clone(), language.file(&stem(&path)))),
            );
            let steps = steps(dice, number, theme, extension, &helper);
            work.items.push(Item { name: name.to_owned(), steps });
        }
        helpers += &language.function("helper_last");
        work.files.push((helper, helpers));
        work.files.push(("docs/guide.md".to_owned(), "# Guide\n\nWords.\n".to_owned()));
        work
    }

    /// The plan.
    pub fn plan(&self) -> String {
        let mut plan = String::from("# Plan\n\n");
        for item in &self.items {
            let _ = writeln!(plan, "- [ ] {}", item.name);
        }
        plan
    }

    /// The files at the start, with their texts.
    pub fn files(&self) -> &[(String, String)] {
        &self.files
    }

    pub(super) fn existed(&self, path: &str) -> bool {
        self.files.iter().any(|(file, _)| file == path)
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.items.iter().position(|item| item.name == name)
    }

    /// The mark that a step leaves in each line that it writes.
    pub(super) fn mark(item: usize, step: usize) -> String {
        format!("DONE {}.{}", item + 1, step + 1)
    }

    /// What the step does to the text of its file; none if its place is not found.
    pub(super) fn change(&self, item: usize, step: usize, text: &str) -> Option<Change> {
        let Op::Edit { function, first, lines, added, .. } = &self.items[item].steps[step] else {
            return None;
        };
        let head = self.language.head(function);
        let all: Vec<&str> = text.lines().collect();
        let start = all.iter().position(|line| *line == head)? + first;
        let old = all.get(start..start + lines)?;
        let (comment, mark) = (self.language.comment(), Work::mark(item, step));
        let mut new: Vec<String> = old.iter().map(|line| format!("{line} {comment} {mark}")).collect();
        if *added {
            new.push(format!("{} {comment} {mark}", self.language.body(BODY + 1)));
        }
        Some(Change { first: start + 1, last: start + lines, old: old.join("\n"), new: new.join("\n") })
    }

    /// The text of a new file.
    pub(super) fn fresh(&self, item: usize, step: usize, path: &str) -> String {
        let (comment, mark) = (self.language.comment(), Work::mark(item, step));
        format!("{comment} begun, {mark}\n{}{comment} ended, {mark}\n", self.language.file(&stem(path)))
    }
}

fn stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path).split('.').next().unwrap_or(path);
    if name == "detail" {
        path.split('/').nth(1).unwrap_or(name).to_owned() + "_detail"
    } else {
        name.to_owned()
    }
}

/// The dice as they fall for one item.
#[derive(Clone, Copy)]
struct ItemDice {
    dice: Dice,
    number: usize,
}

impl ItemDice {
    fn throw(self, what: &str, sides: u64) -> u64 {
        self.dice.number(&format!("{what} of item {}", self.number), sides)
    }

    fn happens(self, what: &str, percent: u64) -> bool {
        self.throw(what, 100) < percent
    }

    fn edit(self, file: &str, function: String, what: &str) -> Op {
        Op::Edit {
            file: file.to_owned(),
            function,
            first: 2 + self.throw(&format!("first {what}"), 3) as usize,
            lines: 1 + self.throw(&format!("lines {what}"), 4) as usize,
            added: self.happens(&format!("added {what}"), 40),
        }
    }

    /// An edit of one of the file's own functions.
    fn edit_of(self, path: &str, place: u64, what: &str) -> Op {
        self.edit(path, format!("{}_{}", stem(path), FUNCTIONS[place as usize]), what)
    }
}

/// Chunks in an order of the dice; inside a chunk the order stays, but now and then edits are not from top to bottom.
fn steps(dice: Dice, number: usize, theme: &str, extension: &str, helper: &str) -> Vec<Op> {
    let dice = ItemDice { dice, number };
    let main = format!("src/{theme}.{extension}");
    let mut edits = vec![
        dice.edit_of(&main, dice.throw("main 1", 4), "main 1"),
        dice.edit_of(&main, 5 + dice.throw("main 2", 4), "main 2"),
    ];
    if dice.happens("order", 15) {
        edits.reverse();
    }
    let mut chunks = vec![edits];
    if dice.happens("new", 50) {
        let file = format!("src/{theme}/extra_{theme}.{extension}");
        let mut chunk = vec![Op::New { file: file.clone() }];
        if dice.happens("edit of new", 40) {
            chunk.push(dice.edit_of(&file, 2 + dice.throw("new", 6), "new"));
        }
        chunks.push(chunk);
    }
    if dice.happens("rename", 40) {
        let (from, to) =
            (format!("lib/{theme}_old.{extension}"), format!("lib/core/{theme}_base.{extension}"));
        let mut chunk = vec![Op::Rename { from: from.clone(), to: to.clone() }];
        if dice.happens("edit of renamed", 75) {
            let function = format!("{}_{}", stem(&from), FUNCTIONS[1 + dice.throw("renamed", 8) as usize]);
            chunk.push(dice.edit(&to, function, "renamed"));
        }
        chunks.push(chunk);
    }
    if dice.happens("delete", 35) {
        chunks.push(vec![Op::Delete { file: format!("src/{theme}_legacy.{extension}") }]);
    }
    if dice.happens("detail", 60) {
        chunks.push(vec![dice.edit_of(
            &format!("src/{theme}/detail.{extension}"),
            dice.throw("detail", 10),
            "detail",
        )]);
    }
    let mut order: Vec<usize> = (0..chunks.len()).collect();
    order.sort_by_key(|place| dice.throw(&format!("chunk {place}"), 1_000));
    let help = vec![dice.edit(helper, format!("helper_{theme}"), "helper")];
    let before = dice.happens("helper first", 65);
    let mut steps: Vec<Op> = if before { help.clone() } else { Vec::new() };
    steps.extend(order.into_iter().flat_map(|place| chunks[place].clone()));
    if !before {
        steps.truncate(MOST_STEPS - 1);
        steps.extend(help);
    }
    steps.truncate(MOST_STEPS);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_every_seed_finds_its_place_in_the_files_as_they_are_by_then() {
        for seed in 1..300 {
            let work = Work::new(Dice::new(seed));
            let mut files: std::collections::BTreeMap<String, String> = work.files.iter().cloned().collect();
            for (number, item) in work.items.iter().enumerate() {
                assert!(item.steps.len() >= 3, "{item:?}");
                for (step, op) in item.steps.iter().enumerate() {
                    match op {
                        Op::Edit { file, .. } => {
                            let text = files.get_mut(file).unwrap_or_else(|| panic!("{seed} {file}"));
                            let change = work.change(number, step, text).expect("a place");
                            *text = text.replacen(&change.old, &change.new, 1);
                        }
                        Op::New { file } => {
                            files.insert(file.clone(), work.fresh(number, step, file));
                        }
                        Op::Rename { from, to } => {
                            let text = files.remove(from).expect("the file");
                            files.insert(to.clone(), text);
                        }
                        Op::Delete { file } => assert!(files.remove(file).is_some(), "{seed} {file}"),
                    }
                }
            }
        }
    }
}
