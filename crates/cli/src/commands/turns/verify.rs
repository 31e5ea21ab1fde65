//! `plimsoll turns verify`.

use super::TurnsError;
use clap::Args;
use plimsoll_domain::SessionId;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::text::counted;
use plimsoll_flows::turns::Selection;
use plimsoll_policy::todo_list::shell_word;
use plimsoll_store::Project;
use plimsoll_store::turn_log::{ErasureRequest, Finding, Report};
use plimsoll_terminal::console::say;
use std::collections::BTreeSet;
use std::process::ExitCode;

/// Which logs.
#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// Only this session: the beginning of its id is enough
    #[arg(long)]
    session: Option<String>,
}

pub(super) fn verify(project: &Project, arguments: &VerifyArguments) -> Result<ExitCode, TurnsError> {
    let which = Selection { session: arguments.session.clone(), ..Selection::default() };
    let mut is_whole = true;
    for log in which.all_logs(project)? {
        let report = log.verify()?;
        is_whole &= report.is_whole();
        say(words(log.session_id(), &report));
    }
    let interrupted = ErasureRequest::interrupted(project);
    if !interrupted.is_empty() {
        is_whole = false;
        say("An erasure was interrupted, and is not finished. Repeat it:");
        interrupted.iter().flat_map(commands_of).for_each(|command| say(format!("  {command}")));
    }
    Ok(ExitStatus::failure_if(!is_whole).into())
}

/// The commands that repeat an erasure.
fn commands_of(request: &ErasureRequest) -> Vec<String> {
    const COMMAND: &str = "plimsoll turns erase";
    let session = |id: &str| format!(" --session {}", shell_word(id));
    if request.secrets {
        let session = request.session.as_deref().map(session).unwrap_or_default();
        return vec![format!("{COMMAND} --secrets{session}")];
    }
    let of_session = |(id, seqs): (&String, &BTreeSet<u64>)| {
        let records: String = seqs.iter().map(|seq| format!(" record:{seq}")).collect();
        format!("{COMMAND}{}{records}", session(id))
    };
    request.records.iter().map(of_session).collect()
}

fn words(session_id: &SessionId, report: &Report) -> String {
    let verdict = match () {
        () if report.is_whole() => "whole",
        () if report.is_only_unfinished() => "ERASURE NOT FINISHED",
        () => "NOT WHOLE",
    };
    let records = counted(usize::try_from(report.records).unwrap_or(usize::MAX), "record");
    let turns = counted(usize::try_from(report.turns).unwrap_or(usize::MAX), "turn");
    let erased = if report.erased > 0 { format!(", {} erased", report.erased) } else { String::new() };
    let mut lines = vec![format!("{session_id}  {verdict}: {records}, {turns}{erased}")];
    lines.extend(report.findings.iter().map(|finding| format!("  {}", line(finding))));
    lines.join("\n")
}

fn line(finding: &Finding) -> String {
    let place = match (finding.seq, finding.line) {
        (Some(seq), 0) => format!("record {seq}: "),
        (Some(seq), line) => format!("line {line}, record {seq}: "),
        (None, 0) => String::new(),
        (None, line) => format!("line {line}: "),
    };
    let mark = if finding.is_bad { "!" } else { "·" };
    format!("{mark} {place}{}", finding.what)
}
