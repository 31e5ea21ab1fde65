//! Adds our hook entries to the client's settings file and removes them; everything else stays byte for byte.
//!
//! Limits: the file must be plain JSON, because the client does not load a file with comments or trailing commas. A
//! container (`hooks`, an event's list) that becomes empty when our entries are removed is removed too, unless the file
//! is known to have contained it before the installation.

pub mod agent;
mod command;
mod hook_entries;
mod json_text;
mod original_text;
mod permissions;
pub mod plugins;
pub mod servers;
mod status;
mod summary;
mod template;
mod variable;

pub use command::{
    GUARDED_FLAG, is_plain_in_windows_shells, is_windows_path, needs_quotes_in_windows_shells,
    program_name_at_path, quote_program_path, runs_our_program_in_exec_or_shell_form, shell_quote_if_needed,
};
use command::{command_executable_with_spaces_if_ours, program_name};
pub use hook_entries::{EntryDifference, EntryDifferenceKind};
use hook_entries::{
    find_our_entries, find_unexpected_entry, object_members_or_error, parse_hook_entries,
    remove_entry_and_empty_containers, root_members, update_or_append_entry,
};
pub use json_text::InvalidSettings;
use original_text::OriginalText;
pub use permissions::{UnprivilegedSettings, drop_permissions_and_extract_environment};
use serde_json::Value;
use std::sync::LazyLock;
pub use summary::{
    ConfiguredStatusLine, SettingsSummary, find_template_differences_if_installed, summarize_settings,
};
use template::{TemplateEntry, template_entries_with_memory_replacements};
pub use template::{hook_and_status_line_programs, hooks_settings, memory_variable};
pub use variable::MemoryVariable;

/// Entries for clients that support `PostToolBatch`.
pub const MODERN_TEMPLATE: &str = include_str!("../../../hooks-config/settings.modern.json");
/// Entries for older clients: only events that 1.0.128 supports.
pub const CLASSIC_TEMPLATE: &str = include_str!("../../../hooks-config/settings.classic.json");
/// Entries that the working memory needs in addition to those of a modern client.
pub const MEMORY_TEMPLATE: &str = include_str!("../../../hooks-config/settings.memory.json");

/// The argument that makes a program also handle the memory's part of an event.
pub const MEMORY_ARGUMENT: &str = "memory";

/// Every program that our entries in a settings file may start. The scripts that create the links read the same file.
pub static PROGRAM_NAMES: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("../../hooks/programs.txt").lines().collect());

/// The first client that supports every event of the classic template (observed on 1.0.84 and 1.0.85). An older one
/// silently drops the file's hooks.
pub const FIRST_CLASSIC_VERSION: (u32, u32, u32) = (1, 0, 85);
/// The first client that was observed to run `PostToolBatch`, `StopFailure` and `PostCompact`.
pub const FIRST_MODERN_VERSION: (u32, u32, u32) = (2, 1, 207);
/// The first client that starts a hook with `args` directly. Earlier ones pass its command to a shell (2.1.138 has no `args`).
pub const FIRST_EXEC_FORM_VERSION: (u32, u32, u32) = (2, 1, 139);
/// The first client that runs our plugin's hooks, whose entries have `args`.
pub const FIRST_PLUGIN_VERSION: (u32, u32, u32) = FIRST_EXEC_FORM_VERSION;

/// The template that a client supports. Before 2.1 a single unknown event name silently disables every hook of the
/// file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookSupport {
    /// [`FIRST_MODERN_VERSION`] and later.
    Modern,
    /// Older clients, and clients whose version is unknown.
    Classic,
}

impl HookSupport {
    /// Determines the support from the output of `claude --version`, such as `2.1.329 (Claude Code)`.
    pub fn from_client_version_or_classic(version_output: &str) -> HookSupport {
        match parse_version(version_output) {
            Some(version) if version >= FIRST_MODERN_VERSION => HookSupport::Modern,
            // Also if the version is unknown: these entries run on every client from 1.0.85 on.
            _ => HookSupport::Classic,
        }
    }

    /// Returns the template's text, with bare program names.
    pub fn template_text(self) -> &'static str {
        match self {
            HookSupport::Modern => MODERN_TEMPLATE,
            HookSupport::Classic => CLASSIC_TEMPLATE,
        }
    }

    /// Selects the entries of this template and those of the working memory.
    pub fn with_memory(self) -> EntryOptions {
        EntryOptions { include_memory: true, ..self.into() }
    }
}

