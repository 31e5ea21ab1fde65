//! Tables of usage, as Markdown that fits the terminal.

use super::{UsageList, UsageRow, UserRun};
use chrono::{DateTime, Utc};
use plimsoll_domain::cost::Cost;
use plimsoll_domain::text::{format_tokens, to_safe_single_line};
use plimsoll_store::{clock, environment};
use plimsoll_terminal::console;

/// Below this width only the most important columns fit.
const MIN_COLUMNS_FOR_TOKEN_KINDS: usize = 110;

/// Renders the rows and their sum for the width of the terminal.
pub(super) fn render_rows(list: UsageList, rows: &[UsageRow]) -> String {
    let has_token_kinds =
        console::terminal_columns().is_none_or(|columns| columns >= MIN_COLUMNS_FOR_TOKEN_KINDS);
    let (first_heading, last_heading) = match list {
        UsageList::Daily => ("DAY", "MODELS"),
        UsageList::Blocks => ("FIVE HOURS FROM", "STATE"),
        UsageList::Models => ("MODEL", ""),
        UsageList::Projects | UsageList::Runs => ("PROJECT", ""),
    };
    let render_row = |row: &UsageRow| {
        let tokens = row.totals.tokens;
        let cache_writes = tokens.cache_write_5m.saturating_add(tokens.cache_write_1h);
        let kinds = [tokens.input, cache_writes, tokens.cache_read].map(format_tokens);
        let (cost, subagents) = (row.totals.cost, format_tokens(row.totals.subagent_tokens));
        let mut cells = vec![row.label.clone(), cost.basis.format_usd(cost.usd)];
        cells.extend([tokens.total_tokens(), tokens.output].map(format_tokens));
        cells.extend(kinds.into_iter().filter(|_| has_token_kinds));
        cells.extend([subagents, row.note.clone()]);
        markdown_row(cells)
    };
    let mut headings = vec![first_heading, "COST", "TOKENS", "OUTPUT", "INPUT", "CACHE WRITE", "CACHE READ"];
    headings.truncate(if has_token_kinds { 7 } else { 4 });
    headings.extend(["SUBAGENTS", last_heading]);
    let alignments = std::iter::once("---").chain(vec!["---:"; headings.len() - 2]).chain(["---"]);
    let sum = UsageRow {
        label: "Total".to_owned(),
        totals: rows.iter().map(|row| row.totals).sum(),
        ..UsageRow::default()
    };
    let head = markdown_row(headings.clone()) + &markdown_row(alignments);
    head + &rows.iter().chain([&sum]).map(render_row).collect::<String>()
}

/// Renders the table of runs.
pub(super) fn render_runs(runs: &[(DateTime<Utc>, UserRun)]) -> String {
    let render_row = |(started_at, UserRun { project, state }): &(DateTime<Utc>, UserRun)| {
        let started_at = clock::local_time_from_unix_seconds(started_at.timestamp());
        markdown_row([
            started_at.format("%Y-%m-%d %H:%M").to_string(),
            state.run_id.to_string(),
            environment::abbreviate_home(project),
            state.lifecycle.status().to_string(),
            state.spending.cost_basis().format_usd(state.spending.cost_usd),
            format_tokens(state.spending.tokens),
        ])
    };
    let spendings = || runs.iter().map(|(_, run)| &run.state.spending);
    let cost: Cost =
        spendings().map(|spending| Cost { usd: spending.cost_usd, basis: spending.cost_basis() }).sum();
    let tokens = format_tokens(spendings().map(|spending| spending.tokens).fold(0, u64::saturating_add));
    let head = markdown_row(["STARTED", "RUN", "PROJECT", "STATUS", "COST", "TOKENS"])
        + &markdown_row(["---", "---", "---", "---", "---:", "---:"]);
    let sum = markdown_row(["Total", "", "", "", &cost.basis.format_usd(cost.usd), &tokens]);
    head + &runs.iter().map(render_row).collect::<String>() + &sum
}

fn markdown_row(cells: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let escape_cell = |cell: &str| format!(" {} |", to_safe_single_line(cell).replace('|', "\\|"));
    let cells: String = cells.into_iter().map(|cell| escape_cell(cell.as_ref())).collect();
    format!("|{cells}\n")
}
