//! Tables of usage, as Markdown that fits the terminal.

use super::{UsageList, UsageRow, UserRun};
use crate::marked_costs::format_marked_cost;
use chrono::{DateTime, Utc};
use plimsoll_domain::cost::Cost;
use plimsoll_domain::text::{format_tokens, to_safe_single_line};
use plimsoll_policy::usage::UsageTotals;
use plimsoll_store::{clock, environment};
use plimsoll_terminal::console;

// A narrower terminal has no column for more than the cost and all tokens, or for the kinds of tokens.
const COLUMNS_FOR_DETAILS: usize = 72;
const COLUMNS_FOR_TOKEN_KINDS: usize = 110;

/// A column of figures.
struct Column {
    heading: &'static str,
    min_terminal_columns: usize,
    cell: fn(&UsageTotals) -> String,
}

const FIGURE_COLUMNS: [Column; 7] = [
    Column { heading: "COST", min_terminal_columns: 0, cell: |totals| format_marked_cost(totals.cost) },
    Column {
        heading: "TOKENS",
        min_terminal_columns: 0,
        cell: |totals| format_tokens(totals.tokens.total_tokens()),
    },
    Column {
        heading: "OUTPUT",
        min_terminal_columns: COLUMNS_FOR_DETAILS,
        cell: |totals| format_tokens(totals.tokens.output),
    },
    Column {
        heading: "INPUT",
        min_terminal_columns: COLUMNS_FOR_TOKEN_KINDS,
        cell: |totals| format_tokens(totals.tokens.input),
    },
    Column {
        heading: "CACHE WRITE",
        min_terminal_columns: COLUMNS_FOR_TOKEN_KINDS,
        cell: |totals| {
            format_tokens(totals.tokens.cache_write_5m.saturating_add(totals.tokens.cache_write_1h))
        },
    },
    Column {
        heading: "CACHE READ",
        min_terminal_columns: COLUMNS_FOR_TOKEN_KINDS,
        cell: |totals| format_tokens(totals.tokens.cache_read),
    },
    Column {
        heading: "BY SUBAGENTS",
        min_terminal_columns: COLUMNS_FOR_DETAILS,
        cell: |totals| format_tokens(totals.subagent_tokens),
    },
];

/// Renders the rows and their sum for the width of the terminal.
pub(super) fn render_markdown_with_total(list: UsageList, rows: &[UsageRow]) -> String {
    let terminal_columns = console::terminal_columns().unwrap_or(usize::MAX);
    let (first_heading, last_heading) = match list {
        UsageList::Daily => ("DAY", Some("MODELS")),
        UsageList::Blocks => ("FIVE HOURS FROM", Some("STATE")),
        UsageList::Models => ("MODEL", None),
        UsageList::Projects | UsageList::Runs => ("PROJECT", None),
    };
    let has_notes = rows.iter().any(|row| !row.note.is_empty());
    let last_heading = last_heading.filter(|_| has_notes && terminal_columns >= COLUMNS_FOR_DETAILS);
    let sum: UsageTotals = rows.iter().map(|row| row.totals).sum();
    let columns = || {
        let fitting = FIGURE_COLUMNS.iter().filter(|column| column.min_terminal_columns <= terminal_columns);
        fitting.filter(|column| column.heading != "BY SUBAGENTS" || sum.subagent_tokens > 0)
    };
    let render_row = |label: &str, totals: &UsageTotals, note: &str| {
        let figures = columns().map(|column| (column.cell)(totals));
        let note = last_heading.map(|_| note.to_owned());
        markdown_row([label.to_owned()].into_iter().chain(figures).chain(note))
    };
    let headings =
        [first_heading].into_iter().chain(columns().map(|column| column.heading)).chain(last_heading);
    let alignments = ["---"].into_iter().chain(columns().map(|_| "---:")).chain(last_heading.map(|_| "---"));
    let rows = rows.iter().map(|row| render_row(&row.label, &row.totals, &row.note));
    markdown_row(headings)
        + &markdown_row(alignments)
        + &rows.collect::<String>()
        + &render_row("Total", &sum, "")
}

/// Renders the table of runs.
pub(super) fn render_markdown_of_runs_with_total(runs: &[(DateTime<Utc>, UserRun)]) -> String {
    let render_row = |(started_at, run): &(DateTime<Utc>, UserRun)| {
        let started_at = clock::local_time_from_unix_seconds(started_at.timestamp());
        markdown_row([
            started_at.format("%Y-%m-%d %H:%M").to_string(),
            run.state.run_id.to_string(),
            environment::abbreviate_home(&run.project),
            run.state.lifecycle.status().to_string(),
            format_marked_cost(run.cost()),
            format_tokens(run.state.spending.tokens),
        ])
    };
    let cost: Cost = runs.iter().map(|(_, run)| run.cost()).sum();
    let tokens = runs.iter().map(|(_, run)| run.state.spending.tokens).fold(0, u64::saturating_add);
    let head = markdown_row(["STARTED", "RUN", "PROJECT", "STATUS", "COST", "TOKENS"])
        + &markdown_row(["---", "---", "---", "---", "---:", "---:"]);
    let sum = markdown_row(["Total", "", "", "", &format_marked_cost(cost), &format_tokens(tokens)]);
    head + &runs.iter().map(render_row).collect::<String>() + &sum
}

fn markdown_row(cells: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let escape_cell = |cell: &str| format!(" {} |", to_safe_single_line(cell).replace('|', "\\|"));
    let cells: String = cells.into_iter().map(|cell| escape_cell(cell.as_ref())).collect();
    format!("|{cells}\n")
}
