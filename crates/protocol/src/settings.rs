//! The client's settings file: our hook entries put in and taken out, everything else left byte for byte.
//!
//! Limits: the file must be plain JSON, because the client does not load one with comments or trailing commas. A
//! container (`hooks`, an event's list) that our removal leaves empty is removed, unless the text from before the
//! installation, where it is known, had it too.

pub mod agent;
mod before;
mod command;
mod entries;
mod permissions;
pub mod plugins;
pub mod servers;
mod status;
mod survey;
mod text;
mod variable;
mod wanted;

use before::TextBefore;
pub use command::{GUARDED, quoted, starts_ours};
use command::{first_word_or_whole, program_of};
pub use entries::{Difference, DifferenceKind};
use entries::{entries, find, first_stale, object_or_refuse, put, root_members, take_out};
pub use permissions::{UnprivilegedSettings, without_permissions};
use serde_json::Value;
use std::sync::LazyLock;
pub use survey::{StatusLine, Survey, differences, survey};
pub use text::Unreadable;
pub use variable::Variable;
use wanted::{Wanted, wanted};
pub use wanted::{hooks_only, memory_variable, programs_of};

/// The entries for clients that have `PostToolBatch`.
pub const MODERN: &str = include_str!("../../../hooks-config/settings.modern.json");
/// The entries for older clients: no event that 1.0.128 does not know.
pub const CLASSIC: &str = include_str!("../../../hooks-config/settings.classic.json");
/// What the working memory needs beside the entries of a modern client.
pub const MEMORY: &str = include_str!("../../../hooks-config/settings.memory.json");

/// The word by which an entry of a program also does the memory's half of its event.
pub const WITH_MEMORY: &str = "memory";

/// Every program that a settings file may name on our behalf. The scripts that make the links read the same file.
pub static PROGRAMS: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("../../hooks/programs.txt").lines().collect());

/// The first client that knows every event of the classic template (observed on 1.0.84 and 1.0.85); an older one drops
/// the file's hooks silently.
pub const FIRST_CLASSIC: (u32, u32, u32) = (1, 0, 85);
/// The first client that was seen to run `PostToolBatch`, `StopFailure` and `PostCompact`.
pub const FIRST_MODERN: (u32, u32, u32) = (2, 1, 207);
/// The first client that runs the hooks of our plugin, because it knows each of their events. 2.1.117 does not know `PostToolBatch`.
pub const FIRST_PLUGIN: (u32, u32, u32) = (2, 1, 118);

/// Which of the two templates a client understands. Before 2.1 one unknown event name silently switches off
/// every hook of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookSupport {
    /// From `FIRST_MODERN` on.
    Modern,
    /// Everything older, and everything that cannot say its version.
    Classic,
}

impl HookSupport {
    /// The era of a client by what `claude --version` prints, such as `2.1.329 (Claude Code)`.
    pub fn of_client(version: &str) -> HookSupport {
        match parse_version(version) {
            Some(version) if version >= FIRST_MODERN => HookSupport::Modern,
            // Also where the version is unknown: these entries run on every client from 1.0.85 on.
            _ => HookSupport::Classic,
        }
    }

    /// The template's text, with bare program names.
    pub fn template(self) -> &'static str {
        match self {
            HookSupport::Modern => MODERN,
            HookSupport::Classic => CLASSIC,
        }
    }

    /// The entries of this era with those of the working memory.
    pub fn with_memory(self) -> Parts {
        Parts { memory: true, ..self.into() }
    }
}

/// Which of our entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Those of the load line, for such a client.
    pub era: HookSupport,
    /// Those of the working memory, too. No classic client gets them: it does not know their events.
    pub memory: bool,
    /// Another status line is measured through instead of being left alone.
    pub wrap: bool,
    /// For everybody who works in a project: without our programs nothing happens. There is no status line: a colleague
    /// without them would lose their own.
    pub guarded: bool,
}

impl Parts {
    fn has_memory(self) -> bool {
        self.memory && self.era == HookSupport::Modern
    }
}

impl From<HookSupport> for Parts {
    fn from(era: HookSupport) -> Parts {
        Parts { era, memory: false, wrap: false, guarded: false }
    }
}

/// The three numbers of `2.1.329 (Claude Code)`.
pub fn parse_version(printed: &str) -> Option<(u32, u32, u32)> {
    let word = printed.split_whitespace().next()?;
    let mut numbers = word.trim_start_matches('v').splitn(3, '.');
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?.parse().ok()?;
    let patch = numbers.next()?;
    let digits = patch.find(|c: char| !c.is_ascii_digit()).unwrap_or(patch.len());
    Some((major, minor, patch[..digits].parse().ok()?))
}

