//! The one variable of the memory in a settings text's `env`: without it the client nests agents three deep, and
//! frames go five deep.

use super::before::TextBefore;
use super::entries::{object_or_refuse, remove_member, root_members};
use super::text::{self, Unreadable};
use super::wanted::memory_variable;
use serde_json::{Map, Value};

/// What became of the variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variable {
    /// It has the value that the memory wants.
    Set(String),
    /// The user's own value, which stays.
    Users(String, String),
}

/// The text with the variable, unless it has it already.
pub(super) fn put(body: &str) -> Result<(String, Variable), Unreadable> {
    let (name, value) = memory_variable();
    let set = Variable::Set(name.clone());
    let root = root_members(body)?;
    let Some(env) = root.into_iter().find(|member| member.key == "env") else {
        let env = Value::Object(Map::from_iter([(name, value.into())]));
        return Ok((text::append(body, &text::whole(body)?, Some("env"), &env), set));
    };
    let variables = object_or_refuse(body, &env.value, "env")?;
    let Some(found) = variables.into_iter().find(|member| member.key == name) else {
        return Ok((text::append(body, &env.value, Some(&name), &value.into()), set));
    };
    let same = text::string(body, &found.value).is_some_and(|found| found == value);
    let users = || Variable::Users(name, body[found.value.clone()].to_owned());
    Ok((body.to_owned(), if same { set } else { users() }))
}

/// The text without the variable, if it has our value. Where the text from before the installation is known and
/// had the variable, it is the user's. If it is unknown, a user's own "5" cannot be distinguished from ours.
pub(super) fn take_out(body: &str, before: &TextBefore) -> Result<Option<String>, Unreadable> {
    let (name, value) = memory_variable();
    if before.has(&["env", &name]) {
        return Ok(None);
    }
    let root = root_members(body)?;
    let Some(index) = root.iter().position(|member| member.key == "env") else { return Ok(None) };
    let env = &root[index].value;
    let variables = text::members(body, env)?.unwrap_or_default();
    let ours = variables.iter().position(|member| {
        member.key == name && text::string(body, &member.value).is_some_and(|found| found == value)
    });
    let Some(ours) = ours else { return Ok(None) };
    if variables.len() == 1 && !before.has(&["env"]) {
        return remove_member(body, &text::whole(body)?, index).map(Some);
    }
    let body = remove_member(body, env, ours)?;
    Ok(Some(before.restore_empty_container(body, &["env"])))
}
