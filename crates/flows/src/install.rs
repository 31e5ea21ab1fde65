//! `init` and `uninstall`: first a plan of every file with its bytes before and after, then the writing.
//!
//! Rules: no file of the user's is changed that we cannot read whole; the settings as they were are next to
//! the file before the first change; what is not ours is never removed.

mod client;
mod command_links;
mod files;
pub mod git_exclude;
mod hook_links;
mod memory;
pub(crate) mod places;
pub mod plugin;
mod program_home;
mod removal;
mod returned;
mod slash_commands;
mod team;

use crate::install::git_exclude::Excluded;
pub use client::Client;
pub(crate) use command_links::linked_folder;
use command_links::plan_links;
pub use command_links::{CommandLink, CommandLinks};
pub use files::OwnFile;
use files::{plan_exclude, write_own};
pub use memory::{MemoryInstallation, ServerEntry};
use places::{Places, holds_ours, holds_unguarded};
use plimsoll_protocol::settings::{self, HookSupport, Parts, Unreadable};
use plimsoll_store::disk::{self, Durability};
use plimsoll_store::{StoreError, environment};
use program_home::settings_path;
pub(crate) use program_home::{is_copied, lasting_path, ready_programs};
pub use program_home::{planned_copy, program_home, set_up_programs};
pub use removal::{Removal, plan_removal};
pub use returned::Returned;
pub use slash_commands::COMMANDS;
use slash_commands::{users_program, with_program};
use std::path::{Path, PathBuf};
pub use team::{TeamFiles, plan_team_files};

/// Whose settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// `.claude/settings.json` of the project, shared by its team: guarded entries, and no status line.
    Project,
    /// `.claude/settings.local.json` of the project.
    Local,
    /// `settings.json` in the user's own client folder.
    User,
}

/// Why nothing, or not everything, was done.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A settings file that is not what we could safely change.
    #[error("{}: {place}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Where it breaks, and why.
        place: Unreadable,
    },
    /// The working memory needs events that this client does not know.
    #[error("the working memory needs a client from {first} on, and {client}")]
    OldClient {
        /// The first version that will do.
        first: String,
        /// What there is.
        client: String,
    },
    /// `--user` without a home.
    #[error("no home directory: neither CLAUDE_CONFIG_DIR nor HOME is set")]
    NoHome,
    /// `--project` in the home folder, whose settings are the user's own.
    #[error("{} is your own settings file, not a project's", path.display())]
    HomeIsNoProject {
        /// The file.
        path: PathBuf,
    },
    /// Another program wrote between our reading and our writing.
    #[error("{} was changed by another program in the meantime", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

impl InstallError {
    /// What the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            InstallError::Store(error) => error.hint(),
            InstallError::Unreadable { .. } => "nothing was changed; fix the file and try again",
            InstallError::OldClient { .. } => {
                "nothing was changed; update Claude Code, or run `plimsoll init` without --memory"
            }
            InstallError::NoHome => "set HOME, or use --local in a project",
            InstallError::HomeIsNoProject { .. } => "use --user, or go to the project first",
            InstallError::Changed { .. } => "try again",
        }
    }
}

/// One file that is written or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub path: PathBuf,
    /// Its bytes now; none if it is missing.
    pub before: Option<Vec<u8>>,
    /// Its bytes then; none if it is removed.
    pub after: Option<Vec<u8>>,
}

/// One link that is made, replaced or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkChange {
    /// The link.
    pub path: PathBuf,
    /// The target that it has now; none if there is no link.
    pub before: Option<PathBuf>,
    /// The target that it gets; none if it is removed.
    pub after: Option<PathBuf>,
}

/// Everything that is about to be written, in order, and the messages for the user.
#[derive(Debug)]
pub struct Plan<Report> {
    /// In the order of writing; empty if there is nothing to do.
    pub changes: Vec<Change>,
    /// The links, after the files.
    pub links: Vec<LinkChange>,
    /// What was found and decided.
    pub report: Report,
    /// Every file that an installation writes: a killed one may have left drafts of them.
    pub files: Vec<PathBuf>,
}

