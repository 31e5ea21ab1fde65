//! The overview: today, this week, the active five-hour window, the last 14 days, and the projects and models of these days.

use super::{UsageList, UsageRow, UsageTotals, block_row, local_day, totals_json};
use crate::client_usage::ClientUsage;
use chrono::{Datelike, NaiveDate, TimeDelta};
use plimsoll_domain::text::{format_tokens, to_safe_single_line};
use plimsoll_policy::usage::{UsageBlock, UsageEntry, split_into_blocks};
use plimsoll_store::clock;
use plimsoll_terminal::columns::{clip_to_columns, width};
use plimsoll_terminal::console::line_width_from_columns_or_terminal;
use serde_json::{Value, json};

const DAY_COUNT: i64 = 14;
const MAX_PROJECTS_AND_MODELS: usize = 5;
const MAX_LABEL_COLUMNS: usize = 40;
const BAR_CELL: &str = "■";

/// The figures of the overview.
struct Overview<'a> {
    today: UsageTotals,
    this_week: UsageTotals,
    active_block: Option<UsageBlock>,
    first_day: NaiveDate,
    /// The entries of the last 14 days.
    recent_entries: &'a [UsageEntry],
}

impl<'a> Overview<'a> {
    fn new(entries: &'a [UsageEntry], now: i64) -> Overview<'a> {
        let today = local_day(now);
        let monday = today - TimeDelta::days(i64::from(today.weekday().num_days_from_monday()));
        let first_day = today - TimeDelta::days(DAY_COUNT - 1);
        let entries_from =
            |day: NaiveDate| &entries[entries.partition_point(|entry| local_day(entry.responded_at) < day)..];
        Overview {
            today: entries_from(today).iter().collect(),
            this_week: entries_from(monday).iter().collect(),
            active_block: split_into_blocks(entries).pop().filter(|block| block.is_active(now)),
            first_day,
            recent_entries: entries_from(first_day),
        }
    }
}

/// Returns the overview as JSON.
pub(super) fn overview_json(usage: &ClientUsage, now: i64) -> Value {
    let overview = Overview::new(&usage.entries, now);
    let rows = |list: UsageList| list.json(usage, overview.recent_entries, now);
    json!({
        "today": totals_json(&overview.today),
        "this_week": totals_json(&overview.this_week),
        "active_block": overview.active_block.map(|block| block_row(&block, now).to_json()),
        "daily": rows(UsageList::Daily),
        "projects": rows(UsageList::Projects),
        "models": rows(UsageList::Models),
    })
}

/// Renders the overview for the width of the terminal.
pub(super) fn render_overview(usage: &ClientUsage, now: i64) -> String {
    let columns = line_width_from_columns_or_terminal();
    let overview = Overview::new(&usage.entries, now);
    let rows = |list: UsageList| list.rows(usage, overview.recent_entries, now);
    let mut parts = vec![
        render_totals([("Today", overview.today), ("This week", overview.this_week)]),
        render_block(overview.active_block.as_ref(), now),
        format!(
            "Last {DAY_COUNT} days\n{}",
            render_bars(&all_days(&overview, &rows(UsageList::Daily)), columns)
        ),
    ];
    for (title, list) in [("Projects", UsageList::Projects), ("Models", UsageList::Models)] {
        let mut rows = rows(list);
        rows.truncate(MAX_PROJECTS_AND_MODELS);
        if !rows.is_empty() {
            parts.push(format!("{title}\n{}", render_bars(&rows, columns)));
        }
    }
    let recent: UsageTotals = overview.recent_entries.iter().collect();
    if recent.subagent_tokens > 0 {
        let [subagent_tokens, tokens] =
            [recent.subagent_tokens, recent.tokens.total_tokens()].map(format_tokens);
        let cost = recent.subagent_cost.basis.format_usd(recent.subagent_cost.usd);
        parts.push(format!("Subagents used {subagent_tokens} of {tokens} tokens: {cost}."));
    }
    parts.join("\n\n")
}

/// Returns one row for each day, also for those without usage.
fn all_days(overview: &Overview, rows: &[UsageRow]) -> Vec<UsageRow> {
    let day_row = |index: i64| {
        let day = overview.first_day + TimeDelta::days(index);
        let row = rows.iter().find(|row| row.label == day.to_string());
        let totals = row.map(|row| row.totals).unwrap_or_default();
        UsageRow { label: day.format("%a %e %b").to_string(), totals, ..UsageRow::default() }
    };
    (0..DAY_COUNT).map(day_row).collect()
}

fn render_totals(rows: [(&str, UsageTotals); 2]) -> String {
    let costs = rows.map(|(_, totals)| format_cost(&totals));
    let cost_columns = costs.iter().map(String::len).max().unwrap_or_default();
    let render_row = |((name, totals), cost): (&(&str, UsageTotals), &String)| {
        format!(
            "{name:<10}  {cost:>cost_columns$}  {:>6} tokens",
            format_tokens(totals.tokens.total_tokens())
        )
    };
    rows.iter().zip(&costs).map(render_row).collect::<Vec<_>>().join("\n")
}

fn render_block(block: Option<&UsageBlock>, now: i64) -> String {
    let Some(block) = block else { return "No five-hour window is active.".to_owned() };
    let time = |seconds: i64| clock::local_time_from_unix_seconds(seconds).format("%H:%M").to_string();
    let (start, end) = (time(block.started_at), time(block.ends_at()));
    let totals = block.totals;
    let figures = |(tokens, usd): (f64, f64)| {
        format!("{}, {} tokens", totals.cost.basis.format_usd(usd), format_tokens(tokens as u64))
    };
    let so_far = figures((totals.tokens.total_tokens() as f64, totals.cost.usd));
    let mut text = format!("Five hours from {start} to {end}\n  so far: {so_far}");
    if let Some((hourly, projected)) = block.hourly_tokens_and_usd().zip(block.projected_tokens_and_usd(now))
    {
        text += &format!("\n  an hour: {}\n  by {end}: {}", figures(hourly), figures(projected));
    }
    text
}

/// Renders one line for each row: its label, its cost, and a bar in proportion to the cost.
fn render_bars(rows: &[UsageRow], columns: usize) -> String {
    let label_columns = rows.iter().map(|row| width(&row.label)).max().unwrap_or_default();
    let label_columns = label_columns.min(MAX_LABEL_COLUMNS).min(columns / 3);
    let costs: Vec<String> = rows.iter().map(|row| format_cost(&row.totals)).collect();
    let cost_columns = costs.iter().map(String::len).max().unwrap_or_default();
    let max_usd = rows.iter().map(|row| row.totals.cost.usd).fold(0.0, f64::max);
    let bar_columns = columns.saturating_sub(label_columns + cost_columns + 6).max(1);
    let render_row = |(row, cost): (&UsageRow, &String)| {
        let label = clip_to_columns(&to_safe_single_line(&row.label), label_columns);
        let padding = " ".repeat(label_columns.saturating_sub(width(&label)));
        let share = if max_usd > 0.0 { row.totals.cost.usd / max_usd } else { 0.0 };
        // Whatever cost anything has a bar.
        let cells = ((share * bar_columns as f64).round() as usize).max(usize::from(share > 0.0));
        format!("  {label}{padding}  {cost:>cost_columns$}  {}", BAR_CELL.repeat(cells)).trim_end().to_owned()
    };
    rows.iter().zip(&costs).map(render_row).collect::<Vec<_>>().join("\n")
}

/// Formats the cost, which is nothing on a day without usage.
fn format_cost(totals: &UsageTotals) -> String {
    let is_used = totals.tokens.total_tokens() > 0 || totals.cost.usd > 0.0;
    if is_used { totals.cost.basis.format_usd(totals.cost.usd) } else { "-".to_owned() }
}
