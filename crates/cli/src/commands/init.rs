//! `plimsoll init` and `plimsoll uninstall`: set up the hooks in a settings file, or remove them.

mod lines;
mod scope;

use clap::Args;
use plimsoll_flows::install::{
    self, Change, Client, InstallError, LinkChange, Plan, Scope, Wishes, carry_out,
};
use plimsoll_store::environment;
use plimsoll_terminal::console::{fail, say};
use scope::Choice;
use similar::{ChangeTag, TextDiff};
use std::fmt::Write as _;
use std::process::ExitCode;

/// What to install.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InitArguments {
    /// Also the agent's working memory: its hooks, the MCP server and the agent for frames
    #[arg(long, conflicts_with = "project")]
    memory: bool,
    /// Keep your status line, and read the usage figures that Claude Code passes to it
    #[arg(long, conflicts_with = "project")]
    wrap: bool,
    /// With --project: also hook entries, which do nothing where Plimsoll is not installed
    #[arg(long, requires = "project", conflicts_with_all = ["user", "local"])]
    entries: bool,
    #[command(flatten)]
    place: PlaceArguments,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll init --dry-run --diff    what would change
  plimsoll init                     asks which settings file (default: yours)
  plimsoll init --local --memory    this project only, with the working memory
  plimsoll init --project           preferences of the team, to commit

`plimsoll uninstall` with the same option removes them, and nothing else.";

/// Which settings file, and whether to write it.
#[derive(Debug, Args)]
pub(crate) struct PlaceArguments {
    /// Your own settings, for every project (~/.claude/settings.json); the default
    #[arg(long, conflicts_with_all = ["local", "project"])]
    user: bool,
    /// Your own settings for this project (.claude/settings.local.json)
    #[arg(long, conflicts_with = "project")]
    local: bool,
    /// Everybody's files in this project: preferences and ignore rules, no hooks
    #[arg(long)]
    project: bool,
    /// Show what would change, a line for each file, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: the changes themselves, too
    #[arg(long, requires = "dry_run")]
    diff: bool,
}

impl PlaceArguments {
    /// The one that is named.
    fn scope(&self) -> Option<Scope> {
        let named = [(self.user, Scope::User), (self.local, Scope::Local), (self.project, Scope::Project)];
        named.into_iter().find_map(|(is_named, scope)| is_named.then_some(scope))
    }
}

/// Installs our hooks: exit code 0 done, 1 failed.
pub(crate) fn init(arguments: &InitArguments) -> ExitCode {
    let project = environment::current_dir();
    let place = &arguments.place;
    let scope = match scope::choose(place.scope(), arguments) {
        Choice::Hooks(scope) => scope,
        Choice::TeamFiles => {
            return finish(place, install::plan_team_files(&project), |plan| lines::team(plan, &project));
        }
    };
    let wishes = Wishes { memory: arguments.memory, wrap: arguments.wrap };
    // Before the plan, which looks for the programs and their links.
    let readied = if place.dry_run { Ok(install::planned_copy()) } else { install::set_up_programs() };
    let copied = readied.as_ref().ok().cloned().flatten();
    let plan = readied
        .map_err(InstallError::from)
        .and_then(|_| install::plan_installation(scope, &project, Client::installed(), wishes));
    finish(place, plan, |plan| lines::copied(copied.as_deref()) + &lines::installation(plan, &project))
}

/// Removes them: exit code 0 done or nothing to do, 1 failed.
pub(crate) fn uninstall(arguments: &PlaceArguments) -> ExitCode {
    let project = environment::current_dir();
    let plan = install::plan_removal(arguments.scope().unwrap_or(Scope::User), &project);
    finish(arguments, plan, |plan| lines::removal(plan, &project))
}

fn finish<Report>(
    arguments: &PlaceArguments,
    plan: Result<Plan<Report>, InstallError>,
    lines: impl Fn(&Plan<Report>) -> String,
) -> ExitCode {
    let done = plan.and_then(|plan| {
        if arguments.dry_run {
            let changes = if arguments.diff { diffs(&plan.changes) } else { summary(&plan.changes) };
            let links = link_summary(&plan.links);
            return Ok(format!("{}\n{changes}{links}", lines(&plan)));
        }
        carry_out(&plan)?;
        Ok(lines(&plan))
    });
    match done {
        Ok(text) => {
            let first = if arguments.dry_run { "Dry run: nothing was written.\n\n" } else { "" };
            say(format!("{first}{text}").trim_end_matches('\n'));
            ExitCode::SUCCESS
        }
        Err(error) => fail(format!("{error}\nhint: {}", error.hint())),
    }
}

/// A line for each file: what would become of it.
fn summary(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "No file would change.\n".to_owned();
    }
    let words = |change: &Change| match (&change.before, &change.after) {
        (None, _) => "new".to_owned(),
        (Some(_), None) => "removed".to_owned(),
        (Some(before), Some(after)) => {
            let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
            let diff = TextDiff::from_lines(&before, &after);
            let counted = |tag| diff.iter_all_changes().filter(|line| line.tag() == tag).count();
            format!("+{} −{} lines", counted(ChangeTag::Insert), counted(ChangeTag::Delete))
        }
    };
    let lines = changes.iter().map(|change| format!("  {}: {}\n", change.path.display(), words(change)));
    format!("Files (--diff shows the changes):\n{}", lines.collect::<String>())
}

/// A line for each link.
fn link_summary(links: &[LinkChange]) -> String {
    let words = |link: &LinkChange| match &link.after {
        Some(target) => format!("link to {}", target.display()),
        None => "removed".to_owned(),
    };
    links.iter().map(|link| format!("  {}: {}\n", link.path.display(), words(link))).collect()
}

/// Unified diffs of every file; a backup, being a copy, takes one line.
fn diffs(changes: &[Change]) -> String {
    let mut all = String::new();
    for change in changes {
        let path = change.path.display().to_string();
        if path.ends_with(".plimsoll-backup") {
            let what = if change.after.is_some() { "copy of the file as it is" } else { "removed" };
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
