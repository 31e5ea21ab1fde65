//! `plimsoll doctor`: turns facts about the installation into findings, each with advice.

mod client;
mod disk;
mod faults;
mod fleet;
mod linear;
mod memory;
mod plugin;
mod preferences;
mod programs;
mod run;
mod settings;
mod stop_hooks;
mod window;

pub use client::ClientFacts;
pub use disk::{DiskFacts, FileSystem, LockStatus, PathFacts, RecordedBytes};
pub use faults::{ClientFault, FaultFacts};
pub use fleet::{DatabaseFacts, FleetFacts, MemberFacts, RemoteFacts, UnknownReason, examine_fleet};
pub use linear::{LinearFacts, LinearProgram};
pub use memory::{McpServerStatus, MemoryFacts};
pub use plugin::PluginFacts;
pub use preferences::PreferenceFacts;
pub use programs::{ConfiguredProgram, ProgramFacts, ProgramStatus, StartFailure, UnstartedEntry};
pub use run::{RunFacts, RunProcess};
pub use settings::{SettingsFacts, SettingsFile, SettingsScope, file_disabling_hooks};
pub use stop_hooks::StopHook;
pub use window::WindowFacts;

/// Why something could not be examined, as the file system, the parser or git reported it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReadFailure(String);

impl ReadFailure {
    /// Keeps the message of an error.
    pub fn new(error: &impl std::error::Error) -> ReadFailure {
        ReadFailure(error.to_string())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Useful information; nothing is wrong.
    Note,
    /// Something works less well than it could.
    Warning,
    /// Something does not work.
    Problem,
}

impl Severity {
    /// Returns the name used in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Problem => "problem",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A stable name for scripts: `settings.hooks_disabled`.
    pub code: &'static str,
    pub severity: Severity,
    /// A description of the problem.
    pub message: String,
    /// The file or folder concerned, if there is one.
    pub path: Option<String>,
    /// What the user can do about it.
    pub advice: String,
}

impl Finding {
    fn new(severity: Severity, code: &'static str, message: String, advice: &str) -> Finding {
        Finding { code, severity, message, path: None, advice: advice.to_owned() }
    }

    fn problem(code: &'static str, message: impl Into<String>, advice: &str) -> Finding {
        Finding::new(Severity::Problem, code, message.into(), advice)
    }

    fn warning(code: &'static str, message: impl Into<String>, advice: &str) -> Finding {
        Finding::new(Severity::Warning, code, message.into(), advice)
    }

    fn note(code: &'static str, message: impl Into<String>, advice: &str) -> Finding {
        Finding::new(Severity::Note, code, message.into(), advice)
    }

    fn with_path(self, path: impl Into<String>) -> Finding {
        Finding { path: Some(path.into()), ..self }
    }
}

/// One group of checks: a summary line and the findings below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The title of the group.
    pub name: &'static str,
    pub summary: String,
    /// Further lines below the summary.
    pub details: Vec<String>,
    /// Everything in this group that needs attention.
    pub findings: Vec<Finding>,
}

impl Section {
    fn new(name: &'static str, summary: impl Into<String>, findings: Vec<Finding>) -> Section {
        Section { name, summary: summary.into(), details: Vec::new(), findings }
    }

    /// Returns the highest severity of the findings.
    pub fn worst_severity(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// All facts that the doctor checks.
#[derive(Debug, Clone)]
pub struct DoctorFacts {
    /// Plimsoll's own programs.
    pub programs: ProgramFacts,
    pub client: ClientFacts,
    /// The client's settings.
    pub settings: SettingsFacts,
    /// Keys of Plimsoll's settings files that are ignored.
    pub preferences: PreferenceFacts,
    /// Plimsoll's plugin, if it is enabled.
    pub plugin: Option<PluginFacts>,
    /// Facts about the working memory, if it is installed.
    pub memory: Option<MemoryFacts>,
    /// Notes in Linear, if an issue is set.
    pub linear: Option<LinearFacts>,
    /// Stop hooks of other programs.
    pub stop_hooks: Vec<StopHook>,
    /// Permissions, locks, free space.
    pub disk: DiskFacts,
    /// Context window, auto-compact threshold, thresholds.
    pub window: WindowFacts,
    /// Recent faults.
    pub faults: FaultFacts,
    pub run: RunFacts,
}

/// Runs all checks. The sections are ordered by how early their problems would stop an unattended run.
pub fn examine(facts: &DoctorFacts) -> Vec<Section> {
    let plugin = facts
        .plugin
        .as_ref()
        .map(|plugin| plugin::check_plugin(plugin, &facts.programs.own_build.version, &facts.client));
    let memory = facts.memory.as_ref().map(memory::check_memory);
    let linear = facts.linear.as_ref().map(|linear| linear::check_linear(linear, &facts.programs.own_build));
    [
        Some(programs::check_programs(&facts.programs)),
        Some(client::check_client(&facts.client)),
        Some(settings::check_settings(&facts.settings)),
        preferences::check_preferences(&facts.preferences),
        plugin,
        memory,
        Some(stop_hooks::check_stop_hooks(&facts.stop_hooks)),
        Some(disk::check_disk(&facts.disk)),
        Some(window::check_window(&facts.window)),
        linear,
        Some(faults::check_faults(&facts.faults)),
        Some(run::check_run(&facts.run)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the last line of the report, which tells whether an unattended run is safe.
pub fn render_verdict_line(sections: &[Section]) -> String {
    let count = |severity| {
        sections
            .iter()
            .flat_map(|section| &section.findings)
            .filter(|finding| finding.severity == severity)
            .count()
    };
    let (problem_count, warning_count) = (count(Severity::Problem), count(Severity::Warning));
    let counted = plimsoll_domain::text::count_with_noun;
    match (problem_count, warning_count) {
        (0, 0) => "All is well.".to_owned(),
        (0, _) => format!("It will work, with {}.", counted(warning_count, "warning")),
        (_, 0) => format!("{}: fix this before an unattended run.", counted(problem_count, "problem")),
        _ => format!(
            "{} and {}: fix the problems before an unattended run.",
            counted(problem_count, "problem"),
            counted(warning_count, "warning")
        ),
    }
}

/// Returns true if anything does not work.
pub fn has_problem(sections: &[Section]) -> bool {
    sections.iter().any(|section| section.worst_severity() == Some(Severity::Problem))
}

#[cfg(test)]
fn finding_codes(section: &Section) -> Vec<&'static str> {
    section.findings.iter().map(|finding| finding.code).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_tells_whether_an_unattended_run_is_safe() {
        let sections_with = |severities: &[Severity]| {
            let finding = |severity: &Severity| Finding::new(*severity, "x", String::new(), "");
            [Section::new("x", "", severities.iter().map(finding).collect())]
        };
        use Severity::{Note, Problem, Warning};
        for (severities, words, is_unsafe) in [
            (&[][..], "All is well.", false),
            (&[Note], "All is well.", false),
            (&[Warning, Note], "It will work, with 1 warning.", false),
            (&[Problem], "1 problem: fix this before an unattended run.", true),
            (
                &[Problem, Warning, Problem],
                "2 problems and 1 warning: fix the problems before an unattended run.",
                true,
            ),
        ] {
            let sections = sections_with(severities);
            assert_eq!((render_verdict_line(&sections).as_str(), has_problem(&sections)), (words, is_unsafe));
        }
    }
}
