//! What the working memory needs beside its hooks: our MCP server in the project's list, and the agent of a frame.

use super::files::{OwnFile, write_own};
use super::places::Places;
use super::returned::{Returned, drop_left_over};
use super::{Change, InstallError, backup_of, decoded, settings_command};
use plimsoll_protocol::settings::servers::{self, McpEntry};
use plimsoll_protocol::settings::{Variable, agent, quoted};
use plimsoll_store::disk;
use std::path::{Path, PathBuf};

/// What an installation found and decided about the working memory.
#[derive(Debug)]
pub struct MemoryInstallation {
    /// The variable in the settings; none if the memory was there before and is only brought up to date.
    pub variable: Option<Variable>,
    /// Our server in the project's list; none if the list is the user's.
    pub server: Option<(PathBuf, ServerEntry)>,
    /// The command with which the user adds our server to the user's own list, where that is left to do.
    pub by_hand: Option<String>,
    /// The agent of a frame.
    pub agent: (PathBuf, OwnFile),
}

/// What happens to the server of our name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEntry {
    /// Written, or brought up to date.
    Written,
    /// There already, as it should be.
    Already,
    /// Not there, and not asked for.
    Absent,
    /// The user's own way to start our program: left alone.
    OwnWay,
    /// Another program: left alone.
    Foreign,
}

/// Plans server and agent. What is not asked for is only brought up to date where it is ours. A list that the team shares names the
/// server's program by its name.
pub(super) fn plan(
    places: &Places,
    asked: bool,
    is_shared: bool,
    variable: Option<Variable>,
    changes: &mut Vec<Change>,
) -> Result<MemoryInstallation, InstallError> {
    let command_for = if is_shared { |program: &str| program.to_owned() } else { settings_command };
    let server = match &places.servers {
        Some((list, backup)) => Some((list.clone(), plan_server(list, backup, asked, command_for, changes)?)),
        None => None,
    };
    let by_hand = (asked && server.is_none()).then(|| {
        let program = quoted(&settings_command(servers::PROGRAM));
        format!("claude mcp add --scope user {} -- {program}", servers::NAME)
    });
    let agent = if asked || disk::exists(&places.agent) {
        write_own(&places.agent, agent::FILE, changes)?
    } else {
        (places.agent.clone(), OwnFile::Absent)
    };
    Ok(MemoryInstallation { variable, server, by_hand, agent })
}

fn plan_server(
    list: &Path,
    backup: &Path,
    asked: bool,
    command_for: fn(&str) -> String,
    changes: &mut Vec<Change>,
) -> Result<ServerEntry, InstallError> {
    let now = disk::read(list)?;
    let bytes = now.clone().unwrap_or_default();
    let ours = ours_in(&bytes);
    if !asked && !ours {
        return Ok(ServerEntry::Absent);
    }
    let text = decoded(list, &bytes)?;
    let joined = servers::install(text, &command_for).map_err(unreadable(list))?;
    match joined.entry {
        McpEntry::OwnWay(_) => return Ok(ServerEntry::OwnWay),
        McpEntry::Foreign(_) => return Ok(ServerEntry::Foreign),
        McpEntry::Ours if joined.text == text => return Ok(ServerEntry::Already),
        McpEntry::Ours => {}
    }
    if !ours && let Some(bytes) = &now {
        // The backup before the list: a kill between them leaves a backup too many, which the next removal drops.
        changes.push(backup_of(backup, bytes)?);
    }
    changes.push(Change { path: list.to_owned(), before: now, after: Some(joined.text.into_bytes()) });
    Ok(ServerEntry::Written)
}

/// Plans the removal of our server; none if there is nothing of ours.
pub(super) fn plan_server_removal(
    list: &Path,
    backup: &Path,
    changes: &mut Vec<Change>,
) -> Result<Option<Returned>, InstallError> {
    let Some(now) = disk::read(list)? else { return Ok(None) };
    // A list that we cannot read stops us only where it may hold something of ours.
    let named = String::from_utf8_lossy(&now).contains(servers::PROGRAM);
    let kept = disk::read(backup)?;
    if !named {
        drop_left_over(backup, kept, &now, changes);
        return Ok(None);
    }
    let text = decoded(list, &now)?;
    let before = kept.as_deref().and_then(|bytes| plimsoll_protocol::settings::decode(bytes).ok());
    let parted = servers::uninstall(text, before).map_err(unreadable(list))?;
    if !parted.removed {
        return Ok(None);
    }
    let untouched = before.is_some_and(|before| servers::is_untouched_since(before, text));
    let after = match before {
        Some(before) if untouched => Some(before.to_owned()),
        None if parted.empty && kept.is_none() => None,
        _ => Some(parted.text),
    };
    Ok(Some(Returned::plan((list, &now), after, (backup, kept), changes)))
}

fn ours_in(bytes: &[u8]) -> bool {
    let text = plimsoll_protocol::settings::decode(bytes).unwrap_or_default();
    matches!(servers::entry(text), Ok(Some(McpEntry::Ours)))
}

fn unreadable(path: &Path) -> impl Fn(plimsoll_protocol::settings::Unreadable) -> InstallError + '_ {
    |place| InstallError::Unreadable { path: path.to_owned(), place }
}
