//! The reports that `init` and `uninstall` print about their plans.

use super::file_lines::{display_path, restored_file_and_backup_lines};
use super::module::{lines_about_module_change, removal_lines};
use plimsoll_domain::text::count_with_noun;
use plimsoll_flows::install::git_exclude::ExcludeOutcome;
use plimsoll_flows::install::{
    CommandLinks, InstallPlan, InstallScope, InstallationReport, InstalledClient, InstalledFileOutcome,
    MemoryInstallationReport, ServerEntryOutcome, TeamFiles, UninstallationReport,
};
use plimsoll_protocol::settings::{HookSupport, MemoryVariable, servers, shell_quote_if_needed};
use plimsoll_store::environment;
use plimsoll_system::process_control::CAN_TERMINATE_GRACEFULLY;
use std::path::Path;

/// How to install all programs. Shown if the command was copied alone, without the hook programs beside it.
const INSTALL_HINT: &str = concat!(
    "`scripts/install.sh` in a clone or a release archive installs them, `cargo install --locked --git ",
    env!("CARGO_PKG_REPOSITORY"),
    " plimsoll` too"
);

/// Returns a line about the folder to which the programs were copied, or an empty text if they were not.
pub(super) fn copied_programs_line_or_empty(folder: Option<&Path>) -> String {
    folder.map_or_else(String::new, |folder| {
        format!(
            "{}: the programs, copied here because npm or Claude Code may delete its own copy\n",
            folder.display()
        )
    })
}

pub(super) fn render_installation_report(plan: &InstallPlan<InstallationReport>, project: &Path) -> String {
    let report = &plan.report;
    let display = |path: &Path| display_path(path, project);
    let changes_settings_file = plan.changes.iter().any(|change| change.path == report.settings_file);
    let has_status_line = report.other_status_line.is_none() && report.team_files.is_none();
    let status_line_text = if has_status_line { ", and the status line" } else { "" };
    let mut lines = vec![
        if changes_settings_file {
            format!(
                "{}: hooks for {}{status_line_text}",
                display(&report.settings_file),
                report.events.join(", ")
            )
        } else {
            format!("{}: our hooks are already there and up to date", display(&report.settings_file))
        },
        hook_template_and_reason_line(report),
    ];
    if let InstalledClient::Version(version) = &report.client {
        let warning = |message| format!("Warning: {message}: {}.", plimsoll_policy::client::UPDATE_ADVICE);
        lines.extend(plimsoll_policy::client::unsupported_client_reason(version).map(warning));
    }
    lines.extend(
        report.backup_file.iter().map(|path| format!("Backup of the file as it was: {}", display(path))),
    );
    if report.other_hook_count > 0 {
        lines.push(format!("Kept: {} of other programs", count_with_noun(report.other_hook_count, "hook")));
    }
    lines.extend(report.other_status_line.iter().map(|command| {
        format!("Kept: your status line `{command}`. To let Plimsoll read usage through it: `plimsoll init --wrap`."
        )
    }));
    if report.hooks_disabled {
        lines.push("Warning: this file says \"disableAllHooks\": true, so no hook will run.".to_owned());
    }
    lines.extend(report.other_settings_files.iter().map(|path| {
        format!("Warning: {} also has our hooks; if the commands differ, both run.", display(path))
    }));
    if let Some(folder) = report.missing_programs.first().and_then(|path| path.parent()) {
        let names: Vec<_> =
            report.missing_programs.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        lines.push(format!(
            "Warning: {} lacks {}, which therefore cannot run. Install all programs together: {}.",
            folder.display(),
            names.join(", "),
            INSTALL_HINT
        ));
    }
    lines.extend(other_file_and_next_step_lines(report, project));
    join_lines(&lines)
}

/// Renders the report about the team's files: preferences and ignore rules.
pub(super) fn render_team_files_report(plan: &InstallPlan<TeamFiles>, project: &Path) -> String {
    let mut lines = team_file_lines(&plan.report, project);
    lines.push("Commit these files. Each teammate runs `plimsoll init` once for the hooks; `plimsoll run` has its own, also in CI.".to_owned());
    join_lines(&lines)
}

