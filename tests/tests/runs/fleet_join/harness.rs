//! A fleet with one database and one remote, and its machines.

use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::postgres::{MEMBER_ROLE, Postgres, ServerSetup};
use plimsoll_testkit::scripted_agent::AgentTurn;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::{FinishedProgram, RunningProgram, World};
use plimsoll_tests::world_with_plan_and_dates;
use std::path::PathBuf;
use std::time::Duration;

/// A check that commands of sessions and of the plan do not receive the database's address.
pub(super) const ASSERT_NO_DATABASE_URL: &str = "test -z \"$PLIMSOLL_DATABASE_URL\"";
pub(super) const TASK: &str = "Do the plan.";
pub(super) const CLIENT_ARGUMENTS: [&str; 7] =
    ["--", "--model", "opus", "--allowedTools", "Bash", "Edit", "Write"];
/// How long a whole fleet may take on a busy computer.
pub(super) const FLEET_TIMEOUT: Duration = Duration::from_secs(300);

/// A database with a fleet `night`, and the remote through which machines exchange their work.
pub(super) struct Fleet {
    pub(super) server: Postgres,
    /// The project in which the plan was written; the remote is beside it.
    pub(super) source: World,
    /// The branch into which all items are merged.
    pub(super) target: &'static str,
    pub(super) item_count: usize,
    /// The project's folder below the repository's root, with a trailing slash; empty if it is the root.
    project_prefix: String,
}

/// How a fleet differs from the default one.
#[derive(Default)]
pub(super) struct FleetOptions {
    pub(super) verify: &'static [&'static str],
    pub(super) max_cost: Option<f64>,
    /// Merge into `main` instead of `plimsoll/night`.
    pub(super) merges_into_main: bool,
    /// The project's folder below the repository's root.
    pub(super) project_folder: Option<&'static str>,
    /// How many sessions all machines together may start.
    pub(super) max_iterations: Option<u32>,
    /// Setup of the database server.
    pub(super) setup: ServerSetup,
}

impl Fleet {
    pub(super) fn new(items: &[&str], options: &FleetOptions) -> Fleet {
        let plan: String = items.iter().map(|item| format!("- [ ] {item}\n")).collect();
        let mut source = world_with_plan_and_dates(&format!("# Plan\n\n{plan}"));
        source.command("git", &["clone", "-q", "--bare", ".", "../bare.git"]).run().expect_success();
        source.git(&["remote", "add", "origin", &source.path("../bare.git").display().to_string()]);
        let project_prefix = options.project_folder.map(|folder| format!("{folder}/")).unwrap_or_default();
        if let Some(folder) = options.project_folder {
            std::fs::create_dir_all(source.path(folder)).expect("a folder");
            source.git(&["mv", "fix_plan.md", &format!("{project_prefix}fix_plan.md")]);
            source.git(&["commit", "-qm", "The project is here"]);
            source.git(&["push", "-q", "origin", "main"]);
        }
        source.write(format!("{project_prefix}PROMPT.md"), TASK);
        let server = Postgres::create_cluster_and_start(options.setup);
        source.set_env("PLIMSOLL_DATABASE_URL", server.socket_connection_string());
        let mut create_arguments = vec!["fleet".to_owned(), "create".to_owned(), "night".to_owned()];
        create_arguments.extend(options.verify.iter().map(|command| format!("--verify={command}")));
        create_arguments.extend(options.max_cost.map(|most| format!("--max-cost={most}")));
        create_arguments.extend(options.max_iterations.map(|most| format!("--max-iterations={most}")));
        create_arguments.extend(options.merges_into_main.then(|| "--deliver=merge".to_owned()));
        let create_arguments: Vec<&str> = create_arguments.iter().map(String::as_str).collect();
        source.plimsoll(&create_arguments).cwd(source.path(&project_prefix)).run().expect_success();
        // Machines have only the rights of members.
        server.set_member_password();
        let target = if options.merges_into_main { "main" } else { "plimsoll/night" };
        Fleet { server, source, target, item_count: items.len(), project_prefix }
    }

