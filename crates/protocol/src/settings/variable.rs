//! Sets and removes the memory's environment variable in the `env` of a settings text. Without the variable, the client
//! nests agents at most three levels deep; frames need five.

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
    /// The variable has a value of the user's, which is kept: the variable's name and the value as JSON.
    UserValue(String, String),
}

/// Sets the variable if it is not set yet. Returns the settings text and whether the variable now has our value.
pub(super) fn set_memory_variable_if_absent(
    settings_json: &str,
) -> Result<(String, MemoryVariable), InvalidSettings> {
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
    let variables = object_members_or_error(settings_json, &env.value_range, "env")?;
    let Some(variable) = variables.into_iter().find(|member| member.key == name) else {
        return Ok((
            json_text::append_child(settings_json, &env.value_range, Some(&name), &value.into()),
            set_by_us,
        ));
    };
    let is_our_value = json_text::string_at(settings_json, &variable.value_range)
        .is_some_and(|current_value| current_value == value);
    let user_value =
        || MemoryVariable::UserValue(name, settings_json[variable.value_range.clone()].to_owned());
    Ok((settings_json.to_owned(), if is_our_value { set_by_us } else { user_value() }))
}

/// Removes the variable if it has our value and was not set before the installation. If the text from before the
/// installation is unknown, a "5" that the user set cannot be distinguished from ours. Returns `None` if nothing changes.
pub(super) fn remove_memory_variable_if_ours(
    settings_json: &str,
    original: &OriginalText,
) -> Result<Option<String>, InvalidSettings> {
    let (name, value) = memory_variable();
    if original.has_value_at(&["env", &name]) {
        return Ok(None);
    }
    let root = root_members(settings_json)?;
    let Some(index) = root.iter().position(|member| member.key == "env") else { return Ok(None) };
    let env = &root[index].value_range;
    let variables = json_text::object_members_rejecting_duplicates(settings_json, env)?.unwrap_or_default();
    let our_index = variables.iter().position(|member| {
        member.key == name
            && json_text::string_at(settings_json, &member.value_range)
                .is_some_and(|current_value| current_value == value)
    });
    let Some(our_index) = our_index else { return Ok(None) };
    if variables.len() == 1 && !original.has_value_at(&["env"]) {
        return remove_object_member(settings_json, &json_text::root_range(settings_json)?, index).map(Some);
    }
    let without_variable = remove_object_member(settings_json, env, our_index)?;
    Ok(Some(original.restore_empty_container_whitespace(without_variable, &["env"])))
}
