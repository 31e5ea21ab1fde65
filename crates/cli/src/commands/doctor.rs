//! `plimsoll doctor`: is all well? One screen, with what to do about each finding.

use crate::optional_program::become_program;
use crate::target_session::TargetSession;
use clap::Args;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_flows::doctor::{Facts, Patient, ProgramFacts, Section, Standing, examine, gather, has_problem};
use plimsoll_flows::optional_program::FLEET;
use plimsoll_store::Project;
use plimsoll_terminal::console;
use plimsoll_terminal::finding_page::{findings_json, show};
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

/// Looks: exit code 0 where all will work, 1 where something will not.
pub(crate) fn doctor(arguments: &DoctorArguments) -> ExitCode {
    if let Some(fleet) = &arguments.fleet {
        return of_fleet(fleet, arguments);
    }
    let project = Project::of_command();
    // A state that cannot be read is a finding, and no reason not to look at the rest.
    let whose = TargetSession::find(&project).ok().flatten();
    let record = whose.map(|whose| whose.record).unwrap_or_default();
    let client = arguments.client.as_deref();
    let facts = gather(&Patient { project: &project, client, record: &record });
    let sections = examine(&facts);
    if arguments.json {
        console::json(document(&project, &facts, &sections));
    } else {
        show(&sections);
    }
    ExitStatus::failure_if(has_problem(&sections)).into()
}

/// Only `plimsoll-fleet` speaks to a database: it looks, and shows what it finds as we do.
fn of_fleet(name: &str, arguments: &DoctorArguments) -> ExitCode {
    let remote = arguments.remote.as_deref().unwrap_or("origin");
    let words = ["check", "--remote", remote].into_iter().chain(arguments.json.then_some("--json"));
    // A name may begin with a dash.
    become_program(FLEET, &words.chain(["--", name]).collect::<Vec<_>>())
}

fn document(project: &Project, facts: &Facts, sections: &[Section]) -> Value {
    let window = &facts.window;
    json!({
        "project": project.root(),
        "verdict": plimsoll_flows::doctor::verdict(sections),
        "findings": findings_json(sections),
        "programs": programs(&facts.programs),
        "client": { "path": facts.client.path, "version": facts.client.version },
        "settings": facts.settings.files.iter().map(|file| json!({
            "path": file.path,
            "scope": file.scope.words(),
            "hooks": file.survey.as_ref().map_or(0, |survey| survey.ours.len()),
        })).collect::<Vec<_>>(),
        "window": {
            "session_id": window.session,
            "model": window.model.as_ref().map(|(model, _)| model),
            "window": window.window,
            "sources": window.sources,
            "reading": window.reading,
            "marks": window.thresholds,
            "in_force": window.knobs,
        },
    })
}

/// Ours, those beside us, and every `plimsoll` on the PATH.
fn programs(facts: &ProgramFacts) -> Value {
    let path = |name: &str| format!("{}/{name}", facts.folder);
    let beside = facts.beside.iter().map(|(name, standing)| program(&path(name), standing));
    let on_path = facts.on_path.iter().map(|(path, standing)| program(path, standing));
    let all: Vec<Value> = beside.chain(on_path).collect();
    let own = &facts.own;
    json!({ "version": own.version, "target": own.target, "commit": own.commit, "folder": facts.folder, "all": all })
}

fn program(path: &str, standing: &Standing) -> Value {
    let build = match standing {
        Standing::Built(build) => Some(build),
        Standing::Missing | Standing::NotExecutable | Standing::Silent | Standing::Other => None,
    };
    json!({
        "path": path,
        "version": build.map(|build| &build.version),
        "target": build.and_then(|build| build.target.as_ref()),
        "commit": build.and_then(|build| build.commit.as_ref()),
    })
}