/// Selects which of our entries to install, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryOptions {
    /// The template that the client supports.
    pub hook_support: HookSupport,
    /// Also install the working memory's entries. Ignored for classic clients, which do not support their events.
    pub include_memory: bool,
    /// Wrap the user's own status line to measure through it, instead of leaving it alone.
    pub wrap_status_line: bool,
    /// Write entries for a shared project file, which do nothing where our programs are not installed. Without a
    /// status line, because it would replace the status line of a colleague who lacks our programs.
    pub for_team: bool,
}

impl EntryOptions {
    fn includes_memory(self) -> bool {
        self.include_memory && self.hook_support == HookSupport::Modern
    }
}

impl From<HookSupport> for EntryOptions {
    fn from(hook_support: HookSupport) -> EntryOptions {
        EntryOptions { hook_support, include_memory: false, wrap_status_line: false, for_team: false }
    }
}

/// Parses the three numbers of `2.1.329 (Claude Code)`.
pub fn parse_version(version_output: &str) -> Option<(u32, u32, u32)> {
    let version_text = version_output.split_whitespace().next()?;
    let mut components = version_text.trim_start_matches('v').splitn(3, '.');
    let major = components.next()?.parse().ok()?;
    let minor = components.next()?.parse().ok()?;
    let patch = components.next()?;
    let digits_end = patch.find(|c: char| !c.is_ascii_digit()).unwrap_or(patch.len());
    Some((major, minor, patch[..digits_end].parse().ok()?))
}

/// One of our hook entries in a settings text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OurHookEntry {
    pub event: String,
    /// The name of the program.
    pub program: String,
    /// The command as written in the file.
    pub command: String,
    /// The fixed arguments of the program.
    pub arguments: Vec<Value>,
    /// True for an entry in a shared project file, which does nothing where our programs are not installed.
    pub is_team_entry: bool,
}

impl OurHookEntry {
    /// Returns true if the entry serves only the working memory.
    pub fn is_for_memory(&self) -> bool {
        template::is_memory_program(&self.program)
    }

    /// Returns the executable: a path, or a name to look up on PATH.
    pub fn executable(&self) -> String {
        command_executable_with_spaces_if_ours(&self.command)
    }

    /// Returns true if the entry names its program by a path of Windows, which no other system can start.
    pub fn has_windows_path(&self) -> bool {
        is_windows_path(&self.executable())
    }

    /// Returns the arguments that distinguish several entries of one program. [`MEMORY_ARGUMENT`] does not distinguish
    /// them.
    pub fn distinguishing_arguments(&self) -> Vec<&Value> {
        self.arguments.iter().filter(|argument| *argument != MEMORY_ARGUMENT).collect()
    }
}

/// A settings text with our entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledSettings {
    /// The complete file.
    pub text: String,
    /// The events that have an entry of ours, in the template's order.
    pub events: Vec<String>,
    /// The number of other hook entries in the file, which stay untouched.
    pub foreign_hook_count: usize,
    /// The command of a status line that is not ours and stays.
    pub foreign_status_line: Option<String>,
    /// True if the file has the working memory's entries.
    pub has_memory: bool,
    /// The state of the memory's variable, if the memory was requested.
    pub memory_variable: Option<MemoryVariable>,
    /// True if the file sets `disableAllHooks`, so that none of our hooks runs.
    pub hooks_disabled: bool,
}

/// A settings text without our entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UninstalledSettings {
    /// The complete file.
    pub text: String,
    /// The entries that were removed.
    pub removed_hooks: Vec<OurHookEntry>,
    /// True if our status line was removed.
    pub status_line_removed: bool,
    /// True if the memory's variable was removed.
    pub variable_removed: bool,
    /// True if nothing is left in the file.
    pub is_empty: bool,
}

/// Decodes a settings file as UTF-8. The error has the position of the first invalid byte.
pub fn decode_utf8(bytes: &[u8]) -> Result<&str, InvalidSettings> {
    std::str::from_utf8(bytes).map_err(|error| {
        let valid_text = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        InvalidSettings::at_byte(&valid_text, valid_text.len(), "not UTF-8 text".to_owned())
    })
}

