//! `plimsoll init` and `plimsoll uninstall`: our hooks into a settings file, and out again.

use clap::Args;
use flows::exclude::Excluded;
use flows::install::{
    self, Change, Client, CommandFile, InstallError, Installation, Plan, Removal, Scope, carry_out,
};
use protocol::settings::Era;
use similar::TextDiff;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use store::environment;

/// Which settings file, and whether to write it.
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// Your own settings, for every project (~/.claude/settings.json)
    #[arg(long, conflicts_with = "local")]
    user: bool,
    /// Your own settings for this project (.claude/settings.local.json) instead of the team's
    #[arg(long)]
    local: bool,
    /// Show what would change, as a diff, and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl InitArguments {
    fn scope(&self) -> Scope {
        match (self.user, self.local) {
            (true, _) => Scope::User,
            (_, true) => Scope::Local,
            _ => Scope::Project,
        }
    }
}

/// Installs our hooks: exit code 0 done, 1 failed.
pub(crate) fn init(arguments: &InitArguments) -> ExitCode {
    let project = environment::current_dir();
    let plan = install::plan_installation(arguments.scope(), &project, Client::installed());
    finish(arguments, plan, |plan| installation_lines(plan, &project))
}

/// Removes them: exit code 0 done or nothing to do, 1 failed.
pub(crate) fn uninstall(arguments: &InitArguments) -> ExitCode {
    let project = environment::current_dir();
    let plan = install::plan_removal(arguments.scope(), &project);
    finish(arguments, plan, |plan| removal_lines(plan, &project))
}

fn finish<Report>(
    arguments: &InitArguments,
    plan: Result<Plan<Report>, InstallError>,
    lines: impl Fn(&Plan<Report>) -> String,
) -> ExitCode {
    let done = plan.and_then(|plan| {
        if arguments.dry_run {
            return Ok(format!("{}{}", diffs(&plan.changes), lines(&plan)));
        }
        carry_out(&plan.changes)?;
        Ok(lines(&plan))
    });
    match done {
        Ok(text) => {
            let last = if arguments.dry_run { "Dry run: nothing was written.\n" } else { "" };
            // A reader that has gone away is a normal end.
            let _ = std::io::stdout().write_all(format!("{text}{last}").as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "plimsoll: {error}\nhint: {}", error.hint());
            ExitCode::FAILURE
        }
    }
}

/// Unified diffs of every file; a backup, being a copy, takes one line.
fn diffs(changes: &[Change]) -> String {
    let mut all = String::new();
    for change in changes {
        let path = change.path.display().to_string();
        if path.ends_with(".plimsoll-backup") {
            let what = if change.after.is_some() { "copy of the settings as they are" } else { "removed" };
            let _ = writeln!(all, "# {path}: {what}\n");
            continue;
        }
        let text = |bytes: &Option<Vec<u8>>| {
            String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
        };
        let name =
            |bytes: &Option<Vec<u8>>| if bytes.is_some() { path.clone() } else { "/dev/null".to_owned() };
        let (before, after) = (text(&change.before), text(&change.after));
        let diff = TextDiff::from_lines(&before, &after);
        let _ = writeln!(all, "{}", diff.unified_diff().header(&name(&change.before), &name(&change.after)));
    }
    all
}