fn team_file_lines(files: &TeamFiles, project: &Path) -> Vec<String> {
    let (path, outcome) = &files.preferences;
    let preferences_path = display_path(path, project);
    let preferences_line = match outcome {
        InstalledFileOutcome::Written => {
            format!(
                "{preferences_path}: for the team's preferences (`plimsoll generate schema` has them all)"
            )
        }
        _ => format!("{preferences_path}: already there"),
    };
    let ignored_line = match &files.gitignore {
        ExcludeOutcome::Written(path) => {
            format!("{}: run files are ignored by git", display_path(path, project))
        }
        ExcludeOutcome::UpToDate(path) => {
            format!("{}: run files are already ignored by git", display_path(path, project))
        }
        ExcludeOutcome::NoRepository => return vec![preferences_line],
    };
    vec![preferences_line, ignored_line]
}

/// Returns the lines about the slash commands, working memory, links and ignore rules, and the next steps for the user.
fn other_file_and_next_step_lines(report: &InstallationReport, project: &Path) -> Vec<String> {
    let display = |path: &Path| display_path(path, project);
    let mut lines = Vec::new();
    lines.extend(report.command_files.iter().filter_map(|(path, outcome)| match outcome {
        InstalledFileOutcome::Written => Some(format!("{}: {}", display(path), slash_command_name(path))),
        InstalledFileOutcome::Kept => Some(format!(
            "Kept: {} is your own; {} is not installed.",
            display(path),
            slash_command_name(path)
        )),
        InstalledFileOutcome::UpToDate | InstalledFileOutcome::Removed | InstalledFileOutcome::Absent => None,
    }));
    lines.extend(report.memory.iter().flat_map(|memory| memory_installation_lines(memory, report, project)));
    lines.extend(report.command_links.iter().flat_map(command_link_and_path_lines));
    lines.extend(
        report.module.iter().flat_map(|module| lines_about_module_change(module, &report.client, project)),
    );
    if report.memory_removed {
        lines.push("Warning: the working memory's hooks were removed; this client does not know their events. With a newer one: `plimsoll init --memory`.".to_owned());
    }
    lines.extend(report.team_files.iter().flat_map(|files| team_file_lines(files, project)));
    lines.extend(report.exclude_outcome.iter().filter_map(|outcome| match outcome {
        ExcludeOutcome::Written(path) => Some(format!("{}: run files are ignored by git", display(path))),
        ExcludeOutcome::NoRepository => {
            Some("Not a git repository: there is no exclude file to write.".to_owned())
        }
        ExcludeOutcome::UpToDate(_) => None,
    }));
    if report.exclude_outcome.is_none() {
        let records = environment::state_home().unwrap_or_default().join("plimsoll").join("projects");
        let records = environment::abbreviate_home(&records.display().to_string());
        lines.push(format!("Session records and handoffs are in {records}; only a project with a .claude/plimsoll.json or a run keeps its own."));
    }
    lines.push("Sessions that are already open keep their old hooks.".to_owned());
    let run_help = if CAN_TERMINATE_GRACEFULLY { "`plimsoll run --help` for unattended runs; " } else { "" };
    lines
        .push(format!("Next: start `claude` as usual; {run_help}`plimsoll doctor` checks the installation."));
    lines
}

/// Returns the lines about the links on the PATH, and what the user has to do if their folder is not on it.
fn command_link_and_path_lines(links: &CommandLinks) -> Vec<String> {
    let folder = links.folder.display();
    let file_names_with = |outcome| -> Vec<String> {
        let matching_links = links.links.iter().filter(|link| link.outcome == outcome);
        matching_links
            .filter_map(|link| Some(link.path.file_name()?.to_string_lossy().into_owned()))
            .collect()
    };
    let created = file_names_with(InstalledFileOutcome::Written);
    let mut lines = Vec::new();
    if !created.is_empty() {
        lines.push(format!("{folder}: links to the copied programs {}", created.join(", ")));
    }
    let kept = links.links.iter().filter(|link| link.outcome == InstalledFileOutcome::Kept);
    lines.extend(kept.map(|link| {
        format!("Kept: {} is not ours. The copied program is {}", link.path.display(), link.target.display())
    }));
    if !links.is_on_path {
        lines.push(format!("{folder} is not on your PATH. Add this line and open a new shell:"));
        lines.push(format!(
            "  {}",
            path_export_line(&folder.to_string(), environment::variable("SHELL").as_deref())
        ));
    }
    lines
}

