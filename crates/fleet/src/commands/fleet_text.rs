//! Text that several commands print.

use crate::fleet::fleet_status::{FleetStatus, ItemStatus};
use plimsoll_domain::board::BoardMillis;
use plimsoll_domain::cost::{CostBasis, format_usd};
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};
use plimsoll_launcher::remote_repository::remote_name_of_address;
use plimsoll_store::{environment, layout};
use plimsoll_terminal::duration::format_seconds;

/// Maximum lengths of an item's text and of a reason in a line.
const MAX_ITEM_CHARS: usize = 60;
const MAX_REASON_CHARS: usize = 300;

/// Renders a count from the database: `2 items`.
pub(super) fn count_u64_with_noun(count: u64, noun: &str) -> String {
    count_with_noun(usize::try_from(count).unwrap_or(usize::MAX), noun)
}

/// Renders an item's number and text: `12 "Add a parser"`.
pub(super) fn render_item(item: &ItemStatus) -> String {
    format!("{} \"{}\"", item.item_number, truncate_end(&to_safe_single_line(&item.text), MAX_ITEM_CHARS))
}

/// Redacts secrets in text from the database, converts it to one line and truncates it.
pub(super) fn redact_and_truncate_to_line(text: &str) -> String {
    truncate_end(&to_safe_single_line(&plimsoll_secrets::redact(text)), MAX_REASON_CHARS)
}

/// Returns the reason why an item is set aside, or why its merge failed if no reason is recorded. For an item with a
/// question, print the question instead.
pub(super) fn render_set_aside_or_merge_failure_reason(item: &ItemStatus) -> String {
    let reason_or_note = item
        .set_aside_reason
        .as_deref()
        .filter(|reason| !reason.is_empty())
        .unwrap_or(&item.merge_failure_note);
    let tries_prefix =
        if item.set_aside_kind.as_deref() == Some("tries") { "not merged after all attempts: " } else { "" };
    format!("{tries_prefix}{}", redact_and_truncate_to_line(reason_or_note))
}

/// Describes what a fleet is doing.
pub(super) fn describe_fleet_state(fleet: &FleetStatus) -> String {
    let pause_text = fleet.paused_until.map(|paused_until| {
        let seconds_left =
            i64::try_from(paused_until.saturating_sub(fleet.read_at) / 1_000).unwrap_or(i64::MAX);
        format!("paused for {} more: a usage limit", format_seconds(seconds_left))
    });
    match (fleet.end_reason.as_deref(), pause_text) {
        (Some("done"), _) => "done".to_owned(),
        (Some(end_reason), _) => to_safe_single_line(end_reason),
        (None, _) if fleet.item_counts.merged == fleet.item_counts.total => "every item is merged".to_owned(),
        (None, _) if fleet.is_draining => "draining: no new item starts".to_owned(),
        (None, Some(pause_text)) => pause_text,
        (None, None) if is_cost_limit_reached(fleet) => "out of budget: no new item starts".to_owned(),
        (None, None) if fleet.active_workers == 0 => "no active worker".to_owned(),
        (None, None) => "at work".to_owned(),
    }
}

fn is_cost_limit_reached(fleet: &FleetStatus) -> bool {
    fleet.max_cost_usd.is_some_and(|limit_usd| fleet.cost_usd >= limit_usd)
}

/// Describes how many items are at each stage.
pub(super) fn render_item_counts(fleet: &FleetStatus) -> String {
    let counts = &fleet.item_counts;
    let labeled_counts = [
        (counts.in_progress, "at work"),
        (counts.offered, "to be merged"),
        (counts.open, "open"),
        (counts.set_aside, "set aside"),
    ];
    let other_counts = labeled_counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, label)| format!(", {count} {label}"));
    format!(
        "{} of {} merged{}",
        counts.merged,
        count_u64_with_noun(counts.total, "item"),
        other_counts.collect::<String>()
    )
}

/// Renders the cost and its limit: `$3.20 of $40.00`.
pub(super) fn render_cost(fleet: &FleetStatus) -> String {
    match fleet.max_cost_usd {
        Some(limit_usd) => CostBasis::Reported.format_usd_spent_of_limit(fleet.cost_usd, limit_usd),
        None => format_usd(fleet.cost_usd),
    }
}

/// Returns the command that merges the fleet's branch, or `None` if nothing was merged or work is pushed to the user's branch.
pub(super) fn merge_command_if_on_separate_branch(fleet: &FleetStatus) -> Option<String> {
    let has_merged_work_on_separate_branch = fleet.delivery_mode == "branch" && fleet.item_counts.merged > 0;
    has_merged_work_on_separate_branch.then(|| {
        let remote = remote_name_in_clone_or_origin(&fleet.remote_address);
        format!("git fetch {remote} && git merge {remote}/{}", fleet.target_branch)
    })
}

/// Returns the name that the clone in the current folder gives to this address, or `origin` if it gives none.
pub(super) fn remote_name_in_clone_or_origin(address: &str) -> String {
    let repository = layout::find_repository(&environment::current_dir()).map(|(root, _)| root.to_owned());
    repository
        .and_then(|repository| remote_name_of_address(&repository, address))
        .unwrap_or_else(|| "origin".to_owned())
}

/// Returns the branch that an item may have on the remote, or `None` if the item was never claimed or is merged.
pub(super) fn remote_branch_of_unmerged_item(fleet_name: &str, item: &ItemStatus) -> Option<String> {
    (item.epoch > 0 && item.stage != "merged")
        .then(|| format!("plimsoll-items/{fleet_name}/{}/{}", item.item_number, item.epoch))
}

/// Renders the time from `earlier` to `now`.
pub(super) fn render_age(now: BoardMillis, earlier: BoardMillis) -> String {
    let seconds = i64::try_from(now.saturating_sub(earlier) / 1_000).unwrap_or(i64::MAX);
    format!("{} ago", format_seconds(seconds))
}