/// One of our hook entries in a settings text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OurHook {
    /// Under which event.
    pub event: String,
    /// Which of our programs.
    pub program: String,
    /// As the file spells it.
    pub command: String,
    /// The fixed word behind it, if any.
    pub arguments: Vec<Value>,
    /// For everybody, and silent where our programs are not installed.
    pub guarded: bool,
}

impl OurHook {
    /// Whether the working memory needs it, and not the load line.
    pub fn is_memorys(&self) -> bool {
        wanted::is_memorys(&self.program)
    }

    /// Returns what is started: a path, or a name on the PATH.
    pub fn starts(&self) -> String {
        first_word_or_whole(&self.command)
    }

    /// Returns the arguments that tell one entry of a program from another. Whether it also does the memory's half does not.
    pub fn part(&self) -> Vec<&Value> {
        self.arguments.iter().filter(|argument| *argument != WITH_MEMORY).collect()
    }
}

/// A settings text with our entries in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The whole file.
    pub text: String,
    /// The events that have an entry of ours, in the template's order.
    pub events: Vec<String>,
    /// How many hook entries of others are in the file, untouched.
    pub foreign_hooks: usize,
    /// The command of a status line that is not ours and stays.
    pub foreign_status_line: Option<String>,
    /// The file has the working memory's entries.
    pub memory: bool,
    /// What became of the memory's variable, where it was asked for.
    pub variable: Option<Variable>,
    /// The file says `disableAllHooks`: nothing of ours will run.
    pub hooks_switched_off: bool,
}

/// A settings text without our entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleared {
    /// The whole file.
    pub text: String,
    /// What was taken out.
    pub removed: Vec<OurHook>,
    /// Our status line was taken out.
    pub status_line: bool,
    /// The memory's variable was taken out.
    pub variable: bool,
    /// Nothing is left in the file.
    pub empty: bool,
}

/// A settings file's bytes as text; where they are not UTF-8, the place.
pub fn decode(bytes: &[u8]) -> Result<&str, Unreadable> {
    std::str::from_utf8(bytes).map_err(|error| {
        let sound = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        Unreadable::at(&sound, sound.len(), "not UTF-8 text".to_owned())
    })
}

/// The folders that a settings file adds to its sessions: their commands may write there. One that does not parse adds none.
pub fn added_folders(text: &str) -> Vec<String> {
    let settings: Value = serde_json::from_str(text).unwrap_or_default();
    let added = settings["permissions"]["additionalDirectories"].as_array().cloned().unwrap_or_default();
    added.into_iter().filter_map(|folder| folder.as_str().map(str::to_owned)).collect()
}

/// Our hook entries in a settings text.
pub fn our_hooks(existing: &str) -> Result<Vec<OurHook>, Unreadable> {
    let (_, body) = start(existing);
    Ok(find(&body)?.into_iter().map(|found| found.hook).collect())
}

/// Whether a settings text holds any hook entry of ours.
pub fn has_our_hooks(existing: &str) -> Result<bool, Unreadable> {
    Ok(!our_hooks(existing)?.is_empty())
}

/// Whether a settings text holds nothing of ours at all, hook or status line: as its user wrote it.
pub fn is_free_of_us(existing: &str) -> Result<bool, Unreadable> {
    let cleared = uninstall(existing, None)?;
    Ok(cleared.removed.is_empty() && !cleared.status_line)
}

