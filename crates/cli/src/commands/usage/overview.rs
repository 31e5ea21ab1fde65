//! The overview: today, this week, the active five-hour window, the last 14 days, and the projects and models of these days.

use super::{DayRange, UsageList, UsageRow, UsageTotals, block_row, totals_json};
use crate::client_usage::ClientUsage;
use crate::marked_costs::{explain_marks_of_entries, format_marked_cost};
use chrono::{Datelike, NaiveDate, TimeDelta};
use plimsoll_domain::cost::Cost;
use plimsoll_domain::text::{format_tokens, to_safe_single_line};
use plimsoll_policy::usage::{UsageBlock, UsageEntry, split_into_blocks};
use plimsoll_store::clock::{self, local_day_from_unix_seconds};
use plimsoll_terminal::columns::{clip_path_to_columns, clip_to_columns, width};
use plimsoll_terminal::console::line_width_from_columns_or_terminal;
use serde_json::{Value, json};

const DAY_COUNT: i64 = 14;
/// In a longer list the days without usage would hide the others.
const MAX_DAYS_WITH_EMPTY_ONES: usize = 62;
const MAX_PROJECTS_AND_MODELS: usize = 5;
const MAX_LABEL_COLUMNS: usize = 40;
/// A longer bar is not easier to compare.
const MAX_BAR_COLUMNS: usize = 40;
const BAR_CELL: &str = "■";

/// The figures of the overview.
struct Overview {
    today: UsageTotals,
    this_week: UsageTotals,
    active_block: Option<UsageBlock>,
    /// The days of the lists, and their title.
    days: DayRange,
    title: String,
    totals: UsageTotals,
}

impl Overview {
    /// Sums up the usage. The lists have the last 14 days unless `days` says otherwise.
    fn new(entries: &[UsageEntry], days: DayRange, now: i64) -> Overview {
        let today = local_day_from_unix_seconds(now);
        let monday = today - TimeDelta::days(i64::from(today.weekday().num_days_from_monday()));
        let last_day = days.until.map_or(today, |until| until.min(today));
        let first_day = days.since.unwrap_or(last_day - TimeDelta::days(DAY_COUNT - 1));
        let title = match (days.since, days.until) {
            (None, None) => format!("Last {DAY_COUNT} days"),
            _ => format!("{first_day} to {last_day}"),
        };
        let days = DayRange { since: Some(first_day), until: Some(last_day) };
        let totals_since = |day| DayRange { since: Some(day), until: None }.select(entries).iter().collect();
        Overview {
            today: totals_since(today),
            this_week: totals_since(monday),
            active_block: split_into_blocks(entries).into_iter().find(|block| block.is_active(now)),
            days,
            title,
            totals: days.select(entries).iter().collect(),
        }
    }
}

/// Returns the overview as JSON.
pub(super) fn overview_json(usage: &ClientUsage, days: DayRange, now: i64) -> Value {
    let overview = Overview::new(&usage.entries, days, now);
    let rows = |list: UsageList| {
        list.rows(usage, overview.days, now).iter().map(UsageRow::to_json).collect::<Value>()
    };
    json!({
        "today": totals_json(&overview.today),
        "this_week": totals_json(&overview.this_week),
        "active_block": overview.active_block.map(|block| block_row(&block, now).to_json()),
        "daily": rows(UsageList::Daily),
        "projects": rows(UsageList::Projects),
        "models": rows(UsageList::Models),
        "totals": totals_json(&overview.totals),
    })
}

