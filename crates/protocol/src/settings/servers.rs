//! Our MCP server in a project's `.mcp.json`; every other server keeps its bytes.

use super::before::TextBefore;
use super::entries::{object_or_refuse, remove_member, root_members};
use super::start;
use super::text::{self, Unreadable};
use serde_json::{Map, Value, json};
use std::ops::Range;

/// The server's name: the tools are `mcp__plimsoll__…`.
pub const NAME: &str = "plimsoll";
/// The program behind it.
pub const PROGRAM: &str = "plimsoll-mcp";
const LIST: &str = "mcpServers";

/// Who wrote the entry with our server's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpEntry {
    /// Exactly what we write, whatever the path.
    Ours,
    /// The user's own way to start our program; with the entry's text.
    OwnWay(String),
    /// Another program; with the entry's text. Our tools are then not there.
    Foreign(String),
}

/// An `.mcp.json` with our server in it, or with what had its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// The whole file.
    pub text: String,
    /// Whose the entry is.
    pub entry: McpEntry,
}

/// An `.mcp.json` without our server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parted {
    /// The whole file.
    pub text: String,
    /// Our server was taken out.
    pub removed: bool,
    /// Nothing is left in the file.
    pub empty: bool,
}

/// What the client's `--mcp-config` takes, for a session without the file.
pub fn config(command_for: &dyn Fn(&str) -> String) -> Value {
    json!({ LIST: { NAME: server(command_for) } })
}

fn server(command_for: &dyn Fn(&str) -> String) -> Value {
    // Else the client hides the tools behind a search.
    json!({ "command": command_for(PROGRAM), "args": [], "alwaysLoad": true })
}

/// The folders of the PATH behind the one of this machine's programs, for a colleague who has the list, too.
const USUAL_FOLDERS: &str = ":${PATH:-/usr/bin:/bin}:${HOME}/.local/bin:${HOME}/.cargo/bin";

/// The server in a project's list, by the path of its program. The entry names it by its name, as the plugin's does: of two servers with
/// one command the client starts one. The PATH of the entry leads a client to it that was not started in a terminal.
fn listed_server(path: &str) -> Value {
    let folder = path.strip_suffix(PROGRAM).and_then(|folder| folder.strip_suffix('/'));
    match folder.filter(|folder| folder.starts_with('/') && !folder.contains([':', '$'])) {
        Some(folder) => {
            let path = format!("{folder}{USUAL_FOLDERS}");
            json!({ "command": PROGRAM, "args": [], "env": { "PATH": path }, "alwaysLoad": true })
        }
        None => server(&|_| path.to_owned()),
    }
}

/// The path that an entry as [`listed_server`] writes it was made of.
fn listed_path(entry: &Value) -> Option<String> {
    let command = entry.get("command")?.as_str()?.to_owned();
    let folder = entry.pointer("/env/PATH").and_then(|path| path.as_str()?.strip_suffix(USUAL_FOLDERS));
    let path = folder.map_or(command, |folder| format!("{folder}/{PROGRAM}"));
    (*entry == listed_server(&path)).then_some(path)
}

/// Whose the server of our name is; none if there is no such entry.
pub fn entry(existing: &str) -> Result<Option<McpEntry>, Unreadable> {
    let (_, body) = start(existing);
    Ok(find(&body)?.map(|found| whose(&body, &found)))
}

/// What the server of our name is started by, where the list says so.
pub fn command(existing: &str) -> Option<String> {
    let (_, body) = start(existing);
    let server = text::value(&body, &find(&body).ok()??);
    Some(server.get("command")?.as_str()?.to_owned())
}

/// Puts our server in; one of ours with another path is brought up to date, any other entry of that name stays.
pub fn install(existing: &str, command_for: &dyn Fn(&str) -> String) -> Result<Joined, Unreadable> {
    let (mark, body) = start(existing);
    let server = listed_server(&command_for(PROGRAM));
    let (body, entry) = match find(&body)? {
        Some(found) => match whose(&body, &found) {
            McpEntry::Ours if text::value(&body, &found) != server => {
                (text::replace(&body, &found, &server), McpEntry::Ours)
            }
            entry => (body, entry),
        },
        None => (append(&body, server)?, McpEntry::Ours),
    };
    Ok(Joined { text: format!("{mark}{body}"), entry })
}

/// Takes our server out. `before` is the file as it was before the installation, where that is known.
pub fn uninstall(existing: &str, before: Option<&str>) -> Result<Parted, Unreadable> {
    let (mark, body) = start(existing);
    let ours = find(&body)?.is_some_and(|found| whose(&body, &found) == McpEntry::Ours);
    if !ours {
        return Ok(Parted { text: existing.to_owned(), removed: false, empty: false });
    }
    let root = root_members(&body)?;
    let before = TextBefore::new(before);
    let list = root.iter().position(|member| member.key == LIST).unwrap_or(root.len());
    let servers = object_or_refuse(&body, &root[list].value, LIST)?;
    let body = if servers.len() == 1 && !before.has(&[LIST]) {
        remove_member(&body, &text::whole(&body)?, list)?
    } else {
        let own = servers.iter().position(|member| member.key == NAME).unwrap_or(servers.len());
        remove_member(&body, &root[list].value, own)?
    };
    let body = before.restore_empty_container(body, &[LIST]);
    let body = before.restore_empty_container(body, &[]);
    let empty = root_members(&body)?.is_empty();
    Ok(Parted { text: format!("{mark}{body}"), removed: true, empty })
}

/// Whether the file is still exactly what an installation made of `before`, whatever the path was.
pub fn is_untouched_since(before: &str, current: &str) -> bool {
    let (_, body) = start(current);
    let path = find(&body).ok().flatten().and_then(|found| listed_path(&text::value(&body, &found)));
    let Some(path) = path else { return false };
    entry(before).is_ok_and(|entry| entry != Some(McpEntry::Ours))
        && install(before, &|_| path.clone()).is_ok_and(|joined| joined.text == current)
}

fn find(body: &str) -> Result<Option<Range<usize>>, Unreadable> {
    let root = root_members(body)?;
    let Some(list) = root.into_iter().find(|member| member.key == LIST) else { return Ok(None) };
    let servers = object_or_refuse(body, &list.value, LIST)?;
    Ok(servers.into_iter().find(|member| member.key == NAME).map(|member| member.value))
}

fn whose(body: &str, at: &Range<usize>) -> McpEntry {
    let value = text::value(body, at);
    let command = value.get("command").and_then(Value::as_str).unwrap_or_default();
    // No shell reads the command: spaces belong to the path.
    if command.rsplit('/').next() != Some(PROGRAM) {
        return McpEntry::Foreign(body[at.clone()].to_owned());
    }
    if listed_path(&value).is_some() { McpEntry::Ours } else { McpEntry::OwnWay(body[at.clone()].to_owned()) }
}

fn append(body: &str, server: Value) -> Result<String, Unreadable> {
    let root = root_members(body)?;
    match root.into_iter().find(|member| member.key == LIST) {
        Some(list) => Ok(text::append(body, &list.value, Some(NAME), &server)),
        None => {
            let list = Value::Object(Map::from_iter([(NAME.to_owned(), server)]));
            Ok(text::append(body, &text::whole(body)?, Some(LIST), &list))
        }
    }
}