/// Puts our entries in: those that are there are brought up to date in place, those of another era go, the
/// rest of the file keeps its bytes. A missing file is the empty text. A memory that is installed stays so without
/// being asked for, unless the client does not accept it.
pub fn install(
    existing: &str,
    parts: impl Into<Parts>,
    command_for: &dyn Fn(&str) -> String,
) -> Result<Merged, Unreadable> {
    let asked: Parts = parts.into();
    let (mark, mut body) = start(existing);
    let root = root_members(&body)?;
    if let Some(hooks) = root.iter().find(|member| member.key == "hooks") {
        object_or_refuse(&body, &hooks.value, "hooks")?;
    }
    let installed = find(&body)?.iter().any(|found| found.hook.is_memorys());
    let parts = Parts { memory: asked.memory || installed, ..asked };
    let wanted = wanted(parts, command_for);
    check_places(&body, &wanted, asked.has_memory())?;
    // Looked up anew for each: every edit moves the places behind it.
    for index in 0..wanted.len() {
        body = put(&body, &wanted, index)?;
    }
    // One that a client before 2.1 does not know would switch off all hooks of the file.
    while let Some(stale) = first_stale(&body, &wanted)? {
        body = take_out(&body, &stale, &TextBefore::new(None))?;
    }
    let (text, foreign_status_line) = if parts.guarded {
        (status::take_out(&body)?.unwrap_or(body), None)
    } else {
        status::put(&body, command_for, asked.wrap)?
    };
    body = text;
    let mut variable = None;
    // A user who removed the variable is not asked again.
    if asked.has_memory() {
        let (text, became) = variable::put(&body)?;
        (body, variable) = (text, Some(became));
    }
    let mut events: Vec<String> = Vec::new();
    for one in wanted {
        if !events.contains(&one.event) {
            events.push(one.event);
        }
    }
    let hooks_switched_off = root_members(&body)?
        .iter()
        .any(|member| member.key == "disableAllHooks" && &body[member.value.clone()] == "true");
    let foreign_hooks = entries(&body)?.len() - find(&body)?.len();
    Ok(Merged {
        text: format!("{mark}{body}"),
        events,
        foreign_hooks,
        foreign_status_line,
        memory: parts.has_memory(),
        variable,
        hooks_switched_off,
    })
}

/// Refuses a text in which something of ours has no place. Checked before the first edit: each one moves what is behind it, and a
/// fault that an edit found would be named with a line of a text that nobody has.
fn check_places(body: &str, wanted: &[Wanted], with_variable: bool) -> Result<(), Unreadable> {
    for index in 0..wanted.len() {
        put(body, wanted, index)?;
    }
    if with_variable { variable::put(body).map(drop) } else { Ok(()) }
}

/// Takes our entries out. `before` is the file as it was before the installation, where that is known.
pub fn uninstall(existing: &str, before: Option<&str>) -> Result<Cleared, Unreadable> {
    let (mark, mut body) = start(existing);
    let before = TextBefore::new(before);
    let mut removed = Vec::new();
    while let Some(found) = find(&body)?.into_iter().next() {
        body = take_out(&body, &found, &before)?;
        removed.push(found.hook);
    }
    let without_line = status::take_out(&body)?;
    let status_line = without_line.is_some();
    body = without_line.unwrap_or(body);
    // Without an entry of the memory's the variable is none of our business.
    let memory = removed.iter().any(OurHook::is_memorys);
    // As in `install`: a fault is named with its line in the file, not in what the edits have made of it.
    let in_file = |fault| variable::take_out(&start(existing).1, &before).err().unwrap_or(fault);
    let without = if memory { variable::take_out(&body, &before).map_err(in_file)? } else { None };
    let variable = without.is_some();
    body = without.unwrap_or(body);
    body = before.restore_empty_container(body, &[]);
    let empty = root_members(&body)?.is_empty();
    let text = if removed.is_empty() && !status_line { existing.to_owned() } else { format!("{mark}{body}") };
    Ok(Cleared { text, removed, status_line, variable, empty })
}

/// Whether the file is still exactly what an installation made of `before`, whatever the paths, the era and the
/// parts were: then `before` may be put back byte for byte.
pub fn is_untouched_since(before: &str, current: &str) -> bool {
    let Ok(hooks) = our_hooks(current) else { return false };
    // A text that had entries of ours was never the user's own.
    if !is_free_of_us(before).unwrap_or(false) {
        return false;
    }
    let status = status::line_command(current);
    let spelled = |program: &str| -> String {
        let found = hooks.iter().find(|hook| hook.program == program).map(|hook| hook.command.clone());
        let found = found.or_else(|| status.clone().filter(|command| program_of(command, false) == program));
        found.map_or_else(|| program.to_owned(), |command| first_word_or_whole(&command))
    };
    [HookSupport::Modern.into(), HookSupport::Classic.into(), HookSupport::Modern.with_memory()]
        .into_iter()
        .flat_map(|parts: Parts| [parts, Parts { wrap: true, ..parts }, Parts { guarded: true, ..parts }])
        .any(|parts| install(before, parts, &spelled).is_ok_and(|merged| merged.text == current))
}

/// The text without a byte order mark, and the mark; an empty text counts as an empty object.
fn start(existing: &str) -> (&'static str, String) {
    let (mark, body) = match existing.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", existing),
    };
    (mark, if body.trim().is_empty() { "{}\n".to_owned() } else { body.to_owned() })
}
