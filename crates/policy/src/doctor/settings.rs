//! The client's settings: whether our hooks are in them, once, and will run.

use super::{Finding, ReadFailure, Section, Severity};
use plimsoll_protocol::settings::{Difference, DifferenceKind, HookSupport, OurHook, Survey};
use std::collections::BTreeMap;

/// Whose a settings file is; the first rules over the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The machine's administrator.
    Managed,
    /// Your own for this project.
    Local,
    /// The team's.
    Project,
    /// Your own for all projects.
    User,
}

impl Scope {
    /// As shown to the user.
    pub fn words(self) -> &'static str {
        match self {
            Scope::Managed => "managed",
            Scope::Local => "local",
            Scope::Project => "project",
            Scope::User => "user",
        }
    }

    fn init(self) -> &'static str {
        match self {
            Scope::Managed => "ask the administrator of this machine to change this file",
            Scope::Local => "run `plimsoll init --local` again",
            Scope::Project => "run `plimsoll init --project --entries` again",
            Scope::User => "run `plimsoll init --user` again",
        }
    }

    fn uninstall(self) -> &'static str {
        match self {
            Scope::Managed => "ask the administrator of this machine to change this file",
            Scope::Local => "`plimsoll uninstall --local`",
            Scope::Project => "`plimsoll uninstall --project`",
            Scope::User => "`plimsoll uninstall --user`",
        }
    }
}

/// One settings file that is there.
#[derive(Debug, Clone)]
pub struct SettingsFile {
    /// The file.
    pub path: String,
    /// Whose it is.
    pub scope: Scope,
    /// What it says, or where it breaks.
    pub survey: Result<Survey, ReadFailure>,
    /// Where our entries in it are not as we write them for this client.
    pub differences: Vec<Difference>,
}

impl SettingsFile {
    /// What it says, where it can be read.
    pub fn said(&self) -> Option<&Survey> {
        self.survey.as_ref().ok()
    }
}

/// The client's settings.
#[derive(Debug, Clone, Default)]
pub struct SettingsFacts {
    /// The files that are there; the first rules over the others.
    pub files: Vec<SettingsFile>,
    /// The client's version, where it is known.
    pub client: Option<(u32, u32, u32)>,
    /// The template that it understands.
    pub era: Option<HookSupport>,
    /// Our plugin, where it is switched on.
    pub plugin: Option<String>,
}

/// The first client to which one unknown event is no reason to drop every hook of a file.
// 2.0.77 was seen to drop them all; 2.1.101 ignores that entry alone.
const LENIENT_CLIENT: (u32, u32, u32) = (2, 1, 0);
/// What every client from 1.0.85 on knows.
const OLD_EVENTS: [&str; 9] = [
    "PreToolUse",
    "PostToolUse",
    "Notification",
    "UserPromptSubmit",
    "Stop",
    "SubagentStop",
    "PreCompact",
    "SessionStart",
    "SessionEnd",
];

/// The file that switches every hook off, if one does: the first that says anything about it decides.
pub fn switched_off<'f>(files: impl IntoIterator<Item = (&'f str, &'f Survey)>) -> Option<&'f str> {
    let (path, said) =
        files.into_iter().find_map(|(path, survey)| Some((path, survey.disable_all_hooks?)))?;
    said.then_some(path)
}

pub(super) fn section(facts: &SettingsFacts) -> Section {
    let mut findings: Vec<Finding> = facts.files.iter().filter_map(unreadable).collect();
    findings.extend(readable(facts).filter_map(bad_status_line));
    findings.extend(off(facts));
    findings.extend(facts.files.iter().filter_map(|file| unknown_events(facts, file)));
    findings.extend(facts.files.iter().flat_map(|file| entries(facts, file)));
    findings.extend(doubled(facts));
    findings.extend(readable(facts).filter_map(unguarded));
    findings.extend(status_line(facts));
    let with_ours: Vec<String> = readable(facts)
        .filter(|(_, survey)| !survey.ours.is_empty())
        .map(|(file, _)| format!("{} ({})", file.path, file.scope.words()))
        .collect();
    if with_ours.is_empty() {
        if let Some(plugin) = &facts.plugin {
            return Section::new("Settings", format!("hooks from the plugin {plugin}"), findings);
        }
        let what = "our hooks are in no settings file: ordinary sessions are not measured (`plimsoll run` brings its own)";
        findings.push(Finding::warning("settings.none", what, "run `plimsoll init`"));
        return Section::new("Settings", "no hooks of ours", findings);
    }
    Section::new("Settings", format!("hooks in {}", with_ours.join(", ")), findings)
}

