//! The client's settings file: our hook entries put in and taken out, everything else left byte for byte.
//!
//! Limits: the file must be plain JSON (no comments, no trailing comma). A container (`hooks`, an event's
//! list) that our removal leaves empty is removed, unless the text from before the installation, where it is
//! known, had it too.

mod command;
mod entries;
mod text;

use command::{first_word_or_whole, is_ours, program_of, quoted};
use entries::{entries, find, first_stale, object_or_refuse, put, remove_member, root_members, take_out};
use serde_json::{Map, Value};
use std::ops::Range;
pub use text::Unreadable;

/// The entries for clients that have `PostToolBatch`.
pub const MODERN: &str = include_str!("../../../hooks-config/settings.modern.json");
/// The entries for older clients: no event that 1.0.128 does not know.
pub const CLASSIC: &str = include_str!("../../../hooks-config/settings.classic.json");

/// Every program that a settings file may name on our behalf, now or by an earlier version of ours.
pub const PROGRAMS: &[&str] = &[
    "plimsoll-frame",
    "plimsoll-memory",
    "plimsoll-post-tool",
    "plimsoll-pre-compact",
    "plimsoll-session-end",
    "plimsoll-session-start",
    "plimsoll-statusline",
    "plimsoll-stop-gate",
];

/// The first client that was seen to run `PostToolBatch`, `StopFailure` and `PostCompact`.
pub const FIRST_MODERN: (u32, u32, u32) = (2, 1, 207);

/// Which of the two templates a client understands. Before 2.1 one unknown event name silently switches off
/// every hook of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// From `FIRST_MODERN` on.
    Modern,
    /// Everything older, and everything that cannot say its version.
    Classic,
}

impl Era {
    /// The era of a client by what `claude --version` prints, such as `2.1.329 (Claude Code)`.
    pub fn of_client(version: &str) -> Era {
        match parse_version(version) {
            Some(version) if version >= FIRST_MODERN => Era::Modern,
            _ => Era::Classic,
        }
    }

    /// The template's text, with bare program names.
    pub fn template(self) -> &'static str {
        match self {
            Era::Modern => MODERN,
            Era::Classic => CLASSIC,
        }
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
}

/// A settings text with our entries in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The whole file.
    pub text: String,
    /// The events that have an entry of ours, in the template's order.
    pub events: Vec<String>,
    /// How many hook entries of others stand in the file, untouched.
    pub foreign_hooks: usize,
    /// The command of a status line that is not ours and stays.
    pub foreign_status_line: Option<String>,
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
    /// Nothing is left in the file.
    pub empty: bool,
}

/// The template as a value, each command spelled as this machine finds it, for `--settings`; hooks only.
pub fn hooks_only(era: Era, command_for: &dyn Fn(&str) -> String) -> Value {
    let mut hooks = Map::new();
    for wanted in wanted(era, command_for) {
        let groups = hooks.entry(wanted.event).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(groups) = groups {
            groups.push(wanted.group);
        }
    }
    Value::Object(Map::from_iter([("hooks".to_owned(), Value::Object(hooks))]))
}

/// The programs that a template names, each once.
pub fn programs_of(era: Era) -> Vec<String> {
    let mut programs: Vec<String> = wanted(era, &str::to_owned).into_iter().map(|one| one.program).collect();
    programs.push(status_line_command(era.template()).unwrap_or_default());
    programs.sort();
    programs.dedup();
    programs
}

/// A settings file's bytes as text; where they are not UTF-8, the place.
pub fn decode(bytes: &[u8]) -> Result<&str, Unreadable> {
    std::str::from_utf8(bytes).map_err(|error| {
        let sound = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        Unreadable::at(&sound, sound.len(), "not UTF-8 text".to_owned())
    })
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
/// rest of the file keeps its bytes. A missing file is the empty text.
pub fn install(existing: &str, era: Era, command_for: &dyn Fn(&str) -> String) -> Result<Merged, Unreadable> {
    let (mark, mut body) = start(existing);
    let root = root_members(&body)?;
    if let Some(hooks) = root.iter().find(|member| member.key == "hooks") {
        object_or_refuse(&body, &hooks.value, "hooks")?;
    }
    let wanted = wanted(era, command_for);
    for (index, one) in wanted.iter().enumerate() {
        let rank = wanted[..index].iter().filter(|other| other.is_same_hook(one)).count();
        body = put(&body, one, rank)?;
    }
    while let Some(stale) = first_stale(&body, &wanted)? {
        body = take_out(&body, &stale, None)?;
    }
    let (text, foreign_status_line) = put_status_line(&body, command_for)?;
    body = text;
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
        hooks_switched_off,
    })
}

