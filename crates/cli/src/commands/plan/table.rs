//! Renders the output of `plimsoll plan`: Markdown that is also easy to read in a terminal.

use plimsoll_domain::plan_remarks::render_number_ranges;
use plimsoll_domain::size::ItemSize;
use plimsoll_domain::text::{count_with_noun, format_tokens, to_safe_single_line, truncate_end};
use plimsoll_policy::pack::EstimateSource;
use plimsoll_policy::plan::{PlannedItem, SessionCapacity, SessionPlan};
use std::collections::HashSet;

const MAX_SHOWN_GROUPS: usize = 40;
/// At least this many consecutive single-item sessions are shown as a range.
const MIN_RANGE_LENGTH: usize = 5;

/// The estimate of a plan, ready to be rendered.
#[derive(Debug)]
pub(super) struct PlanTable<'a> {
    pub(super) plan: &'a SessionPlan,
    /// The capacity of one session.
    pub(super) capacity: SessionCapacity,
    /// True when the size of the window is unknown.
    pub(super) is_window_assumed: bool,
    pub(super) plan_file: &'a str,
    pub(super) done_count: usize,
    /// Items that wait for an answer, with their questions.
    pub(super) parked_items: Vec<(&'a str, &'a str)>,
    /// The model that the user passes to the client.
    pub(super) client_model: Option<&'a str>,
}