/// What an installation found and decided.
#[derive(Debug)]
pub struct Installation {
    /// The settings file.
    pub settings: PathBuf,
    /// For which client.
    pub client: Client,
    /// With which template.
    pub era: HookSupport,
    /// The events that have an entry of ours.
    pub events: Vec<String>,
    /// How many entries of others stay.
    pub foreign_hooks: usize,
    /// Another status line, which stays.
    pub foreign_status_line: Option<String>,
    /// The file says `disableAllHooks`.
    pub hooks_switched_off: bool,
    /// Other settings files that the client reads here and that hold entries of ours, too, which run beside these.
    pub also_in: Vec<PathBuf>,
    /// Preferences and ignore rules, where the entries are for everybody.
    pub team_files: Option<TeamFiles>,
    /// Where the settings as they were are kept, if they are written there now.
    pub backup: Option<PathBuf>,
    /// The slash commands.
    pub commands: Vec<(PathBuf, OwnFile)>,
    /// The working memory, where it is asked for or was installed before.
    pub memory: Option<MemoryInstallation>,
    /// The working memory's entries go: this client does not know their events.
    pub memory_dropped: bool,
    /// The exclude file; none for the user's settings, which belong to no project.
    pub excluded: Option<Excluded>,
    /// The links by which a terminal finds the copied programs; none if it finds them without.
    pub links: Option<CommandLinks>,
    /// Programs that the settings name and that are not installed beside this one.
    pub missing_programs: Vec<PathBuf>,
}

/// What is asked for besides the hooks of the load line.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wishes {
    /// The working memory.
    pub memory: bool,
    /// To measure through another status line.
    pub wrap: bool,
}

/// Plans the installation of our entries for the installed client, and of what is wished for. A working memory that is
/// installed is brought up to date without being asked for.
pub fn plan_installation(
    scope: Scope,
    project: &Path,
    client: Client,
    wishes: Wishes,
) -> Result<Plan<Installation>, InstallError> {
    let Wishes { memory, wrap } = wishes;
    let era = client.era();
    if memory && era == HookSupport::Classic {
        return Err(client.too_old());
    }
    let places = Places::of(scope, project)?;
    let files = places.files(scope, project);
    let now = disk::read(&places.settings)?;
    let text = decoded(&places.settings, now.as_deref().unwrap_or_default())?;
    let guarded = scope == Scope::Project;
    let merged = settings::install(text, Parts { era, memory, wrap, guarded }, &settings_command)
        .map_err(|place| InstallError::Unreadable { path: places.settings.clone(), place })?;
    let had_memory = settings::our_hooks(text).unwrap_or_default().iter().any(settings::OurHook::is_memorys);
    let mut changes = Vec::new();
    let backup =
        if merged.text == text { None } else { plan_settings(&places, &now, merged.text, &mut changes)? };
    // A project's folder has one of each: where the team's entries are, they are the team's.
    let are_shared = guarded || scope == Scope::Local && places.sibling.as_deref().is_some_and(holds_ours);
    let commands = plan_commands(&places.commands, are_shared, &mut changes)?;
    let plan_memory = || memory::plan(&places, memory, are_shared, merged.variable, &mut changes);
    let memory_installed = merged.memory.then(plan_memory).transpose()?;
    let excluded = match scope {
        Scope::User => None,
        // The path that they name is for this user's machine alone, so nobody should commit them.
        Scope::Project | Scope::Local => Some(plan_exclude(project, !are_shared, &mut changes)?),
    };
    let team_files = match scope {
        Scope::Project => Some(team::plan(&places, project, &mut changes)?),
        Scope::User | Scope::Local => None,
    };
    changes.retain(|change| change.before != change.after);
    let mut links = Vec::new();
    let report = Installation {
        links: plan_links(&mut links),
        settings: places.settings,
        client,
        era,
        events: merged.events,
        foreign_hooks: merged.foreign_hooks,
        foreign_status_line: merged.foreign_status_line,
        hooks_switched_off: merged.hooks_switched_off,
        also_in: beside(places.others, guarded),
        team_files,
        backup,
        commands,
        memory: memory_installed,
        memory_dropped: had_memory && !merged.memory,
        excluded,
        missing_programs: missing_programs(Parts { memory: merged.memory, ..era.into() }),
    };
    Ok(Plan { changes, links, report, files })
}

/// Plans the slash commands. They name the program by its path, unless a team shares them.
fn plan_commands(
    folder: &Path,
    are_shared: bool,
    changes: &mut Vec<Change>,
) -> Result<Vec<(PathBuf, OwnFile)>, InstallError> {
    let program = users_program();
    let text = |file: &str| if are_shared { file.to_owned() } else { with_program(file, &program) };
    COMMANDS.iter().map(|(name, file)| write_own(&folder.join(name), &text(file), changes)).collect()
}

