//! What `init` and `uninstall` say of their plans.

use plimsoll_domain::text::counted;
use plimsoll_flows::install::git_exclude::Excluded;
use plimsoll_flows::install::{
    Client, CommandLinks, Installation, MemoryInstallation, OwnFile, Plan, Removal, Returned, Scope,
    ServerEntry, TeamFiles,
};
use plimsoll_protocol::settings::{HookSupport, Variable, quoted, servers};
use plimsoll_store::environment;
use std::path::Path;

/// A command that was copied alone has no hooks beside it.
const HOW_TO_INSTALL: &str = concat!(
    "`scripts/install.sh` in a clone or a release archive installs them, `cargo install --locked --git ",
    env!("CARGO_PKG_REPOSITORY"),
    " plimsoll` too"
);

/// Where the programs were copied to, if they were.
pub(super) fn copied(to: Option<&Path>) -> String {
    to.map_or_else(String::new, |to| {
        format!(
            "{}: the programs, copied here because npm or Claude Code may delete its own copy\n",
            to.display()
        )
    })
}

pub(super) fn installation(plan: &Plan<Installation>, project: &Path) -> String {
    let report = &plan.report;
    let shown = |path: &Path| shown(path, project);
    let written = plan.changes.iter().any(|change| change.path == report.settings);
    let has_line = report.foreign_status_line.is_none() && report.team_files.is_none();
    let line = if has_line { ", and the status line" } else { "" };
    let mut lines = vec![
        if written {
            format!("{}: hooks for {}{line}", shown(&report.settings), report.events.join(", "))
        } else {
            format!("{}: our hooks are already there and up to date", shown(&report.settings))
        },
        template_line(report),
    ];
    if let Client::Version(version) = &report.client {
        let careful = |words| format!("Careful: {words}: {}.", plimsoll_policy::client::UPDATE);
        lines.extend(plimsoll_policy::client::too_old(version).map(careful));
    }
    lines.extend(report.backup.iter().map(|path| format!("Backup of the file as it was: {}", shown(path))));
    if report.foreign_hooks > 0 {
        lines.push(format!("Kept: {} of other programs", counted(report.foreign_hooks, "hook")));
    }
    lines.extend(report.foreign_status_line.iter().map(|command| {
        format!("Kept: your status line `{command}`. Ours is not shown; the hooks measure without it, or through it: `plimsoll init --wrap`."
        )
    }));
    if report.hooks_switched_off {
        lines.push("Careful: this file says \"disableAllHooks\": true, so no hook will run.".to_owned());
    }
    lines.extend(report.also_in.iter().map(|path| {
        format!("Careful: {} also has our hooks; if the commands differ, both run.", shown(path))
    }));
    if let Some(folder) = report.missing_programs.first().and_then(|path| path.parent()) {
        let names: Vec<_> =
            report.missing_programs.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        lines.push(format!(
            "Careful: {} lacks {}, which therefore cannot run. Install all programs together: {}.",
            folder.display(),
            names.join(", "),
            HOW_TO_INSTALL
        ));
    }
    lines.extend(lines_beside(report, project));
    joined(&lines)
}

/// What everybody gets: preferences and ignore rules.
pub(super) fn team(plan: &Plan<TeamFiles>, project: &Path) -> String {
    let mut lines = team_lines(&plan.report, project);
    lines.push("Commit these files. Hooks are each user's own: everybody who wants them runs `plimsoll init` once; `plimsoll run` brings its own, also in CI.".to_owned());
    joined(&lines)
}

fn team_lines(files: &TeamFiles, project: &Path) -> Vec<String> {
    let (path, outcome) = &files.preferences;
    let preferences = shown(path, project);
    let preferences = match outcome {
        OwnFile::Written => {
            format!("{preferences}: for the team's preferences (`plimsoll generate schema` has them all)")
        }
        _ => format!("{preferences}: already there"),
    };
    let ignored = match &files.ignored {
        Excluded::Written(path) => format!("{}: run files are ignored by git", shown(path, project)),
        Excluded::Already(path) => format!("{}: run files are already ignored by git", shown(path, project)),
        Excluded::NoRepository => return vec![preferences],
    };
    vec![preferences, ignored]
}

