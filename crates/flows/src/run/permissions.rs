//! Whether the client will let a session run commands: in a run nobody is there to ask.

use crate::install::places::settings_files;
use plimsoll_policy::allow;
use plimsoll_policy::models::without_option;
use plimsoll_protocol::client_settings::PermissionKeys;
use plimsoll_store::{Project, disk};

/// False if neither the client's arguments nor its settings seem to allow Bash. It may be allowed in ways that are not seen, such
/// as by a hook.
pub fn seem_to_allow_bash(project: &Project, client_arguments: &[String]) -> bool {
    let texts = client_settings_texts(project, client_arguments);
    let keys: Vec<PermissionKeys> = texts.map(|text| PermissionKeys::parse(text.as_bytes())).collect();
    allow::arguments_allow_bash(client_arguments) || allow::settings_allow_bash(&keys)
}

/// Returns the texts of the client's settings, the deciding one first: what the user gives with `--settings`, then the files. Texts
/// that cannot be read are left out.
pub(super) fn client_settings_texts(
    project: &Project,
    client_arguments: &[String],
) -> impl Iterator<Item = String> {
    let (_, given) = without_option(client_arguments, "--settings");
    let given = given.map(|given| match given.trim_start().starts_with('{') {
        true => given,
        false => disk::read_text(&project.root().join(given)).ok().flatten().unwrap_or_default(),
    });
    let files = settings_files(project.root()).filter_map(|file| disk::read_text(&file).ok().flatten());
    given.into_iter().chain(files)
}
