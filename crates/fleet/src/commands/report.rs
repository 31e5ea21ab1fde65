//! `plimsoll fleet report`: a report in Markdown. Anything in the database's text that looks like a secret is redacted.

use super::CommandError;
use super::fleet_text::{
    count_u64_with_noun, describe_fleet_state, merge_command_if_on_separate_branch,
    redact_and_truncate_to_line, render_cost, render_item_counts, render_set_aside_or_merge_failure_reason,
};
use super::status::{FleetOverview, read_overview};
use crate::fleet::fleet_status::{ItemStatus, WorkerStatus, to_utc};
use plimsoll_domain::cost::format_usd;
use plimsoll_domain::text::{format_tokens, to_safe_single_line};
use plimsoll_store::clock;
use plimsoll_terminal::console::print_text;
use plimsoll_terminal::fleet_command_line::NameArgument;
use std::collections::BTreeMap;
use std::process::ExitCode;

pub(super) fn print_report(arguments: &NameArgument) -> Result<ExitCode, CommandError> {
    print_text(render_report(&read_overview(&arguments.name)?));
    Ok(ExitCode::SUCCESS)
}

fn render_report(overview: &FleetOverview) -> String {
    let FleetOverview { fleet, items, workers, .. } = overview;
    let mut sections = vec![
        format!("# Fleet {}", to_escaped_markdown_line(&fleet.name)),
        format!(
            "Created {}; {}. {}; {}.",
            clock::format_local_time_with_seconds(to_utc(fleet.created_at)),
            describe_fleet_state(fleet),
            render_item_counts(fleet),
            render_cost_and_usage(overview)
        ),
    ];
    sections.extend(render_limits_and_checks(overview));
    sections.extend(
        merge_command_if_on_separate_branch(fleet).map(|command| format!("To merge it: `{command}`")),
    );
    let is_question = |item: &ItemStatus| item.set_aside_kind.as_deref() == Some("question");
    let render_question = |item: &ItemStatus| {
        let question_text = redact_and_truncate_to_line(item.set_aside_reason.as_deref().unwrap_or_default());
        format!(
            "{}: {} (`plimsoll fleet answer {} {} TEXT`)",
            render_item_line(item),
            to_escaped_markdown_line(&question_text),
            to_safe_single_line(&fleet.name),
            item.item_number
        )
    };
    let render_set_aside_item = |item: &ItemStatus| {
        format!(
            "{}: {}",
            render_item_line(item),
            to_escaped_markdown_line(&render_set_aside_or_merge_failure_reason(item))
        )
    };
    sections.extend(render_list_section_unless_empty("Questions", items, &is_question, &render_question));
    sections.extend(render_list_section_unless_empty(
        "Set aside",
        items,
        &|item| item.stage == "aside" && !is_question(item),
        &render_set_aside_item,
    ));
    sections.extend(render_list_section_unless_empty(
        "Merged",
        items,
        &|item| item.stage == "merged",
        &render_merged_item_with_commit_and_cost,
    ));
    sections.extend(render_list_section_unless_empty(
        "To be merged",
        items,
        &|item| item.stage == "offered",
        &render_item_line,
    ));
    sections.extend(render_list_section_unless_empty(
        "At work",
        items,
        &|item| item.stage == "leased",
        &render_leased_item_with_worker,
    ));
    sections.extend(render_list_section_unless_empty(
        "Open",
        items,
        &|item| item.stage == "open",
        &render_item_line,
    ));
    sections.extend(render_worker_count_and_cost_by_machine(workers));
    sections.join("\n\n")
}

/// Renders the session limit and the verify commands. Returns `None` if the fleet has neither.
fn render_limits_and_checks(overview: &FleetOverview) -> Option<String> {
    let session_limit = overview
        .limits
        .max_sessions
        .map(|limit| format!("- at most {}", count_u64_with_noun(limit, "session")));
    let commands = overview.limits.verify_commands.iter().map(|command| {
        format!("- verified by {}", to_escaped_markdown_line(&redact_and_truncate_to_line(command)))
    });
    let lines: Vec<String> = session_limit.into_iter().chain(commands).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn render_cost_and_usage(overview: &FleetOverview) -> String {
    let fleet = &overview.fleet;
    format!(
        "{}, {}, {} tokens",
        render_cost(fleet),
        count_u64_with_noun(fleet.session_count, "session"),
        format_tokens(fleet.token_count)
    )
}

fn render_list_section_unless_empty(
    title: &str,
    items: &[ItemStatus],
    is_included: &dyn Fn(&ItemStatus) -> bool,
    render_item: &dyn Fn(&ItemStatus) -> String,
) -> Option<String> {
    let lines: Vec<String> = items
        .iter()
        .filter(|item| is_included(item))
        .map(|item| format!("- {}", render_item(item)))
        .collect();
    (!lines.is_empty()).then(|| format!("## {title} ({})\n\n{}", lines.len(), lines.join("\n")))
}

fn render_item_line(item: &ItemStatus) -> String {
    format!("**{}** {}", item.item_number, to_escaped_markdown_line(&redact_and_truncate_to_line(&item.text)))
}

fn render_merged_item_with_commit_and_cost(item: &ItemStatus) -> String {
    let commit_suffix = match item.attempted_merge_commits.last() {
        Some(commit) => format!(" ({})", to_safe_single_line(commit).chars().take(12).collect::<String>()),
        // The item was ticked when the fleet was created.
        None if item.epoch == 0 => " (ticked before)".to_owned(),
        None => " (nothing to do)".to_owned(),
    };
    let cost_suffix =
        if item.session_count > 0 { format!(", {}", format_usd(item.cost_usd)) } else { String::new() };
    let refusal_suffix = if item.failed_merge_count > 0 {
        format!(", after {}", count_u64_with_noun(item.failed_merge_count.into(), "refusal"))
    } else {
        String::new()
    };
    format!("{}{commit_suffix}{cost_suffix}{refusal_suffix}", render_item_line(item))
}

fn render_leased_item_with_worker(item: &ItemStatus) -> String {
    format!(
        "{} ({})",
        render_item_line(item),
        to_escaped_markdown_line(item.worker_name.as_deref().unwrap_or_default())
    )
}

/// Renders a table with the number of workers and the cost of each machine. Returns `None` if there are no workers.
fn render_worker_count_and_cost_by_machine(workers: &[WorkerStatus]) -> Option<String> {
    let mut totals_by_machine: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for worker in workers {
        // The member's name, as `status` shows it: a computer may have several clones.
        let member_name = worker.name.rsplit_once('/').map_or(worker.name.as_str(), |(member, _)| member);
        let totals = totals_by_machine.entry(member_name).or_default();
        totals.0 += 1;
        totals.1 += worker.cost_usd;
    }
    let render_row = |(machine, (worker_count, cost)): (&&str, &(u64, f64))| {
        format!("| {} | {worker_count} | {} |", to_escaped_markdown_line(machine), format_usd(*cost))
    };
    let rows: Vec<String> = totals_by_machine.iter().map(render_row).collect();
    let table_header = "## Machines\n\n| machine | workers | cost |\n| --- | --- | --- |";
    (!rows.is_empty()).then(|| format!("{table_header}\n{}", rows.join("\n")))
}

/// Converts text from the database to one line and escapes Markdown and HTML in it.
fn to_escaped_markdown_line(text: &str) -> String {
    let mut escaped_text = String::new();
    for character in to_safe_single_line(text).chars() {
        if "\\`*_[]<>|#&".contains(character) {
            escaped_text.push('\\');
        }
        escaped_text.push(character);
    }
    escaped_text
}
