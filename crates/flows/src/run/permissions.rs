//! Whether the client will let a session run commands: in a run nobody is there to ask.

use crate::install::places::settings_files;
use plimsoll_policy::allow;
use plimsoll_policy::models::without_option;
use plimsoll_protocol::client_settings::PermissionKeys;
use plimsoll_store::{Project, disk};

/// False if neither the client's arguments nor its settings seem to allow Bash. It may be allowed in ways that are not seen, such
/// as by a hook.
pub fn seem_to_allow_bash(project: &Project, client_arguments: &[String]) -> bool {
    const SETTINGS: &str = "--settings";
    let (rest, given) = without_option(client_arguments, SETTINGS);
    let given = given.map(|given| match given.trim_start().starts_with('{') {
        true => given,
        false => disk::read_text(&project.root().join(given)).ok().flatten().unwrap_or_default(),
    });
    let files = settings_files(project.root()).filter_map(|file| disk::read_text(&file).ok().flatten());
    let keys: Vec<PermissionKeys> =
        given.into_iter().chain(files).map(|text| PermissionKeys::parse(text.as_bytes())).collect();
    allow::arguments_allow_bash(&rest) || allow::settings_allow_bash(&keys)
}
