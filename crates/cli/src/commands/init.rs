//! `plimsoll init` and `plimsoll uninstall`: set up the hooks in a settings file, or remove them.

mod file_lines;
mod lines;
mod module;
mod scope;

use clap::Args;
use plimsoll_flows::install::{
    self, FileChange, InstallError, InstallOptions, InstallPlan, InstallScope, InstalledClient, LinkChange,
    apply_plan,
};
use plimsoll_store::environment;
use plimsoll_terminal::console::{fail, print_text};
use scope::SetupChoice;
use similar::{ChangeTag, TextDiff};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// Arguments of `plimsoll init`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InitArguments {
    /// Also set up the working memory: hooks, MCP server, frame agent
    #[arg(long, conflicts_with = "project")]
    memory: bool,
    /// Keep your status line, and read the usage that it gets
    #[arg(long, conflicts_with = "project")]
    wrap: bool,
    /// With --project: add hook entries, inactive without Plimsoll
    #[arg(long, requires = "project", conflicts_with_all = ["user", "local"])]
    entries: bool,
    /// With --user: also the module inside Claude Code (2.1.287 or newer)
    #[arg(long, conflicts_with_all = ["no_module", "local", "project"])]
    module: bool,
    /// Without the module; removes it if it is installed
    #[arg(long, conflicts_with_all = ["local", "project"])]
    no_module: bool,
    #[command(flatten)]
    settings_file: SettingsFileArguments,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll init --dry-run --diff    what would change
  plimsoll init                     asks which settings file (default: yours)
  plimsoll init --user --module     yours, with the module for Claude Code
  plimsoll init --local --memory    this project only, with the working memory
  plimsoll init --project           preferences of the team, to commit

`plimsoll uninstall` with the same option removes them, and nothing else.";

/// Arguments that select the settings file, and those of a dry run.
#[derive(Debug, Args)]
pub(crate) struct SettingsFileArguments {
    /// Your settings for every project, ~/.claude/settings.json [default]
    #[arg(long, conflicts_with_all = ["local", "project"])]
    user: bool,
    /// Your settings for this project, .claude/settings.local.json
    #[arg(long, conflicts_with = "project")]
    local: bool,
    /// The team's files: preferences and ignore rules, no hooks
    #[arg(long)]
    project: bool,
    /// Show what would change, a line for each file, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: also show the changes themselves
    #[arg(long, requires = "dry_run")]
    diff: bool,
}

impl SettingsFileArguments {
    /// Returns the scope that an option selects, or `None` without such an option.
    fn selected_scope(&self) -> Option<InstallScope> {
        let selections = [
            (self.user, InstallScope::User),
            (self.local, InstallScope::Local),
            (self.project, InstallScope::Project),
        ];
        selections.into_iter().find_map(|(is_selected, scope)| is_selected.then_some(scope))
    }
}

/// Installs the hooks or the team's files, or shows the plan with `--dry-run`. Returns exit code 1 on failure.
pub(crate) fn install_hooks_or_team_files(arguments: &InitArguments) -> ExitCode {
    let project = environment::current_dir();
    let file_arguments = &arguments.settings_file;
    let Some(choice) = scope::choose_setup(file_arguments.selected_scope(), arguments) else {
        return fail_canceled();
    };
    let scope = match choice {
        SetupChoice::Hooks(scope) => scope,
        SetupChoice::TeamFiles => {
            return apply_or_show_plan(
                file_arguments,
                install::plan_team_preferences_and_gitignore(&project),
                |plan| lines::render_team_files_report(plan, &project),
                None,
            );
        }
    };
    let client = InstalledClient::detect();
    let Some(options) = module::choose_install_options(arguments, scope, &client) else {
        return fail_canceled();
    };
    // The programs are copied before planning, because the plan looks for them and their links.
    let set_up_result = if file_arguments.dry_run {
        Ok(install::planned_copy_folder())
    } else {
        install::copy_programs_and_update_version_link()
    };
    let copy_folder = set_up_result.as_ref().ok().cloned().flatten();
    let plan = set_up_result
        .map_err(InstallError::from)
        .and_then(|_| install::plan_installation(scope, &project, client, options));
    let render_report = |plan: &_| {
        lines::copied_programs_line_or_empty(copy_folder.as_deref())
            + &lines::render_installation_report(plan, &project)
    };
    apply_or_show_plan(file_arguments, plan, render_report, copy_folder.as_deref())
}

