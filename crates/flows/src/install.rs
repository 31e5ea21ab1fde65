//! `init` and `uninstall`: first a plan of every file with its bytes before and after, then the writing.
//!
//! Rules: no file of the user's is changed that we cannot read whole; the settings as they were lie beside
//! the file before the first change; what is not ours is never removed.

use crate::exclude::{self, Excluded};
use protocol::settings::{self, Era, OurHook, Unreadable};
use std::path::{Path, PathBuf};
use store::disk::{self, Durability};
use store::{StoreError, environment};

/// Whoever deletes this line from a command file keeps that file: it is then the user's own.
const MARKER: &str = "# plimsoll: written by `plimsoll init`";

/// The slash commands that come along.
pub const COMMANDS: [(&str, &str); 2] = [
    ("ralph.md", include_str!("../../../hooks-config/commands/ralph.md")),
    ("handoff.md", include_str!("../../../hooks-config/commands/handoff.md")),
];

/// Whose settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// `.claude/settings.json` of the project, shared by its team.
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
    /// `--user` without a home.
    #[error("no home directory: neither CLAUDE_CONFIG_DIR nor HOME is set")]
    NoHome,
    /// Somebody else wrote between our reading and our writing.
    #[error("{} was changed by someone else just now", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

impl InstallError {
    /// What the person can do.
    pub fn hint(&self) -> &'static str {
        match self {
            InstallError::Store(error) => error.hint(),
            InstallError::Unreadable { .. } => "nothing was changed; mend the file and try again",
            InstallError::NoHome => "set HOME, or install into a project without --user",
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

/// Everything that is about to be written, in order, and what to tell the person.
#[derive(Debug)]
pub struct Plan<Report> {
    /// In the order of writing; empty if there is nothing to do.
    pub changes: Vec<Change>,
    /// What was found and decided.
    pub report: Report,
}

/// The client that the settings are written for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Client {
    /// No `claude` on the PATH.
    Missing,
    /// It is there, and did not tell its version.
    Silent(PathBuf),
    /// What it says of itself.
    Version(String),
}

impl Client {
    /// The client on the PATH.
    pub fn installed() -> Client {
        match environment::find_program("claude") {
            None => Client::Missing,
            Some(program) => {
                launcher::client_version(&program).map_or(Client::Silent(program), Client::Version)
            }
        }
    }

    /// Without a client the modern template is written, for the one that will come; a silent one gets the
    /// template that every client understands.
    pub fn era(&self) -> Era {
        match self {
            Client::Missing => Era::Modern,
            Client::Silent(_) => Era::Classic,
            Client::Version(version) => Era::of_client(version),
        }
    }
}

/// What happens to a slash command's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandFile {
    /// Written, or brought up to date.
    Written,
    /// There already, as it should be.
    Already,
    /// The user's own, or changed by the user: left alone.
    Kept,
    /// Removed.
    Removed,
    /// Not there.
    Absent,
}

/// What an installation found and decided.
#[derive(Debug)]
pub struct Installation {
    /// The settings file.
    pub settings: PathBuf,
    /// For which client.
    pub client: Client,
    /// With which template.
    pub era: Era,
    /// The events that have an entry of ours.
    pub events: Vec<String>,
    /// How many entries of others stay.
    pub foreign_hooks: usize,
    /// The status line of somebody else, which stays.
    pub foreign_status_line: Option<String>,
    /// The file says `disableAllHooks`.
    pub hooks_switched_off: bool,
    /// Other settings files that the client reads here and that hold entries of ours, too.
    pub also_in: Vec<PathBuf>,
    /// Where the settings as they were are kept, if they are written there now.
    pub backup: Option<PathBuf>,
    /// The slash commands.
    pub commands: Vec<(PathBuf, CommandFile)>,
    /// The exclude file; none for the user's settings, which belong to no project.
    pub excluded: Option<Excluded>,
    /// Programs that the settings name and that are not installed beside this one.
    pub missing_programs: Vec<PathBuf>,
}

/// What an uninstallation found and decided.
#[derive(Debug)]
pub struct Removal {
    /// The settings file.
    pub settings: PathBuf,
    /// The entries that go.
    pub removed: Vec<OurHook>,
    /// Our status line goes.
    pub status_line: bool,
    /// The file goes back to the bytes it had before the installation.
    pub restored: bool,
    /// The file goes, because the installation made it.
    pub file_removed: bool,
    /// A backup that stays, because the file has been changed since.
    pub backup_kept: Option<PathBuf>,
    /// The slash commands.
    pub commands: Vec<(PathBuf, CommandFile)>,
    /// The exclude file, if our lines go.
    pub exclude: Option<PathBuf>,
    /// Another settings file of the project that still needs the commands and the exclude lines.
    pub still_in: Option<PathBuf>,
}

