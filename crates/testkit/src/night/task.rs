//! The work of a night: files to convert from the first line to the last, in parts that the agent reads as it converts
//! them. A converted line has a mark at its end; one that was converted twice has two. Some parts contain a fact that is
//! needed to finish the item.

use super::dice::Dice;
use crate::world::World;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Lines in a part, each of about a thousand bytes: a part is about 5,000 tokens, by a token for four bytes.
pub(super) const PART: u32 = 20;
/// At the end of a converted line.
pub(super) const MARK: &str = " ✓";

/// One line of the plan.
#[derive(Clone, Debug)]
pub struct Item {
    /// The file that is converted.
    pub file: String,
    /// How many lines it has.
    pub lines: u32,
    /// The names of the facts that its end needs, those of its own file first.
    pub needs: Vec<String>,
}

/// A night's work.
#[derive(Clone, Debug)]
pub struct Task {
    /// In the order of the list.
    pub items: Vec<Item>,
    /// What each fact says.
    pub facts: BTreeMap<String, String>,
}

/// The progress in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Lines with a mark from the first line on, without a gap.
    pub done: u32,
    /// Lines with a mark.
    pub marked: u32,
    /// Lines with more than one.
    pub doubled: u32,
}

impl Task {
    /// Half of the items are small, a third of middle size, and a sixth fits no window of 200,000 tokens.
    pub fn new(dice: Dice, items: u32) -> Task {
        let mut task = Task { items: Vec::new(), facts: BTreeMap::new() };
        for number in 1..=items {
            let parts = match dice.number(&format!("class {number}"), 6) {
                0..=2 => 3 + dice.number(&format!("parts {number}"), 6),
                3 | 4 => 9 + dice.number(&format!("parts {number}"), 8),
                _ => 18 + dice.number(&format!("parts {number}"), 10),
            };
            let file = format!("part-{number}.txt");
            let own = [0, parts / 2].map(|part| format!("{file}/{part}"));
            // What the first item finds, every other one needs as well.
            let common = (number > 1).then(|| "part-1.txt/0".to_owned());
            for name in &own {
                let value = dice.number(&format!("fact {name}"), 90_000) + 10_000;
                task.facts.insert(name.clone(), value.to_string());
            }
            let needs = own.into_iter().chain(common).collect();
            task.items.push(Item { file, lines: parts as u32 * PART, needs });
        }
        task
    }

    /// Writes the files and the list into a world's project, and commits them.
    pub fn lay_out(&self, world: &World) {
        let mut plan = String::from("# Plan\n\n");
        for item in &self.items {
            let _ = writeln!(plan, "- [ ] Convert {}", item.file);
            world.write(&item.file, &self.text(item));
        }
        world.write("fix_plan.md", &plan);
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "The work"]);
    }

    fn text(&self, item: &Item) -> String {
        let mut text = String::new();
        for line in 0..item.lines {
            let name = format!("{}/{}", item.file, line / PART);
            let fact = if line % PART == 0 { self.facts.get(&name) } else { None };
            let told = fact.map(|value| format!(" FACT[{name}]={value}")).unwrap_or_default();
            let words = "the ledger of the harbour names every ship with her load and her line ".repeat(14);
            let _ = writeln!(text, "{:05}{told} {}", line + 1, words.trim_end());
        }
        text
    }

    /// How an item's file is in a project.
    pub fn standing(&self, project: &Path, item: &Item) -> Standing {
        let text = std::fs::read_to_string(project.join(&item.file)).unwrap_or_default();
        let marks = |line: &str| line.matches(MARK).count();
        let lines: Vec<usize> = text.lines().map(marks).collect();
        Standing {
            done: lines.iter().take_while(|count| **count > 0).count() as u32,
            marked: lines.iter().filter(|count| **count > 0).count() as u32,
            doubled: lines.iter().filter(|count| **count > 1).count() as u32,
        }
    }

    /// The item that is begun and not finished.
    pub fn begun(&self, project: &Path) -> Option<(&Item, u32)> {
        self.items.iter().find_map(|item| {
            let standing = self.standing(project, item);
            let is_begun = standing.done > 0 && standing.done < item.lines;
            is_begun.then_some((item, standing.done + 1))
        })
    }

    /// The items that the list calls done, by their files.
    pub fn ticked(&self, project: &Path) -> Vec<&Item> {
        let plan = std::fs::read_to_string(project.join("fix_plan.md")).unwrap_or_default();
        let is_ticked = |item: &&Item| plan.contains(&format!("- [x] Convert {}\n", item.file));
        self.items.iter().filter(is_ticked).collect()
    }
}
