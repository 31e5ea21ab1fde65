//! Checks whether the client will let a session run commands, because nobody approves them during a run.

use crate::install::install_paths::settings_files;
use plimsoll_policy::models::split_off_option;
use plimsoll_policy::tool_permissions;
use plimsoll_protocol::client_settings::PermissionSettings;
use plimsoll_store::{Project, disk};

/// Returns false if neither the client's arguments nor its settings seem to allow Bash. It may be allowed in
/// ways that cannot be detected, such as by a hook.
pub fn is_bash_probably_allowed(project: &Project, client_arguments: &[String]) -> bool {
    let settings_texts = client_settings_texts(project, client_arguments);
    let permission_settings: Vec<PermissionSettings> =
        settings_texts.map(|text| PermissionSettings::parse(text.as_bytes())).collect();
    tool_permissions::arguments_allow_some_bash_without_prompt(client_arguments)
        || tool_permissions::settings_allow_some_bash_without_prompt(&permission_settings)
}

/// Returns the texts of the client's settings, the one with the highest precedence first: `--settings` from
/// the user, then the files. Texts that cannot be read are left out.
pub(super) fn client_settings_texts(
    project: &Project,
    client_arguments: &[String],
) -> impl Iterator<Item = String> {
    let (_, settings_argument) = split_off_option(client_arguments, "--settings");
    let settings_argument = settings_argument.map(|argument| match argument.trim_start().starts_with('{') {
        true => argument,
        false => disk::read_text(&project.root().join(argument)).ok().flatten().unwrap_or_default(),
    });
    let files = settings_files(project.root()).filter_map(|file| disk::read_text(&file).ok().flatten());
    settings_argument.into_iter().chain(files)
}
