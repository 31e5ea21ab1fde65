//! Hook entries where they are in a settings text: found, put in, taken out.

use super::OurHook;
use super::before::TextBefore;
use super::command::{is_ours, of_guarded, program_of};
use super::text::{self, Unreadable};
use super::wanted::Wanted;
use serde_json::{Map, Value};
use std::ops::Range;

/// A hook entry of anybody in a settings text.
pub(super) struct HookEntry {
    pub(super) event: String,
    pub(super) command: String,
    pub(super) exec_form: bool,
    /// For everybody, and silent where our programs are not installed.
    pub(super) guarded: bool,
    pub(super) arguments: Vec<Value>,
    matcher: String,
    /// The group has no key but `matcher` and `hooks`, and holds this one entry.
    alone: bool,
    group: Range<usize>,
    group_index: usize,
    pub(super) place: Range<usize>,
    index: usize,
}

/// A hook entry of ours.
pub(super) struct Found {
    pub(super) hook: OurHook,
    pub(super) entry: HookEntry,
}

pub(super) fn root_members(body: &str) -> Result<Vec<text::Member>, Unreadable> {
    let root = text::whole(body)?;
    text::members(body, &root)?
        .ok_or_else(|| Unreadable::at(body, root.start, "the file is not a JSON object".to_owned()))
}

pub(super) fn object_or_refuse(
    body: &str,
    at: &Range<usize>,
    path: &str,
) -> Result<Vec<text::Member>, Unreadable> {
    text::members(body, at)?
        .ok_or_else(|| Unreadable::at(body, at.start, format!("`{path}` is not an object")))
}

fn hooks_range(body: &str) -> Result<Option<Range<usize>>, Unreadable> {
    Ok(root_members(body)?.into_iter().find(|member| member.key == "hooks").map(|member| member.value))
}

