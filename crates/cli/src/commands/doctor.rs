//! `plimsoll doctor`: checks the installation and shows one screen of findings, each with what to do about it.

use crate::optional_program::replace_process_with_program;
use crate::target_session::TargetSession;
use clap::Args;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_flows::doctor::{
    DoctorFacts, DoctorInput, ProgramFacts, ProgramStatus, Section, examine, gather_facts, has_problem,
};
use plimsoll_flows::optional_program::FLEET;
use plimsoll_store::Project;
use plimsoll_terminal::console;
use plimsoll_terminal::finding_page::{findings_json, print_findings};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// How to look, and how to show it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The client, if it is not `claude` on the PATH
    #[arg(long, value_name = "PATH", conflicts_with = "fleet")]
    client: Option<PathBuf>,
    /// Check a fleet instead: its database, the role's rights, the git remote, the members
    #[arg(long, value_name = "NAME")]
    fleet: Option<String>,
    /// With --fleet: the git remote of this clone [default: origin]
    #[arg(long, requires = "fleet")]
    remote: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll doctor
  plimsoll doctor --client ~/bin/claude
  plimsoll doctor --fleet night
  plimsoll doctor --json | jq -r '.findings[].code'

Exit codes:
  0  everything works; there may be warnings
  1  something will not work";

/// Checks the installation and prints the findings. Returns exit code 0 if everything works, 1 if something does not.
pub(crate) fn run_doctor(arguments: &DoctorArguments) -> ExitCode {
    if let Some(fleet) = &arguments.fleet {
        return check_fleet(fleet, arguments);
    }
    let project = Project::find_for_command();
    // An unreadable state becomes a finding of its own, so the other checks still run.
    let target_session = TargetSession::find(&project).ok().flatten();
    let record = target_session.map(|target_session| target_session.record).unwrap_or_default();
    let client = arguments.client.as_deref();
    let facts =
        gather_facts(&DoctorInput { project: &project, client_path: client, session_record: &record });
    let sections = examine(&facts);
    if arguments.json {
        console::print_json(doctor_json(&project, &facts, &sections));
    } else {
        print_findings(&sections);
    }
    ExitStatus::failure_if(has_problem(&sections)).into()
}

/// Replaces this process with `plimsoll-fleet check`. Only that program links a database client; it prints findings in the same form.
fn check_fleet(fleet: &str, arguments: &DoctorArguments) -> ExitCode {
    let remote = arguments.remote.as_deref().unwrap_or("origin");
    let command_words = ["check", "--remote", remote].into_iter().chain(arguments.json.then_some("--json"));
    // `--` precedes the name, because a fleet's name may begin with a dash.
    replace_process_with_program(FLEET, &command_words.chain(["--", fleet]).collect::<Vec<_>>())
}

fn doctor_json(project: &Project, facts: &DoctorFacts, sections: &[Section]) -> Value {
    let window = &facts.window;
    json!({
        "project": project.root(),
        "verdict": plimsoll_flows::doctor::render_verdict_line(sections),
        "findings": findings_json(sections),
        "programs": programs_json(&facts.programs),
        "client": { "path": facts.client.path, "version": facts.client.version_text },
        "settings": facts.settings.files.iter().map(|file| json!({
            "path": file.path,
            "scope": file.scope.as_str(),
            "hooks": file.survey.as_ref().map_or(0, |survey| survey.our_hooks.len()),
        })).collect::<Vec<_>>(),
        "window": {
            "session_id": window.session_id,
            "model": window.model.as_ref().map(|(model, _)| model),
            "window": window.window,
            "sources": window.sources,
            "reading": window.reading,
            "marks": window.thresholds,
            "in_force": window.overrides,
        },
    })
}

/// Returns the JSON about this program, those in its folder, and every `plimsoll` on the PATH.
fn programs_json(facts: &ProgramFacts) -> Value {
    let path_beside = |name: &str| format!("{}/{name}", facts.own_folder);
    let beside_values =
        facts.sibling_programs.iter().map(|(name, status)| program_json(&path_beside(name), status));
    let path_values = facts.programs_on_path.iter().map(|(path, status)| program_json(path, status));
    let program_values: Vec<Value> = beside_values.chain(path_values).collect();
    let own_build = &facts.own_build;
    json!({ "version": own_build.version, "target": own_build.target, "commit": own_build.commit, "folder": facts.own_folder, "all": program_values })
}

fn program_json(path: &str, status: &ProgramStatus) -> Value {
    let build = match status {
        ProgramStatus::KnownBuild(build) => Some(build),
        ProgramStatus::Missing
        | ProgramStatus::NotExecutable
        | ProgramStatus::NoVersion
        | ProgramStatus::DifferentFile => None,
    };
    json!({
        "path": path,
        "version": build.map(|build| &build.version),
        "target": build.and_then(|build| build.target.as_ref()),
        "commit": build.and_then(|build| build.commit.as_ref()),
    })
}
