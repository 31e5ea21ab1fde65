//! Compares what a session's first request says with the truth: item, file, line and next step, each by itself.

use super::ledger::{By, ByPerson, Class, Ledger, Next, Truth};
use super::style::{Folder, Style};
use super::told::PromptFacts;
use super::work::{Op, Work};
use serde::{Deserialize, Serialize};

/// How accurately one session was told where to continue.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Resume {
    /// The number of the session in its night.
    pub session: u32,
    /// Half done, ticked or not begun.
    pub class: String,
    /// How the previous session ended.
    pub after: String,
    /// What makes the case difficult: tags for the agent's style and the item's history.
    pub tags: Vec<String>,
    /// True if the item is right, and every claim about it.
    pub item: bool,
    /// The file edited last, and none of a finished item.
    pub file: bool,
    /// The lines of the last edit.
    pub line: bool,
    /// True if the next step is quoted once, unchanged, and marked as a claim.
    pub next: bool,
    /// The section or the summary came more than once.
    pub is_sent_twice: bool,
    /// Changes by users: how many the request mentions, and how many there were.
    pub stale: (u32, u32),
    /// What was wrong.
    pub wrong: Vec<String>,
    /// The section, where something was wrong.
    pub told: String,
}

impl Resume {
    /// All four are right.
    pub fn is_right(&self) -> bool {
        self.item && self.file && self.line && self.next
    }
}

pub(super) fn judge(
    told: &PromptFacts,
    truth: &Truth,
    work: &Work,
    ledger: &Ledger,
    style: &Style,
) -> Resume {
    let name = &work.items[truth.item].name;
    let item = item(told, truth, name, work, ledger);
    let file = file(told, truth, work, ledger);
    let line = line(told, truth, work);
    let next = next(told, truth);
    let mut resume = Resume {
        class: format!("{:?}", truth.class),
        tags: tags(truth, style),
        item: item.is_none(),
        file: file.is_none(),
        line: line.is_none(),
        next: next.is_none(),
        is_sent_twice: is_sent_twice(told, truth),
        stale: stale(told, truth),
        ..Resume::default()
    };
    let named = [("item", item), ("file", file), ("line", line), ("next step", next)];
    resume.wrong = named.into_iter().filter_map(|(what, why)| Some(format!("{what}: {}", why?))).collect();
    if !resume.wrong.is_empty() || resume.is_sent_twice || resume.stale.0 < resume.stale.1 {
        resume.told = told.block.clone().unwrap_or_else(|| "no resume section".to_owned());
    }
    resume
}

fn tags(truth: &Truth, style: &Style) -> Vec<String> {
    let mut tags = vec![
        format!("{:?}", style.folder).to_lowercase(),
        format!("commits {:?}", style.commits),
        format!("hands {:?}", style.hands),
    ];
    let has = [
        (style.pack, "pack"),
        (style.several, "several items a session"),
        (truth.sessions > 1, "a third session"),
        (truth.is_forgotten, "forgotten tick"),
        (!truth.people.is_empty(), "people"),
        (truth.class == Class::Half && truth.is_file_known, "file can be known"),
        (truth.class == Class::Half && truth.are_lines_known, "lines can be known"),
        (truth.by == Some(By::Shell), "last edit by shell"),
        (style.folder != Folder::Plain && style.ticks_uncommitted, "ticks uncommitted"),
    ];
    tags.extend(has.into_iter().filter(|(has, _)| *has).map(|(_, tag)| tag.to_owned()));
    tags
}

fn item(told: &PromptFacts, truth: &Truth, name: &str, work: &Work, ledger: &Ledger) -> Option<String> {
    if let Some(other) = told.prompt_item.as_ref().filter(|other| *other != name) {
        return Some(format!("the prompt asks for \"{other}\", it is \"{name}\""));
    }
    let is_ticked = |one: &&String| work.find(one).is_some_and(|item| ledger.is_ticked(work, item));
    if let Some(finished) = told.item.as_ref().filter(is_ticked) {
        return Some(format!("\"{finished}\" is finished, and is said to be in progress"));
    }
    match (truth.class, &told.block, &told.item, &told.begin) {
        (Class::Half, None, ..) => Some(format!("nothing says that \"{name}\" is half done")),
        (Class::Half, _, Some(item), _) if item == name => None,
        (Class::Half, _, item, begin) => {
            Some(format!("in progress {item:?}, to begin {begin:?}: \"{name}\" is half done"))
        }
        (Class::Ticked | Class::Fresh, None, ..) if told.prompt_item.is_some() => None,
        (Class::Ticked | Class::Fresh, _, _, Some(begin)) if begin == name => None,
        (Class::Fresh, _, Some(item), _) if item == name => None,
        (Class::Ticked | Class::Fresh, _, item, begin) => {
            Some(format!("in progress {item:?}, to begin {begin:?}: nobody has begun \"{name}\""))
        }
    }
}