/// Takes our entries out. `before` is the file as it was before the installation, where that is known.
pub fn uninstall(existing: &str, before: Option<&str>) -> Result<Cleared, Unreadable> {
    let (mark, mut body) = start(existing);
    let before = before.and_then(|before| serde_json::from_str(&start(before).1).ok());
    let mut removed = Vec::new();
    while let Some(found) = find(&body)?.into_iter().next() {
        body = take_out(&body, &found, before.as_ref())?;
        removed.push(found.hook);
    }
    let root = root_members(&body)?;
    let ours = root.iter().position(|member| {
        member.key == "statusLine"
            && status_command(&body, &member.value).is_some_and(|command| is_ours(&command, false))
    });
    if let Some(index) = ours {
        body = remove_member(&body, &text::whole(&body)?, index)?;
    }
    let empty = root_members(&body)?.is_empty();
    let text =
        if removed.is_empty() && ours.is_none() { existing.to_owned() } else { format!("{mark}{body}") };
    Ok(Cleared { text, removed, status_line: ours.is_some(), empty })
}

/// Whether the file is still exactly what an installation made of `before`, whatever the paths and the era
/// were: then `before` may be put back byte for byte.
pub fn is_untouched_since(before: &str, current: &str) -> bool {
    let Ok(hooks) = our_hooks(current) else { return false };
    // A text that had entries of ours was never the user's own.
    if !is_free_of_us(before).unwrap_or(false) {
        return false;
    }
    let status = status_line_command(current);
    let spelled = |program: &str| -> String {
        let found = hooks.iter().find(|hook| hook.program == program).map(|hook| hook.command.clone());
        let found = found.or_else(|| status.clone().filter(|command| program_of(command, false) == program));
        found.map_or_else(|| program.to_owned(), |command| first_word_or_whole(&command))
    };
    [Era::Modern, Era::Classic]
        .into_iter()
        .any(|era| install(before, era, &spelled).is_ok_and(|merged| merged.text == current))
}

// One entry of the template, its command already spelled.
struct Wanted {
    event: String,
    program: String,
    group: Value,
}

impl Wanted {
    fn is_same_hook(&self, other: &Wanted) -> bool {
        self.event == other.event && self.program == other.program
    }

    fn entry(&self) -> Value {
        self.group.pointer("/hooks/0").cloned().unwrap_or_default()
    }
}

fn wanted(era: Era, command_for: &dyn Fn(&str) -> String) -> Vec<Wanted> {
    let template: Value = serde_json::from_str(era.template()).unwrap_or_default();
    let mut all = Vec::new();
    let events = template.get("hooks").and_then(Value::as_object).cloned().unwrap_or_default();
    for (event, groups) in events {
        for mut group in groups.as_array().cloned().unwrap_or_default() {
            let Some(entry) = group.pointer_mut("/hooks/0").and_then(Value::as_object_mut) else { continue };
            let program = entry.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
            spell(entry, era, command_for(&program));
            all.push(Wanted { event: event.clone(), program, group });
        }
    }
    all
}

/// Some old clients take the exec form and then hand the command to a shell nevertheless: where the path
/// needs quotes, they get the shell form, which every client reads alike.
fn spell(entry: &mut Map<String, Value>, era: Era, command: String) {
    let no_arguments = entry.get("args").and_then(Value::as_array).is_none_or(Vec::is_empty);
    if era == Era::Classic && no_arguments && quoted(&command) != command {
        entry.insert("command".to_owned(), quoted(&command).into());
        entry.shift_remove("args");
    } else {
        entry.insert("command".to_owned(), command.into());
    }
}

/// The text without a byte order mark, and the mark; an empty text counts as an empty object.
fn start(existing: &str) -> (&'static str, String) {
    let (mark, body) = match existing.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", existing),
    };
    (mark, if body.trim().is_empty() { "{}\n".to_owned() } else { body.to_owned() })
}

/// The text with our status line, unless it has another one, whose command is then named.
fn put_status_line(
    body: &str,
    command_for: &dyn Fn(&str) -> String,
) -> Result<(String, Option<String>), Unreadable> {
    let template: Value = serde_json::from_str(MODERN).unwrap_or_default();
    let mut line = template.get("statusLine").cloned().unwrap_or_default();
    let program = line.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(line) = line.as_object_mut() {
        // The client always hands a status line's command to a shell.
        line.insert("command".to_owned(), quoted(&command_for(&program)).into());
    }
    let root = root_members(body)?;
    let Some(member) = root.into_iter().find(|member| member.key == "statusLine") else {
        return Ok((text::append(body, &text::whole(body)?, Some("statusLine"), &line), None));
    };
    let command = status_command(body, &member.value);
    if !command.as_deref().is_some_and(|command| is_ours(command, false)) {
        return Ok((body.to_owned(), Some(command.unwrap_or_else(|| body[member.value].to_owned()))));
    }
    let same = text::value(body, &member.value) == line;
    Ok((if same { body.to_owned() } else { text::replace(body, &member.value, &line) }, None))
}

fn status_command(body: &str, at: &Range<usize>) -> Option<String> {
    let fields = text::members(body, at).ok()??;
    text::string(body, &fields.iter().find(|field| field.key == "command")?.value)
}

fn status_line_command(existing: &str) -> Option<String> {
    let (_, body) = start(existing);
    let root = root_members(&body).ok()?;
    status_command(&body, &root.iter().find(|member| member.key == "statusLine")?.value)
}
