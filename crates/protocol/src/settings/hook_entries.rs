//! Finds, inserts and removes hook entries in a settings text.

use super::OurHookEntry;
use super::command::{parse_exec_if_installed_command, program_name, runs_our_program};
use super::json_text::{self, InvalidSettings};
use super::original_text::OriginalText;
use super::template::TemplateEntry;
use serde_json::{Map, Value};
use std::ops::Range;

/// Any hook entry in a settings text, with its position.
pub(super) struct HookEntry {
    pub(super) event: String,
    pub(super) command: String,
    pub(super) is_exec_form: bool,
    /// True for an entry in a shared project file, which does nothing where our programs are not installed.
    pub(super) is_team_entry: bool,
    pub(super) arguments: Vec<Value>,
    matcher: String,
    /// True if the group has no keys but `matcher` and `hooks`, and contains only this entry.
    is_only_entry: bool,
    group_range: Range<usize>,
    group_index: usize,
    pub(super) range: Range<usize>,
    index: usize,
}

/// A hook entry of ours, with its position.
pub(super) struct OurEntry {
    pub(super) hook: OurHookEntry,
    pub(super) entry: HookEntry,
}

pub(super) fn root_members(settings_json: &str) -> Result<Vec<json_text::Member>, InvalidSettings> {
    let root = json_text::root_range(settings_json)?;
    json_text::object_members_rejecting_duplicates(settings_json, &root)?.ok_or_else(|| {
        InvalidSettings::at_byte(settings_json, root.start, "the file is not a JSON object".to_owned())
    })
}

pub(super) fn object_members_or_error(
    settings_json: &str,
    range: &Range<usize>,
    key_path: &str,
) -> Result<Vec<json_text::Member>, InvalidSettings> {
    json_text::object_members_rejecting_duplicates(settings_json, range)?.ok_or_else(|| {
        InvalidSettings::at_byte(settings_json, range.start, format!("`{key_path}` is not an object"))
    })
}

fn hooks_range(settings_json: &str) -> Result<Option<Range<usize>>, InvalidSettings> {
    Ok(root_members(settings_json)?
        .into_iter()
        .find(|member| member.key == "hooks")
        .map(|member| member.value_range))
}

/// Returns every hook entry of the file. Values without the shape of an entry are skipped.
pub(super) fn parse_hook_entries(settings_json: &str) -> Result<Vec<HookEntry>, InvalidSettings> {
    let Some(hooks) = hooks_range(settings_json)? else { return Ok(Vec::new()) };
    let mut parsed_entries = Vec::new();
    for event in json_text::object_members_rejecting_duplicates(settings_json, &hooks)?.unwrap_or_default() {
        let groups = json_text::list_elements(settings_json, &event.value_range).unwrap_or_default();
        for (group_index, group) in groups.into_iter().enumerate() {
            let group_members =
                json_text::object_members_rejecting_duplicates(settings_json, &group)?.unwrap_or_default();
            let has_only_known_keys =
                group_members.iter().all(|member| member.key == "matcher" || member.key == "hooks");
            let matcher = group_members.iter().find(|member| member.key == "matcher");
            let matcher = matcher
                .and_then(|member| json_text::string_at(settings_json, &member.value_range))
                .unwrap_or_default();
            let Some(hooks_member) = group_members.into_iter().find(|member| member.key == "hooks") else {
                continue;
            };
            let entry_ranges =
                json_text::list_elements(settings_json, &hooks_member.value_range).unwrap_or_default();
            let is_only_entry = has_only_known_keys && entry_ranges.len() == 1;
            for (index, range) in entry_ranges.into_iter().enumerate() {
                let fields = json_text::object_members_rejecting_duplicates(settings_json, &range)?
                    .unwrap_or_default();
                let find_field = |name: &str| fields.iter().find(|field| field.key == name);
                let command = find_field("command")
                    .and_then(|field| json_text::string_at(settings_json, &field.value_range));
                let command = command.unwrap_or_default();
                let arguments = find_field("args")
                    .map(|field| json_text::value_at_or_null(settings_json, &field.value_range));
                let is_exec_form = arguments.is_some();
                let arguments_in_command = parse_exec_if_installed_command(&command)
                    .filter(|_| !is_exec_form)
                    .map(|(_, command_arguments)| command_arguments.into());
                parsed_entries.push(HookEntry {
                    event: event.key.clone(),
                    is_exec_form,
                    is_team_entry: arguments_in_command.is_some(),
                    arguments: arguments_in_command
                        .or(arguments)
                        .map(into_elements_or_empty)
                        .unwrap_or_default(),
                    command,
                    matcher: matcher.clone(),
                    is_only_entry,
                    group_range: group.clone(),
                    group_index,
                    range,
                    index,
                });
            }
        }
    }
    Ok(parsed_entries)
}