fn file(told: &PromptFacts, truth: &Truth, work: &Work, ledger: &Ledger) -> Option<String> {
    let rows = || told.rows.iter().filter(|row| !row.is_gone).map(|row| row.file.as_str());
    if let Some(finished) = rows().find(|file| truth.finished.iter().any(|one| one == file)) {
        return Some(format!("{finished} belongs to a finished item"));
    }
    if let Some(gone) = rows().find(|file| !ledger.exists(file)) {
        return Some(format!("{gone} is not there"));
    }
    let own: Vec<&str> = work.items[truth.item].steps.iter().map(Op::file).collect();
    match (&truth.file, told.first_row()) {
        (None, None) => None,
        (None, Some(row)) => Some(format!("nothing of it is in a file, and {:?} is named", row.file)),
        (Some(file), None) if truth.is_file_known && !words_name(told, file, truth) => {
            Some(format!("{file} was edited last, and none is named"))
        }
        (Some(_), None) => None,
        (Some(file), Some(row)) => {
            let may_be = |one: &String| {
                one == file
                    || Some(one) == truth.moved.as_ref()
                    || (!truth.is_file_known && truth.traces.contains(one))
            };
            let other = Some(&row.file).filter(|one| !may_be(one))?;
            let own = if own.contains(&other.as_str()) { "of this item" } else { "not of this item" };
            Some(format!("{other} ({own}) stands first, {file} was edited last"))
        }
    }
}

/// True if the quoted next step names the place itself.
fn words_name(told: &PromptFacts, file: &str, truth: &Truth) -> bool {
    let line = truth.lines.map_or(0, |(_, last)| last + 1);
    let place = format!("{file} line {line},");
    told.next.iter().any(|(_, words)| words.contains(&place))
}

fn line(told: &PromptFacts, truth: &Truth, work: &Work) -> Option<String> {
    let (Some(file), Some((first, last))) = (&truth.file, truth.lines) else {
        // `file` has already reported a file of another item; this reports lines where nothing is begun.
        let range = told.first_row().filter(|_| truth.class != Class::Half)?.lines.first()?;
        return Some(format!("lines {range:?} are named, and nothing is begun"));
    };
    let row = told.rows.iter().find(|row| row.file == *file).filter(|row| !row.lines.is_empty());
    let Some(row) = row else {
        let is_told = words_name(told, file, truth) || !truth.are_lines_known;
        return (!is_told).then(|| format!("no lines of {file} are named, the last edit is {first}-{last}"));
    };
    // In a new file every line is new. Only for a file that existed at the start is a range of all lines uninformative.
    let is_all = row.lines.iter().any(|(from, to)| *from <= 1 && to + 1 >= truth.file_lines);
    let says_nothing = is_all && work.existed(file) && last - first < truth.file_lines / 2;
    let holds = row.lines.iter().any(|(from, to)| *from <= first && last <= *to);
    if holds && !(says_nothing && truth.are_lines_known) {
        return None;
    }
    let is_moved =
        truth.people.iter().any(|one| matches!(one, ByPerson::Edited { file: of, .. } if of == file));
    (truth.are_lines_known || !is_moved)
        .then(|| format!("{:?} of {file} are named, the last edit is {first}-{last}", row.lines))
}

fn next(told: &PromptFacts, truth: &Truth) -> Option<String> {
    if truth.class == Class::Ticked
        && let Some(progress) = told.progress.first()
    {
        return Some(format!("progress of the item before is told: {progress}"));
    }
    let only = match (&truth.next, &told.next[..]) {
        (Next::Nothing | Next::Older(_), []) => return None,
        (Next::Nothing, [(_, words), ..]) => return Some(format!("invented, or of before: {words}")),
        (Next::Said(words), []) if told.all.contains(words) => {
            return Some(format!("no line of its own: {words}"));
        }
        (Next::Said(words), []) => return Some(format!("not told: {words}")),
        (Next::Said(words) | Next::Older(words), [(unchecked, line)]) => {
            if line != words {
                return Some(format!("told \"{line}\", said \"{words}\""));
            }
            (!unchecked).then(|| "not marked as unchecked".to_owned())
        }
        (Next::Said(_) | Next::Older(_), lines) => Some(format!("told {} times", lines.len())),
    };
    let words = match &truth.next {
        Next::Said(words) | Next::Older(words) => words,
        Next::Nothing => return only,
    };
    let times = told.all.matches(words.as_str()).count();
    only.or_else(|| (times > 1).then(|| format!("stands in the request {times} times")))
}

fn is_sent_twice(told: &PromptFacts, truth: &Truth) -> bool {
    let twice = |words: &String| told.all.matches(words.as_str()).count() > 1;
    told.blocks > 1 || truth.summary.as_ref().is_some_and(twice)
}

/// Counts the users' changes that the prompt of a half-done item mentions (commits by subject, deleted and changed files by
/// name), and all of them.
fn stale(told: &PromptFacts, truth: &Truth) -> (u32, u32) {
    if truth.class != Class::Half {
        return (0, 0);
    }
    let said = truth.people.iter().filter(|one| match one {
        ByPerson::Edited { file, subject } => {
            told.says(subject, ".") && told.says(file, "(?i)chang|modified by|edited")
        }
        ByPerson::Deleted { file, subject } => {
            told.says(subject, ".") && told.says(file, "(?i)gone|delet|no longer")
        }
        ByPerson::Other { subject } => told.says(subject, "."),
    });
    (said.count() as u32, truth.people.len() as u32)
}
