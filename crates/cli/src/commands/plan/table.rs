//! What `plimsoll plan` prints: Markdown that is also read easily in a terminal. A pure function.

use plimsoll_domain::plan_remarks::ranges;
use plimsoll_domain::size::Size;
use plimsoll_domain::text::{clip, counted, one_line, tokens};
use plimsoll_policy::pack::Source;
use plimsoll_policy::plan::{Plan, Planned, Room};
use std::collections::HashSet;

/// How many sessions are listed at most.
const GROUPS_SHOWN: usize = 40;
/// The number of single-item sessions in a row from which on they are shown as a range.
const LONG_RUN: usize = 5;

/// What it is made from.
#[derive(Debug)]
pub(super) struct View<'a> {
    /// The plan.
    pub(super) plan: &'a Plan,
    /// Where the work happens.
    pub(super) room: Room,
    /// True when the size of the window is unknown.
    pub(super) is_assumed: bool,
    /// The plan.
    pub(super) file: &'a str,
    /// How many items are ticked.
    pub(super) done: usize,
    /// Items that wait for an answer, with their questions.
    pub(super) parked: Vec<(&'a str, &'a str)>,
    /// The model that the user passes to the client.
    pub(super) usual_model: Option<&'a str>,
}

impl View<'_> {
    /// The lines.
    pub(super) fn text(&self) -> String {
        let items = &self.plan.items;
        if items.is_empty() {
            return format!(
                "## Plan\n\nNothing is open in {} ({} done).",
                self.file,
                counted(self.done, "item")
            );
        }
        if self.room.is_full_at_start() {
            return format!("{}\n\n{}", self.title(), self.nothing_fits());
        }
        let parts = [
            self.title(),
            self.table(),
            self.sessions(),
            self.split(),
            self.checks(),
            self.waiting(),
            self.complaints(),
        ];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }

    /// Instead of a number of sessions, where there is none.
    fn nothing_fits(&self) -> String {
        format!(
            "No item fits into a session: a new one already holds about {} tokens with its first answer, and the checkpoint (L2) comes at {}.\n\nCheck what is loaded at the start (`/context` in Claude Code shows it): CLAUDE.md files, MCP servers, a resumed conversation; or choose a model with a larger window.",
            tokens(self.room.base),
            tokens(self.room.l2),
        )
    }

    fn title(&self) -> String {
        let assumed = if self.is_assumed { ", assumed: no session has been recorded here yet" } else { "" };
        format!(
            "## Plan\n\n{} open in {}, {} done. A session has room for about {} tokens before L2 (window {}{assumed}).",
            counted(self.plan.items.len(), "item"),
            self.file,
            self.done,
            tokens(self.room.tokens()),
            tokens(self.room.window),
        )
    }

    fn table(&self) -> String {
        let has_models = self.has_models();
        let parked: HashSet<&str> = self.parked.iter().map(|(item, _)| *item).collect();
        let rows: String = self.plan.items.iter().map(|item| self.row(item, &parked, has_models)).collect();
        let (title, rule) = if has_models { (" Model |", "------|") } else { ("", "") };
        format!(
            "| # | Item | Size | Share of a window | Sessions | By |{title}\n|---|------|------|------|------|------|{rule}\n{}",
            rows.trim_end()
        )
    }

    /// True if an item gets another model than the usual one.
    fn has_models(&self) -> bool {
        self.plan.items.iter().any(|item| item.model.as_deref() != self.usual_model)
    }

    fn row(&self, item: &Planned, parked: &HashSet<&str>, has_models: bool) -> String {
        let share = match item.estimate.tokens.saturating_mul(100) / self.room.window.max(1) {
            0 => "<1%".to_owned(),
            percent => format!("{percent}%"),
        };
        let mark = if parked.contains(item.text.as_str()) { " (waits for an answer)" } else { "" };
        let model =
            if has_models { format!(" {} |", item.model.as_deref().unwrap_or("-")) } else { String::new() };
        format!(
            "| {} | {} | {} | {share} | {} | {} |{model}\n",
            item.number,
            clip(&one_line(&item.text), 60).replace('|', "\\|") + mark,
            item.size.map_or("-", Size::word),
            item.sessions,
            by(item.estimate.source),
        )
    }

    /// Commands that items name as their checks.
    fn checks(&self) -> String {
        let line = |item: &Planned| {
            item.check.as_ref().map(|check| format!("- Item {}: `{}`\n", item.number, one_line(check)))
        };
        let lines: String = self.plan.items.iter().filter_map(line).collect();
        if lines.is_empty() {
            lines
        } else {
            format!("Checks, which run only with `plimsoll run --plan-verify`:\n\n{}", lines.trim_end())
        }
    }

    /// What the user has to say before a session works on these.
    fn waiting(&self) -> String {
        let line = |(item, question): &(&str, &str)| {
            format!("- \"{}\": {}\n", clip(&one_line(item), 60), clip(&one_line(question), 200))
        };
        let lines: String = self.parked.iter().map(line).collect();
        if lines.is_empty() {
            lines
        } else {
            format!("Waiting for your answer (`plimsoll status`):\n\n{}", lines.trim_end())
        }
    }

    fn sessions(&self) -> String {
        let plan = self.plan;
        let is_shared = plan.unpacked.iter().any(|group| group.len() > 1);
        let groups = if is_shared {
            format!(" ({}): trivial neighbours share one", self.groups(&plan.unpacked))
        } else {
            String::new()
        };
        format!(
            "One item a session: {}{groups}. With `--pack`, in your order: {} ({}).",
            counted(plan.sessions(&plan.unpacked) as usize, "session"),
            counted(plan.sessions(&plan.in_order) as usize, "session"),
            self.groups(&plan.in_order),
        )
    }

    fn split(&self) -> String {
        let large: Vec<usize> =
            self.plan.items.iter().filter(|item| item.split).map(|item| item.number).collect();
        if large.is_empty() {
            return String::new();
        }
        format!(
            "Split: {}. No session has room for such an item, so a checkpoint would interrupt it: add its parts as `- [ ]` lines below it.",
            ranges(&large)
        )
    }

    fn complaints(&self) -> String {
        let lines: Vec<String> =
            self.plan.complaints.iter().map(|words| format!("- In {}, {words}.", self.file)).collect();
        lines.join("\n")
    }

    /// The items of each session, in order: `1+2 · 3–6 · 7 (2 sessions) · 8 to 12 one by one`.
    fn groups(&self, groups: &[Vec<usize>]) -> String {
        let sessions = |group: &Vec<usize>| self.plan.sessions(std::slice::from_ref(group));
        let is_next = |one: &Vec<usize>, next: &Vec<usize>| {
            let is_one = |group: &Vec<usize>| group.len() == 1 && sessions(group) <= 1;
            is_one(one) && is_one(next) && one[0] + 1 == next[0]
        };
        let group = |group: &Vec<usize>| {
            let numbers = ranges(group).replace(", ", "+");
            match sessions(group) {
                0 | 1 => numbers,
                sessions => format!("{numbers} ({sessions} sessions)"),
            }
        };
        let mut parts: Vec<String> = Vec::new();
        let mut left = groups.len();
        for run in groups.chunk_by(is_next) {
            if parts.len() >= GROUPS_SHOWN {
                break;
            }
            left -= run.len();
            match run {
                [first, .., last] if run.len() >= LONG_RUN => {
                    parts.push(format!("{} to {} one by one", first[0], last[0]));
                }
                _ => parts.extend(run.iter().map(group)),
            }
        }
        if left > 0 {
            parts.push(format!("and {left} more"));
        }
        parts.join(" · ")
    }
}

/// Where a figure comes from. A stated size and its share are in the columns beside it.
fn by(source: Source) -> String {
    match source {
        Source::Stated(_) => "its stated size".to_owned(),
        _ => source.words(),
    }
}
