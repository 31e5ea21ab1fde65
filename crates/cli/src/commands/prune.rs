//! `plimsoll prune`: compresses the records of ended sessions, and removes old records if the user asks for it.

use clap::Args;
use plimsoll_domain::text::{count_with_noun, format_bytes};
use plimsoll_flows::retention::{
    CompressionLimits, ProjectRecords, compress_logs_of_closed_sessions, limits_from_settings,
    list_records_with_reasons_to_keep, prune_records, uncompressed_logs_of_closed_sessions,
};
use plimsoll_policy::prune::{PrunableRecord, PrunePlan, RecordKind, RetentionLimits, RetentionReason};
use plimsoll_store::{Project, StoreError, config};
use plimsoll_terminal::console::{self, fail_with_store_error, print_text};
use plimsoll_terminal::value_parsers;
use serde_json::json;
use std::process::ExitCode;

/// Arguments of `plimsoll prune`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PruneArguments {
    /// Remove records older than this (30d, 12h) [default: keep.days]
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::age_seconds)]
    older_than: Option<u64>,
    /// Keep at most this much (2G, 500M) [default: keep.megabytes]
    #[arg(long, value_name = "SIZE", value_parser = value_parsers::bytes_from_size_with_unit)]
    max_size: Option<u64>,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll prune                    compress turn logs of ended sessions
  plimsoll prune --older-than 30d --dry-run
  plimsoll prune --max-size 2G

A record is a session (its turn log and what was noted about it), a handoff, or the captured output and the caches of a run.
Never removed: records of an unfinished run or open session, unread handoffs, the journal, the working memory, the plan
and the settings.";

/// Removes old records, then compresses the remaining turn logs. Returns exit code 0 also if nothing was removed.
pub(crate) fn run_prune(arguments: &PruneArguments) -> ExitCode {
    let project = Project::find_upwards_from_current_dir();
    let configured_limits = limits_from_settings(&config::load_settings(&project).0);
    let requested_limits =
        RetentionLimits { max_age_seconds: arguments.older_than, max_bytes: arguments.max_size };
    let limits =
        if requested_limits == RetentionLimits::default() { configured_limits } else { requested_limits };
    let result = if arguments.dry_run {
        plan_pruning_and_compression(&project, limits)
    } else {
        prune_records_and_compress_logs(&project, limits)
    };
    match result {
        Ok(result) if arguments.json => console::print_json(result_json(&result)),
        Ok(result) => print_text(render_result(&result, limits, arguments.dry_run)),
        Err(error) => return fail_with_store_error(&error),
    }
    ExitCode::SUCCESS
}

/// The result of pruning, or with `--dry-run` the expected result.
struct PruneResult {
    records: ProjectRecords,
    plan: PrunePlan,
    /// Number of sessions that were compressed, or would be.
    compressed_count: usize,
    /// Bytes saved by compression, or `None` in a dry run, where they are unknown.
    saved_bytes: Option<u64>,
}

fn plan_pruning_and_compression(
    project: &Project,
    limits: RetentionLimits,
) -> Result<PruneResult, StoreError> {
    let records = list_records_with_reasons_to_keep(project)?;
    let plan = records.plan_pruning(limits);
    let removed_names: Vec<&str> =
        removed_records(&records, &plan).map(|record| record.name.as_str()).collect();
    let logs_to_compress = uncompressed_logs_of_closed_sessions(project, &records);
    let compressed_count =
        logs_to_compress.iter().filter(|log| !removed_names.contains(&log.session_id().as_str())).count();
    Ok(PruneResult { records, plan, compressed_count, saved_bytes: None })
}

fn prune_records_and_compress_logs(
    project: &Project,
    limits: RetentionLimits,
) -> Result<PruneResult, StoreError> {
    let (records, plan) = prune_records(project, limits)?;
    let compression = compress_logs_of_closed_sessions(project, &records, CompressionLimits::FOR_COMMAND);
    for (session, error) in &compression.errors {
        console::print_warning(&format!("cannot compress the turn log of {session}: {error}"));
    }
    let remaining_bytes = plan.remaining_bytes.saturating_sub(compression.saved_bytes);
    let saved_bytes = Some(compression.saved_bytes);
    Ok(PruneResult {
        records,
        plan: PrunePlan { remaining_bytes, ..plan },
        compressed_count: compression.log_count,
        saved_bytes,
    })
}

