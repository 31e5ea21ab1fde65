//! Our MCP server in a project's `.mcp.json`. All other servers stay byte for byte.

use super::command::{exec_form_path, program_name_at_path};
use super::hook_entries::{object_members_or_error, remove_object_member, root_members};
use super::json_text::{self, InvalidSettings};
use super::original_text::OriginalText;
use super::split_bom_and_default_to_empty_object;
use serde_json::{Map, Value, json};
use std::ops::Range;

/// The server's name: its tools are `mcp__plimsoll__…`.
pub const SERVER_NAME: &str = "plimsoll";
/// The server's program.
pub const SERVER_PROGRAM: &str = "plimsoll-mcp";
const SERVERS_KEY: &str = "mcpServers";

/// The author of the entry with our server's name in an `.mcp.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpEntryAuthor {
    /// Exactly what we write, with any path.
    Ours,
    /// The user's own command for our program; with the entry's text.
    UserConfigured(String),
    /// Another program; with the entry's text. Our tools are then unavailable.
    Foreign(String),
}

/// An `.mcp.json` with our server, or with another entry of its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledServerList {
    /// The complete file.
    pub text: String,
    /// The author of the entry.
    pub entry_author: McpEntryAuthor,
}

/// An `.mcp.json` without our server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UninstalledServerList {
    /// The complete file.
    pub text: String,
    /// True if our server was removed.
    pub removed: bool,
    /// True if nothing is left in the file.
    pub is_empty: bool,
}

/// Returns the value of the client's `--mcp-config` option, for a session without the file.
pub fn mcp_config(command_for: &dyn Fn(&str) -> String) -> Value {
    json!({ SERVERS_KEY: { SERVER_NAME: server_value(command_for) } })
}

fn server_value(command_for: &dyn Fn(&str) -> String) -> Value {
    // With `alwaysLoad`, because otherwise the client hides the tools behind a search.
    json!({ "command": exec_form_path(&command_for(SERVER_PROGRAM)), "args": [], "alwaysLoad": true })
}

/// The end of the entry's PATH, after the folder of this machine's programs, for a colleague who shares the list. The client
/// keeps `${HOME}` as it is if HOME is not set, which would be a folder in the project.
const PATH_SUFFIX: &str =
    ":${PATH:-/usr/bin:/bin}:${HOME:-/nonexistent}/.local/bin:${HOME:-/nonexistent}/.cargo/bin";

/// Returns our server's entry for a project's list. It has the bare program name, like the plugin's entry, because the
/// client starts only one of two servers with the same command. Its PATH contains the program's folder, for a client that
/// was not started in a terminal.
fn server_value_with_folder_on_path_if_absolute(program_path: &str) -> Value {
    let folder = program_path.strip_suffix(SERVER_PROGRAM).and_then(|folder| folder.strip_suffix('/'));
    match folder.filter(|folder| folder.starts_with('/') && !folder.contains([':', '$'])) {
        Some(folder) => {
            let path_variable = format!("{folder}{PATH_SUFFIX}");
            json!({ "command": SERVER_PROGRAM, "args": [], "env": { "PATH": path_variable }, "alwaysLoad": true })
        }
        None => server_value(&|_| program_path.to_owned()),
    }
}

/// Returns the program path for which [`server_value_with_folder_on_path_if_absolute`] wrote this entry.
fn program_path_of_entry(entry: &Value) -> Option<String> {
    let command = entry.get("command")?.as_str()?.to_owned();
    let folder = entry.pointer("/env/PATH").and_then(|path| path.as_str()?.strip_suffix(PATH_SUFFIX));
    let path = folder.map_or(command, |folder| format!("{folder}/{SERVER_PROGRAM}"));
    (*entry == server_value_with_folder_on_path_if_absolute(&path)).then_some(path)
}

/// Returns the author of the entry with our server's name; `None` if there is no such entry.
pub fn find_server_entry_author(server_list_text: &str) -> Result<Option<McpEntryAuthor>, InvalidSettings> {
    let (_, list_json) = split_bom_and_default_to_empty_object(server_list_text);
    Ok(find_server(&list_json)?.map(|range| classify_entry_author(&list_json, &range)))
}

/// Returns the command of the entry with our server's name.
pub fn server_command(server_list_text: &str) -> Option<String> {
    let (_, list_json) = split_bom_and_default_to_empty_object(server_list_text);
    let server = json_text::value_at_or_null(&list_json, &find_server(&list_json).ok()??);
    Some(server.get("command")?.as_str()?.to_owned())
}