fn readable(facts: &SettingsFacts) -> impl Iterator<Item = (&SettingsFile, &Survey)> {
    facts.files.iter().filter_map(|file| Some((file, file.said()?)))
}

fn unreadable(file: &SettingsFile) -> Option<Finding> {
    let place = file.survey.as_ref().err()?;
    let what =
        format!("the file does not parse ({place}): the client ignores the whole file, hooks included");
    Some(Finding::problem("settings.unreadable", what, "fix the file").at(file.path.clone()))
}

fn bad_status_line((file, survey): (&SettingsFile, &Survey)) -> Option<Finding> {
    let what = "\"statusLine\" is not an object with a \"command\": the client ignores the whole file, hooks included";
    let todo = "remove it, or write {\"type\": \"command\", \"command\": \"plimsoll-statusline\"}";
    let finding = || Finding::problem("settings.bad_status_line", what, todo).at(file.path.clone());
    survey.bad_status_line.then(finding)
}

fn off(facts: &SettingsFacts) -> Vec<Finding> {
    let surveys = readable(facts).map(|(file, survey)| (file.path.as_str(), survey));
    let off = switched_off(surveys).map(|path| {
        let what = "\"disableAllHooks\" is true: no hook and no status line runs, and `plimsoll run` refuses to start or continue";
        Finding::problem("settings.hooks_disabled", what, "remove it, or set it to false").at(path)
    });
    let managed = readable(facts)
        .find(|(file, survey)| file.scope == Scope::Managed && survey.managed_hooks_only)
        .map(|(file, _)| {
            let what = "\"allowManagedHooksOnly\" is true: only hooks of the managed settings run";
            let todo = "ask the administrator of this machine to add our hooks there";
            Finding::problem("settings.managed_hooks_only", what, todo).at(file.path.clone())
        });
    off.into_iter().chain(managed).collect()
}

fn unknown_events(facts: &SettingsFacts, file: &SettingsFile) -> Option<Finding> {
    facts.client.filter(|version| *version < LENIENT_CLIENT)?;
    let survey = file.said()?;
    let unknown: Vec<&str> =
        survey.events.iter().map(String::as_str).filter(|event| !OLD_EVENTS.contains(event)).collect();
    (!unknown.is_empty()).then(|| {
        let what = format!(
            "this client does not know {}, and therefore silently drops every hook of the file",
            unknown.join(", ")
        );
        let todo = format!("{}; remove other such events by hand", file.scope.init());
        Finding::problem("settings.unknown_event", what, &todo).at(file.path.clone())
    })
}

/// What of ours a file lacks, has otherwise, or has for another client.
fn entries(facts: &SettingsFacts, file: &SettingsFile) -> Vec<Finding> {
    let missing = named(file, DifferenceKind::Missing);
    let unasked = named(file, DifferenceKind::Unasked);
    let edited = named(file, DifferenceKind::Edited);
    let init = file.scope.init();
    let edited = edited.map(|edited| {
        let what = format!("entries of ours were changed by hand: {edited}");
        Finding::note("settings.edited", what, &format!("if that was not intended, {init}"))
    });
    let wrong = wrong(facts.era, missing, unasked)
        .map(|(severity, code, what)| Finding::new(severity, code, what, init));
    wrong.into_iter().chain(edited).map(|finding| finding.at(file.path.clone())).collect()
}

