//! A project, a home folder and our programs, with checks of the files afterwards.

use plimsoll_protocol::settings::{self, EntryOptions};
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

pub(crate) const SETTINGS: &str = ".claude/settings.local.json";
pub(crate) const BACKUP: &str = ".claude/settings.local.json.plimsoll-backup";

/// A user's settings file with everything that must not change: key order, spacing, foreign hooks, unknown keys.
pub(crate) const USER_SETTINGS: &str = "{\n    \"zeta\": {\"b\": 1.50, \"a\": null},\n    \"hooks\": {\n        \"Stop\": [\n            { \"hooks\": [ { \"type\": \"command\", \"command\": \"say done\" } ] }\n        ],\n        \"Unknown\": []\n    },\n    \"alpha\": \"\\u00e9\"\n}";

/// A world with our programs in a folder of their own: the real `plimsoll` and `plimsoll-mcp`, and for each hook program
/// a script that records its name and its input.
pub(crate) struct InstallFixture {
    pub(crate) world: World,
    pub(crate) bin: PathBuf,
}

impl InstallFixture {
    pub(crate) fn new() -> InstallFixture {
        InstallFixture::with_program_folder("bin", true)
    }

    pub(crate) fn with_program_folder(folder_name: &str, is_on_path: bool) -> InstallFixture {
        let mut world = World::without_plimsoll_files();
        let bin = world.home().join(folder_name);
        let log = world.home().join("hooks.log");
        let recorder = format!(
            // `printf`, because some shells' `echo` interprets the backslashes of the payload.
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
        let first_path_entry = if is_on_path { bin.clone() } else { world.home().join("nothing") };
        let clients = world.home().join("clients");
        let path = [first_path_entry, clients, "/usr/local/bin".into(), "/usr/bin".into(), "/bin".into()];
        world.set_env("PATH", path.map(|folder| folder.display().to_string()).join(":"));
        let fixture = InstallFixture { world, bin };
        for built_program in ["plimsoll", "plimsoll-mcp"].map(|name| find_or_build_bin_dir().join(name)) {
            fixture.run_shell_line(&format!("cp '{}' \"$BIN\"", built_program.display()));
        }
        fixture.run_shell_line("chmod 755 \"$BIN\"/*");
        fixture
    }

    pub(crate) fn run_shell_line(&self, line: &str) -> String {
        let bin = self.bin.display().to_string();
        self.world.command("/bin/sh", &["-c", line]).env("BIN", bin).run().expect_success().stdout
    }

    /// Puts a fake client on the PATH that only prints this version.
    pub(crate) fn install_fake_client(&self, version: &str) {
        self.world.write(self.world.home().join("clients/claude"), &format!("#!/bin/sh\necho '{version}'\n"));
        self.run_shell_line("chmod 755 \"$HOME/clients/claude\"");
    }

    /// Returns the text that `init` writes into an empty settings file.
    pub(crate) fn expected_settings(&self, parts: impl Into<EntryOptions>) -> String {
        settings::install_or_update_our_entries("", parts, &|program| self.program_path_text(program))
            .expect("settings")
            .text
    }

    /// Returns the path by which settings and slash commands name one of our programs.
    pub(crate) fn program_path_text(&self, program: &str) -> String {
        self.bin.join(program).display().to_string()
    }

    pub(crate) fn run_plimsoll(&self, args: &[&str]) -> FinishedProgram {
        self.world.command(self.bin.join("plimsoll"), args).run()
    }

    pub(crate) fn stdout_of_success(&self, args: &[&str]) -> String {
        self.run_plimsoll(args).expect_success().stdout
    }

    /// Returns what a command prints, with the parts that differ between worlds replaced.
    pub(crate) fn stable_stdout_of_success(&self, args: &[&str]) -> String {
        self.world.replace_varying_parts_with_placeholders(&self.stdout_of_success(args))
    }

    /// Returns the lines that a command prints and that begin with a word, such as `Kept` or `Careful`.
    pub(crate) fn stdout_lines_starting_with(&self, prefix: &str, args: &[&str]) -> String {
        self.stable_stdout_of_success(args)
            .lines()
            .filter(|line| line.starts_with(prefix))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Returns the error of a command that fails and prints nothing else.
    pub(crate) fn error_of_failing_command(&self, args: &[&str]) -> String {
        let finished = self.run_plimsoll(args);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{args:?}: {finished:?}");
        self.world.replace_varying_parts_with_placeholders(&finished.stderr)
    }

    /// Returns the checksum of every file below the project and the user's client folder.
    pub(crate) fn file_checksums(&self) -> String {
        let find =
            "find . \"$HOME/.claude\" -path ./.git/objects -prune -o \\( -type f -o -type l \\) -print0";
        self.run_shell_line(&format!("mkdir -p \"$HOME/.claude\"; {find} | sort -z | xargs -0 cksum"))
    }

    /// Returns the pairs of event and hook program that were recorded.
    pub(crate) fn recorded_hook_events(&self) -> BTreeSet<(String, String)> {
        let log = plimsoll_store::disk::read_text(&self.world.home().join("hooks.log")).unwrap_or_default();
        let parse_line = |line: &str| {
            let (program, payload) = line.split_once(' ')?;
            let payload: Value = serde_json::from_str(payload).ok()?;
            Some((payload["hook_event_name"].as_str()?.to_owned(), program.to_owned()))
        };
        log.unwrap_or_default().lines().filter_map(parse_line).collect()
    }
}

pub(crate) fn hook_events_of(template: &str) -> BTreeSet<(String, String)> {
    let hooks = settings::find_our_hooks(template).unwrap_or_default();
    hooks.into_iter().map(|hook| (hook.event, hook.program)).collect()
}
