//! The client's settings file: our hook entries put in and taken out, everything else left byte for byte.
//!
//! Limits: the file must be plain JSON (no comments, no trailing comma). A container (`hooks`, an event's
//! list) that our removal leaves empty is removed, unless the text from before the installation, where it is
//! known, had it too.

mod command;
mod text;

use command::{first_word_or_whole, is_ours, program_of, quoted};
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

/// Puts our entries in: those that are there are brought up to date in place, those of another era go, the
/// rest of the file keeps its bytes. A missing file is the empty text.
pub fn install(
    existing: &str,
    era: Era,
    command_for: &dyn Fn(&str) -> String,
) -> Result<Merged, Unreadable> {
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
    Ok(Merged { text: format!("{mark}{body}"), events, foreign_hooks, foreign_status_line, hooks_switched_off })
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
        member.key == "statusLine" && status_command(&body, &member.value).is_some_and(|command| is_ours(&command, false))
    });
    if let Some(index) = ours {
        body = remove_member(&body, &text::whole(&body)?, index)?;
    }
    let empty = root_members(&body)?.is_empty();
    let text = if removed.is_empty() && ours.is_none() { existing.to_owned() } else { format!("{mark}{body}") };
    Ok(Cleared { text, removed, status_line: ours.is_some(), empty })
}

