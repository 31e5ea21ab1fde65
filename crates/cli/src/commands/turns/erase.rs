//! `plimsoll turns erase`.

mod secret;

use super::{TurnsError, bring_up_to_date};
use clap::Args;
use plimsoll_domain::text::counted;
use plimsoll_flows::turns::find;
use plimsoll_store::turn_log::ErasureRequest;
use plimsoll_store::{Project, TurnLog};
use plimsoll_terminal::console::say;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

/// What goes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct EraseArguments {
    /// Turns as `list` names them, or record:NUMBER for another record of the newest session, such as a prompt
    #[arg(required_unless_present = "secrets", conflicts_with = "secrets")]
    turns: Vec<String>,
    /// The session of a number alone: the beginning of its id [default: the newest; with --secrets all]
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

const TIMEOUT: Duration = Duration::from_secs(5);

const NOTHING_ERASED: &str = "Nothing was erased: run it without --dry-run to erase.";
/// What an erasure does not reach.
const TRANSCRIPT: &str = "The client's own transcript still has the contents, until the client deletes it.";

pub(super) fn erase(project: &Project, arguments: &EraseArguments) -> Result<ExitCode, TurnsError> {
    // What the transcript has and the log not yet would come in after the erasure.
    bring_up_to_date(project);
    if arguments.secrets {
        return secret::erase(project, arguments.session.as_deref(), arguments.dry_run);
    }
    let mut wanted: BTreeMap<String, (TurnLog, BTreeSet<u64>)> = BTreeMap::new();
    for turn in &arguments.turns {
        let (log, found) = find(project, turn, arguments.session.as_deref())?;
        let (_, seqs) =
            wanted.entry(found.session_id.clone().to_string()).or_insert_with(|| (log, BTreeSet::new()));
        seqs.insert(found.header.seq);
        say(format!("{} (record {})", found.name(), found.header.seq));
    }
    if arguments.dry_run {
        say(NOTHING_ERASED);
        return Ok(ExitCode::SUCCESS);
    }
    let records = wanted.iter().map(|(id, (_, seqs))| (id.clone(), seqs.clone())).collect();
    let request = ErasureRequest { records, ..ErasureRequest::default() };
    request.begin(project)?;
    let mut count = 0;
    for (log, seqs) in wanted.values() {
        // A second log of the session first: which of its records are meant, the named ones tell.
        for copy in TurnLog::all_of(project, log.session_id()).iter().filter(|copy| copy.path() != log.path())
        {
            copy.erase(&copy.records_like(log, seqs)?, TIMEOUT)?;
        }
        count += log.erase(seqs, TIMEOUT)?;
    }
    request.finish(project)?;
    say(format!("{} erased here permanently. {TRANSCRIPT}", counted(count, "record")));
    Ok(ExitCode::SUCCESS)
}
