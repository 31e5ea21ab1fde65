//! Is all well? Facts in, findings out; each with what to do about it.

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
pub use disk::{DiskFacts, FileSystem, Folder, Lock, RecordedBytes};
pub use faults::{ClientFault, FaultFacts};
pub use fleet::{DatabaseFacts, FleetFacts, MemberFacts, RemoteFacts, Unknown, examine_fleet};
pub use linear::{LinearFacts, LinearProgram};
pub use memory::{MemoryFacts, Server};
pub use plugin::PluginFacts;
pub use preferences::PreferenceFacts;
pub use programs::{Named, ProgramFacts, Standing, StartFailure, UnstartedEntry};
pub use run::{RunFacts, Work};
pub use settings::{Scope, SettingsFacts, SettingsFile, switched_off};
pub use stop_hooks::StopHook;
pub use window::WindowFacts;

/// Why something could not be examined, in the words of the disk, of the parser or of git.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReadFailure(String);

impl ReadFailure {
    /// What it said.
    pub fn new(error: &impl std::error::Error) -> ReadFailure {
        ReadFailure(error.to_string())
    }
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Note,
    /// Something will be less than it could.
    Warning,
    /// Something will not work.
    Problem,
}

impl Severity {
    /// As written in `--json`.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Problem => "problem",
        }
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A name that stays, for scripts: `settings.hooks_disabled`.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What is so.
    pub what: String,
    /// In which file, where there is one.
    pub place: Option<String>,
    /// What to do about it.
    pub todo: String,
}

impl Finding {
    fn new(severity: Severity, code: &'static str, what: String, todo: &str) -> Finding {
        Finding { code, severity, what, place: None, todo: todo.to_owned() }
    }

    fn problem(code: &'static str, what: impl Into<String>, todo: &str) -> Finding {
        Finding::new(Severity::Problem, code, what.into(), todo)
    }

    fn warning(code: &'static str, what: impl Into<String>, todo: &str) -> Finding {
        Finding::new(Severity::Warning, code, what.into(), todo)
    }

    fn note(code: &'static str, what: impl Into<String>, todo: &str) -> Finding {
        Finding::new(Severity::Note, code, what.into(), todo)
    }

    fn at(self, place: impl Into<String>) -> Finding {
        Finding { place: Some(place.into()), ..self }
    }
}

/// One group of checks: a line, and beneath it what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// What was looked at.
    pub name: &'static str,
    /// What there is.
    pub summary: String,
    /// More of it, a line each.
    pub details: Vec<String>,
    /// What is not as it should be.
    pub findings: Vec<Finding>,
}

impl Section {
    fn new(name: &'static str, summary: impl Into<String>, findings: Vec<Finding>) -> Section {
        Section { name, summary: summary.into(), details: Vec::new(), findings }
    }

    /// The worst of its findings.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// Everything that was looked at.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Our programs.
    pub programs: ProgramFacts,
    /// The client.
    pub client: ClientFacts,
    /// The client's settings.
    pub settings: SettingsFacts,
    /// What of our own settings files does not hold.
    pub preferences: PreferenceFacts,
    /// Our plugin, where it is switched on.
    pub plugin: Option<PluginFacts>,
    /// What the working memory needs, where it is installed.
    pub memory: Option<MemoryFacts>,
    /// Notes in Linear, where an issue is set.
    pub linear: Option<LinearFacts>,
    /// Hooks of other programs at Stop.
    pub stop_hooks: Vec<StopHook>,
    /// Folders, locks, space.
    pub disk: DiskFacts,
    /// Window, auto-compact threshold, levels.
    pub window: WindowFacts,
    /// What went wrong lately.
    pub faults: FaultFacts,
    /// The run.
    pub run: RunFacts,
}

/// Looks at everything, in the order in which it would stop a night.
pub fn examine(facts: &Facts) -> Vec<Section> {
    let plugin = facts
        .plugin
        .as_ref()
        .map(|plugin| plugin::section(plugin, &facts.programs.own.version, &facts.client));
    let memory = facts.memory.as_ref().map(memory::section);
    let linear = facts.linear.as_ref().map(|linear| linear::section(linear, &facts.programs.own));
    [
        Some(programs::section(&facts.programs)),
        Some(client::section(&facts.client)),
        Some(settings::section(&facts.settings)),
        preferences::section(&facts.preferences),
        plugin,
        memory,
        Some(stop_hooks::section(&facts.stop_hooks)),
        Some(disk::section(&facts.disk)),
        Some(window::section(&facts.window)),
        linear,
        Some(faults::section(&facts.faults)),
        Some(run::section(&facts.run)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The last line: whether the night is safe.
pub fn verdict(sections: &[Section]) -> String {
    let count = |severity| {
        sections.iter().flat_map(|section| &section.findings).filter(|one| one.severity == severity).count()
    };
    let (problems, warnings) = (count(Severity::Problem), count(Severity::Warning));
    let counted = plimsoll_domain::text::counted;
    match (problems, warnings) {
        (0, 0) => "All is well.".to_owned(),
        (0, _) => format!("It will work, with {}.", counted(warnings, "warning")),
        (_, 0) => format!("{}: fix this before an unattended run.", counted(problems, "problem")),
        _ => format!(
            "{} and {}: fix the problems before an unattended run.",
            counted(problems, "problem"),
            counted(warnings, "warning")
        ),
    }
}

/// True when something will not work.
pub fn has_problem(sections: &[Section]) -> bool {
    sections.iter().any(|section| section.worst() == Some(Severity::Problem))
}

#[cfg(test)]
fn codes(section: &Section) -> Vec<&'static str> {
    section.findings.iter().map(|finding| finding.code).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_tells_whether_the_night_is_safe() {
        let of = |severities: &[Severity]| {
            let finding = |severity: &Severity| Finding::new(*severity, "x", String::new(), "");
            [Section::new("x", "", severities.iter().map(finding).collect())]
        };
        use Severity::{Note, Problem, Warning};
        for (severities, words, bad) in [
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
            let sections = of(severities);
            assert_eq!((verdict(&sections).as_str(), has_problem(&sections)), (words, bad));
        }
    }
}