/// Plans the installation of our entries for the installed client.
pub fn plan_installation(
    scope: Scope,
    project: &Path,
    client: Client,
) -> Result<Plan<Installation>, InstallError> {
    let places = Places::of(scope, project)?;
    let now = disk::read(&places.settings)?;
    let text = decoded(&places.settings, now.as_deref().unwrap_or_default())?;
    let era = client.era();
    let merged = settings::install(text, era, &command_for)
        .map_err(|place| InstallError::Unreadable { path: places.settings.clone(), place })?;
    let mut changes = Vec::new();
    let users_own = settings::is_free_of_us(text).unwrap_or(false);
    let mut backup = None;
    if merged.text != text {
        if let Some(bytes) = now.as_ref().filter(|_| users_own) {
            let before = disk::read(&places.backup)?;
            changes.push(Change { path: places.backup.clone(), before, after: Some(bytes.clone()) });
            backup = Some(places.backup.clone());
        }
        changes.push(Change {
            path: places.settings.clone(),
            before: now.clone(),
            after: Some(merged.text.into_bytes()),
        });
    }
    let mut commands = Vec::new();
    for (name, text) in COMMANDS {
        commands.push(write_command(&places.commands.join(name), text, &mut changes)?);
    }
    let excluded = match scope {
        Scope::User => None,
        Scope::Project | Scope::Local => Some(plan_exclude(project, &mut changes)?),
    };
    changes.retain(|change| change.before != change.after);
    let report = Installation {
        settings: places.settings,
        client,
        era,
        events: merged.events,
        foreign_hooks: merged.foreign_hooks,
        foreign_status_line: merged.foreign_status_line,
        hooks_switched_off: merged.hooks_switched_off,
        also_in: places.others.into_iter().filter(|path| holds_ours(path)).collect(),
        backup,
        commands,
        excluded,
        missing_programs: missing_programs(era),
    };
    Ok(Plan { changes, report })
}

/// Plans the removal of everything an installation wrote.
pub fn plan_removal(scope: Scope, project: &Path) -> Result<Plan<Removal>, InstallError> {
    let places = Places::of(scope, project)?;
    let mut report = Removal {
        settings: places.settings.clone(),
        removed: Vec::new(),
        status_line: false,
        restored: false,
        file_removed: false,
        backup_kept: None,
        commands: Vec::new(),
        exclude: None,
        still_in: places.sibling.clone().filter(|path| holds_ours(path)),
    };
    let mut changes = Vec::new();
    if let Some(now) = disk::read(&places.settings)? {
        remove_from_settings(&places, now, &mut report, &mut changes)?;
    }
    if report.still_in.is_none() {
        for (name, text) in COMMANDS {
            report.commands.push(remove_command(&places.commands.join(name), text, &mut changes)?);
        }
        if scope != Scope::User {
            report.exclude = plan_include(project, &mut changes)?;
        }
    }
    Ok(Plan { changes, report })
}

/// Writes what was planned, unless a file is no longer as it was read.
pub fn carry_out(changes: &[Change]) -> Result<(), InstallError> {
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
    let removed = changes.iter().filter(|change| change.after.is_none());
    let mut folders: Vec<&Path> = removed.filter_map(|change| change.path.parent()).collect();
    // A folder before the one it lies in.
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
    folders.into_iter().for_each(disk::remove_empty_folder);
    Ok(())
}

/// How a settings file names one of our programs on this machine: by its bare name where the PATH leads to
/// the program beside this one (a team shares the project's settings), else by its path.
pub fn command_for(program: &str) -> String {
    let Some(own) = environment::own_directory() else { return program.to_owned() };
    let found = environment::find_program(program).map(|found| disk::canonical(&found));
    if found.as_deref().and_then(Path::parent) == Some(own.as_path()) {
        program.to_owned()
    } else {
        own.join(program).display().to_string()
    }
}

struct Places {
    settings: PathBuf,
    backup: PathBuf,
    commands: PathBuf,
    /// The other settings file of the same project, which shares commands and exclude lines.
    sibling: Option<PathBuf>,
    /// Every other settings file that the client reads in this project.
    others: Vec<PathBuf>,
}

impl Places {
    fn of(scope: Scope, project: &Path) -> Result<Places, InstallError> {
        let (shared, local) =
            (project.join(".claude/settings.json"), project.join(".claude/settings.local.json"));
        let user = user_directory();
        let user_settings = user.as_ref().map(|directory| directory.join("settings.json"));
        let (settings, sibling) = match scope {
            Scope::Project => (shared.clone(), Some(local.clone())),
            Scope::Local => (local.clone(), Some(shared.clone())),
            Scope::User => (user_settings.clone().ok_or(InstallError::NoHome)?, None),
        };
        let commands = match (scope, user) {
            (Scope::User, Some(directory)) => directory.join("commands"),
            _ => project.join(".claude/commands"),
        };
        let mut backup = settings.clone().into_os_string();
        backup.push(".plimsoll-backup");
        let others =
            [Some(shared), Some(local), user_settings].into_iter().flatten().filter(|path| *path != settings);
        Ok(Places { others: others.collect(), settings, backup: backup.into(), commands, sibling })
    }
}