    pub(super) fn bare_remote_path(&self) -> PathBuf {
        self.source.path("../bare.git")
    }

    /// Runs git in the remote.
    pub(super) fn remote_git(&self, arguments: &[&str]) -> String {
        let finished = self.source.command("git", arguments).cwd(self.bare_remote_path()).run();
        assert_eq!(finished.code, Some(0), "git {arguments:?}: {finished:?}");
        finished.stdout.trim_end().to_owned()
    }

    /// A machine with a clone, whose sessions are replayed with this model.
    pub(super) fn replay_machine(&self, model: &ScriptedModel) -> World {
        let mut machine = self.real_client_machine(model);
        machine.use_replayed_client();
        machine
    }

    /// A machine with a clone and the real client.
    pub(super) fn real_client_machine(&self, model: &ScriptedModel) -> World {
        let mut machine = World::new();
        machine.git(&["remote", "add", "origin", &self.bare_remote_path().display().to_string()]);
        machine.git(&["fetch", "-q", "origin"]);
        machine.git(&["reset", "-q", "--hard", "origin/main"]);
        machine.write(format!("{}PROMPT.md", self.project_prefix), TASK);
        machine.set_env("PLIMSOLL_DATABASE_URL", self.server.socket_connection_string_for_role(MEMBER_ROLE));
        machine.put_client_on_path_with_model_and_settings(model);
        machine
    }

    /// Returns a file of the project at the tip of the target branch.
    pub(super) fn file_on_target(&self, file: &str) -> String {
        self.remote_git(&["show", &format!("{}:{}{file}", self.target, self.project_prefix)])
    }

    /// Asserts that each item has landed once: one commit of its file, its tick, and one landing that is an ancestor
    /// of the target.
    pub(super) fn assert_landed_once(&self, context: &str) {
        for number in 1..=self.item_count {
            let file = format!("{}done/{number}.txt", self.project_prefix);
            let commits = self.remote_git(&["log", "--format=%s", self.target, "--", &file]);
            assert_eq!(commits.lines().count(), 1, "item {number}: {commits} {context}");
        }
        assert_eq!(self.file_on_target("fix_plan.md").matches("- [x]").count(), self.item_count, "{context}");
        let landings =
            self.server.run_sql("select stage, array_to_string(landings, ' ') from plimsoll_night.item");
        for line in landings.lines() {
            let (stage, commits) = line.split_once('|').expect("two columns");
            let has_landed = |commit: &str| {
                let arguments = ["merge-base", "--is-ancestor", commit, self.target];
                self.source.command("git", &arguments).cwd(self.bare_remote_path()).run().code == Some(0)
            };
            assert_eq!(stage, "merged", "{context}");
            assert_eq!(commits.split(' ').filter(|commit| has_landed(commit)).count(), 1, "{line} {context}");
        }
        assert_eq!(self.event_count("merged"), self.item_count, "{context}");
        assert_eq!(self.server.run_sql("select ended from plimsoll_night.plan"), "done", "{context}");
    }

    /// Moves the database's clock 100 s ahead, so that leases that are not renewed have expired.
    pub(super) fn expire_leases(&self) {
        self.server.run_sql(
            "create or replace function plimsoll_night.moment() returns bigint language sql volatile as
             'select (extract(epoch from clock_timestamp()) * 1000)::bigint + 100000'",
        );
    }

    /// Writes a hook of the remote for pushes to the target; its `$HOME` is that of the machine that pushes.
    pub(super) fn write_remote_hook(&self, name: &str, commands_on_target: &str) {
        let script = format!(
            "#!/bin/sh\nwhile read old new ref; do\nif [ $ref = refs/heads/plimsoll/night ]; then\n{commands_on_target}\nfi\ndone\nexit 0\n"
        );
        self.source.write_program(format!("../bare.git/hooks/{name}"), &script);
    }

