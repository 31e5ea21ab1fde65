//! Checks the client's settings: whether Plimsoll's hooks are installed exactly once and will run.

use super::wsl::is_exe_file;
use super::{Finding, InspectionError, Section, Severity};
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_protocol::settings::{
    EntryDifference, EntryDifferenceKind, HookSupport, OurHookEntry, SettingsSummary,
    needs_quotes_in_windows_shells,
};
use std::collections::BTreeMap;

/// The scope of a settings file. Earlier variants take precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingsScope {
    /// Set by the machine's administrator.
    Managed,
    /// The user's settings for this project.
    Local,
    /// Shared by the team.
    Project,
    /// The user's settings for all projects.
    User,
}

impl SettingsScope {
    /// Returns the name shown to the user.
    pub fn as_str(self) -> &'static str {
        match self {
            SettingsScope::Managed => "managed",
            SettingsScope::Local => "local",
            SettingsScope::Project => "project",
            SettingsScope::User => "user",
        }
    }

    fn advice_to_run_init_or_ask_admin(self) -> &'static str {
        match self {
            SettingsScope::Managed => "ask the administrator of this machine to change this file",
            SettingsScope::Local => "run `plimsoll init --local` again",
            SettingsScope::Project => "run `plimsoll init --project --entries` again",
            SettingsScope::User => "run `plimsoll init --user` again",
        }
    }

    fn advice_to_uninstall_or_ask_admin(self) -> &'static str {
        match self {
            SettingsScope::Managed => "ask the administrator of this machine to change this file",
            SettingsScope::Local => "`plimsoll uninstall --local`",
            SettingsScope::Project => "`plimsoll uninstall --project`",
            SettingsScope::User => "`plimsoll uninstall --user`",
        }
    }
}

/// A settings file that exists.
#[derive(Debug, Clone)]
pub struct SettingsFile {
    pub path: String,
    pub scope: SettingsScope,
    /// The parsed file, or the parse error.
    pub summary: Result<SettingsSummary, InspectionError>,
    /// Differences between Plimsoll's entries in the file and those that `init` would write for this client.
    pub differences: Vec<EntryDifference>,
}

impl SettingsFile {
    /// Returns the parsed file, if it could be read.
    pub fn summary_if_parsed(&self) -> Option<&SettingsSummary> {
        self.summary.as_ref().ok()
    }
}

#[derive(Debug, Clone, Default)]
pub struct SettingsInfo {
    /// The files that exist, in order of precedence.
    pub files: Vec<SettingsFile>,
    /// The client's version, if known.
    pub client_version: Option<(u32, u32, u32)>,
    /// The hooks that the client supports.
    pub hook_support: Option<HookSupport>,
    /// The name of Plimsoll's plugin, if it is enabled.
    pub plugin_name: Option<String>,
    /// True if this program is one for Windows.
    pub is_on_windows: bool,
}

/// The first client that does not drop all hooks of a file because of one unknown event.
// 2.0.77 was observed to drop them all; 2.1.101 ignores only that entry.
const FIRST_CLIENT_IGNORING_UNKNOWN_EVENTS: (u32, u32, u32) = (2, 1, 0);
/// Events without which an installation is complete: it was made by a version of Plimsoll that had no entry for them.
const EVENTS_ADDED_LATER: [&str; 1] = ["PreModelSwitch"];
/// Events that every client from 1.0.85 on supports.
const EVENTS_OF_OLDEST_CLIENT: [&str; 9] = [
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

/// Returns the file that disables all hooks, if any. The first file that sets `disableAllHooks` decides.
pub fn deciding_file_if_it_disables_all_hooks<'f>(
    files: impl IntoIterator<Item = (&'f str, &'f SettingsSummary)>,
) -> Option<&'f str> {
    let (path, is_disabled) =
        files.into_iter().find_map(|(path, summary)| Some((path, summary.disable_all_hooks?)))?;
    is_disabled.then_some(path)
}

