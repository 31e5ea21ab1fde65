//! `plimsoll usage`: tokens and cost of all sessions, by day, five-hour window, model, project and run.

mod overview;
mod table;

use crate::client_usage::{ClientUsage, nothing_found_message, read_usage_of_all_sessions};
use crate::marked_costs::{explain_marks, explain_marks_of_entries, print_explanation};
use chrono::{DateTime, NaiveDate, Utc};
use clap::{Args, ValueEnum};
use plimsoll_domain::cost::Cost;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::{RunState, Timestamp};
use plimsoll_policy::prices::{BilledTokens, Tariff};
use plimsoll_policy::usage::{UsageBlock, UsageEntry, UsageTotals, group_usage, split_into_blocks};
use plimsoll_store::clock::{self, local_day_from_unix_seconds};
use plimsoll_store::{environment, ledger};
use plimsoll_terminal::{console, markdown, value_parsers};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::process::ExitCode;

const USAGE_HELP: &str = "\
Reads the transcripts of Claude Code in CLAUDE_CONFIG_DIR, or else in ~/.claude and ~/.config/claude. Each response counts once.
`~` marks a cost that is estimated from tokens and list prices, because Claude Code has reported none; `≤` marks a model without
a known price, which counts at the highest one. With a subscription, costs are what the usage would cost at list prices.

Examples:
  plimsoll usage
  plimsoll usage daily --since 30d
  plimsoll usage projects --since 2026-01-01 --json | jq '.projects[0]'";

/// Arguments of `plimsoll usage`.
#[derive(Debug, Args)]
#[command(after_help = USAGE_HELP)]
pub(crate) struct UsageArguments {
    /// List daily, blocks, models, projects or runs instead of an overview
    #[arg(value_enum, hide_possible_values = true)]
    list: Option<UsageList>,
    #[command(flatten)]
    days: DayRange,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UsageList {
    Daily,
    Blocks,
    Models,
    Projects,
    Runs,
}

/// A row of a list.
#[derive(Debug, Default)]
struct UsageRow {
    label: String,
    totals: UsageTotals,
    /// Text in the last column.
    note: String,
    /// The fields in JSON besides the totals.
    fields: Value,
}

/// The days that are listed.
#[derive(Debug, Clone, Copy, Args)]
struct DayRange {
    /// Only from this day on: 2026-01-07, yesterday, or 7d for the last seven days
    #[arg(long, value_name = "DAY", value_parser = value_parsers::day)]
    since: Option<NaiveDate>,
    /// Only up to this day
    #[arg(long, value_name = "DAY", value_parser = value_parsers::day)]
    until: Option<NaiveDate>,
}

/// Prints the usage.
pub(crate) fn print_usage(arguments: &UsageArguments) -> ExitCode {
    let UsageArguments { list, days, json } = *arguments;
    if let (Some(since), Some(until)) = (days.since, days.until)
        && since > until
    {
        return console::fail_with(format!("--since {since} is after --until {until}"), ExitStatus::Usage);
    }
    if list == Some(UsageList::Runs) {
        return print_usage_of_runs(days, json);
    }
    let usage = read_usage_of_all_sessions();
    let now = clock::now().timestamp();
    if json {
        let mut document = match list {
            None => overview::overview_json(&usage, days, now),
            Some(list) => rows_and_totals_json(list, &list.rows(&usage, days, now)),
        };
        document["skipped"] = usage.skipped_json();
        console::print_json(document);
        return ExitCode::SUCCESS;
    }
    usage.print_warnings();
    let rows = list.map(|list| list.rows(&usage, days, now)).unwrap_or_default();
    match list {
        _ if usage.entries.is_empty() => return console::print_nothing_to_show(nothing_found_message()),
        None => console::print_text(overview::render_overview(&usage, days, now)),
        Some(_) if rows.is_empty() => {
            let message =
                format!("There was no usage in this time. The last was on {}.", usage.last_day_text());
            return console::print_nothing_to_show(message);
        }
        Some(list) => {
            markdown::print_markdown(&table::render_markdown_with_total(list, &rows), false);
            print_explanation(&explain_marks_of_entries(days.select(&usage.entries)));
        }
    }
    ExitCode::SUCCESS
}

impl DayRange {
    fn includes(self, day: NaiveDate) -> bool {
        self.since.is_none_or(|since| day >= since) && self.until.is_none_or(|until| day <= until)
    }