/// Every hook entry of the file; what has not the shape of one is passed over.
pub(super) fn entries(body: &str) -> Result<Vec<HookEntry>, Unreadable> {
    let Some(hooks) = hooks_range(body)? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for event in text::members(body, &hooks)?.unwrap_or_default() {
        let groups = text::elements(body, &event.value).unwrap_or_default();
        for (group_index, group) in groups.into_iter().enumerate() {
            let keys = text::members(body, &group)?.unwrap_or_default();
            let plain = keys.iter().all(|member| member.key == "matcher" || member.key == "hooks");
            let matcher = keys.iter().find(|member| member.key == "matcher");
            let matcher = matcher.and_then(|member| text::string(body, &member.value)).unwrap_or_default();
            let Some(list) = keys.into_iter().find(|member| member.key == "hooks") else { continue };
            let places = text::elements(body, &list.value).unwrap_or_default();
            let alone = plain && places.len() == 1;
            for (index, place) in places.into_iter().enumerate() {
                let fields = text::members(body, &place)?.unwrap_or_default();
                let field = |name: &str| fields.iter().find(|field| field.key == name);
                let command = field("command").and_then(|field| text::string(body, &field.value));
                let command = command.unwrap_or_default();
                let arguments = field("args").map(|field| text::value(body, &field.value));
                let exec_form = arguments.is_some();
                let guarded = of_guarded(&command).filter(|_| !exec_form).map(|(_, words)| words.into());
                all.push(HookEntry {
                    event: event.key.clone(),
                    exec_form,
                    guarded: guarded.is_some(),
                    arguments: guarded.or(arguments).map(list_of).unwrap_or_default(),
                    command,
                    matcher: matcher.clone(),
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

/// The elements of a list; none of any other value.
fn list_of(value: Value) -> Vec<Value> {
    match value {
        Value::Array(elements) => elements,
        _ => Vec::new(),
    }
}

pub(super) fn find(body: &str) -> Result<Vec<Found>, Unreadable> {
    let ours = entries(body)?.into_iter().filter(|entry| is_ours(&entry.command, entry.exec_form));
    Ok(ours
        .map(|entry| Found {
            hook: OurHook {
                event: entry.event.clone(),
                program: program_of(&entry.command, entry.exec_form),
                command: entry.command.clone(),
                arguments: entry.arguments.clone(),
                guarded: entry.guarded,
            },
            entry,
        })
        .collect())
}

/// For each wanted entry the one of the file that stands for it. Several of one program under one event are told
/// apart by their arguments and matcher; what then is left over, from an earlier version or a hand, is taken in
/// order.
fn pairs(found: &[Found], wanted: &[Wanted]) -> Vec<Option<usize>> {
    let mut pairs = vec![None; wanted.len()];
    let mut taken = vec![false; found.len()];
    let alike: [fn(&HookEntry, &Wanted) -> bool; 3] = [
        |entry, one| entry.arguments == one.arguments && entry.matcher == one.matcher(),
        |entry, one| entry.arguments == one.arguments,
        |_, _| true,
    ];
    for alike in alike {
        for (pair, one) in pairs.iter_mut().zip(wanted).filter(|(pair, _)| pair.is_none()) {
            let same = |Found { hook, entry }: &Found| {
                hook.event == one.event && hook.program == one.program && alike(entry, one)
            };
            *pair = (0..found.len()).find(|index| !taken[*index] && same(&found[*index]));
            pair.iter().for_each(|index| taken[*index] = true);
        }
    }
    pairs
}

/// The entry that no template asks for, if there is one.
pub(super) fn first_stale(body: &str, wanted: &[Wanted]) -> Result<Option<Found>, Unreadable> {
    let mut found = find(body)?;
    let pairs = pairs(&found, wanted);
    let stale = (0..found.len()).find(|index| !pairs.contains(&Some(*index)));
    Ok(stale.map(|index| found.swap_remove(index)))
}

/// How a file's entries of ours differ from what we write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// How it differs.
    pub kind: DifferenceKind,
    /// Under which event.
    pub event: String,
    /// Which program.
    pub program: String,
}

/// How an entry of ours differs from what we write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    /// It is not there.
    Missing,
    /// It is not as we write it.
    Edited,
    /// It is there, and we would not write it for this client.
    Unasked,
}

/// Where the entries of a text are not what the templates ask for.
pub(super) fn differences(body: &str, found: &[Found], wanted: &[Wanted]) -> Vec<Difference> {
    let pairs = pairs(found, wanted);
    let of_wanted = wanted.iter().zip(&pairs).filter_map(|(one, pair)| {
        let differs = |kind| Difference { kind, event: one.event.clone(), program: one.program.clone() };
        let Some(Found { entry, .. }) = pair.and_then(|index| found.get(index)) else {
            return Some(differs(DifferenceKind::Missing));
        };
        let (place, value) =
            if entry.alone { (&entry.group, one.group.clone()) } else { (&entry.place, one.entry()) };
        (text::value(body, place) != value).then(|| differs(DifferenceKind::Edited))
    });
    let unasked = (0..found.len()).filter(|index| !pairs.contains(&Some(*index)));
    let stale = unasked.map(|index| {
        let OurHook { event, program, .. } = found[index].hook.clone();
        Difference { kind: DifferenceKind::Unasked, event, program }
    });
    of_wanted.chain(stale).collect()
}

/// Brings the entry that stands for one of the wanted up to date, or adds it as the last group of its event.
pub(super) fn put(body: &str, wanted: &[Wanted], index: usize) -> Result<String, Unreadable> {
    let Some(one) = wanted.get(index) else { return Ok(body.to_owned()) };
    let mut found = find(body)?;
    if let Some(place) = pairs(&found, wanted)[index] {
        let Found { entry, .. } = found.swap_remove(place);
        // A group shared with others keeps its matcher; one of ours alone follows the template.
        let (place, value) =
            if entry.alone { (entry.group, one.group.clone()) } else { (entry.place, one.entry()) };
        // The same value keeps its bytes, however the user has spelled it.
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
pub(super) fn take_out(body: &str, found: &Found, before: &TextBefore) -> Result<String, Unreadable> {
    let entry = &found.entry;
    if !entry.alone {
        let keys = text::members(body, &entry.group)?.unwrap_or_default();
        let Some(list) = keys.into_iter().find(|member| member.key == "hooks") else {
            return Ok(body.to_owned());
        };
        let places = text::elements(body, &list.value).unwrap_or_default();
        return Ok(text::remove(body, &list.value, &places, entry.index));
    }
    let Some(hooks) = hooks_range(body)? else { return Ok(body.to_owned()) };
    let events = text::members(body, &hooks)?.unwrap_or_default();
    let Some(index) = events.iter().position(|member| member.key == entry.event) else {
        return Ok(body.to_owned());
    };
    let groups = text::elements(body, &events[index].value).unwrap_or_default();
    if groups.len() > 1 || before.has(&["hooks", &entry.event]) {
        let body = text::remove(body, &events[index].value, &groups, entry.group_index);
        return Ok(before.restore_empty_container(body, &["hooks", &entry.event]));
    }
    if events.len() > 1 || before.has(&["hooks"]) {
        let body = remove_member(body, &hooks, index)?;
        return Ok(before.restore_empty_container(body, &["hooks"]));
    }
    let root = root_members(body)?;
    let hooks_index = root.iter().position(|member| member.key == "hooks").unwrap_or(root.len());
    remove_member(body, &text::whole(body)?, hooks_index)
}

pub(super) fn remove_member(body: &str, object: &Range<usize>, index: usize) -> Result<String, Unreadable> {
    let members = text::members(body, object)?.unwrap_or_default();
    let values: Vec<Range<usize>> = members.into_iter().map(|member| member.value).collect();
    Ok(text::remove(body, object, &values, index))
}