pub(super) fn check_hook_settings(settings: &SettingsInfo) -> Section {
    let mut findings: Vec<Finding> = settings.files.iter().filter_map(check_file_parses).collect();
    findings.extend(parsed_files(settings).filter_map(check_status_line_is_command_object));
    let check_paths = if settings.is_on_windows {
        check_status_line_needs_no_quotes
    } else {
        check_programs_are_not_for_windows
    };
    findings.extend(parsed_files(settings).filter_map(check_paths));
    findings.extend(check_hooks_disabled_or_managed_only(settings));
    findings
        .extend(settings.files.iter().filter_map(|file| check_events_unknown_to_old_client(settings, file)));
    findings.extend(settings.files.iter().flat_map(|file| check_entry_differences(settings, file)));
    findings.extend(check_hooks_configured_twice(settings));
    findings.extend(parsed_files(settings).filter_map(check_team_hooks_failing_without_plimsoll));
    findings.extend(check_status_line_is_overridden(settings));
    let files_with_hooks: Vec<String> = parsed_files(settings)
        .filter(|(_, summary)| !summary.our_hooks.is_empty())
        .map(|(file, _)| format!("{} ({})", file.path, file.scope.as_str()))
        .collect();
    if files_with_hooks.is_empty() {
        if let Some(plugin_name) = &settings.plugin_name {
            return Section::new("Settings", format!("hooks from the plugin {plugin_name}"), findings);
        }
        let message = "our hooks are in no settings file: ordinary sessions are not measured (`plimsoll run` brings its own)";
        findings.push(Finding::warning("settings.none", message, "run `plimsoll init`"));
        return Section::new("Settings", "no hooks of ours", findings);
    }
    Section::new("Settings", format!("hooks in {}", files_with_hooks.join(", ")), findings)
}

fn parsed_files(settings: &SettingsInfo) -> impl Iterator<Item = (&SettingsFile, &SettingsSummary)> {
    settings.files.iter().filter_map(|file| Some((file, file.summary_if_parsed()?)))
}

fn check_file_parses(file: &SettingsFile) -> Option<Finding> {
    let error = file.summary.as_ref().err()?;
    let message =
        format!("the file does not parse ({error}): Claude Code ignores the whole file, hooks included");
    Some(Finding::problem("settings.unreadable", message, "fix the file").with_path(file.path.clone()))
}

fn check_status_line_is_command_object(
    (file, summary): (&SettingsFile, &SettingsSummary),
) -> Option<Finding> {
    let message = "\"statusLine\" is not an object with a \"command\": Claude Code ignores the whole file, hooks included";
    let advice = "remove it, or write {\"type\": \"command\", \"command\": \"plimsoll-statusline\"}";
    let finding =
        || Finding::problem("settings.bad_status_line", message, advice).with_path(file.path.clone());
    summary.has_invalid_status_line.then(finding)
}

/// In WSL the client may read the settings of Windows. The path of the status line is a relative one here, and could name a
/// program in the project.
fn check_programs_are_not_for_windows((file, summary): (&SettingsFile, &SettingsSummary)) -> Option<Finding> {
    let our_status_line = summary.status_line.iter().filter(|status_line| status_line.is_ours);
    let status_line =
        our_status_line.map(|status_line| (&status_line.command, status_line.executable.clone()));
    let hooks = summary.our_hooks.iter().map(|hook| (&hook.command, hook.executable()));
    let (command, _) = hooks.chain(status_line).find(|(_, executable)| is_exe_file(executable))?;
    let message = format!(
        "the entry names our program for Windows, which does not run here: `{}`",
        truncate_end(&to_safe_single_line(command), 100)
    );
    let advice = "run `plimsoll init --local` in WSL, and keep the entries for Windows in the settings of the Windows user";
    Some(Finding::problem("settings.windows_program", message, advice).with_path(file.path.clone()))
}

/// `init` quotes such a path if a folder has no short name, or one with a special character, such as `R&D`.
fn check_status_line_needs_no_quotes((file, summary): (&SettingsFile, &SettingsSummary)) -> Option<Finding> {
    let status_line = summary.status_line.as_ref().filter(|status_line| status_line.is_ours)?;
    let message = "the status line's path has a space or another special character: it stays blank in PowerShell, which Claude Code uses without Git Bash";
    let advice = "install Git for Windows, or put the programs into a folder with a plain path and run `plimsoll init` there";
    needs_quotes_in_windows_shells(&status_line.executable).then(|| {
        Finding::warning("settings.quoted_status_line", message, advice).with_path(file.path.clone())
    })
}

