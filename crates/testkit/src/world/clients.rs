//! Selects the client that a world uses.

use super::World;
use crate::client::{CLIENT_VERSION, find_claude_from_env_or_install_pinned, install_claude_version_once};
use crate::scripted_model::ScriptedModel;
use serde_json::json;
use std::path::PathBuf;

#[cfg(all(unix, feature = "replay"))]
use {
    crate::workspace_paths::find_or_build_replayed_client,
    std::os::unix::fs::{PermissionsExt, symlink},
    std::path::Path,
    std::{fs, io},
};

impl World {
    /// Connects the client to this model and puts the client on the PATH.
    pub fn put_client_on_path_with_model_and_settings(&mut self, model: &ScriptedModel) {
        self.puts_client_on_path = true;
        self.set_env("ANTHROPIC_BASE_URL", model.url());
        if !self.plimsoll_user_settings_file().exists() {
            self.write_plimsoll_user_settings(&json!({}));
        }
    }

    /// Uses this version of the client instead of the pinned one and puts it on the PATH.
    pub fn use_client_version(&mut self, version: &str) {
        self.puts_client_on_path = true;
        self.client_override = Some(if version == CLIENT_VERSION {
            find_claude_from_env_or_install_pinned()
        } else {
            install_claude_version_once(version)
        });
    }

    /// Uses the replayed client and puts it on the PATH. If `PLIMSOLL_REAL_CLIENT` is set, the real client is used
    /// instead.
    #[cfg(all(unix, feature = "replay"))]
    pub fn use_replayed_client(&mut self) {
        self.replace_client_unless_real_required(|program| symlink(find_or_build_replayed_client(), program));
    }

    /// Uses the real client in the sessions with these numbers and the replayed one in all others. Sessions are
    /// numbered from 1 in the order in which they start in this world. For tests that need the real client in one
    /// session, and check what Plimsoll does before or after it.
    #[cfg(all(unix, feature = "replay"))]
    pub fn use_real_client_in_sessions(&mut self, session_numbers: &[u32]) {
        let session_marker_prefix = self.root.join("client/begun").display().to_string();
        let shell_pattern =
            session_numbers.iter().fold("0".to_owned(), |pattern, number| format!("{pattern}|{number}"));
        let (real, replayed) = (
            find_claude_from_env_or_install_pinned().display().to_string(),
            find_or_build_replayed_client().display().to_string(),
        );
        let script = format!(
            "#!/bin/sh\n\
             [ \"$1\" = --version ] && exec '{replayed}' --version\n\
             number=1\n\
             until mkdir '{session_marker_prefix}'.$number 2>/dev/null; do number=$((number + 1)); done\n\
             case $number in {shell_pattern}) exec '{real}' \"$@\" ;; esac\n\
             # It was recorded with a key: how it is logged in, only its limits tell.\n\
             unset CLAUDE_CODE_OAUTH_TOKEN\n\
             exec '{replayed}' \"$@\"\n"
        );
        self.replace_client_unless_real_required(|program| {
            fs::write(program, &script)?;
            fs::set_permissions(program, fs::Permissions::from_mode(0o755))
        });
    }

    /// Uses the program that `create_program` creates as the client. If `PLIMSOLL_REAL_CLIENT` is set, the real
    /// client stays in use.
    #[cfg(all(unix, feature = "replay"))]
    fn replace_client_unless_real_required(&mut self, create_program: impl FnOnce(&Path) -> io::Result<()>) {
        self.puts_client_on_path = true;
        self.set_env(
            crate::replay::UNRECORDED_REQUESTS_VARIABLE,
            self.unrecorded_requests_file().display().to_string(),
        );
        if std::env::var_os("PLIMSOLL_REAL_CLIENT").is_some() {
            return;
        }
        let program = self.root.join("client/claude");
        // Writing through an existing link would overwrite its target.
        let _ = fs::remove_file(&program);
        let result = fs::create_dir_all(self.root.join("client")).and_then(|()| create_program(&program));
        assert!(result.is_ok(), "cannot make {}: {result:?}", program.display());
        self.client_override = Some(program);
    }

    /// Returns the requests for which the replayed client has no recording, and deletes the file that lists them.
    #[cfg(all(unix, feature = "replay"))]
    pub fn read_and_delete_unrecorded_requests(&self) -> String {
        let text = fs::read_to_string(self.unrecorded_requests_file()).unwrap_or_default();
        let _ = fs::remove_file(self.unrecorded_requests_file());
        text
    }

    pub(super) fn unrecorded_requests_file(&self) -> PathBuf {
        self.root.join("refusals.txt")
    }

    /// Returns the client that this world uses.
    pub fn client_program(&self) -> PathBuf {
        self.client_override.clone().unwrap_or_else(find_claude_from_env_or_install_pinned)
    }
}
