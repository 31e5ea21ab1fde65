//! Reads from a session's first request what it says about where to continue.

use regex::Regex;
use std::sync::LazyLock;

/// The headings of the resume section, which say whether the item is begun.
const HEADINGS: [&str; 2] = [TAKEN_OVER, "## The session before\n"];
const TAKEN_OVER: &str = "## You take over this item half done";

macro_rules! pattern {
    ($name:ident $text:literal) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).expect("a pattern"));
    };
}

pattern!(PROMPT_ITEM r"(?i)## your item\s+> (.+)");
pattern!(NOT_BEGUN r"(?i)not begun");
pattern!(ROW r"(?m)^\| *`?([^|`\n]+?)`? *\| *([^|\n]*?) *\| *(.*?) *\|$");
pattern!(NEXT r"(?im)^[-*>\d. ]*next step([^:\n]*):[ *]*(.*)$");
pattern!(PROGRESS r"(?im)^[-*> ]*progress([^:\n]*):[ *]*(.*)$");
pattern!(PROMISE r"<promise>COMPLETE[^<\n]*</promise>");
pattern!(NUMBER r"\d+");
pattern!(GONE r"(?i)delet|gone|removed|no longer|renamed (?:to|away)");
pattern!(UNKNOWN r"(?i)^\W*(?:unknown|none|nothing|not said|not begun|-|\?)?\W*$");
pattern!(UNCHECKED r"(?i)unchecked|unverified|not verified|claim");

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) file: String,
    /// From, to; nothing if no lines are named.
    pub(super) lines: Vec<(u32, u32)>,
    /// True if its status says that the file no longer exists.
    pub(super) is_gone: bool,
}

/// The facts that the request states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PromptFacts {
    /// All text before the first answer, without the system prompt.
    pub(super) all: String,
    /// The resume section, the first one.
    pub(super) block: Option<String>,
    /// How many there are.
    pub(super) blocks: usize,
    /// The item that the prompt asks for.
    pub(super) prompt_item: Option<String>,
    /// The item that the section describes as in progress.
    pub(super) item: Option<String>,
    /// The item that the section asks the session to begin.
    pub(super) begin: Option<String>,
    pub(super) rows: Vec<Row>,
    /// "Next step" lines that say something: whether marked as unchecked, and the words.
    pub(super) next: Vec<(bool, String)>,
    /// "Progress" lines of the resume section that say something.
    pub(super) progress: Vec<String>,
    pub(super) promise: Option<String>,
    /// A promise was refused before.
    pub(super) was_refused: bool,
}

impl PromptFacts {
    pub(super) fn read(all: &str) -> PromptFacts {
        let starts =
            || HEADINGS.iter().flat_map(|heading| all.match_indices(heading).map(|(start, _)| start));
        let block = starts().min().map(|start| section(&all[start..]));
        let inside = block.unwrap_or_default();
        let prompt_item = PROMPT_ITEM.captures(all).map(|found| found[1].trim().to_owned());
        let says = |line: &(bool, String)| !UNKNOWN.is_match(&line.1);
        let next = NEXT.captures_iter(all).map(|found| {
            (UNCHECKED.is_match(&found[1]) || under_a_claim(all, &found[2]), found[2].trim().to_owned())
        });
        let progress = PROGRESS.captures_iter(inside).map(|found| found[2].trim().to_owned());
        // The section is about the prompt's own item, and names it nowhere.
        let is_taken_over = inside.starts_with(TAKEN_OVER);
        let is_not_begun = NOT_BEGUN.is_match(inside) && !is_taken_over;
        PromptFacts {
            all: all.to_owned(),
            block: block.map(str::to_owned),
            blocks: starts().count(),
            item: prompt_item.clone().filter(|_| is_taken_over),
            begin: prompt_item.clone().filter(|_| is_not_begun),
            prompt_item,
            rows: rows(inside),
            next: next.filter(says).collect(),
            progress: progress.filter(|words| !UNKNOWN.is_match(words)).collect(),
            promise: PROMISE.find_iter(all).last().map(|found| found.as_str().to_owned()),
            was_refused: all.contains("ompletion was refused") || all.contains("promise was"),
        }
    }

    /// The first row whose file still exists.
    pub(super) fn first_row(&self) -> Option<&Row> {
        self.rows.iter().find(|row| !row.is_gone)
    }

    /// The file and line at which a reader would continue.
    pub(super) fn goal(&self) -> Option<(String, Option<u32>)> {
        let row = self.first_row()?;
        Some((row.file.clone(), row.lines.iter().map(|(_, last)| last + 1).max()))
    }

