//! `plimsoll doctor`: the facts about programs, client, settings, disk, window and run, gathered without writing
//! anything; `plimsoll_policy::doctor` judges them.

mod disk;
mod memory;
mod plugins;
mod programs;
mod settings;
mod window;

use plimsoll_domain::{SessionRecord, Timestamp};
use plimsoll_policy::doctor::{
    ClientFacts, ClientFault, FaultFacts, LinearFacts, LinearProgram, PreferenceFacts, ReadFailure, RunFacts,
    SettingsFile, StopHook, Work,
};
pub use plimsoll_policy::doctor::{
    Facts, Finding, ProgramFacts, Section, Severity, Standing, examine, has_problem, verdict,
};
use plimsoll_store::{
    Project, StoreError, clock, config, environment, faults, lock, outbox, state_file, tail,
};
use std::path::{Path, PathBuf};

/// What the doctor examines.
#[derive(Debug)]
pub struct Patient<'a> {
    /// The project.
    pub project: &'a Project,
    /// The client, where the user names one.
    pub client: Option<&'a Path>,
    /// What is remembered of the current session.
    pub record: &'a SessionRecord,
}

/// Hooks that failed in the current session are looked for in this much of its transcript's end.
const TRANSCRIPT_END: u64 = 1024 * 1024;

/// Gathers the facts.
pub fn gather(patient: &Patient<'_>) -> Facts {
    let project = patient.project;
    let client = client(patient.client);
    let found = settings::find(project, client.era());
    let all = plugins::find(&found);
    let plugin = plugins::ours(project, &found, &all);
    let settings = settings::facts(&found, &client, plugin.as_ref().map(|plugin| plugin.name.clone()));
    Facts {
        programs: programs::facts(project, &found),
        plugin,
        memory: memory::facts(project, &found),
        linear: linear(project),
        stop_hooks: stop_hooks(project, &found, &all),
        disk: disk::facts(project, &found),
        window: window::facts(patient, &found, &client),
        preferences: preferences(project),
        faults: faults_of(patient),
        run: run(project),
        client,
        settings,
    }
}

/// Hooks at Stop that are not ours, in settings and in plugins.
fn stop_hooks(project: &Project, found: &Files, all: &[plugins::Plugin]) -> Vec<StopHook> {
    let of_file = |file: &SettingsFile| {
        let commands = file.said().map(|survey| survey.foreign_stop.clone()).unwrap_or_default();
        let hook = |command| StopHook { file: file.path.clone(), plugin: None, command };
        commands.into_iter().map(hook).collect::<Vec<_>>()
    };
    found.iter().flat_map(of_file).chain(plugins::stop_hooks(project, all)).collect()
}

fn client(named: Option<&Path>) -> ClientFacts {
    let program = match named {
        Some(path) => environment::find_program(&path.to_string_lossy()),
        None => environment::find_program("claude"),
    };
    ClientFacts {
        named: named.map(|path| path.display().to_string()),
        version: program.as_deref().and_then(plimsoll_launcher::client_version),
        path: program.map(|path| path.display().to_string()),
    }
}

fn faults_of(patient: &Patient<'_>) -> FaultFacts {
    let transcript = patient.record.start.transcript_path.as_ref().map(PathBuf::from);
    let troubles = transcript.map(|path| tail::hook_troubles(&path, TRANSCRIPT_END).unwrap_or_default());
    let ours =
        troubles.into_iter().flatten().filter(|one| plimsoll_protocol::settings::starts_ours(&one.command));
    FaultFacts {
        own: faults::all(patient.project),
        of_client: ours
            .map(|one| ClientFault { at: Timestamp::from(one.at), command: one.command, what: one.what })
            .collect(),
        since: clock::fine_stamp(clock::now() - chrono::Duration::days(1)),
    }
}

fn run(project: &Project) -> RunFacts {
    let state = state_file::load(project, None).map(|state| state.map(Box::new));
    let work = if lock::is_run_held(project) {
        Work::Run(lock::run_holder(project))
    } else {
        let alive = state.as_ref().ok().and_then(Option::as_ref).filter(|state| !state.lifecycle.is_over());
        match alive.and_then(|state| crate::run::lifecycle::orphan(state)) {
            Some(client) => Work::Client(client.pid),
            None => Work::Nobody,
        }
    };
    RunFacts {
        is_newer: matches!(state, Err(StoreError::Newer { .. })),
        state: state.map_err(|error| ReadFailure::new(&error)),
        file: project.relative(project.state()),
        work,
    }
}

/// None if no issue is set.
fn linear(project: &Project) -> Option<LinearFacts> {
    let settings = config::load_of_files(project).settings;
    Some(LinearFacts {
        issue: settings.linear.issue?,
        program: linear_program(project),
        has_key: settings.linear.key_command.is_some() || environment::variable("LINEAR_API_KEY").is_some(),
        undelivered: outbox::all_undelivered(project),
        trouble: outbox::wait(project).map(|wait| wait.trouble),
    })
}

fn linear_program(project: &Project) -> LinearProgram {
    match crate::optional_program::find(project, crate::optional_program::LINEAR) {
        Err(error) => LinearProgram::Missing { what: error.to_string(), todo: error.hint().to_owned() },
        Ok(path) if path.parent() == environment::own_directory().as_deref() => LinearProgram::Beside,
        Ok(path) => {
            LinearProgram::OnPath { standing: programs::standing(&path), path: path.display().to_string() }
        }
    }
}

fn preferences(project: &Project) -> PreferenceFacts {
    let ignored = config::load_of_files(project).ignored;
    PreferenceFacts {
        ignored: ignored.into_iter().map(|(file, one)| (shown(project, &file), one)).collect(),
        user_file: config::user_file().map(|file| shown(project, &file)),
        project: project.root().display().to_string(),
    }
}

/// A path as short as it can be said here.
fn shown(project: &Project, path: &Path) -> String {
    if let Ok(inside) = path.strip_prefix(project.root()) {
        return inside.display().to_string();
    }
    let home = environment::home().and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned));
    home.map_or_else(|| path.display().to_string(), |below| format!("~/{}", below.display()))
}

/// The settings files that are there; the first rules over the others.
type Files = [SettingsFile];