/// What lies beside the settings, and what to do next.
fn lines_beside(report: &Installation, project: &Path) -> Vec<String> {
    let shown = |path: &Path| shown(path, project);
    let mut lines = Vec::new();
    lines.extend(report.commands.iter().filter_map(|(path, outcome)| match outcome {
        OwnFile::Written => Some(format!("{}: {}", shown(path), slash_command(path))),
        OwnFile::Kept => {
            Some(format!("Kept: {} is your own; {} is not installed.", shown(path), slash_command(path)))
        }
        OwnFile::Already | OwnFile::Removed | OwnFile::Absent => None,
    }));
    lines.extend(report.memory.iter().flat_map(|memory| memory_lines(memory, report, project)));
    lines.extend(report.links.iter().flat_map(link_lines));
    if report.memory_dropped {
        lines.push("Careful: the working memory's hooks were removed; this client does not know their events. With a newer one: `plimsoll init --memory`.".to_owned());
    }
    lines.extend(report.team_files.iter().flat_map(|files| team_lines(files, project)));
    lines.extend(report.excluded.iter().filter_map(|excluded| match excluded {
        Excluded::Written(path) => Some(format!("{}: run files are ignored by git", shown(path))),
        Excluded::NoRepository => Some("Not a git repository: there is no exclude file to write.".to_owned()),
        Excluded::Already(_) => None,
    }));
    if report.excluded.is_none() {
        lines.push("Session records and handoffs are in ~/.local/state/plimsoll/projects; only a project with a .claude/plimsoll.json or a run keeps its own.".to_owned());
    }
    lines.push("Sessions that are already open keep their old hooks.".to_owned());
    lines.push("Next: start `claude` as usual; `plimsoll run --help` for unattended runs; `plimsoll doctor` checks the installation.".to_owned());
    lines
}

/// The links by which a terminal finds the programs, and what a user has to do for that.
fn link_lines(links: &CommandLinks) -> Vec<String> {
    let folder = links.folder.display();
    let named = |outcome| -> Vec<String> {
        let with = links.links.iter().filter(|link| link.outcome == outcome);
        with.filter_map(|link| Some(link.path.file_name()?.to_string_lossy().into_owned())).collect()
    };
    let made = named(OwnFile::Written);
    let mut lines = Vec::new();
    if !made.is_empty() {
        lines.push(format!("{folder}: links to the copied programs {}", made.join(", ")));
    }
    let kept = links.links.iter().filter(|link| link.outcome == OwnFile::Kept);
    lines.extend(kept.map(|link| {
        format!("Kept: {} is not ours. The copied program is {}", link.path.display(), link.target.display())
    }));
    if !links.is_on_path {
        lines.push(format!("{folder} is not on your PATH. Add this line and open a new shell:"));
        lines
            .push(format!("  {}", path_line(&folder.to_string(), environment::variable("SHELL").as_deref())));
    }
    lines
}

/// The line that puts a folder on the PATH of a shell, with the file for it.
fn path_line(folder: &str, shell: Option<&str>) -> String {
    let file = match shell.and_then(|path| path.rsplit('/').next()) {
        Some("fish") => return format!("fish_add_path {}    # ~/.config/fish/config.fish", quoted(folder)),
        Some("zsh") => "~/.zshrc",
        Some("bash") => "~/.bashrc",
        _ => "~/.profile",
    };
    format!("export PATH={}:\"$PATH\"    # {file}", quoted(folder))
}

/// What belongs to the working memory, a line each; without being asked for it, only what changes.
fn memory_lines(memory: &MemoryInstallation, report: &Installation, project: &Path) -> Vec<String> {
    let shown = |path: &Path| shown(path, project);
    let settings = shown(&report.settings);
    let asked = memory.variable.is_some();
    let mut lines = Vec::new();
    lines.extend(memory.variable.iter().map(|variable| match variable {
        Variable::Set(name) => format!("{settings}: the working memory's hooks, and {name} for nested frames"),
        Variable::Users(name, value) => format!(
            "{settings}: the working memory's hooks. Kept: your {name} = {value}; frames nest as deep as that, and no deeper than five."
        ),
    }));
    let name = servers::NAME;
    lines.extend(memory.server.iter().filter_map(|(list, entry)| {
        let list = shown(list);
        match entry {
            ServerEntry::Written => {
                Some(format!("{list}: the server {name}; Claude Code asks once in a terminal: choose \"Use this MCP server\" (Enter alone declines)"))
            }
            ServerEntry::Already => asked.then(|| format!("{list}: the server {name} is already there")),
            ServerEntry::OwnWay => {
                Some(format!("Kept: your own entry for the server {name} in {list}, which starts our program"))
            }
            ServerEntry::Foreign => Some(format!(
                "Careful: {list} has another server named {name}, which stays. Our tools are not there until it has another name and you run `plimsoll init --memory` again."
            )),
            ServerEntry::Absent => None,
        }
    }));
    lines.extend(memory.by_hand.iter().map(|command| {
        format!("For you to run, because the client keeps the list of your own servers: {command}")
    }));
    let (path, outcome) = &memory.agent;
    match outcome {
        OwnFile::Written => lines.push(format!("{}: the agent for frames", shown(path))),
        OwnFile::Kept => {
            lines.push(format!("Kept: {} is your own; frames run in it as it is.", shown(path)));
        }
        OwnFile::Already => {
            lines.extend(asked.then(|| format!("{}: already there", shown(path))));
        }
        OwnFile::Removed | OwnFile::Absent => {}
    }
    if asked {
        lines.push(format!("Headless sessions need permission for the tools: --allowedTools mcp__{name}"));
    }
    lines
}