fn check_hooks_disabled_or_managed_only(settings: &SettingsInfo) -> Vec<Finding> {
    let summaries = parsed_files(settings).map(|(file, summary)| (file.path.as_str(), summary));
    let disabled_finding = deciding_file_if_it_disables_all_hooks(summaries).map(|path| {
        let message = "\"disableAllHooks\" is true: no hook and no status line runs, and `plimsoll run` refuses to start or continue";
        Finding::problem("settings.hooks_disabled", message, "remove it, or set it to false").with_path(path)
    });
    let managed_only_finding = parsed_files(settings)
        .find(|(file, summary)| file.scope == SettingsScope::Managed && summary.managed_hooks_only)
        .map(|(file, _)| {
            let message = "\"allowManagedHooksOnly\" is true: only hooks of the managed settings run";
            let advice = "ask the administrator of this machine to add our hooks there";
            Finding::problem("settings.managed_hooks_only", message, advice).with_path(file.path.clone())
        });
    disabled_finding.into_iter().chain(managed_only_finding).collect()
}

fn check_events_unknown_to_old_client(settings: &SettingsInfo, file: &SettingsFile) -> Option<Finding> {
    settings.client_version.filter(|version| *version < FIRST_CLIENT_IGNORING_UNKNOWN_EVENTS)?;
    let summary = file.summary_if_parsed()?;
    let unknown_events: Vec<&str> = summary
        .hook_events
        .iter()
        .map(String::as_str)
        .filter(|event| !EVENTS_OF_OLDEST_CLIENT.contains(event))
        .collect();
    (!unknown_events.is_empty()).then(|| {
        let message = format!(
            "this client does not know {}, and therefore silently drops every hook of the file",
            unknown_events.join(", ")
        );
        let advice =
            format!("{}; remove other such events by hand", file.scope.advice_to_run_init_or_ask_admin());
        Finding::problem("settings.unknown_event", message, &advice).with_path(file.path.clone())
    })
}

/// Reports Plimsoll's entries in a file that are missing, edited, or written for another client version.
fn check_entry_differences(settings: &SettingsInfo, file: &SettingsFile) -> Vec<Finding> {
    let (added_later, missing): (Vec<_>, Vec<_>) =
        entries_with_difference(file, EntryDifferenceKind::Missing)
            .partition(|entry| EVENTS_ADDED_LATER.contains(&entry.event.as_str()));
    let missing = list_entries(missing);
    let unexpected = list_entries(entries_with_difference(file, EntryDifferenceKind::Unexpected));
    let edited = list_entries(entries_with_difference(file, EntryDifferenceKind::Edited));
    let init_advice = file.scope.advice_to_run_init_or_ask_admin();
    let edited_finding = edited.map(|edited| {
        let message = format!("entries of ours were changed by hand: {edited}");
        Finding::note("settings.edited", message, &format!("if that was not intended, {init_advice}"))
    });
    let missing_or_unexpected_finding =
        classify_missing_and_unexpected_entries(settings.hook_support, missing, unexpected)
            .map(|(severity, code, message)| Finding::new(severity, code, message, init_advice));
    let added_later_finding =
        list_entries(added_later).filter(|_| missing_or_unexpected_finding.is_none()).map(|entries| {
            let message = format!("these entries are new since your `plimsoll init`: {entries}");
            Finding::note("settings.new_entry", message, init_advice)
        });
    missing_or_unexpected_finding
        .into_iter()
        .chain(edited_finding)
        .chain(added_later_finding)
        .map(|finding| finding.with_path(file.path.clone()))
        .collect()
}

fn entries_with_difference(
    file: &SettingsFile,
    kind: EntryDifferenceKind,
) -> impl Iterator<Item = &EntryDifference> {
    file.differences.iter().filter(move |difference| difference.kind == kind)
}