/// The user ended the input at a question, so nobody has agreed to anything.
fn fail_canceled() -> ExitCode {
    // The question ends without a line break.
    print_text("");
    fail("canceled: nothing was changed")
}

/// Removes the hooks, or shows the plan with `--dry-run`. Returns exit code 0 also if there is nothing to do, 1 on failure.
pub(crate) fn uninstall_hooks(arguments: &SettingsFileArguments) -> ExitCode {
    let project = environment::current_dir();
    let plan = install::plan_removal(arguments.selected_scope().unwrap_or(InstallScope::User), &project);
    apply_or_show_plan(arguments, plan, |plan| lines::render_removal_report(plan, &project), None)
}

/// Carries out the plan, or with `--dry-run` shows what would change, and prints the report. `copy_folder` is the folder to which the
/// programs are copied, if they are.
fn apply_or_show_plan<Report>(
    arguments: &SettingsFileArguments,
    plan: Result<InstallPlan<Report>, InstallError>,
    render_report: impl Fn(&InstallPlan<Report>) -> String,
    copy_folder: Option<&Path>,
) -> ExitCode {
    let result = plan.and_then(|plan| {
        if arguments.dry_run {
            let changes = if arguments.diff {
                render_diffs(&plan.changes)
            } else {
                render_line_per_changed_file(&plan.changes, copy_folder)
            };
            let links = render_line_per_changed_link(&plan.links);
            return Ok(format!("{}\n{changes}{links}", render_report(&plan)));
        }
        apply_plan(&plan)?;
        Ok(render_report(&plan))
    });
    match result {
        Ok(text) => {
            let heading = if arguments.dry_run { "Dry run: nothing was written.\n\n" } else { "" };
            print_text(format!("{heading}{text}").trim_end_matches('\n'));
            ExitCode::SUCCESS
        }
        Err(error) => fail(format!("{error}\nhint: {}", error.hint())),
    }
}

/// Renders one line for each file: new, removed, or the number of added and deleted lines.
fn render_line_per_changed_file(changes: &[FileChange], copy_folder: Option<&Path>) -> String {
    let copied_line = copy_folder.map(|folder| format!("  {}: the programs are copied\n", folder.display()));
    if changes.is_empty() && copied_line.is_none() {
        return "No file would change.\n".to_owned();
    }
    let describe_change = |change: &FileChange| match (&change.before, &change.after) {
        (None, _) => "new".to_owned(),
        (Some(_), None) => "removed".to_owned(),
        (Some(before), Some(after)) => {
            let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
            let diff = TextDiff::from_lines(&before, &after);
            let count_lines = |tag| diff.iter_all_changes().filter(|line| line.tag() == tag).count();
            format!("+{} −{} lines", count_lines(ChangeTag::Insert), count_lines(ChangeTag::Delete))
        }
    };
    let lines =
        changes.iter().map(|change| format!("  {}: {}\n", change.path.display(), describe_change(change)));
    let lines: String = copied_line.into_iter().chain(lines).collect();
    format!("Files (--diff shows the changes):\n{lines}")
}

/// Renders one line for each link that would change.
fn render_line_per_changed_link(links: &[LinkChange]) -> String {
    let describe_link = |link: &LinkChange| match &link.after {
        Some(target) => format!("link to {}", target.display()),
        None => "removed".to_owned(),
    };
    links.iter().map(|link| format!("  {}: {}\n", link.path.display(), describe_link(link))).collect()
}

/// Renders a unified diff for every file. A backup gets one line, because it is only a copy.
fn render_diffs(changes: &[FileChange]) -> String {
    let mut output = String::new();
    for change in changes {
        let path = change.path.display().to_string();
        if path.contains("/.claude-plugin/types/") {
            let _ = writeln!(output, "# {path}: removed; Claude Code wrote it\n");
            continue;
        }
        if path.ends_with(".plimsoll-backup") {
            let description = if change.after.is_some() { "copy of the file as it is" } else { "removed" };
            let _ = writeln!(output, "# {path}: {description}\n");
            continue;
        }
        let decode_text = |bytes: &Option<Vec<u8>>| {
            String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
        };
        let header_name =
            |bytes: &Option<Vec<u8>>| if bytes.is_some() { path.clone() } else { "/dev/null".to_owned() };
        let (before, after) = (decode_text(&change.before), decode_text(&change.after));
        let diff = TextDiff::from_lines(&before, &after);
        let _ = writeln!(
            output,
            "{}",
            diff.unified_diff().header(&header_name(&change.before), &header_name(&change.after))
        );
    }
    output
}