/// Renders the overview for the width of the terminal.
pub(super) fn render_overview(usage: &ClientUsage, days: DayRange, now: i64) -> String {
    let columns = line_width_from_columns_or_terminal();
    let overview = Overview::new(&usage.entries, days, now);
    let rows = |list: UsageList| list.rows(usage, overview.days, now);
    let mut parts = vec![
        render_totals([("Today", overview.today), ("This week", overview.this_week)]),
        render_block(overview.active_block.as_ref(), now),
    ];
    parts.push(match rows_from_first_day_with_usage(overview.days, &rows(UsageList::Daily)) {
        rows if rows.is_empty() => no_usage_in_days_message(&overview.title, usage),
        rows => {
            let (cost, tokens) = (format_cost(&overview.totals), overview.totals.tokens.total_tokens());
            let head = format!("{}: {cost}, {} tokens", overview.title, format_tokens(tokens));
            format!("{head}\n{}", render_bars(&rows, columns, clip_to_columns))
        }
    });
    let mut add_most_expensive = |title: &str, list: UsageList, clip_label: fn(&str, usize) -> String| {
        let mut rows = rows(list);
        rows.truncate(MAX_PROJECTS_AND_MODELS);
        if !rows.is_empty() {
            parts.push(format!("{title}\n{}", render_bars(&rows, columns, clip_label)));
        }
    };
    add_most_expensive("Projects", UsageList::Projects, clip_path_to_columns);
    add_most_expensive("Models", UsageList::Models, clip_to_columns);
    let totals = overview.totals;
    if totals.subagent_tokens > 0 {
        let [subagent_tokens, tokens] =
            [totals.subagent_tokens, totals.tokens.total_tokens()].map(format_tokens);
        let cost = format_marked_cost(totals.subagent_cost);
        parts.push(format!("Subagents used {subagent_tokens} of {tokens} tokens: {cost}."));
    }
    parts.push(explain_marks_of_entries(overview.days.select(&usage.entries)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

/// Returns one row for each day from the first with usage on, also for the days without usage after it unless there are too many.
fn rows_from_first_day_with_usage(days: DayRange, rows: &[UsageRow]) -> Vec<UsageRow> {
    let day_of = |row: &UsageRow| row.label.parse::<NaiveDate>().ok();
    let first_day = rows.first().and_then(day_of);
    let day_row = |day: NaiveDate| {
        let row = rows.iter().find(|row| day_of(row) == Some(day));
        let totals = row.map(|row| row.totals).unwrap_or_default();
        UsageRow { label: day.format("%a %e %b").to_string(), totals, ..UsageRow::default() }
    };
    let all_days = first_day.into_iter().flat_map(|day| day.iter_days());
    let all_days: Vec<NaiveDate> =
        all_days.take_while(|day| days.includes(*day)).take(MAX_DAYS_WITH_EMPTY_ONES + 1).collect();
    if all_days.len() > MAX_DAYS_WITH_EMPTY_ONES {
        return rows.iter().filter_map(day_of).map(day_row).collect();
    }
    all_days.into_iter().map(day_row).collect()
}

fn no_usage_in_days_message(title: &str, usage: &ClientUsage) -> String {
    let last_day = usage.last_day_text();
    format!("{title}: no usage. The last was on {last_day}; `plimsoll usage daily` lists all days.")
}

fn render_totals(rows: [(&str, UsageTotals); 2]) -> String {
    let costs = rows.map(|(_, totals)| format_cost(&totals));
    let cost_columns = max_width(&costs);
    let render_row = |((name, totals), cost): (&(&str, UsageTotals), &String)| {
        let tokens = format_tokens(totals.tokens.total_tokens());
        format!("{name:<10}  {cost:>cost_columns$}  {tokens:>6} tokens")
    };
    rows.iter().zip(&costs).map(render_row).collect::<Vec<_>>().join("\n")
}

fn render_block(block: Option<&UsageBlock>, now: i64) -> String {
    let Some(block) = block else { return "No five-hour window is active.".to_owned() };
    let time = |seconds: i64| clock::local_time_from_unix_seconds(seconds).format("%H:%M").to_string();
    let (start, end) = (time(block.started_at), time(block.ends_at()));
    let UsageTotals { cost, tokens, .. } = block.totals;
    let mut rows = vec![("so far".to_owned(), (tokens.total_tokens() as f64, cost.usd))];
    if let Some((hourly, projected)) =
        block.hourly_tokens_and_usd().zip(block.tokens_and_usd_projected_to_end(now))
    {
        rows.extend([("per hour".to_owned(), hourly), (format!("by {end}"), projected)]);
    }
    let costs: Vec<String> =
        rows.iter().map(|(_, (_, usd))| format_marked_cost(Cost { usd: *usd, ..cost })).collect();
    let cost_columns = max_width(&costs);
    let render_row = |((name, (tokens, _)), cost): (&(String, (f64, f64)), &String)| {
        format!("\n  {name:<8}  {cost:>cost_columns$}  {:>6} tokens", format_tokens(*tokens as u64))
    };
    format!("Five hours from {start} to {end}{}", rows.iter().zip(&costs).map(render_row).collect::<String>())
}

/// Renders one line for each row: its label, its cost, and a bar in proportion to the cost.
fn render_bars(rows: &[UsageRow], columns: usize, clip_label: fn(&str, usize) -> String) -> String {
    let label_columns = rows.iter().map(|row| width(&row.label)).max().unwrap_or_default();
    let label_columns = label_columns.min(MAX_LABEL_COLUMNS).min(columns / 3);
    let costs: Vec<String> = rows.iter().map(|row| format_cost(&row.totals)).collect();
    let cost_columns = max_width(&costs);
    let max_usd = rows.iter().map(|row| row.totals.cost.usd).fold(0.0, f64::max);
    let bar_columns = columns.saturating_sub(label_columns + cost_columns + 6).clamp(1, MAX_BAR_COLUMNS);
    let render_row = |(row, cost): (&UsageRow, &String)| {
        let label = clip_label(&to_safe_single_line(&row.label), label_columns);
        let padding = " ".repeat(label_columns.saturating_sub(width(&label)));
        let share = if max_usd > 0.0 { row.totals.cost.usd / max_usd } else { 0.0 };
        // Everything that has a cost has a bar.
        let cells = ((share * bar_columns as f64).round() as usize).max(usize::from(share > 0.0));
        format!("  {label}{padding}  {cost:>cost_columns$}  {}", BAR_CELL.repeat(cells)).trim_end().to_owned()
    };
    rows.iter().zip(&costs).map(render_row).collect::<Vec<_>>().join("\n")
}

fn max_width(texts: &[String]) -> usize {
    texts.iter().map(|text| width(text)).max().unwrap_or_default()
}

/// Formats the cost, which is nothing on a day without usage.
fn format_cost(totals: &UsageTotals) -> String {
    let is_used = totals.tokens.total_tokens() > 0 || totals.cost.usd > 0.0;
    if is_used { format_marked_cost(totals.cost) } else { "-".to_owned() }
}