fn installation_lines(plan: &Plan<Installation>, project: &Path) -> String {
    let report = &plan.report;
    let shown = |path: &Path| shown(path, project);
    let written = plan.changes.iter().any(|change| change.path == report.settings);
    let mut lines = vec![
        if written {
            format!("{}: hooks for {}", shown(&report.settings), report.events.join(", "))
        } else {
            format!("{}: our hooks are already there, as they should be", shown(&report.settings))
        },
        template_line(report),
    ];
    lines.extend(report.backup.iter().map(|path| format!("Backup of the file as it was: {}", shown(path))));
    if report.foreign_hooks > 0 {
        lines.push(format!("Kept: {} of others", counted(report.foreign_hooks, "hook", "hooks")));
    }
    lines.extend(report.foreign_status_line.iter().map(|command| {
        format!("Kept: your status line `{command}`. Ours is not shown; the hooks measure without it.")
    }));
    if report.hooks_switched_off {
        lines.push("Careful: this file says \"disableAllHooks\": true, so no hook will run.".to_owned());
    }
    lines.extend(report.also_in.iter().map(|path| {
        format!("Careful: {} has our hooks, too; where the commands differ, both run.", shown(path))
    }));
    if let Some(folder) = report.missing_programs.first().and_then(|path| path.parent()) {
        let names: Vec<_> =
            report.missing_programs.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        lines.push(format!(
            "Careful: {} lacks {}; install all programs together.",
            folder.display(),
            names.join(", ")
        ));
    }
    lines.extend(report.commands.iter().filter_map(|(path, outcome)| match outcome {
        CommandFile::Written => Some(format!("{}: {}", shown(path), slash_command(path))),
        CommandFile::Kept => {
            Some(format!("Kept: {} is your own; {} is not installed.", shown(path), slash_command(path)))
        }
        CommandFile::Already | CommandFile::Removed | CommandFile::Absent => None,
    }));
    lines.extend(report.excluded.iter().filter_map(|excluded| match excluded {
        Excluded::Written(path) => Some(format!("{}: git overlooks our run files", shown(path))),
        Excluded::NoRepository => Some("Not a git repository: no exclude file to write.".to_owned()),
        Excluded::Already(_) => None,
    }));
    lines
        .push("Sessions that are already open keep their old hooks. Next: `plimsoll run --help`.".to_owned());
    joined(&lines)
}

fn template_line(report: &Installation) -> String {
    let (major, minor, patch) = protocol::settings::FIRST_MODERN;
    let first = format!("{major}.{minor}.{patch}");
    let template = match report.era {
        Era::Modern => "modern",
        Era::Classic => "classic",
    };
    let why = match &report.client {
        Client::Missing => format!(
            "there is no `claude` on the PATH; with a client before {first} run `plimsoll init` again"
        ),
        Client::Silent(path) => {
            format!("{} does not tell its version, and every client knows these events", path.display())
        }
        Client::Version(version) => {
            let version = version.split_whitespace().next().unwrap_or("?");
            match report.era {
                Era::Modern => format!("the client is {version}"),
                Era::Classic => format!("the client is {version}; from {first} on run `plimsoll init` again"),
            }
        }
    };
    format!("Template: {template} ({why})")
}

fn removal_lines(plan: &Plan<Removal>, project: &Path) -> String {
    let report = &plan.report;
    let shown = |path: &Path| shown(path, project);
    let settings = shown(&report.settings);
    let mut lines = Vec::new();
    if report.removed.is_empty() && !report.status_line {
        lines.push(format!("{settings}: nothing of ours in it"));
    } else {
        let line = if report.status_line { " and our status line" } else { "" };
        lines.push(format!("{settings}: removed {}{line}", counted(report.removed.len(), "hook", "hooks")));
    }
    if report.file_removed {
        lines.push(format!("{settings}: removed, nothing else was in it"));
    }
    if report.restored {
        lines.push(format!("{settings}: byte for byte as before; the backup is removed"));
    }
    lines.extend(report.backup_kept.iter().map(|path| {
        format!("Kept: {}, because the settings were changed since; delete it when you like", shown(path))
    }));
    lines.extend(report.commands.iter().filter_map(|(path, outcome)| match outcome {
        CommandFile::Removed => Some(format!("{}: removed", shown(path))),
        CommandFile::Kept => Some(format!("Kept: {}, because it is not as we wrote it", shown(path))),
        CommandFile::Written | CommandFile::Already | CommandFile::Absent => None,
    }));
    lines.extend(report.exclude.iter().map(|path| format!("{}: our lines are removed", shown(path))));
    lines.extend(report.still_in.iter().map(|path| {
        format!("Kept: the slash commands and git's exclude lines, for our hooks in {}", shown(path))
    }));
    joined(&lines)
}

fn slash_command(path: &Path) -> String {
    format!("/{}", path.file_stem().unwrap_or_default().to_string_lossy())
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A path as short as it can be said here.
fn shown(path: &Path, project: &Path) -> String {
    path.strip_prefix(project).unwrap_or(path).display().to_string()
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}