/// The client's own folder of the user.
fn user_directory() -> Option<PathBuf> {
    let configured = environment::variable("CLAUDE_CONFIG_DIR").filter(|path| !path.is_empty());
    configured.map(PathBuf::from).or_else(|| Some(environment::home()?.join(".claude")))
}

fn decoded<'b>(path: &Path, bytes: &'b [u8]) -> Result<&'b str, InstallError> {
    settings::decode(bytes).map_err(|place| InstallError::Unreadable { path: path.to_owned(), place })
}

/// Whether another settings file names us; one that cannot be read is none of our business here.
fn holds_ours(path: &Path) -> bool {
    let text = disk::read_text(path).ok().flatten();
    text.is_some_and(|text| settings::has_our_hooks(&text).unwrap_or(false))
}

fn missing_programs(era: Era) -> Vec<PathBuf> {
    let Some(own) = environment::own_directory() else { return Vec::new() };
    let named = settings::programs_of(era).into_iter().map(|program| own.join(program));
    named.filter(|path| !disk::exists(path)).collect()
}

fn remove_from_settings(
    places: &Places,
    now: Vec<u8>,
    report: &mut Removal,
    changes: &mut Vec<Change>,
) -> Result<(), InstallError> {
    let text = decoded(&places.settings, &now)?;
    let backup = disk::read(&places.backup)?;
    let before = backup.as_deref().and_then(|bytes| settings::decode(bytes).ok());
    let cleared = settings::uninstall(text, before)
        .map_err(|place| InstallError::Unreadable { path: places.settings.clone(), place })?;
    if cleared.removed.is_empty() && !cleared.status_line {
        return Ok(());
    }
    let untouched = before.is_some_and(|before| settings::is_untouched_since(before, text));
    let after = match before {
        Some(before) if untouched => Some(before.as_bytes().to_vec()),
        None if cleared.empty && backup.is_none() => None,
        _ => Some(cleared.text.into_bytes()),
    };
    report.removed = cleared.removed;
    report.status_line = cleared.status_line;
    report.file_removed = after.is_none();
    report.restored = backup.is_some() && after == backup;
    changes.push(Change { path: places.settings.clone(), before: Some(now), after });
    match backup {
        Some(_) if !report.restored => report.backup_kept = Some(places.backup.clone()),
        Some(_) => changes.push(Change { path: places.backup.clone(), before: backup, after: None }),
        None => {}
    }
    Ok(())
}

fn write_command(
    path: &Path,
    text: &str,
    changes: &mut Vec<Change>,
) -> Result<(PathBuf, CommandFile), InstallError> {
    let before = disk::read(path)?;
    let outcome = match &before {
        Some(bytes) if bytes == text.as_bytes() => CommandFile::Already,
        Some(bytes) if !String::from_utf8_lossy(bytes).contains(MARKER) => CommandFile::Kept,
        _ => CommandFile::Written,
    };
    if outcome == CommandFile::Written {
        changes.push(Change { path: path.to_owned(), before, after: Some(text.as_bytes().to_vec()) });
    }
    Ok((path.to_owned(), outcome))
}

fn remove_command(
    path: &Path,
    text: &str,
    changes: &mut Vec<Change>,
) -> Result<(PathBuf, CommandFile), InstallError> {
    let before = disk::read(path)?;
    let outcome = match &before {
        None => CommandFile::Absent,
        Some(bytes) if bytes == text.as_bytes() => CommandFile::Removed,
        Some(_) => CommandFile::Kept,
    };
    if outcome == CommandFile::Removed {
        changes.push(Change { path: path.to_owned(), before, after: None });
    }
    Ok((path.to_owned(), outcome))
}

fn plan_exclude(project: &Path, changes: &mut Vec<Change>) -> Result<Excluded, InstallError> {
    let Some(place) = exclude::place_of(project) else { return Ok(Excluded::NoRepository) };
    let before = disk::read(&place.file)?;
    let now = before.clone().unwrap_or_default();
    let after = place.with_ours(&now, &[]);
    if after == now {
        return Ok(Excluded::Already(place.file));
    }
    changes.push(Change { path: place.file.clone(), before, after: Some(after) });
    Ok(Excluded::Written(place.file))
}

fn plan_include(project: &Path, changes: &mut Vec<Change>) -> Result<Option<PathBuf>, InstallError> {
    let Some(place) = exclude::place_of(project) else { return Ok(None) };
    let Some(now) = disk::read(&place.file)? else { return Ok(None) };
    let after = place.without_ours(&now);
    if after == now {
        return Ok(None);
    }
    changes.push(Change { path: place.file.clone(), before: Some(now), after: Some(after) });
    Ok(Some(place.file))
}