    /// Returns the entries of these days. They are sorted by time.
    fn select(self, entries: &[UsageEntry]) -> &[UsageEntry] {
        let first_after = |is_before: &dyn Fn(NaiveDate) -> bool| {
            entries.partition_point(|entry| is_before(local_day_from_unix_seconds(entry.responded_at)))
        };
        let start = first_after(&|day| self.since.is_some_and(|since| day < since));
        let end = first_after(&|day| self.until.is_none_or(|until| day <= until));
        &entries[start..end.max(start)]
    }
}

impl UsageList {
    /// Returns the name of the list in JSON.
    fn key(self) -> &'static str {
        match self {
            UsageList::Daily => "daily",
            UsageList::Blocks => "blocks",
            UsageList::Models => "models",
            UsageList::Projects => "projects",
            UsageList::Runs => "runs",
        }
    }

    /// Returns the rows of the list: days and windows from the oldest, models and projects from the most expensive.
    fn rows(self, usage: &ClientUsage, days: DayRange, now: i64) -> Vec<UsageRow> {
        let entries = days.select(&usage.entries);
        let mut groups: BTreeMap<String, BTreeMap<String, UsageTotals>> = BTreeMap::new();
        let mut add_part = |name: String, part: String, totals: UsageTotals| {
            let group = groups.entry(name).or_default().entry(part).or_default();
            *group = group.plus(totals);
        };
        match self {
            UsageList::Blocks => {
                // A window is listed whole, also if only a part of it is in these days.
                let is_listed = |block: &UsageBlock| {
                    [block.started_at, block.last_response_at]
                        .map(local_day_from_unix_seconds)
                        .into_iter()
                        .any(|day| days.includes(day))
                };
                let blocks = split_into_blocks(&usage.entries).into_iter().filter(is_listed);
                return blocks.map(|block| block_row(&block, now)).collect();
            }
            UsageList::Daily => {
                for ((day, tariff), totals) in group_usage(entries, day_and_tariff) {
                    add_part(day.to_string(), tariff.display_name(), totals);
                }
            }
            UsageList::Models => {
                for (tariff, totals) in group_usage(entries, |entry| &*entry.tariff) {
                    add_part(tariff.display_name(), String::new(), totals);
                }
            }
            UsageList::Projects | UsageList::Runs => {
                for (index, totals) in group_usage(entries, |entry| entry.transcript_index) {
                    add_part(usage.project(index).to_owned(), String::new(), totals);
                }
            }
        }
        let to_row = |(name, parts): (String, BTreeMap<String, UsageTotals>)| {
            let models = || parts.iter().map(|(model, totals)| (model.clone(), totals_json(totals)));
            let is_project = self == UsageList::Projects;
            UsageRow {
                label: if is_project { environment::abbreviate_home(&name) } else { name.clone() },
                totals: parts.values().copied().sum(),
                note: parts.keys().cloned().collect::<Vec<_>>().join(", "),
                fields: match self {
                    UsageList::Daily => {
                        json!({"date": name, "models": models().collect::<serde_json::Map<_, _>>()})
                    }
                    UsageList::Models => json!({ "model": name }),
                    _ => json!({ "project": name }),
                },
            }
        };
        let mut rows: Vec<UsageRow> = groups.into_iter().map(to_row).collect();
        if self != UsageList::Daily {
            rows.sort_by(|first, second| second.totals.cost.usd.total_cmp(&first.totals.cost.usd));
        }
        rows
    }
}

/// Returns the rows as JSON, and their sum.
fn rows_and_totals_json(list: UsageList, rows: &[UsageRow]) -> Value {
    let totals: UsageTotals = rows.iter().map(|row| row.totals).sum();
    json!({
        list.key(): rows.iter().map(UsageRow::to_json).collect::<Value>(),
        "totals": totals_json(&totals),
    })
}

