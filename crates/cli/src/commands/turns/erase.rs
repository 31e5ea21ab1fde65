//! `plimsoll turns erase`.

mod secret;

use super::{TurnsError, record_missing_turns_or_print_warning};
use clap::Args;
use plimsoll_domain::text::count_with_noun;
use plimsoll_flows::turns::find_turn_or_record_by_name;
use plimsoll_store::turn_log::ErasureRequest;
use plimsoll_store::{Project, TurnLog};
use plimsoll_terminal::console::print_text;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

/// The turns to erase.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct EraseArguments {
    /// Turns as `list` names them, or record:NUMBER
    #[arg(required_unless_present = "secrets", conflicts_with = "secrets")]
    turns: Vec<String>,
    /// The session, by the beginning of its id
    ///
    /// The default is the newest one; with --secrets, all.
    #[arg(long)]
    session: Option<String>,
    /// Every record that holds what looks like a key, a token or a password
    #[arg(long)]
    secrets: bool,
    /// Only list the records and what was found in them; erase nothing
    #[arg(long)]
    dry_run: bool,
}

const EXAMPLES: &str = "Examples:
  plimsoll turns erase 4f2a91bc:17            the contents of one turn
  plimsoll turns erase --secrets --dry-run    which records may hold a secret
  plimsoll turns erase --secrets              erase those, in all sessions";

const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

const DRY_RUN_NOTICE: &str = "Nothing was erased. To erase, run it without --dry-run.";
/// An erasure does not change the client's transcript.
const TRANSCRIPT_NOTICE: &str =
    "Claude Code's own transcript keeps the contents until Claude Code deletes it.";

pub(super) fn erase_requested_turns_or_all_secrets(
    project: &Project,
    arguments: &EraseArguments,
) -> Result<ExitCode, TurnsError> {
    // Otherwise, content that is only in the transcript so far would be logged after the erasure.
    record_missing_turns_or_print_warning(project);
    if arguments.secrets {
        return secret::find_and_erase_secrets(project, arguments.session.as_deref(), arguments.dry_run);
    }
    let mut requested_records: BTreeMap<String, (TurnLog, BTreeSet<u64>)> = BTreeMap::new();
    for turn in &arguments.turns {
        let (log, record) = find_turn_or_record_by_name(project, turn, arguments.session.as_deref())?;
        let (_, sequence_numbers) = requested_records
            .entry(record.session_id.clone().to_string())
            .or_insert_with(|| (log, BTreeSet::new()));
        sequence_numbers.insert(record.header.sequence_number);
        print_text(format!(
            "{} (record {})",
            record.short_session_id_and_number(),
            record.header.sequence_number
        ));
    }
    if arguments.dry_run {
        print_text(DRY_RUN_NOTICE);
        return Ok(ExitCode::SUCCESS);
    }
    let records = requested_records
        .iter()
        .map(|(id, (_, sequence_numbers))| (id.clone(), sequence_numbers.clone()))
        .collect();
    let request = ErasureRequest { records_by_session: records, ..ErasureRequest::default() };
    request.record_start(project)?;
    let mut erased_count = 0;
    for (log, sequence_numbers) in requested_records.values() {
        // Other logs of the same session are erased first. Their records are found by comparison with the requested
        // records, which must still have their content.
        for other_log in TurnLog::started_logs_of_session(project, log.session_id())
            .iter()
            .filter(|other_log| other_log.path() != log.path())
        {
            other_log.erase_records_and_finish_interrupted(
                &other_log.find_equal_records(log, sequence_numbers)?,
                LOCK_TIMEOUT,
            )?;
        }
        erased_count += log.erase_records_and_finish_interrupted(sequence_numbers, LOCK_TIMEOUT)?;
    }
    request.remove_this_and_covered_requests(project)?;
    print_text(format!(
        "{} erased here permanently. {TRANSCRIPT_NOTICE}",
        count_with_noun(erased_count, "record")
    ));
    Ok(ExitCode::SUCCESS)
}