/// Returns the shell line that puts a folder on the PATH, with the startup file it belongs in.
fn path_export_line(folder: &str, shell: Option<&str>) -> String {
    let startup_file = match shell.and_then(|path| path.rsplit('/').next()) {
        Some("fish") => {
            return format!(
                "fish_add_path {}    # ~/.config/fish/config.fish",
                shell_quote_if_needed(folder)
            );
        }
        Some("zsh") => "~/.zshrc",
        Some("bash") => "~/.bashrc",
        _ => "~/.profile",
    };
    format!("export PATH={}:\"$PATH\"    # {startup_file}", shell_quote_if_needed(folder))
}

/// Returns the lines about the working memory. Without `--memory`, these are only the lines about changes.
fn memory_installation_lines(
    memory: &MemoryInstallationReport,
    report: &InstallationReport,
    project: &Path,
) -> Vec<String> {
    let display = |path: &Path| display_path(path, project);
    let settings_path = display(&report.settings_file);
    let is_requested = memory.memory_variable.is_some();
    let mut lines = Vec::new();
    lines.extend(memory.memory_variable.iter().map(|variable| match variable {
        MemoryVariable::Set(name) => format!("{settings_path}: the working memory's hooks, and {name} for nested frames"),
        MemoryVariable::UserValue(name, value) => format!(
            "{settings_path}: the working memory's hooks. Kept: your {name} = {value}; frames nest as deep as that, and no deeper than five."
        ),
    }));
    let server_name = servers::SERVER_NAME;
    lines.extend(memory.server_entry.iter().filter_map(|(list_path, entry)| {
        let displayed_list = display(list_path);
        match entry {
            ServerEntryOutcome::Written => {
                Some(format!("{displayed_list}: the server {server_name}; Claude Code asks once in a terminal: choose \"Use this MCP server\" (Enter alone declines)"))
            }
            ServerEntryOutcome::UpToDate => is_requested.then(|| format!("{displayed_list}: the server {server_name} is already there")),
            ServerEntryOutcome::KeptUserCommand => {
                Some(format!("Kept: your own entry for the server {server_name} in {displayed_list}, which starts our program"))
            }
            ServerEntryOutcome::KeptOtherProgram => Some(format!(
                "Warning: {displayed_list} has another server named {server_name}, which stays. Rename it, then run `plimsoll init --memory` again to get the memory tools."
            )),
            ServerEntryOutcome::Absent => None,
        }
    }));
    lines.extend(
        memory.manual_command.iter().map(|command| {
            format!("Run this, because Claude Code keeps the list of your servers: {command}")
        }),
    );
    let (agent_path, outcome) = &memory.agent_file;
    match outcome {
        InstalledFileOutcome::Written => lines.push(format!("{}: the agent for frames", display(agent_path))),
        InstalledFileOutcome::Kept => {
            lines.push(format!("Kept: {} is your own; frames run in it as it is.", display(agent_path)));
        }
        InstalledFileOutcome::UpToDate => {
            lines.extend(is_requested.then(|| format!("{}: already there", display(agent_path))));
        }
        InstalledFileOutcome::Removed | InstalledFileOutcome::Absent => {}
    }
    if is_requested {
        lines.push(format!(
            "Headless sessions need permission for the tools: --allowedTools mcp__{server_name}"
        ));
    }
    lines
}

/// Returns the line that names the hook template for the client's version, and the reason for it.
fn hook_template_and_reason_line(report: &InstallationReport) -> String {
    let first_modern_version =
        plimsoll_policy::client::format_version(plimsoll_protocol::settings::FIRST_MODERN_VERSION);
    let template = match report.hook_support {
        HookSupport::Modern => "modern",
        HookSupport::Classic => "classic",
    };
    let reason = match &report.client {
        InstalledClient::Missing => {
            format!(
                "`claude` is not on the PATH; with Claude Code before {first_modern_version} run `plimsoll init` again"
            )
        }
        InstalledClient::UnknownVersion(path) => {
            format!("{} does not report its version, and every version knows these events", path.display())
        }
        InstalledClient::Version(version) => {
            let version = version.split_whitespace().next().unwrap_or("?");
            match report.hook_support {
                HookSupport::Modern => format!("Claude Code is {version}"),
                HookSupport::Classic => {
                    format!(
                        "Claude Code is {version}; from {first_modern_version} on run `plimsoll init` again"
                    )
                }
            }
        }
    };
    format!("Template: {template} ({reason})")
}

