//! Selects the client that a world starts.

use super::World;
use crate::client::{CLIENT_VERSION, claude_of_version, pinned_claude};
use crate::scripted_model::ScriptedModel;
use serde_json::json;
use std::path::PathBuf;

#[cfg(feature = "replay")]
use {
    crate::workspace_paths::replayed_client_path,
    std::os::unix::fs::{PermissionsExt, symlink},
    std::path::Path,
    std::{fs, io},
};

impl World {
    /// Points the client at this model and puts the client on the PATH.
    pub fn use_model(&mut self, model: &ScriptedModel) {
        self.with_client = true;
        self.set_env("ANTHROPIC_BASE_URL", model.url());
        if !self.user_settings_file().exists() {
            self.write_user_settings(&json!({}));
        }
    }

    /// Uses another version of the client than the pinned one and puts it on the PATH.
    pub fn use_client_version(&mut self, version: &str) {
        self.with_client = true;
        self.client =
            Some(if version == CLIENT_VERSION { pinned_claude() } else { claude_of_version(version) });
    }

    /// Uses the replayed client instead of the real one and puts it on the PATH. If `PLIMSOLL_REAL_CLIENT` is
    /// set, the real one is still used.
    #[cfg(feature = "replay")]
    pub fn use_replayed_client(&mut self) {
        self.replace_client(|program| symlink(replayed_client_path(), program));
    }

    /// Uses the real client in the sessions with these numbers and the replayed one in all others. Sessions
    /// are counted from 1 in the order in which they start in this world. For tests of one session of the
    /// real client and of what Plimsoll does before or after it.
    #[cfg(feature = "replay")]
    pub fn use_real_client_in_sessions(&mut self, session_numbers: &[u32]) {
        let session_marker = self.root.join("client/begun").display().to_string();
        let shell_pattern =
            session_numbers.iter().fold("0".to_owned(), |pattern, number| format!("{pattern}|{number}"));
        let (real, replayed) =
            (pinned_claude().display().to_string(), replayed_client_path().display().to_string());
        let script = format!(
            "#!/bin/sh\n\
             [ \"$1\" = --version ] && exec '{replayed}' --version\n\
             number=1\n\
             until mkdir '{session_marker}'.$number 2>/dev/null; do number=$((number + 1)); done\n\
             case $number in {shell_pattern}) exec '{real}' \"$@\" ;; esac\n\
             # It was recorded with a key: how it is logged in, only its limits tell.\n\
             unset CLAUDE_CODE_OAUTH_TOKEN\n\
             exec '{replayed}' \"$@\"\n"
        );
        self.replace_client(|program| {
            fs::write(program, &script)?;
            fs::set_permissions(program, fs::Permissions::from_mode(0o755))
        });
    }

    /// Creates a program with `make` and starts it instead of the real client.
    #[cfg(feature = "replay")]
    fn replace_client(&mut self, create_program: impl FnOnce(&Path) -> io::Result<()>) {
        self.with_client = true;
        self.set_env(
            crate::replay::UNRECORDED_REQUESTS_VARIABLE,
            self.unrecorded_requests_file().display().to_string(),
        );
        if std::env::var_os("PLIMSOLL_REAL_CLIENT").is_some() {
            return;
        }
        let program = self.root.join("client/claude");
        // Writing through an old link would overwrite its target.
        let _ = fs::remove_file(&program);
        let result = fs::create_dir_all(self.root.join("client")).and_then(|()| create_program(&program));
        assert!(result.is_ok(), "cannot make {}: {result:?}", program.display());
        self.client = Some(program);
    }

    /// Returns the requests that the replayed client has no recording of, and forgets them.
    #[cfg(feature = "replay")]
    pub fn take_unrecorded_requests(&self) -> String {
        let text = fs::read_to_string(self.unrecorded_requests_file()).unwrap_or_default();
        let _ = fs::remove_file(self.unrecorded_requests_file());
        text
    }

    pub(super) fn unrecorded_requests_file(&self) -> PathBuf {
        self.root.join("refusals.txt")
    }

    pub(super) fn client_program(&self) -> PathBuf {
        self.client.clone().unwrap_or_else(pinned_claude)
    }
}
