//! `plimsoll turns erase`.

use super::{TurnsError, bring_up_to_date};
use crate::say;
use clap::Args;
use flows::turns::find;
use session::text::counted;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;
use store::Project;

/// What goes.
#[derive(Debug, Args)]
pub(super) struct EraseArguments {
    /// Turns as `list` names them, or record:NUMBER for another record of the newest session, such as a prompt
    #[arg(required = true)]
    turns: Vec<String>,
    /// The session of a number alone: the beginning of its id [default: the newest]
    #[arg(long)]
    session: Option<String>,
}

const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn erase(project: &Project, arguments: &EraseArguments) -> Result<ExitCode, TurnsError> {
    bring_up_to_date(project);
    let mut wanted: BTreeMap<String, (store::TurnLog, BTreeSet<u64>)> = BTreeMap::new();
    for turn in &arguments.turns {
        let (log, found) = find(project, turn, arguments.session.as_deref())?;
        let (_, seqs) = wanted.entry(found.session_id.clone()).or_insert_with(|| (log, BTreeSet::new()));
        seqs.insert(found.header.seq);
        say(format!("{} (record {})", found.name(), found.header.seq));
    }
    let mut count = 0;
    for (log, seqs) in wanted.values() {
        count += log.erase(seqs, PATIENCE)?;
    }
    say(format!(
        "{} erased here for good. The client's own transcript still has the words, until it deletes it.",
        counted(count, "record")
    ));
    Ok(ExitCode::SUCCESS)
}
