//! `plimsoll doctor`: checks the installation and shows one screen of findings, each with what to do about it.

use crate::optional_program::replace_process_with_program;
use crate::target_session::TargetSession;
use clap::Args;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_flows::doctor::{
    Diagnostics, DoctorInput, ModuleInfo, ModuleLoadStatus, ProgramInfo, ProgramStatus, Section,
    collect_diagnostics, has_problem, run_installation_checks,
};
use plimsoll_flows::optional_program::FLEET_PROGRAM;
use plimsoll_store::Project;
use plimsoll_terminal::console;
use plimsoll_terminal::finding_page::{findings_to_json, print_findings};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `plimsoll doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The path of Claude Code, if it is not `claude` on the PATH
    #[arg(long, value_name = "PATH", conflicts_with = "fleet")]
    client: Option<PathBuf>,
    /// Check a fleet instead: database, rights, git remote, members
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
    let project = Project::find_upwards_from_current_dir();
    // An unreadable state becomes a finding of its own, so the other checks still run.
    let target_session = TargetSession::find_current_or_run_or_latest(&project).ok().flatten();
    let record = target_session.map(|target_session| target_session.record).unwrap_or_default();
    let client = arguments.client.as_deref();
    let diagnostics =
        collect_diagnostics(&DoctorInput { project: &project, client_path: client, session_record: &record });
    let sections = run_installation_checks(&diagnostics);
    if arguments.json {
        console::print_json(doctor_json(&project, &diagnostics, &sections));
    } else {
        print_findings(&sections);
    }
    ExitStatus::failure_if(has_problem(&sections)).into()
}

/// Replaces this process with `plimsoll-fleet check`. Only that program links a database client; it prints findings in
/// the same form.
fn check_fleet(fleet: &str, arguments: &DoctorArguments) -> ExitCode {
    let remote = arguments.remote.as_deref().unwrap_or("origin");
    let command_words = ["check", "--remote", remote].into_iter().chain(arguments.json.then_some("--json"));
    // `--` precedes the name, because a fleet's name may begin with a dash.
    replace_process_with_program(FLEET_PROGRAM, &command_words.chain(["--", fleet]).collect::<Vec<_>>())
}

fn doctor_json(project: &Project, diagnostics: &Diagnostics, sections: &[Section]) -> Value {
    let window_diagnostics = &diagnostics.window;
    json!({
        "project": project.root(),
        "verdict": plimsoll_flows::doctor::render_conclusion_line(sections),
        "findings": findings_to_json(sections),
        "programs": programs_json(&diagnostics.programs),
        "client": { "path": diagnostics.client.path, "version": diagnostics.client.version_text },
        "settings": diagnostics.settings.files.iter().map(|file| json!({
            "path": file.path,
            "scope": file.scope.as_str(),
            "hooks": file.summary.as_ref().map_or(0, |hooks_summary| hooks_summary.our_hooks.len()),
        })).collect::<Vec<_>>(),
        "module": module_json(&diagnostics.module),
        "window": {
            "session_id": window_diagnostics.session_id,
            "model": window_diagnostics.model.as_ref().map(|(model, _)| model),
            "window": window_diagnostics.window,
            "sources": window_diagnostics.candidate_windows,
            "reading": window_diagnostics.reading,
            "marks": window_diagnostics.thresholds,
            "in_force": window_diagnostics.overrides,
        },
    })
}

/// Returns the JSON about our module for the client, and the modules of other plugins.
fn module_json(module: &ModuleInfo) -> Value {
    let loaded_at = match &module.load_status {
        ModuleLoadStatus::Loaded(reported_at) => Some(reported_at),
        ModuleLoadStatus::NotLoaded | ModuleLoadStatus::Unknown => None,
    };
    let others = module.other_modules.iter().map(|(other_module, path)| {
        json!({ "plugin": other_module.plugin, "events": other_module.events, "path": path })
    });
    json!({
        "installed": module.installed.as_ref().map(|installed| &installed.folder),
        "plugin": module.plugin,
        "answers": module.active_module_copy(),
        "loaded_at": loaded_at,
        "others": others.collect::<Vec<_>>(),
    })
}

/// Returns the JSON about this program, the other programs in its folder, and every `plimsoll` on the PATH.
fn programs_json(program_info: &ProgramInfo) -> Value {
    let sibling_path = |name: &str| format!("{}/{name}", program_info.program_folder);
    let sibling_values = program_info
        .sibling_programs
        .iter()
        .map(|(name, status)| program_path_and_build_json(&sibling_path(name), status));
    let values_on_path =
        program_info.programs_on_path.iter().map(|(path, status)| program_path_and_build_json(path, status));
    let program_values: Vec<Value> = sibling_values.chain(values_on_path).collect();
    let current_build = &program_info.current_build;
    json!({ "version": current_build.version, "target": current_build.target, "commit": current_build.commit, "folder": program_info.program_folder, "all": program_values })
}

fn program_path_and_build_json(path: &str, status: &ProgramStatus) -> Value {
    let build = match status {
        ProgramStatus::ReportedBuild(build) => Some(build),
        ProgramStatus::Missing
        | ProgramStatus::NotExecutable
        | ProgramStatus::NoVersionReported
        | ProgramStatus::DifferentFile => None,
    };
    json!({
        "path": path,
        "version": build.map(|build| &build.version),
        "target": build.and_then(|build| build.target.as_ref()),
        "commit": build.and_then(|build| build.commit.as_ref()),
    })
}
