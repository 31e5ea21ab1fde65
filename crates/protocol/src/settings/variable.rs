//! The memory's variable in a settings text's `env`: without it the client nests agents only three deep, and frames
//! go five deep.

use super::hook_entries::{object_members_or_error, remove_object_member, root_members};
use super::json_text::{self, InvalidSettings};
use super::original_text::OriginalText;
use super::template::memory_variable;
use serde_json::{Map, Value};

/// The state of the variable after an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryVariable {
    /// The variable has our value.
    Set(String),
    /// The variable has the user's own value, which stays: its name and its JSON.
    UserValue(String, String),
}

/// Sets the variable unless it is already set.
pub(super) fn put_variable(settings_json: &str) -> Result<(String, MemoryVariable), InvalidSettings> {
    let (name, value) = memory_variable();
    let set_by_us = MemoryVariable::Set(name.clone());
    let root = root_members(settings_json)?;
    let Some(env) = root.into_iter().find(|member| member.key == "env") else {
        let env = Value::Object(Map::from_iter([(name, value.into())]));
        return Ok((
            json_text::append_child(settings_json, &json_text::root_range(settings_json)?, Some("env"), &env),
            set_by_us,
        ));
    };
    let variables = object_members_or_error(settings_json, &env.value, "env")?;
    let Some(variable) = variables.into_iter().find(|member| member.key == name) else {
        return Ok((
            json_text::append_child(settings_json, &env.value, Some(&name), &value.into()),
            set_by_us,
        ));
    };
    let is_our_value =
        json_text::string_at(settings_json, &variable.value).is_some_and(|found| found == value);
    let user_value = || MemoryVariable::UserValue(name, settings_json[variable.value.clone()].to_owned());
    Ok((settings_json.to_owned(), if is_our_value { set_by_us } else { user_value() }))
}

/// Removes the variable if it has our value. If the known text from before the installation had the variable, it is
/// the user's. If that text is unknown, a user's own "5" cannot be distinguished from ours.
pub(super) fn remove_variable(
    settings_json: &str,
    original: &OriginalText,
) -> Result<Option<String>, InvalidSettings> {
    let (name, value) = memory_variable();
    if original.has_value_at(&["env", &name]) {
        return Ok(None);
    }
    let root = root_members(settings_json)?;
    let Some(index) = root.iter().position(|member| member.key == "env") else { return Ok(None) };
    let env = &root[index].value;
    let variables = json_text::object_members(settings_json, env)?.unwrap_or_default();
    let our_index = variables.iter().position(|member| {
        member.key == name
            && json_text::string_at(settings_json, &member.value)
                .is_some_and(|current_value| current_value == value)
    });
    let Some(our_index) = our_index else { return Ok(None) };
    if variables.len() == 1 && !original.has_value_at(&["env"]) {
        return remove_object_member(settings_json, &json_text::root_range(settings_json)?, index).map(Some);
    }
    let without_variable = remove_object_member(settings_json, env, our_index)?;
    Ok(Some(original.restore_empty_container(without_variable, &["env"])))
}
