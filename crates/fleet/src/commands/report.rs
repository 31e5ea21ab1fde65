//! `plimsoll fleet report`: a report in Markdown. Text from the database is cleaned of anything that looks like a secret.

use super::CommandError;
use super::fleet_text::{
    count_u64_with_noun, merge_command, redact_and_clip_reason, render_cost, render_item_counts,
    render_set_aside_reason, render_state,
};
use super::status::{FleetOverview, read_overview};
use crate::fleet::fleet_status::{ItemStatus, WorkerStatus, to_utc};
use plimsoll_domain::text::{format_tokens, to_single_line};
use plimsoll_store::clock;
use plimsoll_terminal::console::print_text;
use plimsoll_terminal::fleet_command_line::NameArgument;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Prints the report.
pub(super) fn print_report(arguments: &NameArgument) -> Result<ExitCode, CommandError> {
    print_text(render_report(&read_overview(&arguments.name)?));
    Ok(ExitCode::SUCCESS)
}

fn render_report(overview: &FleetOverview) -> String {
    let FleetOverview { fleet, items, workers } = overview;
    let mut parts = vec![
        format!("# Fleet {}", escape_markdown(&fleet.name)),
        format!(
            "Created {}; {}. {}; {}.",
            clock::format_local_time_with_seconds(to_utc(fleet.created_at)),
            render_state(fleet),
            render_item_counts(fleet),
            render_usage(overview)
        ),
    ];
    parts.extend(merge_command(fleet).map(|command| format!("To merge it: `{command}`")));
    let is_question = |item: &ItemStatus| item.set_aside_kind.as_deref() == Some("question");
    let render_question = |item: &ItemStatus| {
        let question_text = redact_and_clip_reason(item.set_aside_reason.as_deref().unwrap_or_default());
        format!(
            "{}: {} (`plimsoll fleet answer {} {} TEXT`)",
            render_item_line(item),
            escape_markdown(&question_text),
            to_single_line(&fleet.name),
            item.item_number
        )
    };
    let render_set_aside_item = |item: &ItemStatus| {
        format!("{}: {}", render_item_line(item), escape_markdown(&render_set_aside_reason(item)))
    };
    parts.extend(render_section("Questions", items, &is_question, &render_question));
    parts.extend(render_section(
        "Set aside",
        items,
        &|item| item.stage == "aside" && !is_question(item),
        &render_set_aside_item,
    ));
    parts.extend(render_section("Merged", items, &|item| item.stage == "merged", &render_merged_item));
    parts.extend(render_section("To be merged", items, &|item| item.stage == "offered", &render_item_line));
    parts.extend(render_section("At work", items, &|item| item.stage == "leased", &render_leased_item));
    parts.extend(render_section("Open", items, &|item| item.stage == "open", &render_item_line));
    parts.extend(render_machine_table(workers));
    parts.join("\n\n")
}

fn render_usage(overview: &FleetOverview) -> String {
    let fleet = &overview.fleet;
    format!(
        "{}, {}, {} tokens",
        render_cost(fleet),
        count_u64_with_noun(fleet.session_count, "session"),
        format_tokens(fleet.token_count)
    )
}

fn render_section(
    title: &str,
    items: &[ItemStatus],
    includes: &dyn Fn(&ItemStatus) -> bool,
    render_item: &dyn Fn(&ItemStatus) -> String,
) -> Option<String> {
    let lines: Vec<String> =
        items.iter().filter(|item| includes(item)).map(|item| format!("- {}", render_item(item))).collect();
    (!lines.is_empty()).then(|| format!("## {title} ({})\n\n{}", lines.len(), lines.join("\n")))
}

fn render_item_line(item: &ItemStatus) -> String {
    format!("**{}** {}", item.item_number, escape_markdown(&redact_and_clip_reason(&item.text)))
}

fn render_merged_item(item: &ItemStatus) -> String {
    let commit_suffix = match item.attempted_merge_commits.last() {
        Some(commit) => format!(" ({})", to_single_line(commit).chars().take(12).collect::<String>()),
        // The item was ticked when the fleet was created.
        None if item.epoch == 0 => " (ticked before)".to_owned(),
        None => " (nothing to do)".to_owned(),
    };
    let cost_suffix = if item.session_count > 0 { format!(", ${:.2}", item.cost_usd) } else { String::new() };
    let refusal_suffix = if item.failed_merge_count > 0 {
        format!(", after {}", count_u64_with_noun(item.failed_merge_count.into(), "refusal"))
    } else {
        String::new()
    };
    format!("{}{commit_suffix}{cost_suffix}{refusal_suffix}", render_item_line(item))
}

fn render_leased_item(item: &ItemStatus) -> String {
    format!(
        "{} ({})",
        render_item_line(item),
        escape_markdown(item.worker_name.as_deref().unwrap_or_default())
    )
}

/// Renders a table with the cost of each machine.
fn render_machine_table(workers: &[WorkerStatus]) -> Option<String> {
    let mut by_machine: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for worker in workers {
        let machine = by_machine.entry(&worker.machine_name).or_default();
        machine.0 += 1;
        machine.1 += worker.cost_usd;
    }
    let render_row = |(machine, (workers, cost)): (&&str, &(u64, f64))| {
        format!("| {} | {workers} | ${cost:.2} |", escape_markdown(machine))
    };
    let rows: Vec<String> = by_machine.iter().map(render_row).collect();
    let head = "## Machines\n\n| machine | workers | cost |\n| --- | --- | --- |";
    (!rows.is_empty()).then(|| format!("{head}\n{}", rows.join("\n")))
}

/// Escapes Markdown and HTML in text from elsewhere.
fn escape_markdown(text: &str) -> String {
    let mut escaped = String::new();
    for character in to_single_line(text).chars() {
        if "\\`*_[]<>|#&".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