/// Returns the additional directories in a settings file, where commands of its sessions may write. Returns none if the
/// file does not parse.
pub fn additional_directories(settings_text: &str) -> Vec<String> {
    let settings: Value = serde_json::from_str(settings_text).unwrap_or_default();
    let directories =
        settings["permissions"]["additionalDirectories"].as_array().cloned().unwrap_or_default();
    directories.into_iter().filter_map(|directory| directory.as_str().map(str::to_owned)).collect()
}

/// Returns our hook entries in a settings text.
pub fn find_our_hooks(settings_text: &str) -> Result<Vec<OurHookEntry>, InvalidSettings> {
    let (_, settings_json) = split_bom_and_default_to_empty_object(settings_text);
    Ok(find_our_entries(&settings_json)?.into_iter().map(|entry| entry.hook).collect())
}

/// Returns true if a settings text contains a hook entry of ours.
pub fn has_our_hooks(settings_text: &str) -> Result<bool, InvalidSettings> {
    Ok(!find_our_hooks(settings_text)?.is_empty())
}

/// Returns true if a settings text contains neither a hook nor a status line of ours.
pub fn has_no_plimsoll_entries(settings_text: &str) -> Result<bool, InvalidSettings> {
    let uninstalled = remove_our_entries_and_empty_containers(settings_text, None)?;
    Ok(uninstalled.removed_hooks.is_empty() && !uninstalled.status_line_removed)
}

/// Adds our entries. Existing ones are updated in place, entries of another template are removed, and everything else in
/// the file stays byte for byte. An empty text stands for a missing file. An installed working memory is kept even if it
/// is not requested, unless the client does not support it.
pub fn install_or_update_our_entries(
    settings_text: &str,
    options: impl Into<EntryOptions>,
    command_for: &dyn Fn(&str) -> String,
) -> Result<InstalledSettings, InvalidSettings> {
    let requested_options: EntryOptions = options.into();
    let (byte_order_mark, mut settings_json) = split_bom_and_default_to_empty_object(settings_text);
    let root = root_members(&settings_json)?;
    if let Some(hooks) = root.iter().find(|member| member.key == "hooks") {
        object_members_or_error(&settings_json, &hooks.value_range, "hooks")?;
    }
    let memory_is_installed =
        find_our_entries(&settings_json)?.iter().any(|entry| entry.hook.is_for_memory());
    let effective_options = EntryOptions {
        include_memory: requested_options.include_memory || memory_is_installed,
        ..requested_options
    };
    let expected_entries = template_entries_with_memory_replacements(effective_options, command_for);
    check_entries_can_be_inserted(&settings_json, &expected_entries, requested_options.includes_memory())?;
    // Located again for each entry, because every edit moves the positions after it.
    for index in 0..expected_entries.len() {
        settings_json = update_or_append_entry(&settings_json, &expected_entries, index)?;
    }
    // An entry that a client before 2.1 does not support would disable all hooks of the file.
    while let Some(unexpected_entry) = find_unexpected_entry(&settings_json, &expected_entries)? {
        settings_json =
            remove_entry_and_empty_containers(&settings_json, &unexpected_entry, &OriginalText::new(None))?;
    }
    let (text, foreign_status_line) = if effective_options.for_team {
        (status::remove_or_unwrap_status_line(&settings_json)?.unwrap_or(settings_json), None)
    } else {
        status::set_status_line_or_return_user_command(
            &settings_json,
            command_for,
            requested_options.wrap_status_line,
        )?
    };
    settings_json = text;
    let mut memory_variable = None;
    // Only if the memory is requested: a user may have removed the variable from an installed memory.
    if requested_options.includes_memory() {
        let (text, variable_state) = variable::set_memory_variable_if_absent(&settings_json)?;
        (settings_json, memory_variable) = (text, Some(variable_state));
    }
    let mut events: Vec<String> = Vec::new();
    for entry in expected_entries {
        if !events.contains(&entry.event) {
            events.push(entry.event);
        }
    }
    let hooks_switched_off = root_members(&settings_json)?.iter().any(|member| {
        member.key == "disableAllHooks" && &settings_json[member.value_range.clone()] == "true"
    });
    let foreign_hooks = parse_hook_entries(&settings_json)?.len() - find_our_entries(&settings_json)?.len();
    Ok(InstalledSettings {
        text: format!("{byte_order_mark}{settings_json}"),
        events,
        foreign_hook_count: foreign_hooks,
        foreign_status_line,
        has_memory: effective_options.includes_memory(),
        memory_variable,
        hooks_disabled: hooks_switched_off,
    })
}