pub(super) fn render_removal_report(plan: &InstallPlan<UninstallationReport>, project: &Path) -> String {
    let report = &plan.report;
    let display = |path: &Path| display_path(path, project);
    let settings_path = display(&report.settings_file);
    let mut lines = Vec::new();
    if report.removed_hooks.is_empty() && !report.status_line_removed {
        lines.push(format!("{settings_path}: contains nothing of ours"));
    } else {
        let status_line_text = if report.status_line_removed { " and our status line" } else { "" };
        lines.push(format!(
            "{settings_path}: removed {}{status_line_text}",
            count_with_noun(report.removed_hooks.len(), "hook")
        ));
    }
    if report.variable_removed {
        lines.push(format!("{settings_path}: removed the frame depth from env"));
    }
    lines.extend(
        report.restored_settings.iter().flat_map(|file| restored_file_and_backup_lines(file, project)),
    );
    if let Some(file) = &report.restored_server_list {
        lines.push(format!("{}: removed the server {}", display(&file.path), servers::SERVER_NAME));
        lines.extend(restored_file_and_backup_lines(file, project));
    }
    let files = report.command_files.iter().chain(&report.agent_file);
    lines.extend(files.filter_map(|(path, outcome)| match outcome {
        InstalledFileOutcome::Removed => Some(format!("{}: removed", display(path))),
        InstalledFileOutcome::Kept => Some(format!("Kept: {}, because it was changed", display(path))),
        InstalledFileOutcome::Written | InstalledFileOutcome::UpToDate | InstalledFileOutcome::Absent => None,
    }));
    lines.extend(report.module.iter().flat_map(|module| removal_lines(module, project)));
    lines.extend(report.removed_links.iter().map(|path| format!("{}: removed", display(path))));
    lines.extend(
        report.changed_exclude_file.iter().map(|path| format!("{}: our lines are removed", display(path))),
    );
    lines.extend(report.removed_team_files.iter().map(|path| {
        let action = if path.ends_with(".gitignore") { "our lines are removed" } else { "removed" };
        format!("{}: {action}", display(path))
    }));
    lines.extend(report.other_settings.iter().map(|(scope, path)| {
        let option = match scope {
            InstallScope::Project => "--project",
            InstallScope::Local => "--local",
            InstallScope::User => "--user",
        };
        format!("{} also has our hooks: `plimsoll uninstall {option}` removes them", display(path))
    }));
    lines.extend(report.sibling_settings_with_hooks.iter().map(|path| {
        format!("Kept: the slash commands and git's exclude lines, for our hooks in {}", display(path))
    }));
    lines.extend(report.sibling_settings_with_memory.iter().map(|path| {
        format!("Kept: server and agent of the working memory, for our hooks in {}", display(path))
    }));
    if !report.kept_records.is_empty() {
        let recorded_files: Vec<String> = report.kept_records.iter().map(|path| display(path)).collect();
        lines.push(format!(
            "Kept: recorded files (git sees them now; delete them when you like): {}",
            recorded_files.join(" ")
        ));
    }
    lines.extend(report.kept_state_folder.iter().map(|folder| {
        format!("Kept: recorded files of all projects (delete them when you like): {}", display(folder))
    }));
    if report.may_have_manual_server {
        lines.push(format!(
            "If you added the server: claude mcp remove --scope user {}",
            servers::SERVER_NAME
        ));
    }
    join_lines(&lines)
}

fn slash_command_name(path: &Path) -> String {
    format!("/{}", path.file_stem().unwrap_or_default().to_string_lossy())
}

fn join_lines(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_line_matches_the_shell_and_quotes_the_folder() {
        for (folder, shell, expected) in [
            (
                "/home/u/.local/bin",
                Some("/bin/bash"),
                r#"export PATH=/home/u/.local/bin:"$PATH"    # ~/.bashrc"#,
            ),
            (
                "/home/u/.local/bin",
                Some("/usr/bin/zsh"),
                r#"export PATH=/home/u/.local/bin:"$PATH"    # ~/.zshrc"#,
            ),
            ("/home/a b/.local/bin", None, r#"export PATH='/home/a b/.local/bin':"$PATH"    # ~/.profile"#),
            ("/home/a b/bin", Some("fish"), "fish_add_path '/home/a b/bin'    # ~/.config/fish/config.fish"),
        ] {
            assert_eq!(path_export_line(folder, shell), expected);
        }
    }
}
