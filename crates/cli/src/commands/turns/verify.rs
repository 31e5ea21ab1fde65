//! `plimsoll turns verify`.

use super::TurnsError;
use clap::Args;
use plimsoll_domain::SessionId;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::text::count_with_noun;
use plimsoll_flows::turns::TurnSelection;
use plimsoll_policy::todo_list::quote_for_shell;
use plimsoll_store::Project;
use plimsoll_store::turn_log::{ErasureRequest, LogFinding, VerificationReport};
use plimsoll_terminal::console::print_text;
use std::collections::BTreeSet;
use std::process::ExitCode;

/// Which logs to verify.
#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// Only this session: the beginning of its id is enough
    #[arg(long)]
    session: Option<String>,
}

pub(super) fn verify_logs_and_report_interrupted_erasures(
    project: &Project,
    arguments: &VerifyArguments,
) -> Result<ExitCode, TurnsError> {
    let selection =
        TurnSelection { session_id_prefix: arguments.session.clone(), ..TurnSelection::default() };
    let mut are_all_intact = true;
    for log in selection.selected_logs_with_copies(project)? {
        let report = log.verify()?;
        are_all_intact &= report.is_intact();
        print_text(render_report(log.session_id(), &report));
    }
    let interrupted_erasures = ErasureRequest::load_interrupted(project);
    if !interrupted_erasures.is_empty() {
        are_all_intact = false;
        print_text("An erasure was interrupted. Repeat it:");
        interrupted_erasures
            .iter()
            .flat_map(commands_to_repeat_erasure)
            .for_each(|command| print_text(format!("  {command}")));
    }
    Ok(ExitStatus::failure_if(!are_all_intact).into())
}

/// Returns the commands that repeat an interrupted erasure.
fn commands_to_repeat_erasure(request: &ErasureRequest) -> Vec<String> {
    const COMMAND: &str = "plimsoll turns erase";
    let session_option = |id: &str| format!(" --session {}", quote_for_shell(id));
    if request.removes_secrets {
        let session = request.session_prefix.as_deref().map(session_option).unwrap_or_default();
        return vec![format!("{COMMAND} --secrets{session}")];
    }
    let command_for_session = |(id, sequence_numbers): (&String, &BTreeSet<u64>)| {
        let record_arguments: String =
            sequence_numbers.iter().map(|sequence_number| format!(" record:{sequence_number}")).collect();
        format!("{COMMAND}{}{record_arguments}", session_option(id))
    };
    request.records_by_session.iter().map(command_for_session).collect()
}

fn render_report(session_id: &SessionId, report: &VerificationReport) -> String {
    let integrity_text = match () {
        () if report.is_intact() => "intact",
        () if report.has_only_unfinished_erasures() => "ERASURE INCOMPLETE",
        () => "DAMAGED",
    };
    let records = count_with_noun(usize::try_from(report.record_count).unwrap_or(usize::MAX), "record");
    let turns = count_with_noun(usize::try_from(report.turn_count).unwrap_or(usize::MAX), "turn");
    let erased =
        if report.erased_count > 0 { format!(", {} erased", report.erased_count) } else { String::new() };
    let mut lines = vec![format!("{session_id}  {integrity_text}: {records}, {turns}{erased}")];
    lines.extend(report.findings.iter().map(|finding| format!("  {}", render_finding(finding))));
    lines.join("\n")
}

fn render_finding(finding: &LogFinding) -> String {
    let position = match (finding.sequence_number, finding.line_number) {
        (Some(sequence_number), 0) => format!("record {sequence_number}: "),
        (Some(sequence_number), line) => format!("line {line}, record {sequence_number}: "),
        (None, 0) => String::new(),
        (None, line) => format!("line {line}: "),
    };
    let bullet = if finding.is_error { "!" } else { "·" };
    format!("{bullet} {position}{}", finding.description)
}