impl PlanTable<'_> {
    /// Renders the whole page as Markdown.
    pub(super) fn render(&self) -> String {
        let items = &self.plan.items;
        if items.is_empty() {
            return format!(
                "## Plan\n\nNothing is open in {} ({} done).",
                self.plan_file,
                count_with_noun(self.done_count, "item")
            );
        }
        if self.capacity.is_full_at_start() {
            return format!(
                "{}\n\n{}",
                self.render_title_and_session_capacity(),
                self.render_no_item_fits_message()
            );
        }
        let parts = [
            self.render_title_and_session_capacity(),
            self.render_item_table(),
            self.render_session_counts_with_and_without_pack(),
            self.render_items_to_split(),
            self.render_verify_commands(),
            self.render_parked_items(),
            self.render_problems(),
        ];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }

    /// Renders the text shown instead of the table if no item fits into a session.
    fn render_no_item_fits_message(&self) -> String {
        format!(
            "No item fits into a session: a new one already holds about {} tokens with its first answer, and the checkpoint (L2) comes at {}.\n\nCheck what is loaded at the start (`/context` in Claude Code shows it): CLAUDE.md files, MCP servers, a resumed conversation; or choose a model with a larger window.",
            format_tokens(self.capacity.start_tokens),
            format_tokens(self.capacity.l2_tokens),
        )
    }

    fn render_title_and_session_capacity(&self) -> String {
        let assumption =
            if self.is_window_assumed { ", assumed: no session has been recorded here yet" } else { "" };
        format!(
            "## Plan\n\n{} open in {}, {} done. A session has room for about {} tokens before L2 (window {}{assumption}).",
            count_with_noun(self.plan.items.len(), "item"),
            self.plan_file,
            self.done_count,
            format_tokens(self.capacity.work_tokens()),
            format_tokens(self.capacity.window_tokens),
        )
    }

    fn render_item_table(&self) -> String {
        let has_model_column = self.has_item_with_other_model();
        let parked_texts: HashSet<&str> = self.parked_items.iter().map(|(item, _)| *item).collect();
        let rows: String = self
            .plan
            .items
            .iter()
            .map(|item| self.render_item_row(item, &parked_texts, has_model_column))
            .collect();
        let (model_title, model_separator) =
            if has_model_column { (" Model |", "------|") } else { ("", "") };
        format!(
            "| # | Item | Size | Share of a window | Sessions | By |{model_title}\n|---|------|------|------|------|------|{model_separator}\n{}",
            rows.trim_end()
        )
    }

    /// Returns true if an item uses a model other than the usual one.
    fn has_item_with_other_model(&self) -> bool {
        self.plan.items.iter().any(|item| item.model.as_deref() != self.client_model)
    }

    fn render_item_row(
        &self,
        item: &PlannedItem,
        parked_texts: &HashSet<&str>,
        has_model_column: bool,
    ) -> String {
        let share = match item.estimate.tokens.saturating_mul(100) / self.capacity.window_tokens.max(1) {
            0 => "<1%".to_owned(),
            percent => format!("{percent}%"),
        };
        let parked_note =
            if parked_texts.contains(item.text.as_str()) { " (waits for an answer)" } else { "" };
        let model = if has_model_column {
            format!(" {} |", item.model.as_deref().unwrap_or("-"))
        } else {
            String::new()
        };
        format!(
            "| {} | {} | {} | {share} | {} | {} |{model}\n",
            item.number,
            truncate_end(&to_safe_single_line(&item.text), 60).replace('|', "\\|") + parked_note,
            item.stated_size.map_or("-", ItemSize::as_str),
            item.session_count,
            estimate_source_text(item.estimate.source),
        )
    }

    /// Renders the list of the items' verify commands, or an empty text if there are none.
    fn render_verify_commands(&self) -> String {
        let render_line = |item: &PlannedItem| {
            item.verify_command
                .as_ref()
                .map(|check| format!("- Item {}: `{}`\n", item.number, to_safe_single_line(check)))
        };
        let lines: String = self.plan.items.iter().filter_map(render_line).collect();
        if lines.is_empty() {
            lines
        } else {
            format!("Checks, which run only with `plimsoll run --plan-verify`:\n\n{}", lines.trim_end())
        }
    }

    /// Renders the list of questions that the user must answer before a session works on their items.
    fn render_parked_items(&self) -> String {
        let render_line = |(item, question): &(&str, &str)| {
            format!(
                "- \"{}\": {}\n",
                truncate_end(&to_safe_single_line(item), 60),
                truncate_end(&to_safe_single_line(question), 200)
            )
        };
        let lines: String = self.parked_items.iter().map(render_line).collect();
        if lines.is_empty() {
            lines
        } else {
            format!("Waiting for your answer (`plimsoll status`):\n\n{}", lines.trim_end())
        }
    }

    fn render_session_counts_with_and_without_pack(&self) -> String {
        let plan = self.plan;
        let has_shared_session = plan.sessions_without_pack.iter().any(|group| group.len() > 1);
        let sharing_note = if has_shared_session {
            format!(
                " ({}): trivial neighbors share one",
                self.render_item_numbers_by_session(&plan.sessions_without_pack)
            )
        } else {
            String::new()
        };
        format!(
            "One item a session: {}{sharing_note}. With `--pack`, in your order: {} ({}).",
            count_with_noun(plan.count_sessions(&plan.sessions_without_pack) as usize, "session"),
            count_with_noun(plan.count_sessions(&plan.sessions_with_pack) as usize, "session"),
            self.render_item_numbers_by_session(&plan.sessions_with_pack),
        )
    }

    fn render_items_to_split(&self) -> String {
        let item_numbers: Vec<usize> =
            self.plan.items.iter().filter(|item| item.should_split).map(|item| item.number).collect();
        if item_numbers.is_empty() {
            return String::new();
        }
        format!(
            "Split: {}. No session has room for such an item, so a checkpoint would interrupt it: add its parts as `- [ ]` lines below it.",
            render_number_ranges(&item_numbers)
        )
    }

    fn render_problems(&self) -> String {
        let lines: Vec<String> =
            self.plan.problems.iter().map(|problem| format!("- In {}, {problem}.", self.plan_file)).collect();
        lines.join("\n")
    }

    /// Renders the items of each session in order, as in `1+2 · 3–6 · 7 (2 sessions) · 8 to 12 one by one`.
    fn render_item_numbers_by_session(&self, item_groups: &[Vec<usize>]) -> String {
        let session_count = |group: &Vec<usize>| self.plan.count_sessions(std::slice::from_ref(group));
        let are_consecutive_single_items = |current: &Vec<usize>, next: &Vec<usize>| {
            let is_single_session_item = |group: &Vec<usize>| group.len() == 1 && session_count(group) <= 1;
            is_single_session_item(current) && is_single_session_item(next) && current[0] + 1 == next[0]
        };
        let render_group = |group: &Vec<usize>| {
            let numbers = render_number_ranges(group).replace(", ", "+");
            match session_count(group) {
                0 | 1 => numbers,
                sessions => format!("{numbers} ({sessions} sessions)"),
            }
        };
        let mut parts: Vec<String> = Vec::new();
        let mut remaining_count = item_groups.len();
        for consecutive_groups in item_groups.chunk_by(are_consecutive_single_items) {
            if parts.len() >= MAX_SHOWN_GROUPS {
                break;
            }
            remaining_count -= consecutive_groups.len();
            match consecutive_groups {
                [first, .., last] if consecutive_groups.len() >= MIN_RANGE_LENGTH => {
                    parts.push(format!("{} to {} one by one", first[0], last[0]));
                }
                _ => parts.extend(consecutive_groups.iter().map(render_group)),
            }
        }
        if remaining_count > 0 {
            parts.push(format!("and {remaining_count} more"));
        }
        parts.join(" · ")
    }
}

/// Returns the text for the source of an estimate. A stated size is not repeated, because it has its own column.
fn estimate_source_text(source: EstimateSource) -> String {
    match source {
        EstimateSource::StatedSize(_) => "its stated size".to_owned(),
        _ => source.describe(),
    }
}