/// Returns the elements of a list, or an empty `Vec` for any other value.
fn into_elements_or_empty(value: Value) -> Vec<Value> {
    match value {
        Value::Array(elements) => elements,
        _ => Vec::new(),
    }
}

pub(super) fn find_our_entries(settings_json: &str) -> Result<Vec<OurEntry>, InvalidSettings> {
    let our_entries = parse_hook_entries(settings_json)?
        .into_iter()
        .filter(|entry| runs_our_program(&entry.command, entry.is_exec_form));
    Ok(our_entries
        .map(|entry| OurEntry {
            hook: OurHookEntry {
                event: entry.event.clone(),
                program: program_name(&entry.command, entry.is_exec_form),
                command: entry.command.clone(),
                arguments: entry.arguments.clone(),
                is_team_entry: entry.is_team_entry,
            },
            entry,
        })
        .collect())
}

/// Returns for each expected entry the index of the installed entry that matches it. Several entries of one program
/// for one event are distinguished by arguments and matcher. The remaining ones, from an earlier version or edited by
/// hand, are matched in order.
fn installed_index_per_expected_entry(
    installed_entries: &[OurEntry],
    expected_entries: &[TemplateEntry],
) -> Vec<Option<usize>> {
    let mut installed_indices = vec![None; expected_entries.len()];
    let mut is_matched = vec![false; installed_entries.len()];
    let match_criteria: [fn(&HookEntry, &TemplateEntry) -> bool; 3] = [
        |entry, template_entry| {
            entry.arguments == template_entry.arguments && entry.matcher == template_entry.matcher()
        },
        |entry, template_entry| entry.arguments == template_entry.arguments,
        |_, _| true,
    ];
    for meets_criterion in match_criteria {
        for (installed_index, template_entry) in installed_indices
            .iter_mut()
            .zip(expected_entries)
            .filter(|(installed_index, _)| installed_index.is_none())
        {
            let is_match = |OurEntry { hook, entry }: &OurEntry| {
                hook.event == template_entry.event
                    && hook.program == template_entry.program
                    && meets_criterion(entry, template_entry)
            };
            *installed_index = (0..installed_entries.len())
                .find(|index| !is_matched[*index] && is_match(&installed_entries[*index]));
            installed_index.iter().for_each(|index| is_matched[*index] = true);
        }
    }
    installed_indices
}

/// Returns the first of our entries that matches no expected entry.
pub(super) fn find_unexpected_entry(
    settings_json: &str,
    expected_entries: &[TemplateEntry],
) -> Result<Option<OurEntry>, InvalidSettings> {
    let mut installed_entries = find_our_entries(settings_json)?;
    let installed_indices = installed_index_per_expected_entry(&installed_entries, expected_entries);
    let unexpected_index =
        (0..installed_entries.len()).find(|index| !installed_indices.contains(&Some(*index)));
    Ok(unexpected_index.map(|index| installed_entries.swap_remove(index)))
}

/// A difference between an entry of ours in a file and the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryDifference {
    pub kind: EntryDifferenceKind,
    pub event: String,
    pub program: String,
}

/// How an entry of ours differs from the template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryDifferenceKind {
    /// The entry is not in the file.
    Missing,
    /// The entry was changed.
    Edited,
    /// The entry is in the file, but does not belong to this client's template.
    Unexpected,
}

/// Compares our installed entries with the expected ones.
pub(super) fn find_entry_differences(
    settings_json: &str,
    installed_entries: &[OurEntry],
    expected_entries: &[TemplateEntry],
) -> Vec<EntryDifference> {
    let installed_indices = installed_index_per_expected_entry(installed_entries, expected_entries);
    let missing_or_edited =
        expected_entries.iter().zip(&installed_indices).filter_map(|(template_entry, installed_index)| {
            let difference = |kind| EntryDifference {
                kind,
                event: template_entry.event.clone(),
                program: template_entry.program.clone(),
            };
            let Some(OurEntry { entry, .. }) = installed_index.and_then(|index| installed_entries.get(index))
            else {
                return Some(difference(EntryDifferenceKind::Missing));
            };
            let (range, value) = if entry.is_only_entry {
                (&entry.group_range, template_entry.group.clone())
            } else {
                (&entry.range, template_entry.hook_value())
            };
            (json_text::value_at_or_null(settings_json, range) != value)
                .then(|| difference(EntryDifferenceKind::Edited))
        });
    let unmatched_indices =
        (0..installed_entries.len()).filter(|index| !installed_indices.contains(&Some(*index)));
    let unexpected = unmatched_indices.map(|index| {
        let OurHookEntry { event, program, .. } = installed_entries[index].hook.clone();
        EntryDifference { kind: EntryDifferenceKind::Unexpected, event, program }
    });
    missing_or_edited.chain(unexpected).collect()
}