/// Fails if an entry cannot be inserted. Runs before the first edit, because each edit moves the positions after it: a
/// later error would have a position in an intermediate text.
fn check_entries_can_be_inserted(
    settings_json: &str,
    expected_entries: &[TemplateEntry],
    with_memory_variable: bool,
) -> Result<(), InvalidSettings> {
    for index in 0..expected_entries.len() {
        update_or_append_entry(settings_json, expected_entries, index)?;
    }
    if with_memory_variable {
        variable::set_memory_variable_if_absent(settings_json).map(drop)
    } else {
        Ok(())
    }
}

/// Removes our entries, and the containers that become empty. `original` is the file from before the installation, if
/// known; containers that it had are kept.
pub fn remove_our_entries_and_empty_containers(
    settings_text: &str,
    original: Option<&str>,
) -> Result<UninstalledSettings, InvalidSettings> {
    let (byte_order_mark, mut settings_json) = split_bom_and_default_to_empty_object(settings_text);
    let original_text = OriginalText::new(original);
    let mut removed_entries = Vec::new();
    while let Some(entry) = find_our_entries(&settings_json)?.into_iter().next() {
        settings_json = remove_entry_and_empty_containers(&settings_json, &entry, &original_text)?;
        removed_entries.push(entry.hook);
    }
    let json_without_status_line = status::remove_or_unwrap_status_line(&settings_json)?;
    let status_line_removed = json_without_status_line.is_some();
    settings_json = json_without_status_line.unwrap_or(settings_json);
    // If none of the removed entries is for the memory, the variable was not set by us.
    let had_memory = removed_entries.iter().any(OurHookEntry::is_for_memory);
    // As in `install_or_update_our_entries`: the error must name its line in the file, not in the edited text.
    let error_at_position_in_file = |error| {
        variable::remove_memory_variable_if_ours(
            &split_bom_and_default_to_empty_object(settings_text).1,
            &original_text,
        )
        .err()
        .unwrap_or(error)
    };
    let json_without_variable = if had_memory {
        variable::remove_memory_variable_if_ours(&settings_json, &original_text)
            .map_err(error_at_position_in_file)?
    } else {
        None
    };
    let variable_removed = json_without_variable.is_some();
    settings_json = json_without_variable.unwrap_or(settings_json);
    settings_json = original_text.restore_empty_container_whitespace(settings_json, &[]);
    let is_empty = root_members(&settings_json)?.is_empty();
    let text = if removed_entries.is_empty() && !status_line_removed {
        settings_text.to_owned()
    } else {
        format!("{byte_order_mark}{settings_json}")
    };
    Ok(UninstalledSettings {
        text,
        removed_hooks: removed_entries,
        status_line_removed,
        variable_removed,
        is_empty,
    })
}

/// Returns true if the file is still exactly what an installation made of `original`, with any paths and options.
/// Then `original` may be restored byte for byte.
pub fn is_unchanged_since_install(original: &str, current: &str) -> bool {
    let Ok(hooks) = find_our_hooks(current) else { return false };
    // A text with entries of ours is never the user's original.
    if !has_no_plimsoll_entries(original).unwrap_or(false) {
        return false;
    }
    let status_command = status::status_line_command(current);
    let installed_executable = |program: &str| -> String {
        let command = hooks.iter().find(|hook| hook.program == program).map(|hook| hook.command.clone());
        let command = command
            .or_else(|| status_command.clone().filter(|command| program_name(command, false) == program));
        command.map_or_else(|| program.to_owned(), |command| command_executable_with_spaces_if_ours(&command))
    };
    [HookSupport::Modern.into(), HookSupport::Classic.into(), HookSupport::Modern.with_memory()]
        .into_iter()
        .flat_map(|options: EntryOptions| {
            [
                options,
                EntryOptions { wrap_status_line: true, ..options },
                EntryOptions { for_team: true, ..options },
            ]
        })
        .any(|options| {
            install_or_update_our_entries(original, options, &installed_executable)
                .is_ok_and(|installed| installed.text == current)
        })
}

/// Splits off a byte order mark. Replaces an empty text by an empty object.
fn split_bom_and_default_to_empty_object(settings_text: &str) -> (&'static str, String) {
    let (byte_order_mark, body) = match settings_text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", settings_text),
    };
    (byte_order_mark, if body.trim().is_empty() { "{}\n".to_owned() } else { body.to_owned() })
}