/// Whether the file is still exactly what an installation made of `before`, whatever the paths and the era
/// were: then `before` may be put back byte for byte.
pub fn is_untouched_since(before: &str, current: &str) -> bool {
    let Ok(hooks) = our_hooks(current) else { return false };
    // A text that had entries of ours was never the user's own.
    if has_our_hooks(before).unwrap_or(true) {
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

// A hook entry of anybody in a settings text.
struct Entry {
    event: String,
    command: String,
    exec_form: bool,
    // The group has no key but `matcher` and `hooks`, and holds this one entry.
    alone: bool,
    group: Range<usize>,
    group_index: usize,
    place: Range<usize>,
    index: usize,
}

struct Found {
    hook: OurHook,
    entry: Entry,
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

fn root_members(body: &str) -> Result<Vec<text::Member>, Unreadable> {
    let root = text::whole(body)?;
    text::members(body, &root)?
        .ok_or_else(|| Unreadable::at(body, root.start, "the file is not a JSON object".to_owned()))
}

fn object_or_refuse(body: &str, at: &Range<usize>, path: &str) -> Result<Vec<text::Member>, Unreadable> {
    text::members(body, at)?.ok_or_else(|| Unreadable::at(body, at.start, format!("`{path}` is not an object")))
}

fn hooks_range(body: &str) -> Result<Option<Range<usize>>, Unreadable> {
    Ok(root_members(body)?.into_iter().find(|member| member.key == "hooks").map(|member| member.value))
}

/// Every hook entry of the file; what has not the shape of one is passed over.
fn entries(body: &str) -> Result<Vec<Entry>, Unreadable> {
    let Some(hooks) = hooks_range(body)? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for event in text::members(body, &hooks)?.unwrap_or_default() {
        let groups = text::elements(body, &event.value).unwrap_or_default();
        for (group_index, group) in groups.into_iter().enumerate() {
            let keys = text::members(body, &group)?.unwrap_or_default();
            let plain = keys.iter().all(|member| member.key == "matcher" || member.key == "hooks");
            let Some(list) = keys.into_iter().find(|member| member.key == "hooks") else { continue };
            let places = text::elements(body, &list.value).unwrap_or_default();
            let alone = plain && places.len() == 1;
            for (index, place) in places.into_iter().enumerate() {
                let fields = text::members(body, &place)?.unwrap_or_default();
                let field = |name: &str| fields.iter().find(|field| field.key == name);
                let command = field("command").and_then(|field| text::string(body, &field.value));
                all.push(Entry {
                    event: event.key.clone(),
                    command: command.unwrap_or_default(),
                    exec_form: field("args").is_some(),
                    alone,
                    group: group.clone(),
                    group_index,
                    place,
                    index,
                });
            }
        }
    }
    Ok(all)
}

fn find(body: &str) -> Result<Vec<Found>, Unreadable> {
    let ours = entries(body)?.into_iter().filter(|entry| is_ours(&entry.command, entry.exec_form));
    Ok(ours
        .map(|entry| Found {
            hook: OurHook {
                event: entry.event.clone(),
                program: program_of(&entry.command, entry.exec_form),
                command: entry.command.clone(),
            },
            entry,
        })
        .collect())
}

/// The entry that the template does not ask for, if there is one.
fn first_stale(body: &str, wanted: &[Wanted]) -> Result<Option<Found>, Unreadable> {
    let mut seen: Vec<OurHook> = Vec::new();
    for found in find(body)? {
        let same = |event: &str, program: &str| event == found.hook.event && program == found.hook.program;
        let before = seen.iter().filter(|hook| same(&hook.event, &hook.program)).count();
        if before >= wanted.iter().filter(|one| same(&one.event, &one.program)).count() {
            return Ok(Some(found));
        }
        seen.push(found.hook);
    }
    Ok(None)
}

/// Brings the entry of that rank (of several alike) up to date, or adds it as the last group of its event.
fn put(body: &str, one: &Wanted, rank: usize) -> Result<String, Unreadable> {
    let mut alike =
        find(body)?.into_iter().filter(|found| found.hook.event == one.event && found.hook.program == one.program);
    if let Some(Found { entry, .. }) = alike.nth(rank) {
        // A group shared with others keeps its matcher; one of ours alone follows the template.
        let (place, value) = if entry.alone { (entry.group, one.group.clone()) } else { (entry.place, one.entry()) };
        let same = text::value(body, &place) == value;
        return Ok(if same { body.to_owned() } else { text::replace(body, &place, &value) });
    }
    let groups = || Value::Array(vec![one.group.clone()]);
    let Some(hooks) = hooks_range(body)? else {
        let hooks = Value::Object(Map::from_iter([(one.event.clone(), groups())]));
        return Ok(text::append(body, &text::whole(body)?, Some("hooks"), &hooks));
    };
    let events = object_or_refuse(body, &hooks, "hooks")?;
    let Some(event) = events.into_iter().find(|member| member.key == one.event) else {
        return Ok(text::append(body, &hooks, Some(&one.event), &groups()));
    };
    if text::elements(body, &event.value).is_none() {
        let why = format!("`hooks.{}` is not a list", one.event);
        return Err(Unreadable::at(body, event.value.start, why));
    }
    Ok(text::append(body, &event.value, None, &one.group))
}

/// Removes an entry, then each container that this leaves empty.
fn take_out(body: &str, found: &Found, before: Option<&Value>) -> Result<String, Unreadable> {
    let entry = &found.entry;
    if !entry.alone {
        let keys = text::members(body, &entry.group)?.unwrap_or_default();
        let Some(list) = keys.into_iter().find(|member| member.key == "hooks") else { return Ok(body.to_owned()) };
        let places = text::elements(body, &list.value).unwrap_or_default();
        return Ok(text::remove(body, &list.value, &places, entry.index));
    }
    let Some(hooks) = hooks_range(body)? else { return Ok(body.to_owned()) };
    let events = text::members(body, &hooks)?.unwrap_or_default();
    let Some(index) = events.iter().position(|member| member.key == entry.event) else { return Ok(body.to_owned()) };
    let groups = text::elements(body, &events[index].value).unwrap_or_default();
    let had = |keys: &[&str]| {
        keys.iter().try_fold(before?, |value, key| value.get(key)).map(|_| ())
    };
    if groups.len() > 1 || had(&["hooks", &entry.event]).is_some() {
        return Ok(text::remove(body, &events[index].value, &groups, entry.group_index));
    }
    if events.len() > 1 || had(&["hooks"]).is_some() {
        return remove_member(body, &hooks, index);
    }
    let root = root_members(body)?;
    let hooks_index = root.iter().position(|member| member.key == "hooks").unwrap_or(root.len());
    remove_member(body, &text::whole(body)?, hooks_index)
}

fn remove_member(body: &str, object: &Range<usize>, index: usize) -> Result<String, Unreadable> {
    let members = text::members(body, object)?.unwrap_or_default();
    let values: Vec<Range<usize>> = members.into_iter().map(|member| member.value).collect();
    Ok(text::remove(body, object, &values, index))
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
