//! Everything that an installation wrote, taken out again.

use super::command_links::plan_link_removal;
use super::files::{OwnFile, plan_include, remove_own};
use super::memory::plan_server_removal;
use super::places::{Places, holds_memory, holds_ours};
use super::returned::{Returned, drop_left_over};
use super::slash_commands::is_unchanged;
use super::team;
use super::{COMMANDS, Change, InstallError, Plan, Scope, decoded};
use plimsoll_protocol::settings::{self, OurHook};
use plimsoll_store::disk;
use std::path::{Path, PathBuf};

/// What an uninstallation found and decided.
#[derive(Debug)]
pub struct Removal {
    /// The settings file.
    pub settings: PathBuf,
    /// The entries that go.
    pub removed: Vec<OurHook>,
    /// Our status line goes.
    pub status_line: bool,
    /// The working memory's variable goes.
    pub variable: bool,
    /// The settings file without ours; none if nothing was in it.
    pub returned: Option<Returned>,
    /// The slash commands.
    pub commands: Vec<(PathBuf, OwnFile)>,
    /// The project's list of MCP servers without ours, if it was there.
    pub servers: Option<Returned>,
    /// The agent of a frame, where no other settings file needs it.
    pub agent: Option<(PathBuf, OwnFile)>,
    /// The exclude file, if our lines go.
    pub exclude: Option<PathBuf>,
    /// Another settings file of the project that still needs the commands and the exclude lines.
    pub still_in: Option<PathBuf>,
    /// Another settings file of the project that still needs the working memory.
    pub memory_still_in: Option<PathBuf>,
    /// What sessions and runs have recorded in the project, and is the user's to keep or to delete.
    pub left: Vec<PathBuf>,
    /// What the user may have added to the user's own list of servers is left there.
    pub by_hand: bool,
    /// Our links in the user's folder of programs that go.
    pub links: Vec<PathBuf>,
    /// The preferences and ignore rules for everybody that go.
    pub team_files: Vec<PathBuf>,
    /// Other settings files that the client reads here and that hold entries of ours.
    pub also_in: Vec<(Scope, PathBuf)>,
}

/// Plans the removal of everything an installation wrote.
pub fn plan_removal(scope: Scope, project: &Path) -> Result<Plan<Removal>, InstallError> {
    let places = Places::of(scope, project)?;
    let mut report = Removal {
        settings: places.settings.clone(),
        removed: Vec::new(),
        status_line: false,
        variable: false,
        returned: None,
        commands: Vec::new(),
        servers: None,
        agent: None,
        exclude: None,
        still_in: places.sibling.clone().filter(|path| holds_ours(path)),
        memory_still_in: places.sibling.clone().filter(|path| holds_memory(path)),
        left: Vec::new(),
        by_hand: false,
        links: Vec::new(),
        team_files: Vec::new(),
        also_in: places.others.iter().filter(|(_, path)| holds_ours(path)).cloned().collect(),
    };
    let mut changes = Vec::new();
    if let Some(now) = disk::read(&places.settings)? {
        remove_from_settings(&places, &now, &mut report, &mut changes)?;
    }
    if report.memory_still_in.is_none() {
        if let Some((list, backup)) = &places.servers {
            report.servers = plan_server_removal(list, backup, &mut changes)?;
        }
        report.agent = Some(remove_own(&places.agent, |text| text == settings::agent::FILE, &mut changes)?);
    }
    if scope == Scope::Project {
        report.team_files = team::plan_removal(&places, project, &mut changes)?;
    }
    report.by_hand = scope == Scope::User && report.removed.iter().any(OurHook::is_memorys);
    if report.still_in.is_none() {
        for (name, file) in COMMANDS {
            let path = places.commands.join(name);
            report.commands.push(remove_own(&path, |text| is_unchanged(text, file), &mut changes)?);
        }
        if scope != Scope::User {
            report.exclude = plan_include(project, &mut changes)?;
            report.left = recorded(project);
        }
    }
    let mut links = Vec::new();
    if scope == Scope::User {
        report.links = plan_link_removal(&mut links);
    }
    Ok(Plan { changes, links, report, files: places.files(scope, project) })
}

/// Files of sessions and runs in a project. (Names with a `*`, of backups and drafts, are left out.)
fn recorded(project: &Path) -> Vec<PathBuf> {
    let names = crate::install::git_exclude::RUN_FILES.iter().filter(|name| !name.contains('*'));
    names.map(|name| project.join(name.trim_end_matches('/'))).filter(|path| disk::exists(path)).collect()
}

fn remove_from_settings(
    places: &Places,
    now: &[u8],
    report: &mut Removal,
    changes: &mut Vec<Change>,
) -> Result<(), InstallError> {
    let text = decoded(&places.settings, now)?;
    let backup = disk::read(&places.backup)?;
    let before = backup.as_deref().and_then(|bytes| settings::decode(bytes).ok());
    let cleared = settings::uninstall(text, before)
        .map_err(|place| InstallError::Unreadable { path: places.settings.clone(), place })?;
    if cleared.removed.is_empty() && !cleared.status_line {
        drop_left_over(&places.backup, backup, now, changes);
        return Ok(());
    }
    let untouched = before.is_some_and(|before| settings::is_untouched_since(before, text));
    let after = match before {
        Some(before) if untouched => Some(before.to_owned()),
        None if cleared.empty && backup.is_none() => None,
        _ => Some(cleared.text),
    };
    report.removed = cleared.removed;
    report.status_line = cleared.status_line;
    report.variable = cleared.variable;
    report.returned = Some(Returned::plan((&places.settings, now), after, (&places.backup, backup), changes));
    Ok(())
}
