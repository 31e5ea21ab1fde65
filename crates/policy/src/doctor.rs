//! `plimsoll doctor`: checks the collected state of the installation and reports findings, each with advice.

mod client;
mod client_module;
mod disk;
mod fleet;
mod hook_failures;
mod linear;
mod memory;
mod plugin;
mod preferences;
mod programs;
mod run;
mod settings;
mod stop_hooks;
mod window;
mod wsl;

pub use client::ClientInfo;
pub use client_module::{InstalledModuleInfo, ModuleInfo, ModuleLoadStatus};
pub use disk::{DiskInfo, FileSystem, LockStatus, PathInfo, RecordedBytes};
pub use fleet::{DatabaseInfo, FleetDiagnostics, FleetInfo, RemoteInfo, UnavailableReason, run_fleet_checks};
pub use hook_failures::{HookFailureInTranscript, HookFailures};
pub use linear::{LinearInfo, LinearProgram};
pub use memory::{McpServerStatus, MemoryInfo};
pub use plugin::PluginInfo;
pub use preferences::PreferenceInfo;
pub use programs::{ConfiguredProgram, EntryThatFailsWithoutPath, ProgramInfo, ProgramStatus, StartFailure};
pub use run::{RunInfo, RunProcess};
pub use settings::{SettingsFile, SettingsInfo, SettingsScope, deciding_file_if_it_disables_all_hooks};
pub use stop_hooks::StopHook;
pub use window::WindowInfo;
pub use wsl::is_windows_program;

/// Why something could not be inspected, as the file system, the parser or git reported it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InspectionError(String);

impl InspectionError {
    pub fn new(error: &impl std::error::Error) -> InspectionError {
        InspectionError(error.to_string())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Useful information; not a problem.
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
    /// A stable identifier for scripts, such as `settings.hooks_disabled`.
    pub code: &'static str,
    pub severity: Severity,
    /// A description of the problem.
    pub message: String,
    /// The affected file or folder, if there is one.
    pub path: Option<String>,
    /// How the user can fix it.
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

/// Everything that `plimsoll doctor` checks.
#[derive(Debug, Clone)]
pub struct Diagnostics {
    /// Plimsoll's programs.
    pub programs: ProgramInfo,
    pub client: ClientInfo,
    /// The client's settings.
    pub settings: SettingsInfo,
    /// Keys of Plimsoll's settings files that are ignored.
    pub preferences: PreferenceInfo,
    /// Plimsoll's plugin, if it is enabled.
    pub plugin: Option<PluginInfo>,
    /// Our module for the client, and those of other plugins.
    pub module: ModuleInfo,
    /// The working memory, if it is installed.
    pub memory: Option<MemoryInfo>,
    /// The delivery of notes to Linear, if an issue is configured.
    pub linear: Option<LinearInfo>,
    /// Stop hooks of other programs.
    pub stop_hooks: Vec<StopHook>,
    /// Permissions, locks, free space.
    pub disk: DiskInfo,
    /// Context window, auto-compact threshold, thresholds.
    pub window: WindowInfo,
    pub hook_failures: HookFailures,
    pub run: RunInfo,
}

/// Runs all checks. The sections are ordered by how early their problems would stop an unattended run.
pub fn run_installation_checks(diagnostics: &Diagnostics) -> Vec<Section> {
    let plugin = diagnostics.plugin.as_ref().map(|plugin| {
        plugin::check_plugin_versions_server_and_nesting(
            plugin,
            &diagnostics.programs.current_build.version,
            &diagnostics.client,
        )
    });
    let memory = diagnostics.memory.as_ref().map(memory::check_memory_server_agent_and_nesting);
    let linear = diagnostics
        .linear
        .as_ref()
        .map(|linear| linear::check_linear_delivery(linear, &diagnostics.programs.current_build));
    let mut settings = settings::check_hook_settings(&diagnostics.settings);
    let settings_error = diagnostics.window.settings_error.as_deref();
    settings.findings.extend(settings_error.map(window::ignored_settings_finding));
    [
        Some(programs::check_program_builds_and_path(&diagnostics.programs)),
        Some(client::check_client_version(&diagnostics.client)),
        Some(settings),
        preferences::check_ignored_preferences(&diagnostics.preferences),
        plugin,
        client_module::check_module_and_other_modules(
            &diagnostics.module,
            &diagnostics.client,
            &diagnostics.programs.current_build.version,
        ),
        memory,
        Some(stop_hooks::check_stop_hooks_of_other_programs(&diagnostics.stop_hooks)),
        Some(disk::check_disk_git_and_recorded_files(&diagnostics.disk)),
        Some(window::check_context_window(&diagnostics.window)),
        linear,
        Some(hook_failures::check_last_hook_and_client_failure(&diagnostics.hook_failures)),
        Some(run::check_run_state_and_process(&diagnostics.run)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Renders the last line of the report, which states whether an unattended run is safe.
pub fn render_conclusion_line(sections: &[Section]) -> String {
    let count_with_severity = |severity| {
        sections
            .iter()
            .flat_map(|section| &section.findings)
            .filter(|finding| finding.severity == severity)
            .count()
    };
    let (problem_count, warning_count) =
        (count_with_severity(Severity::Problem), count_with_severity(Severity::Warning));
    let count_with_noun = plimsoll_domain::text::count_with_noun;
    match (problem_count, warning_count) {
        (0, 0) => "All is well.".to_owned(),
        (0, _) => format!("It will work, with {}.", count_with_noun(warning_count, "warning")),
        (_, 0) => {
            format!("{}: fix this before an unattended run.", count_with_noun(problem_count, "problem"))
        }
        _ => format!(
            "{} and {}: fix the problems before an unattended run.",
            count_with_noun(problem_count, "problem"),
            count_with_noun(warning_count, "warning")
        ),
    }
}

/// Returns true if any section contains a problem.
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
            assert_eq!(
                (render_conclusion_line(&sections).as_str(), has_problem(&sections)),
                (words, is_unsafe)
            );
        }
    }
}