    /// Counts the events of this kind.
    pub(super) fn event_count(&self, kind: &str) -> usize {
        let count_query = format!("select count(*) from plimsoll_night.event where kind = '{kind}'");
        self.server.run_sql(&count_query).parse().expect("a number")
    }
}

pub(super) fn item_number(item: &str) -> String {
    item.chars().skip_while(|letter| !letter.is_ascii_digit()).take_while(char::is_ascii_digit).collect()
}

/// A command that ticks the item in the plan of its own run and commits everything.
pub(super) fn tick_and_commit_command(item: &str) -> String {
    format!(
        "sed -i 's/^- \\[ \\] {item}$/- [x] {item}/' plimsoll-item.md && git add -A && git commit -qm 'Finish {item}'"
    )
}

/// Does the item of the turn with this command line.
pub(super) fn run_and_finish_item(turn: &AgentTurn<'_>, command: &str) -> Step {
    let item = turn.item_text.clone().unwrap_or_default();
    match turn.assistant_message_count {
        0 => Step::bash_call(format!("{command} && {}", tick_and_commit_command(&item)))
            .with_input_tokens(30_000),
        _ => Step::from_text(format!("{item} is done.\n\n{}", turn.promise_line)).with_input_tokens(31_000),
    }
}

/// Writes a file for the item of the turn, and finishes.
pub(super) fn honest_agent(turn: &AgentTurn<'_>) -> Step {
    let Some(item) = turn.item_text.clone() else {
        return Step::from_text(format!("All done.\n\n{}", turn.promise_line));
    };
    run_and_finish_item(
        turn,
        &format!(
            "{ASSERT_NO_DATABASE_URL} && mkdir -p done && echo '{item}' > done/{}.txt",
            item_number(&item)
        ),
    )
}

pub(super) fn spawn_join(machine: &World, arguments: &[&str]) -> RunningProgram {
    spawn_join_in(machine, machine.project(), arguments)
}

/// Joins from this folder.
pub(super) fn spawn_join_in(machine: &World, folder: PathBuf, arguments: &[&str]) -> RunningProgram {
    let join_arguments = ["fleet", "join", "night"];
    let command_line: Vec<&str> =
        join_arguments.iter().chain(arguments).chain(&CLIENT_ARGUMENTS).copied().collect();
    machine.plimsoll(&command_line).cwd(folder).timeout(FLEET_TIMEOUT).spawn()
}

/// Joins with one worker through a program that starts another, such as `nsenter`.
pub(super) fn spawn_join_via(machine: &World, launcher: &[&str]) -> RunningProgram {
    let program = find_or_build_bin_dir().join("plimsoll").display().to_string();
    let join_arguments = [program.as_str(), "fleet", "join", "night"];
    let command_line: Vec<&str> =
        launcher[1..].iter().chain(&join_arguments).chain(&CLIENT_ARGUMENTS).copied().collect();
    machine.command(launcher[0], &command_line).timeout(FLEET_TIMEOUT).spawn()
}

/// Returns true inside a namespace of the test's own, in which it may change mounts or networks. Outside, runs this
/// test in one and returns false. Fails the test if the kernel does not allow it.
pub(super) fn is_in_namespace_or_rerun(test_name: &str, namespace_option: &str) -> bool {
    const NAMESPACE_VARIABLE: &str = "PLIMSOLL_TEST_IS_APART";
    if std::env::var_os(NAMESPACE_VARIABLE).is_some() {
        return true;
    }
    let mut command = std::process::Command::new("unshare");
    let is_root = run_shell("id -u") == "0";
    // Without root, a user namespace gives the test all capabilities over its own processes and files.
    command.args(if is_root { &[][..] } else { &["--user", "--map-current-user", "--keep-caps"] });
    command
        .arg(namespace_option)
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", test_name]);
    let output = command.arg("--nocapture").env(NAMESPACE_VARIABLE, "1").output();
    // Without a test of this name the program would succeed with none.
    let has_passed = |output: &std::process::Output| {
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed")
    };
    let passed = output.as_ref().is_ok_and(has_passed);
    assert!(
        passed,
        "it failed, or was NOT TESTED where `unshare {namespace_option}` is not allowed: {output:?}"
    );
    false
}