/// Adds our server. An entry that we wrote is updated if its path differs; any other entry of that name stays.
pub fn add_or_update_our_server(
    server_list_text: &str,
    command_for: &dyn Fn(&str) -> String,
) -> Result<InstalledServerList, InvalidSettings> {
    let (byte_order_mark, list_json) = split_bom_and_default_to_empty_object(server_list_text);
    let server = server_value_with_folder_on_path_if_absolute(&command_for(SERVER_PROGRAM));
    let (list_json, author) = match find_server(&list_json)? {
        Some(range) => match classify_entry_author(&list_json, &range) {
            McpEntryAuthor::Ours if json_text::value_at_or_null(&list_json, &range) != server => {
                (json_text::replace_value(&list_json, &range, &server), McpEntryAuthor::Ours)
            }
            author => (list_json, author),
        },
        None => (append_server_creating_missing_list(&list_json, server)?, McpEntryAuthor::Ours),
    };
    Ok(InstalledServerList { text: format!("{byte_order_mark}{list_json}"), entry_author: author })
}

/// Removes our server, and the list if it becomes empty. `original` is the file from before the installation, if known; a
/// list that it had is kept.
pub fn remove_our_server_and_empty_containers(
    server_list_text: &str,
    original: Option<&str>,
) -> Result<UninstalledServerList, InvalidSettings> {
    let (byte_order_mark, list_json) = split_bom_and_default_to_empty_object(server_list_text);
    let is_ours = find_server(&list_json)?
        .is_some_and(|range| classify_entry_author(&list_json, &range) == McpEntryAuthor::Ours);
    if !is_ours {
        return Ok(UninstalledServerList {
            text: server_list_text.to_owned(),
            removed: false,
            is_empty: false,
        });
    }
    let root = root_members(&list_json)?;
    let original_text = OriginalText::new(original);
    let list_index = root.iter().position(|member| member.key == SERVERS_KEY).unwrap_or(root.len());
    let servers = object_members_or_error(&list_json, &root[list_index].value_range, SERVERS_KEY)?;
    let list_json = if servers.len() == 1 && !original_text.has_value_at(&[SERVERS_KEY]) {
        remove_object_member(&list_json, &json_text::root_range(&list_json)?, list_index)?
    } else {
        let server_index =
            servers.iter().position(|member| member.key == SERVER_NAME).unwrap_or(servers.len());
        remove_object_member(&list_json, &root[list_index].value_range, server_index)?
    };
    let list_json = original_text.restore_empty_container_whitespace(list_json, &[SERVERS_KEY]);
    let list_json = original_text.restore_empty_container_whitespace(list_json, &[]);
    let is_empty = root_members(&list_json)?.is_empty();
    Ok(UninstalledServerList { text: format!("{byte_order_mark}{list_json}"), removed: true, is_empty })
}

/// Returns true if the file is still exactly what an installation made of `original`, with any path.
pub fn is_unchanged_since_install(original: &str, current: &str) -> bool {
    let (_, list_json) = split_bom_and_default_to_empty_object(current);
    let path = find_server(&list_json)
        .ok()
        .flatten()
        .and_then(|range| program_path_of_entry(&json_text::value_at_or_null(&list_json, &range)));
    let Some(path) = path else { return false };
    find_server_entry_author(original).is_ok_and(|entry| entry != Some(McpEntryAuthor::Ours))
        && add_or_update_our_server(original, &|_| path.clone())
            .is_ok_and(|installed| installed.text == current)
}

fn find_server(list_json: &str) -> Result<Option<Range<usize>>, InvalidSettings> {
    let root = root_members(list_json)?;
    let Some(list) = root.into_iter().find(|member| member.key == SERVERS_KEY) else { return Ok(None) };
    let servers = object_members_or_error(list_json, &list.value_range, SERVERS_KEY)?;
    Ok(servers.into_iter().find(|member| member.key == SERVER_NAME).map(|member| member.value_range))
}

fn classify_entry_author(list_json: &str, range: &Range<usize>) -> McpEntryAuthor {
    let value = json_text::value_at_or_null(list_json, range);
    let command = value.get("command").and_then(Value::as_str).unwrap_or_default();
    // No shell reads the command, so spaces belong to the path.
    if program_name_at_path(command) != SERVER_PROGRAM {
        return McpEntryAuthor::Foreign(list_json[range.clone()].to_owned());
    }
    if program_path_of_entry(&value).is_some() {
        McpEntryAuthor::Ours
    } else {
        McpEntryAuthor::UserConfigured(list_json[range.clone()].to_owned())
    }
}

fn append_server_creating_missing_list(list_json: &str, server: Value) -> Result<String, InvalidSettings> {
    let root = root_members(list_json)?;
    match root.into_iter().find(|member| member.key == SERVERS_KEY) {
        Some(list) => Ok(json_text::append_child(list_json, &list.value_range, Some(SERVER_NAME), &server)),
        None => {
            let list = Value::Object(Map::from_iter([(SERVER_NAME.to_owned(), server)]));
            Ok(json_text::append_child(
                list_json,
                &json_text::root_range(list_json)?,
                Some(SERVERS_KEY),
                &list,
            ))
        }
    }
}