/// The settings' new text, after a backup if nothing of ours was in them; answers where that is.
fn plan_settings(
    places: &Places,
    now: &Option<Vec<u8>>,
    text: String,
    changes: &mut Vec<Change>,
) -> Result<Option<PathBuf>, InstallError> {
    let is_users = |bytes: &&Vec<u8>| {
        let text = settings::decode(bytes).unwrap_or_default();
        settings::is_free_of_us(text).unwrap_or(false)
    };
    let backup = now.as_ref().filter(is_users);
    if let Some(bytes) = backup {
        changes.push(backup_of(&places.backup, bytes)?);
    }
    let is_kept = backup.is_some();
    let after = Some(text.into_bytes());
    changes.push(Change { path: places.settings.clone(), before: now.clone(), after });
    Ok(is_kept.then(|| places.backup.clone()))
}

/// Of the other settings files those whose entries of ours also run: guarded ones give way.
fn beside(others: Vec<(Scope, PathBuf)>, guarded: bool) -> Vec<PathBuf> {
    others.into_iter().map(|(_, path)| path).filter(|path| !guarded && holds_unguarded(path)).collect()
}

/// The file as the user left it, beside it, before our first change.
fn backup_of(path: &Path, bytes: &[u8]) -> Result<Change, InstallError> {
    Ok(Change { path: path.to_owned(), before: disk::read(path)?, after: Some(bytes.to_vec()) })
}

/// Writes what was planned, unless a file is no longer as it was read. Removes the drafts that a killed installation or removal
/// has left.
pub fn carry_out<Report>(plan: &Plan<Report>) -> Result<(), InstallError> {
    plan.files.iter().for_each(|path| disk::sweep_drafts_of(path));
    let changes = &plan.changes;
    // In the plan's order, the backup before the settings: a kill between them leaves a backup too many at most.
    for change in changes {
        if disk::read(&change.path)? != change.before {
            return Err(InstallError::Changed { path: change.path.clone() });
        }
        match &change.after {
            Some(bytes) => disk::replace(&change.path, bytes, Durability::Durable)?,
            // A link to the file is the user's and stays.
            None => disk::remove(&disk::resolve_link(&change.path))?,
        }
    }
    for link in &plan.links {
        let is_unchanged = disk::link_target(&link.path) == link.before;
        if !is_unchanged || link.before.is_none() && disk::exists(&link.path) {
            return Err(InstallError::Changed { path: link.path.clone() });
        }
        match &link.after {
            Some(target) => disk::replace_link(target, &link.path)?,
            None => disk::remove(&link.path)?,
        }
    }
    // The project's own folder stays, even if nothing is left in it.
    let is_in_root = |path: &Path| places::IN_ROOT.iter().any(|name| path.ends_with(name));
    let is_ours = |change: &&Change| change.after.is_none() && !is_in_root(&change.path);
    let removed = changes.iter().filter(is_ours);
    let mut folders: Vec<&Path> = removed.filter_map(|change| change.path.parent()).collect();
    // A folder before the one it is in.
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
    folders.into_iter().for_each(disk::remove_empty_folder);
    Ok(())
}

/// How a run names one of our programs to its sessions: by its bare name where the PATH, which they have from the run, leads to the
/// program beside this one, else by its path. Of two servers with one command the client starts one.
pub fn command_for(program: &str) -> String {
    let Some(own) = program_home() else { return program.to_owned() };
    let found = environment::find_program(program).map(|found| disk::canonical(&found));
    if found.as_deref().and_then(Path::parent) == Some(own.as_path()) {
        program.to_owned()
    } else {
        own.join(program).display().to_string()
    }
}

/// The absolute path by which a settings file names one of our programs.
fn settings_command(program: &str) -> String {
    settings_path(program).map_or_else(|| program.to_owned(), |path| path.display().to_string())
}

fn decoded<'b>(path: &Path, bytes: &'b [u8]) -> Result<&'b str, InstallError> {
    settings::decode(bytes).map_err(|place| InstallError::Unreadable { path: path.to_owned(), place })
}

fn missing_programs(parts: Parts) -> Vec<PathBuf> {
    let Some(own) = program_home() else { return Vec::new() };
    let mut named = settings::programs_of(parts);
    named.extend(parts.memory.then(|| settings::servers::PROGRAM.to_owned()));
    let paths = named.into_iter().map(|program| own.join(program));
    paths.filter(|path| !program_home::will_be_made(path)).collect()
}