/// Runs a shell command and returns what it prints.
pub(super) fn run_shell(command: &str) -> String {
    let output = std::process::Command::new("sh").args(["-c", command]).output().expect("a shell");
    assert!(output.status.success(), "{command}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Asserts that each machine ends with 0 and leaves nothing behind.
pub(super) fn assert_all_end_well<'a>(
    machines: impl IntoIterator<Item = &'a World>,
    running: impl IntoIterator<Item = RunningProgram>,
) -> Vec<FinishedProgram> {
    let assert_ends_well = |(machine, running): (&World, RunningProgram)| {
        let finished = running.wait_or_kill_and_panic(FLEET_TIMEOUT);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_nothing_left_behind(machine, &finished);
        finished
    };
    machines.into_iter().zip(running).map(assert_ends_well).collect()
}

/// Asserts that all have reported that the database and the remote are reachable again.
pub(super) fn assert_reported_recovery(finished: &[FinishedProgram]) {
    let reported_recovery = |finished: &FinishedProgram| {
        finished.stdout.contains("the database and the remote are reachable again; resuming")
    };
    assert!(finished.iter().all(reported_recovery), "{finished:?}");
}

/// Asserts that nothing is left on a machine: no worktree, no process.
pub(super) fn assert_nothing_left_behind(machine: &World, finished: &FinishedProgram) {
    assert_nothing_left_in(machine, machine.project(), finished);
}

/// Asserts that nothing is left of a project in this folder of a machine.
pub(super) fn assert_nothing_left_in(machine: &World, project: PathBuf, finished: &FinishedProgram) {
    let worktrees = machine.git(&["worktree", "list"]);
    assert_eq!(worktrees.lines().count(), 1, "{worktrees} {finished:?}");
    machine.plimsoll(&["turns", "verify"]).cwd(project).run().expect_success();
    let remaining = machine_processes(machine);
    assert!(remaining.is_empty(), "{remaining:?} {finished:?}");
}

/// Returns the processes of this machine, which are those with its HOME.
pub(super) fn machine_processes(machine: &World) -> Vec<(u32, String)> {
    let home = format!("HOME={}", machine.home().display());
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_of_machine = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
    };
    let with_command_line = |pid: u32| {
        let command_line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        (pid, String::from_utf8_lossy(&command_line).replace('\0', " "))
    };
    pids.filter(is_of_machine).map(with_command_line).filter(|(_, command)| !command.is_empty()).collect()
}

/// Kills all processes of a machine, as if it were switched off.
pub(super) fn kill_machine(machine: &World) {
    // A process that starts meanwhile is found in the next round.
    machine.wait_until(
        || {
            let remaining = machine_processes(machine);
            let pids: Vec<String> = remaining.iter().map(|(pid, _)| pid.to_string()).collect();
            let arguments: Vec<&str> = ["-9"].into_iter().chain(pids.iter().map(String::as_str)).collect();
            // Started with the environment of the test, so that `kill` is not a process of the machine.
            let _ = std::process::Command::new("kill")
                .args(arguments)
                .stderr(std::process::Stdio::null())
                .status();
            remaining.is_empty()
        },
        "the machine is off",
    );
}

pub(super) fn signal_machine(machine: &World, signal: &str) {
    for (pid, _) in machine_processes(machine) {
        let _ = std::process::Command::new("kill").args([signal, &pid.to_string()]).status();
    }
}