/// The entries of one kind of difference, by name; none if there are none.
fn named(file: &SettingsFile, kind: DifferenceKind) -> Option<String> {
    let wanted = file.differences.iter().filter(|one| one.kind == kind);
    let names: Vec<String> = wanted.map(|one| format!("{} ({})", one.event, one.program)).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

type Wrong = (Severity, &'static str, String);

fn wrong(era: Option<HookSupport>, missing: Option<String>, unasked: Option<String>) -> Option<Wrong> {
    match (missing, unasked) {
        (Some(missing), Some(unasked)) => {
            let (code, what) = match era {
                Some(HookSupport::Classic) => {
                    ("settings.newer_than_client", "our entries are for a newer client")
                }
                _ => ("settings.older_than_client", "our entries are for an older client"),
            };
            let what = format!("{what}: {missing} is missing, {unasked} should not be there");
            Some((Severity::Problem, code, what))
        }
        (Some(missing), None) => Some((
            Severity::Problem,
            "settings.incomplete",
            format!("entries of ours are missing: {missing}"),
        )),
        (None, Some(unasked)) => {
            let what = format!("there are entries of ours that we do not write: {unasked}");
            Some((Severity::Warning, "settings.unasked", what))
        }
        (None, None) => None,
    }
}

/// The same entry in several files: with the same words the client runs it once, with others twice.
fn doubled(facts: &SettingsFacts) -> Option<Finding> {
    let mut places: BTreeMap<String, Vec<Place<'_>>> = BTreeMap::new();
    for (file, survey) in readable(facts) {
        // A guarded one gives way by itself.
        for entry in survey.ours.iter().filter(|entry| !entry.guarded) {
            let key = format!("{} {} {:?}", entry.event, entry.program, entry.part());
            places.entry(key).or_default().push((file, entry));
        }
    }
    places.retain(|_, places| places.len() > 1);
    if let Some(places) = places.values().find(|places| differ(places)) {
        let what =
            format!("our hooks are configured twice with different commands ({}): both run", files(places));
        return Some(Finding::warning("settings.doubled", what, last_scope(places).uninstall()));
    }
    let places = places.values().next()?;
    let what = format!("our hooks are configured twice ({}); the client runs them once", files(places));
    let todo = format!("nothing, or {}", last_scope(places).uninstall());
    Some(Finding::note("settings.doubled_alike", what, &todo))
}

/// Entries for everybody, which fail where our programs are not installed.
fn unguarded((file, survey): (&SettingsFile, &Survey)) -> Option<Finding> {
    let is_bare = file.scope == Scope::Project && survey.ours.iter().any(|entry| !entry.guarded);
    let what = "our hooks are here for everybody: a colleague without Plimsoll sees an error at each event";
    let todo = "`plimsoll init --project --entries` makes them silent there; or `plimsoll uninstall --project`, and everybody who wants them runs `plimsoll init`";
    is_bare.then(|| Finding::note("settings.unguarded", what, todo).at(file.path.clone()))
}

/// An entry, and where it stands.
type Place<'a> = (&'a SettingsFile, &'a OurHook);

fn differ(places: &[Place<'_>]) -> bool {
    let words = |place: &Place<'_>| (place.1.command.clone(), place.1.arguments.clone());
    places.iter().any(|place| words(place) != words(&places[0]))
}

fn files(places: &[Place<'_>]) -> String {
    let mut files: Vec<&str> = places.iter().map(|(file, _)| file.path.as_str()).collect();
    files.dedup();
    files.join(" and ")
}

fn last_scope(places: &[Place<'_>]) -> Scope {
    places.last().map_or(Scope::User, |(file, _)| file.scope)
}

fn status_line(facts: &SettingsFacts) -> Option<Finding> {
    let mut lines = readable(facts).filter_map(|(file, survey)| Some((file, survey.status_line.as_ref()?)));
    let (first, shown) = lines.next()?;
    if shown.ours {
        return None;
    }
    let (behind, _) = lines.find(|(_, line)| line.ours)?;
    let what =
        format!("our status line in {} is not shown: `{}` takes precedence", behind.path, shown.command);
    let todo = "remove that one to see ours; the hooks measure without it";
    Some(Finding::note("settings.status_line_shadowed", what, todo).at(first.path.clone()))
}

#[cfg(test)]
mod tests;