fn removed_records<'a>(
    records: &'a ProjectRecords,
    plan: &'a PrunePlan,
) -> impl Iterator<Item = &'a PrunableRecord> {
    plan.removed_indexes.iter().map(|index| &records.prunable[*index])
}

fn result_json(
    PruneResult { records, plan, compressed_count, saved_bytes }: &PruneResult,
) -> serde_json::Value {
    let record_json = |record: &PrunableRecord| json!({"kind": kind_name(record.kind), "name": record.name, "bytes": record.bytes, "age_seconds": record.age_seconds});
    let kept_records = records.prunable.iter().filter(|record| record.retention_reason.is_some());
    json!({
        "removed": removed_records(records, plan).map(record_json).collect::<Vec<_>>(),
        "freed_bytes": plan.freed_bytes,
        "left_bytes": plan.remaining_bytes,
        "needed": kept_records.map(record_json).collect::<Vec<_>>(),
        "packed": compressed_count,
        "saved_bytes": saved_bytes,
    })
}

fn render_result(
    PruneResult { records, plan, compressed_count, saved_bytes }: &PruneResult,
    limits: RetentionLimits,
    is_dry_run: bool,
) -> String {
    let render_row = |record: &PrunableRecord| {
        format!(
            "  {:<10} {:>9}  {:>8}  {}\n",
            kind_name(record.kind),
            format_bytes(record.bytes),
            format_age(record.age_seconds),
            record.name
        )
    };
    let rows: String = removed_records(records, plan).map(render_row).collect();
    let verb = if is_dry_run { "Would remove" } else { "Removed" };
    let session_count_text = count_with_noun(*compressed_count, "session");
    let compression_text = match saved_bytes {
        _ if *compressed_count == 0 => String::new(),
        Some(saved_bytes) => {
            format!("Compressed {session_count_text} (saved {}). ", format_bytes(*saved_bytes))
        }
        None => format!("Would compress {session_count_text}. "),
    };
    let heading = format!(
        "{verb} {} ({})",
        count_with_noun(plan.removed_indexes.len(), "record"),
        format_bytes(plan.freed_bytes)
    );
    let colon = if rows.is_empty() { "." } else { ":" };
    let over_limit_note = if plan.is_over_limit {
        "\nThis exceeds the size you set: these records are still needed."
    } else {
        ""
    };
    let kept_text = render_kept_counts_by_reason(records);
    let removed_text = if limits == RetentionLimits::default() {
        String::new()
    } else {
        format!("{heading}{colon}\n{rows}")
    };
    format!(
        "{removed_text}{compression_text}{} stay{kept_text}.{over_limit_note}",
        format_bytes(plan.remaining_bytes)
    )
}

/// Renders how many records are kept regardless of their age, and why.
fn render_kept_counts_by_reason(records: &ProjectRecords) -> String {
    let count = |reason: RetentionReason| {
        records.prunable.iter().filter(|record| record.retention_reason == Some(reason)).count()
    };
    let parts: Vec<String> = [
        (RetentionReason::UsedByOpenRun, "of the run"),
        (RetentionReason::SessionOpen, "of open sessions"),
        (RetentionReason::Unread, "unread"),
    ]
    .into_iter()
    .filter(|(reason, _)| count(*reason) > 0)
    .map(|(reason, description)| format!("{} {description}", count(reason)))
    .collect();
    if parts.is_empty() { String::new() } else { format!(", in any case {}", parts.join(", ")) }
}

fn kind_name(kind: RecordKind) -> &'static str {
    match kind {
        RecordKind::Session => "session",
        RecordKind::Handoff => "handoff",
        RecordKind::RunOutput => "run output",
    }
}

fn format_age(seconds: u64) -> String {
    match seconds {
        0..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
