//! Which client a world starts.

use super::World;
use crate::client::{CLIENT_VERSION, claude, claude_version};
use crate::scripted_model::ScriptedModel;
use serde_json::json;
use std::path::PathBuf;

#[cfg(feature = "replay")]
use {
    crate::places::replayed_client,
    std::os::unix::fs::{PermissionsExt, symlink},
    std::path::Path,
    std::{fs, io},
};

impl World {
    /// Points the client at this model, and puts the client on the PATH.
    pub fn use_model(&mut self, model: &ScriptedModel) {
        self.with_client = true;
        self.set_env("ANTHROPIC_BASE_URL", model.url());
        if !self.users_settings().exists() {
            self.write_user_settings(&json!({}));
        }
    }

    /// Takes another version of the client instead of the pinned one, and puts it on the PATH.
    pub fn use_client(&mut self, version: &str) {
        self.with_client = true;
        self.client = Some(if version == CLIENT_VERSION { claude() } else { claude_version(version) });
    }

    /// Takes the replayed client instead of the real one, and puts it on the PATH; with `PLIMSOLL_REAL_CLIENT` set, the
    /// real one all the same.
    #[cfg(feature = "replay")]
    pub fn use_replay(&mut self) {
        self.put_in_its_place(|program| symlink(replayed_client(), program));
    }

    /// The sessions of these numbers, counted from 1 as they begin in this world, are the real client's, and the others are
    /// replayed: for tests of what the client does in one session, and what our side makes of it before or after.
    #[cfg(feature = "replay")]
    pub fn use_real_client_in(&mut self, sessions: &[u32]) {
        let begun = self.root.join("client/begun").display().to_string();
        let numbers = sessions.iter().fold("0".to_owned(), |all, number| format!("{all}|{number}"));
        let (real, replayed) = (claude().display().to_string(), replayed_client().display().to_string());
        let script = format!(
            "#!/bin/sh\n\
             [ \"$1\" = --version ] && exec '{replayed}' --version\n\
             number=1\n\
             until mkdir '{begun}'.$number 2>/dev/null; do number=$((number + 1)); done\n\
             case $number in {numbers}) exec '{real}' \"$@\" ;; esac\n\
             # It was recorded with a key: how it is logged in, only its limits tell.\n\
             unset CLAUDE_CODE_OAUTH_TOKEN\n\
             exec '{replayed}' \"$@\"\n"
        );
        self.put_in_its_place(|program| {
            fs::write(program, &script)?;
            fs::set_permissions(program, fs::Permissions::from_mode(0o755))
        });
    }

    /// Has a program made that is started instead of the real client.
    #[cfg(feature = "replay")]
    fn put_in_its_place(&mut self, make: impl FnOnce(&Path) -> io::Result<()>) {
        self.with_client = true;
        self.set_env(crate::replay::REFUSALS, self.refusals().display().to_string());
        if std::env::var_os("PLIMSOLL_REAL_CLIENT").is_some() {
            return;
        }
        let program = self.root.join("client/claude");
        // A link is not written through.
        let _ = fs::remove_file(&program);
        let made = fs::create_dir_all(self.root.join("client")).and_then(|()| make(&program));
        assert!(made.is_ok(), "cannot make {}: {made:?}", program.display());
        self.client = Some(program);
    }

    /// What the replayed client was asked for that was never recorded; to be looked at once.
    #[cfg(feature = "replay")]
    pub fn take_refusals(&self) -> String {
        let text = fs::read_to_string(self.refusals()).unwrap_or_default();
        let _ = fs::remove_file(self.refusals());
        text
    }

    pub(super) fn refusals(&self) -> PathBuf {
        self.root.join("refusals.txt")
    }

    pub(super) fn client(&self) -> PathBuf {
        self.client.clone().unwrap_or_else(claude)
    }
}
