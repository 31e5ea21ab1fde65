//! A project, a home and our programs, and what became of their files.

use plimsoll_protocol::settings::{self, EntryOptions};
use plimsoll_testkit::bin_dir;
use plimsoll_testkit::world::{Finished, World};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

pub(crate) const SETTINGS: &str = ".claude/settings.local.json";
pub(crate) const BACKUP: &str = ".claude/settings.local.json.plimsoll-backup";

/// A user's settings with everything that must not change: order, spacing, foreign hooks, unknown keys.
pub(crate) const FOREIGN: &str = "{\n    \"zeta\": {\"b\": 1.50, \"a\": null},\n    \"hooks\": {\n        \"Stop\": [\n            { \"hooks\": [ { \"type\": \"command\", \"command\": \"say done\" } ] }\n        ],\n        \"Unknown\": []\n    },\n    \"alpha\": \"\\u00e9\"\n}";

/// A world with our programs in a folder of its own: the real `plimsoll`, and for each hook program a
/// recorder that writes down its name and what it was given.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) bin: PathBuf,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        Stage::with_folder("bin", true)
    }

    pub(crate) fn with_folder(name: &str, on_path: bool) -> Stage {
        let mut world = World::untouched();
        let bin = world.home().join(name);
        let log = world.home().join("hooks.log");
        let recorder = format!(
            // A shell's echo may take the payload's backslashes for its own.
            "#!/bin/sh\nprintf '%s %s\\n' \"${{0##*/}}\" \"$(cat)\" >> '{}'\n",
            log.display()
        );
        for program in settings::PROGRAM_NAMES.iter() {
            let recorder = if *program == "plimsoll-statusline" {
                "#!/bin/sh\ncat > /dev/null; echo PLIMSOLL-LINE\n"
            } else {
                &recorder
            };
            world.write(bin.join(program), recorder);
        }
        let first = if on_path { bin.clone() } else { world.home().join("nothing") };
        let clients = world.home().join("clients");
        let path = [first, clients, "/usr/local/bin".into(), "/usr/bin".into(), "/bin".into()];
        world.set_env("PATH", path.map(|folder| folder.display().to_string()).join(":"));
        let stage = Stage { world, bin };
        for real in ["plimsoll", "plimsoll-mcp"].map(|name| bin_dir().join(name)) {
            stage.shell(&format!("cp '{}' \"$BIN\"", real.display()));
        }
        stage.shell("chmod 755 \"$BIN\"/*");
        stage
    }

    pub(crate) fn shell(&self, line: &str) -> String {
        let bin = self.bin.display().to_string();
        self.world.command("/bin/sh", &["-c", line]).env("BIN", bin).run().expect_success().stdout
    }

    /// Puts a client on the PATH that only tells its version.
    pub(crate) fn client(&self, version: &str) {
        self.world.write(self.world.home().join("clients/claude"), &format!("#!/bin/sh\necho '{version}'\n"));
        self.shell("chmod 755 \"$HOME/clients/claude\"");
    }

    /// What `init` writes into an empty settings file.
    pub(crate) fn settings(&self, parts: impl Into<EntryOptions>) -> String {
        settings::install("", parts, &|program| self.named(program)).expect("settings").text
    }

    /// How settings and slash commands name one of our programs.
    pub(crate) fn named(&self, program: &str) -> String {
        self.bin.join(program).display().to_string()
    }

    pub(crate) fn plimsoll(&self, args: &[&str]) -> Finished {
        self.world.command(self.bin.join("plimsoll"), args).run()
    }

    pub(crate) fn done(&self, args: &[&str]) -> String {
        self.plimsoll(args).expect_success().stdout
    }

    /// Returns what a command prints, without what differs from one world to the next.
    pub(crate) fn printed(&self, args: &[&str]) -> String {
        self.world.stable_text(&self.done(args))
    }

    /// Returns the lines that a command prints and that begin with a word, such as `Kept` or `Careful`.
    pub(crate) fn printed_lines(&self, word: &str, args: &[&str]) -> String {
        self.printed(args).lines().filter(|line| line.starts_with(word)).collect::<Vec<_>>().join("\n")
    }

    /// Returns the error of a command that fails and prints nothing else.
    pub(crate) fn error_of(&self, args: &[&str]) -> String {
        let finished = self.plimsoll(args);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{args:?}: {finished:?}");
        self.world.stable_text(&finished.stderr)
    }

    /// Every file below the world's project and the user's client folder, with its bytes.
    pub(crate) fn files(&self) -> String {
        let find =
            "find . \"$HOME/.claude\" -path ./.git/objects -prune -o \\( -type f -o -type l \\) -print0";
        self.shell(&format!("mkdir -p \"$HOME/.claude\"; {find} | sort -z | xargs -0 cksum"))
    }

    /// The events each recorder was started for.
    pub(crate) fn recorded(&self) -> BTreeSet<(String, String)> {
        let log = plimsoll_store::disk::read_text(&self.world.home().join("hooks.log")).unwrap_or_default();
        let pair = |line: &str| {
            let (program, payload) = line.split_once(' ')?;
            let payload: Value = serde_json::from_str(payload).ok()?;
            Some((payload["hook_event_name"].as_str()?.to_owned(), program.to_owned()))
        };
        log.unwrap_or_default().lines().filter_map(pair).collect()
    }
}

pub(crate) fn events_of(template: &str) -> BTreeSet<(String, String)> {
    let hooks = settings::find_our_hooks(template).unwrap_or_default();
    hooks.into_iter().map(|hook| (hook.event, hook.program)).collect()
}