impl UsageRow {
    fn to_json(&self) -> Value {
        let mut row = totals_json(&self.totals);
        for (name, value) in self.fields.as_object().into_iter().flatten() {
            row[name] = value.clone();
        }
        row
    }
}

fn day_and_tariff(entry: &UsageEntry) -> (NaiveDate, &Tariff) {
    (local_day_from_unix_seconds(entry.responded_at), &entry.tariff)
}

fn block_row(block: &UsageBlock, now: i64) -> UsageRow {
    let rate_json = |(tokens, usd): (f64, f64)| json!({"tokens": tokens.round(), "cost_usd": usd});
    let is_active = block.is_active(now);
    let projection = is_active.then(|| block.tokens_and_usd_projected_to_end(now)).flatten();
    UsageRow {
        label: clock::local_time_from_unix_seconds(block.started_at).format("%Y-%m-%d %H:%M").to_string(),
        totals: block.totals,
        note: if is_active { "active".to_owned() } else { String::new() },
        fields: json!({
            "started_at": clock::timestamp_from_unix_seconds(block.started_at),
            "ends_at": clock::timestamp_from_unix_seconds(block.ends_at()),
            "last_response_at": clock::timestamp_from_unix_seconds(block.last_response_at),
            "is_active": is_active,
            "per_hour": block.hourly_tokens_and_usd().map(rate_json),
            "projected": projection.map(rate_json),
        }),
    }
}

fn totals_json(totals: &UsageTotals) -> Value {
    let BilledTokens { input, output, cache_read, cache_write_5m, cache_write_1h, web_searches } =
        totals.tokens;
    json!({
        "cost_usd": totals.cost.usd,
        "cost_basis": totals.cost.basis,
        "responses": totals.response_count,
        "input_tokens": input,
        "output_tokens": output,
        "cache_write_5m_tokens": cache_write_5m,
        "cache_write_1h_tokens": cache_write_1h,
        "cache_read_tokens": cache_read,
        "total_tokens": totals.tokens.total_tokens(),
        "web_searches": web_searches,
        "subagents": {"cost_usd": totals.subagent_cost.usd, "total_tokens": totals.subagent_tokens},
    })
}

/// A run of this user, with its project.
struct UserRun {
    project: String,
    state: RunState,
}

impl UserRun {
    fn cost(&self) -> Cost {
        Cost { usd: self.state.spending.cost_usd, basis: self.state.spending.cost_basis() }
    }

    fn started_at(&self) -> &Timestamp {
        &self.state.project_at_start.started_at
    }

    fn to_json(&self) -> Value {
        let UserRun { project, state } = self;
        json!({
            "run_id": state.run_id,
            "project": project,
            "started_at": self.started_at(),
            "status": state.lifecycle.status(),
            "sessions": state.iteration,
            "total_tokens": state.spending.tokens,
            "cost_usd": self.cost().usd,
            "cost_basis": self.cost().basis,
        })
    }
}

/// Prints the runs of this user in all projects, newest first, with the cost that their ledgers have.
fn print_usage_of_runs(days: DayRange, json: bool) -> ExitCode {
    let records = ledger::run_records_of_user_without_workers().into_iter();
    let mut runs: Vec<(DateTime<Utc>, UserRun)> = records
        .filter_map(|record| {
            let state = ledger::load_state_of_user_run(&record)?;
            let run = UserRun { project: record.project, state };
            Some((clock::parse_timestamp(run.started_at())?, run))
        })
        .filter(|(started_at, _)| days.includes(local_day_from_unix_seconds(started_at.timestamp())))
        .collect();
    runs.sort_by_key(|(started_at, _)| Reverse(*started_at));
    if json {
        let rows: Vec<Value> = runs.iter().map(|(_, run)| run.to_json()).collect();
        console::print_json(json!({ "runs": rows }));
    } else if runs.is_empty() {
        return console::print_nothing_to_show("There are no runs in this time; `plimsoll run` starts one.");
    } else {
        markdown::print_markdown(&table::render_markdown_of_runs_with_total(&runs), false);
        let costs: Vec<Cost> = runs.iter().map(|(_, run)| run.cost()).collect();
        print_explanation(&explain_marks(&costs, "a model"));
    }
    ExitCode::SUCCESS
}
