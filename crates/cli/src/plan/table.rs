//! What `plimsoll plan` prints: Markdown that is also read easily in a terminal. A pure function.

use policy::plan::{Plan, Planned, Room};
use session::size::Size;
use session::text::{clip, counted, one_line, tokens};

/// What it is made from.
#[derive(Debug)]
pub(super) struct View<'a> {
    /// The plan.
    pub(super) plan: &'a Plan,
    /// Where the work happens.
    pub(super) room: Room,
    /// True when nobody has said how large the window is.
    pub(super) is_assumed: bool,
    /// The to-do list.
    pub(super) file: &'a str,
    /// How many items are ticked.
    pub(super) done: usize,
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
        let parts = [self.title(), self.table(), self.sessions(), self.split(), self.complaints()];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }

    fn title(&self) -> String {
        let assumed = if self.is_assumed { ", assumed: no session is known here yet" } else { "" };
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
        let rows: String = self.plan.items.iter().map(|item| self.row(item)).collect();
        format!(
            "| # | Item | Size | Share of a window | Sessions | By |\n|---|------|------|------|------|------|\n{}",
            rows.trim_end()
        )
    }

    fn row(&self, item: &Planned) -> String {
        let percent = item.estimate.tokens.saturating_mul(100) / self.room.window.max(1);
        format!(
            "| {} | {} | {} | {percent}% | {} | {} |\n",
            item.number,
            clip(&one_line(&item.text), 60).replace('|', "\\|"),
            item.size.map_or("-", Size::word),
            item.sessions,
            item.estimate.source.words(),
        )
    }

    fn sessions(&self) -> String {
        let plan = self.plan;
        let packed = plan.sessions(&plan.in_order);
        let mut text = format!(
            "One item a session: {}. With `--pack`, in your order: {} ({}).",
            counted(plan.one_by_one as usize, "session"),
            counted(packed as usize, "session"),
            groups(&plan.in_order),
        );
        if let Some(better) = &plan.better {
            let sessions = plan.sessions(better);
            text.push_str(&format!(
                "\n\n**Recommendation**: with `--pack`, this order saves {}: {}. Reorder {} so if you want it; a run follows your order.",
                counted((packed - sessions) as usize, "session"),
                groups(better),
                self.file,
            ));
        }
        text
    }

    fn split(&self) -> String {
        let large: Vec<String> =
            self.plan.items.iter().filter(|item| item.split).map(|item| item.number.to_string()).collect();
        if large.is_empty() {
            return String::new();
        }
        format!(
            "Split: {}, for no session has room for it. Its checkpoints will fall into its middle.",
            large.join(", ")
        )
    }

    fn complaints(&self) -> String {
        let lines: Vec<String> =
            self.plan.complaints.iter().map(|words| format!("- In {}, {words}.", self.file)).collect();
        lines.join("\n")
    }
}

/// `1+2 · 3`: what a session does, session after session.
fn groups(groups: &[Vec<usize>]) -> String {
    let group = |group: &Vec<usize>| group.iter().map(usize::to_string).collect::<Vec<_>>().join("+");
    groups.iter().map(group).collect::<Vec<_>>().join(" · ")
}