/// Lists entries by name; `None` if there are none.
fn list_entries<'a>(entries: impl IntoIterator<Item = &'a EntryDifference>) -> Option<String> {
    let names: Vec<String> =
        entries.into_iter().map(|entry| format!("{} ({})", entry.event, entry.program)).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

type SeverityCodeAndMessage = (Severity, &'static str, String);

fn classify_missing_and_unexpected_entries(
    hook_support: Option<HookSupport>,
    missing: Option<String>,
    unexpected: Option<String>,
) -> Option<SeverityCodeAndMessage> {
    match (missing, unexpected) {
        (Some(missing), Some(unexpected)) => {
            let (code, message) = match hook_support {
                Some(HookSupport::Classic) => {
                    ("settings.newer_than_client", "our entries are for a newer client")
                }
                _ => ("settings.older_than_client", "our entries are for an older client"),
            };
            let message = format!("{message}: {missing} is missing, {unexpected} should not be there");
            Some((Severity::Problem, code, message))
        }
        (Some(missing), None) => Some((
            Severity::Problem,
            "settings.incomplete",
            format!("entries of ours are missing: {missing}"),
        )),
        (None, Some(unexpected)) => {
            let message = format!("there are entries of ours that we do not write: {unexpected}");
            Some((Severity::Warning, "settings.unasked", message))
        }
        (None, None) => None,
    }
}

/// Reports a hook that is configured twice. The client runs it once if the commands are identical, and
/// twice otherwise.
fn check_hooks_configured_twice(settings: &SettingsInfo) -> Option<Finding> {
    let mut locations_by_hook: BTreeMap<String, Vec<HookLocation<'_>>> = BTreeMap::new();
    for (file, summary) in parsed_files(settings) {
        // A team entry with the guard does nothing if the same hook is installed elsewhere.
        for entry in summary.our_hooks.iter().filter(|entry| !entry.is_team_entry) {
            let key = format!("{} {} {:?}", entry.event, entry.program, entry.distinguishing_arguments());
            locations_by_hook.entry(key).or_default().push((file, entry));
        }
    }
    locations_by_hook.retain(|_, locations| locations.len() > 1);
    if let Some(locations) =
        locations_by_hook.values().find(|hook_locations| have_different_commands(hook_locations))
    {
        let message = format!(
            "our hooks are configured twice with different commands ({}): both run",
            render_file_list(locations)
        );
        return Some(Finding::warning(
            "settings.doubled",
            message,
            last_scope(locations).advice_to_uninstall_or_ask_admin(),
        ));
    }
    let locations = locations_by_hook.values().next()?;
    let message = format!(
        "our hooks are configured twice ({}); Claude Code runs them once",
        render_file_list(locations)
    );
    let advice = format!("nothing, or {}", last_scope(locations).advice_to_uninstall_or_ask_admin());
    Some(Finding::note("settings.doubled_alike", message, &advice))
}

/// Reports team entries that fail on machines without Plimsoll.
fn check_team_hooks_failing_without_plimsoll(
    (file, summary): (&SettingsFile, &SettingsSummary),
) -> Option<Finding> {
    let has_unguarded_hook =
        file.scope == SettingsScope::Project && summary.our_hooks.iter().any(|entry| !entry.is_team_entry);
    let message =
        "our hooks are here for everybody: a colleague without Plimsoll sees an error at each event";
    let advice = "`plimsoll init --project --entries` makes them silent there; or `plimsoll uninstall --project`, and everybody who wants them runs `plimsoll init`";
    has_unguarded_hook
        .then(|| Finding::note("settings.unguarded", message, advice).with_path(file.path.clone()))
}

/// An entry and the file that contains it.
type HookLocation<'a> = (&'a SettingsFile, &'a OurHookEntry);

fn have_different_commands(locations: &[HookLocation<'_>]) -> bool {
    let command_line =
        |location: &HookLocation<'_>| (location.1.command.clone(), location.1.arguments.clone());
    locations.iter().any(|location| command_line(location) != command_line(&locations[0]))
}

fn render_file_list(locations: &[HookLocation<'_>]) -> String {
    let mut paths: Vec<&str> = locations.iter().map(|(file, _)| file.path.as_str()).collect();
    paths.dedup();
    paths.join(" and ")
}

fn last_scope(locations: &[HookLocation<'_>]) -> SettingsScope {
    locations.last().map_or(SettingsScope::User, |(file, _)| file.scope)
}

fn check_status_line_is_overridden(settings: &SettingsInfo) -> Option<Finding> {
    let mut status_lines =
        parsed_files(settings).filter_map(|(file, summary)| Some((file, summary.status_line.as_ref()?)));
    let (overriding_file, shown_line) = status_lines.next()?;
    if shown_line.is_ours {
        return None;
    }
    let (file_with_ours, _) = status_lines.find(|(_, line)| line.is_ours)?;
    let message = format!(
        "our status line in {} is not shown: `{}` takes precedence",
        file_with_ours.path, shown_line.command
    );
    let advice = "remove that one to see ours; the hooks measure without it";
    Some(
        Finding::note("settings.status_line_shadowed", message, advice)
            .with_path(overriding_file.path.clone()),
    )
}

#[cfg(test)]
mod tests;