fn template_line(report: &Installation) -> String {
    let first = plimsoll_policy::client::dotted(plimsoll_protocol::settings::FIRST_MODERN);
    let template = match report.era {
        HookSupport::Modern => "modern",
        HookSupport::Classic => "classic",
    };
    let why = match &report.client {
        Client::Missing => {
            format!("`claude` is not on the PATH; with a client before {first} run `plimsoll init` again")
        }
        Client::Silent(path) => {
            format!("{} does not report its version, and every version knows these events", path.display())
        }
        Client::Version(version) => {
            let version = version.split_whitespace().next().unwrap_or("?");
            match report.era {
                HookSupport::Modern => format!("the client is {version}"),
                HookSupport::Classic => {
                    format!("the client is {version}; from {first} on run `plimsoll init` again")
                }
            }
        }
    };
    format!("Template: {template} ({why})")
}

pub(super) fn removal(plan: &Plan<Removal>, project: &Path) -> String {
    let report = &plan.report;
    let shown = |path: &Path| shown(path, project);
    let settings = shown(&report.settings);
    let mut lines = Vec::new();
    if report.removed.is_empty() && !report.status_line {
        lines.push(format!("{settings}: contains nothing of ours"));
    } else {
        let line = if report.status_line { " and our status line" } else { "" };
        lines.push(format!("{settings}: removed {}{line}", counted(report.removed.len(), "hook")));
    }
    if report.variable {
        lines.push(format!("{settings}: removed the frame depth from env"));
    }
    lines.extend(report.returned.iter().flat_map(|file| returned(file, project)));
    if let Some(file) = &report.servers {
        lines.push(format!("{}: removed the server {}", shown(&file.path), servers::NAME));
        lines.extend(returned(file, project));
    }
    let files = report.commands.iter().chain(&report.agent);
    lines.extend(files.filter_map(|(path, outcome)| match outcome {
        OwnFile::Removed => Some(format!("{}: removed", shown(path))),
        OwnFile::Kept => Some(format!("Kept: {}, because it was changed", shown(path))),
        OwnFile::Written | OwnFile::Already | OwnFile::Absent => None,
    }));
    lines.extend(report.links.iter().map(|path| format!("{}: removed", shown(path))));
    lines.extend(report.exclude.iter().map(|path| format!("{}: our lines are removed", shown(path))));
    lines.extend(report.team_files.iter().map(|path| {
        let what = if path.ends_with(".gitignore") { "our lines are removed" } else { "removed" };
        format!("{}: {what}", shown(path))
    }));
    lines.extend(report.also_in.iter().map(|(scope, path)| {
        let option = match scope {
            Scope::Project => "--project",
            Scope::Local => "--local",
            Scope::User => "--user",
        };
        format!("{} also has our hooks: `plimsoll uninstall {option}` removes them", shown(path))
    }));
    lines.extend(report.still_in.iter().map(|path| {
        format!("Kept: the slash commands and git's exclude lines, for our hooks in {}", shown(path))
    }));
    lines.extend(report.memory_still_in.iter().map(|path| {
        format!("Kept: server and agent of the working memory, for our hooks in {}", shown(path))
    }));
    if !report.left.is_empty() {
        let left: Vec<String> = report.left.iter().map(|path| shown(path)).collect();
        lines.push(format!(
            "Kept: recorded files (git sees them now; delete them when you like): {}",
            left.join(" ")
        ));
    }
    if report.by_hand {
        lines.push(format!("If you added the server: claude mcp remove --scope user {}", servers::NAME));
    }
    joined(&lines)
}

/// What becomes of a file without our parts.
fn returned(file: &Returned, project: &Path) -> Vec<String> {
    let shown = |path: &Path| shown(path, project);
    let mut lines = Vec::new();
    if file.file_removed {
        lines.push(format!("{}: removed; it contained nothing else", shown(&file.path)));
    }
    if file.restored {
        lines.push(format!("{}: byte for byte as before; the backup is removed", shown(&file.path)));
    }
    lines.extend(file.backup_kept.iter().map(|backup| {
        let file = shown(&file.path);
        format!("Kept: {}, because {file} was changed since; delete it when you like", shown(backup))
    }));
    lines
}

fn slash_command(path: &Path) -> String {
    format!("/{}", path.file_stem().unwrap_or_default().to_string_lossy())
}

/// A path as short as it can be said here.
fn shown(path: &Path, project: &Path) -> String {
    path.strip_prefix(project).unwrap_or(path).display().to_string()
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_for_the_path_fits_the_shell_and_the_folder() {
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
            assert_eq!(path_line(folder, shell), expected);
        }
    }
}