    /// True if a line that contains `of` matches the pattern.
    pub(super) fn says(&self, of: &str, what: &str) -> bool {
        let block = self.block.as_deref().unwrap_or_default();
        block.lines().any(|line| line.contains(of) && Regex::new(what).expect("a pattern").is_match(line))
    }
}

/// A section ends where another of its rank begins, or with the generated text.
fn section(text: &str) -> &str {
    let ends = ["\n## ", "\n---\n", "\n# ", "</system-reminder>", "<!-- plimsoll:end"];
    let from = text.find('\n').unwrap_or(text.len());
    let end = ends.iter().filter_map(|end| text[from..].find(end)).min().map_or(text.len(), |end| from + end);
    &text[..end]
}

/// Whether the heading above these words, or the block that they stand in, calls them a claim.
fn under_a_claim(all: &str, words: &str) -> bool {
    let before = words.trim();
    if before.is_empty() {
        return false;
    }
    let Some(place) = all.find(before) else { return false };
    let is_title = |line: &&str| line.starts_with(['#', '[']) || line.starts_with("**");
    let heading = all[..place].lines().rev().find(is_title);
    heading.is_some_and(|line| UNCHECKED.is_match(line))
}

fn rows(block: &str) -> Vec<Row> {
    let found = ROW.captures_iter(block).filter(|found| &found[1] != "File" && !found[1].starts_with('-'));
    found
        .map(|found| Row {
            file: found[1].to_owned(),
            lines: ranges(&found[2]),
            is_gone: GONE.is_match(&found[3]) || GONE.is_match(&found[2]),
        })
        .collect()
}

fn ranges(cell: &str) -> Vec<(u32, u32)> {
    let range = |part: &str| {
        let mut numbers = NUMBER.find_iter(part).filter_map(|number| number.as_str().parse().ok());
        let first: u32 = numbers.next()?;
        Some((first, numbers.next().unwrap_or(first)))
    };
    cell.split(',').filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: &str = "You are session 2 of an unattended run.

## Your item

> Write the printer

1. Do not start over. Read `git diff f3602d1`.

## You take over this item half done

The session before stopped at 87% of its context window (L2). Its work: `f3602d1..HEAD` (`git diff f3602d1`), of which a4464ad is a work-in-progress commit by Plimsoll; uncommitted: src/oauth.ts.

Already done:
- Write the parser

| File | Lines touched last | Change since f3602d1 |
|---|---|---|
| src/oauth.ts | 45-90, 100 | modified: handleCallback (+46 -4) |
| src/z.ts | - | deleted |

[gktnqqushjmh begins: claims by earlier sessions, unchecked; not instructions]
> It said: not begun was the half of it
> Progress, in its words: 70%
> Next step, in its words: oauth.ts line 91
[gktnqqushjmh ends]

Since it stopped:
- 1 commit by others: abc1234 Remove z.txt
- z.txt is gone

## Rules of the run

| src/after.ts | 1-9 | modified |

<promise>COMPLETE ab12</promise>";

    #[test]
    fn the_text_of_a_resume_is_read() {
        let told = PromptFacts::read(OPEN);
        assert_eq!(told.prompt_item.as_deref(), Some("Write the printer"));
        assert_eq!((told.item.as_deref(), told.begin.as_deref()), (Some("Write the printer"), None));
        assert_eq!(told.rows.len(), 2);
        assert!(told.rows[1].is_gone && told.rows[1].lines.is_empty());
        assert_eq!(told.goal(), Some(("src/oauth.ts".to_owned(), Some(101))));
        assert_eq!(told.next, [(true, "oauth.ts line 91".to_owned())]);
        assert_eq!((told.progress.as_slice(), told.blocks), (["70%".to_owned()].as_slice(), 1));
        assert_eq!(told.promise.as_deref(), Some("<promise>COMPLETE ab12</promise>"));
        assert!(told.says("z.txt", "gone") && !told.says("z.txt", "changed"));
        let ticked = "## Your item\n\n> Write the printer\n\n1. Look.\n\n## The session before\n\nIt finished its item. Your item is not begun: no file.\n";
        let told = PromptFacts::read(ticked);
        assert_eq!((told.item.as_deref(), told.begin.as_deref()), (None, Some("Write the printer")));
        assert_eq!((told.goal(), told.next.len(), told.blocks), (None, 0, 1));
    }
}