/// Updates the installed entry that matches an expected entry, or adds it as the last group of its event.
pub(super) fn update_or_append_entry(
    settings_json: &str,
    expected_entries: &[TemplateEntry],
    expected_index: usize,
) -> Result<String, InvalidSettings> {
    let Some(template_entry) = expected_entries.get(expected_index) else {
        return Ok(settings_json.to_owned());
    };
    let mut installed_entries = find_our_entries(settings_json)?;
    if let Some(matched_index) =
        installed_index_per_expected_entry(&installed_entries, expected_entries)[expected_index]
    {
        let OurEntry { entry, .. } = installed_entries.swap_remove(matched_index);
        // A group shared with other entries keeps its matcher; a group that contains only our entry follows the template.
        let (range, value) = if entry.is_only_entry {
            (entry.group_range, template_entry.group.clone())
        } else {
            (entry.range, template_entry.hook_value())
        };
        // An equal value is not rewritten, so that its formatting stays.
        let is_unchanged = json_text::value_at_or_null(settings_json, &range) == value;
        return Ok(if is_unchanged {
            settings_json.to_owned()
        } else {
            json_text::replace_value(settings_json, &range, &value)
        });
    }
    let new_group_list = || Value::Array(vec![template_entry.group.clone()]);
    let Some(hooks) = hooks_range(settings_json)? else {
        let hooks = Value::Object(Map::from_iter([(template_entry.event.clone(), new_group_list())]));
        return Ok(json_text::append_child(
            settings_json,
            &json_text::root_range(settings_json)?,
            Some("hooks"),
            &hooks,
        ));
    };
    let events = object_members_or_error(settings_json, &hooks, "hooks")?;
    let Some(event) = events.into_iter().find(|member| member.key == template_entry.event) else {
        return Ok(json_text::append_child(
            settings_json,
            &hooks,
            Some(&template_entry.event),
            &new_group_list(),
        ));
    };
    if json_text::list_elements(settings_json, &event.value_range).is_none() {
        let reason = format!("`hooks.{}` is not a list", template_entry.event);
        return Err(InvalidSettings::at_byte(settings_json, event.value_range.start, reason));
    }
    Ok(json_text::append_child(settings_json, &event.value_range, None, &template_entry.group))
}

/// Removes an entry and each container that becomes empty, except the containers that the original text had.
pub(super) fn remove_entry_and_empty_containers(
    settings_json: &str,
    our_entry: &OurEntry,
    original: &OriginalText,
) -> Result<String, InvalidSettings> {
    let entry = &our_entry.entry;
    if !entry.is_only_entry {
        let group_members =
            json_text::object_members_rejecting_duplicates(settings_json, &entry.group_range)?
                .unwrap_or_default();
        let Some(hooks_member) = group_members.into_iter().find(|member| member.key == "hooks") else {
            return Ok(settings_json.to_owned());
        };
        let entry_ranges =
            json_text::list_elements(settings_json, &hooks_member.value_range).unwrap_or_default();
        return Ok(json_text::remove_child(
            settings_json,
            &hooks_member.value_range,
            &entry_ranges,
            entry.index,
        ));
    }
    let Some(hooks) = hooks_range(settings_json)? else { return Ok(settings_json.to_owned()) };
    let events = json_text::object_members_rejecting_duplicates(settings_json, &hooks)?.unwrap_or_default();
    let Some(index) = events.iter().position(|member| member.key == entry.event) else {
        return Ok(settings_json.to_owned());
    };
    let groups = json_text::list_elements(settings_json, &events[index].value_range).unwrap_or_default();
    if groups.len() > 1 || original.has_value_at(&["hooks", &entry.event]) {
        let without_group =
            json_text::remove_child(settings_json, &events[index].value_range, &groups, entry.group_index);
        return Ok(original.restore_empty_container_whitespace(without_group, &["hooks", &entry.event]));
    }
    if events.len() > 1 || original.has_value_at(&["hooks"]) {
        let without_event = remove_object_member(settings_json, &hooks, index)?;
        return Ok(original.restore_empty_container_whitespace(without_event, &["hooks"]));
    }
    let root = root_members(settings_json)?;
    let hooks_index = root.iter().position(|member| member.key == "hooks").unwrap_or(root.len());
    remove_object_member(settings_json, &json_text::root_range(settings_json)?, hooks_index)
}

pub(super) fn remove_object_member(
    settings_json: &str,
    object_range: &Range<usize>,
    index: usize,
) -> Result<String, InvalidSettings> {
    let members =
        json_text::object_members_rejecting_duplicates(settings_json, object_range)?.unwrap_or_default();
    let values: Vec<Range<usize>> = members.into_iter().map(|member| member.value_range).collect();
    Ok(json_text::remove_child(settings_json, object_range, &values, index))
}
