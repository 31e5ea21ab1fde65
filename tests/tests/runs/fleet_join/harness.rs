//! A fleet of one database and one remote, and its machines.

use plimsoll_testkit::bin_dir;
use plimsoll_testkit::postgres::{DECKHAND, Postgres, Setup};
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::story::Turn;
use plimsoll_testkit::world::{Finished, Running, World};
use plimsoll_tests::world;
use std::path::PathBuf;
use std::time::Duration;

/// What sessions wrote is not told where the board is.
pub(super) const NO_DATABASE: &str = "test -z \"$PLIMSOLL_DATABASE_URL\"";
pub(super) const TASK: &str = "Do the plan.";
pub(super) const CLIENT: [&str; 7] = ["--", "--model", "opus", "--allowedTools", "Bash", "Edit", "Write"];
/// So long a whole fleet may take on a busy computer.
pub(super) const LIMIT: Duration = Duration::from_secs(300);

/// A database with a fleet `night`, and the remote by which its work travels.
pub(super) struct Fleet {
    pub(super) server: Postgres,
    /// Where the plan was written, beside the remote.
    pub(super) source: World,
    /// The branch on which everything comes together.
    pub(super) target: &'static str,
    pub(super) items: usize,
    /// The project's folder below the repository's root, with a slash behind it.
    below: String,
}

/// How a fleet differs from an ordinary one.
#[derive(Default)]
pub(super) struct Terms {
    pub(super) verify: &'static [&'static str],
    pub(super) max_cost: Option<f64>,
    /// Onto `main`.
    pub(super) is_merged: bool,
    /// The project's folder below the repository's root.
    pub(super) below: Option<&'static str>,
    /// As many sessions may all machines begin together.
    pub(super) max_iterations: Option<u32>,
    /// The database's server.
    pub(super) setup: Setup,
}

impl Fleet {
    pub(super) fn new(items: &[&str], terms: &Terms) -> Fleet {
        let plan: String = items.iter().map(|item| format!("- [ ] {item}\n")).collect();
        let mut source = world(&format!("# Plan\n\n{plan}"));
        source.command("git", &["clone", "-q", "--bare", ".", "../bare.git"]).run().expect_success();
        source.git(&["remote", "add", "origin", &source.path("../bare.git").display().to_string()]);
        let below = terms.below.map(|folder| format!("{folder}/")).unwrap_or_default();
        if let Some(folder) = terms.below {
            std::fs::create_dir_all(source.path(folder)).expect("a folder");
            source.git(&["mv", "fix_plan.md", &format!("{below}fix_plan.md")]);
            source.git(&["commit", "-qm", "The project is here"]);
            source.git(&["push", "-q", "origin", "main"]);
        }
        source.write(format!("{below}PROMPT.md"), TASK);
        let server = Postgres::start(terms.setup);
        source.set_env("PLIMSOLL_DATABASE_URL", server.socket());
        let mut line = vec!["fleet".to_owned(), "create".to_owned(), "night".to_owned()];
        line.extend(terms.verify.iter().map(|command| format!("--verify={command}")));
        line.extend(terms.max_cost.map(|most| format!("--max-cost={most}")));
        line.extend(terms.max_iterations.map(|most| format!("--max-iterations={most}")));
        line.extend(terms.is_merged.then(|| "--deliver=merge".to_owned()));
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        source.plimsoll(&line).cwd(source.path(&below)).run().expect_success();
        // Machines have no more rights than docs/fleet.md grants them.
        server.create_deckhand();
        let target = if terms.is_merged { "main" } else { "plimsoll/night" };
        Fleet { server, source, target, items: items.len(), below }
    }

    pub(super) fn bare(&self) -> PathBuf {
        self.source.path("../bare.git")
    }

    /// Git in the remote.
    pub(super) fn git(&self, arguments: &[&str]) -> String {
        let finished = self.source.command("git", arguments).cwd(self.bare()).run();
        assert_eq!(finished.code, Some(0), "git {arguments:?}: {finished:?}");
        finished.stdout.trim_end().to_owned()
    }

    /// A machine with a clone, whose sessions this model plays.
    pub(super) fn machine(&self, model: &ScriptedModel) -> World {
        let mut machine = self.real_machine(model);
        machine.use_replay();
        machine
    }

    /// The same with the real client.
    pub(super) fn real_machine(&self, model: &ScriptedModel) -> World {
        let mut machine = World::new();
        machine.git(&["remote", "add", "origin", &self.bare().display().to_string()]);
        machine.git(&["fetch", "-q", "origin"]);
        machine.git(&["reset", "-q", "--hard", "origin/main"]);
        machine.write(format!("{}PROMPT.md", self.below), TASK);
        machine.set_env("PLIMSOLL_DATABASE_URL", self.server.socket_of(DECKHAND));
        machine.use_model(model);
        machine
    }

    /// What the target's end has.
    pub(super) fn merged(&self, file: &str) -> String {
        self.git(&["show", &format!("{}:{}{file}", self.target, self.below)])
    }

    /// Each item has landed once: its file by one commit, its tick, a landing that is an ancestor.
    pub(super) fn assert_landed_once(&self, words: &str) {
        for number in 1..=self.items {
            let file = format!("{}done/{number}.txt", self.below);
            let commits = self.git(&["log", "--format=%s", self.target, "--", &file]);
            assert_eq!(commits.lines().count(), 1, "item {number}: {commits} {words}");
        }
        assert_eq!(self.merged("fix_plan.md").matches("- [x]").count(), self.items, "{words}");
        let landings = self.server.sql("select stage, array_to_string(landings, ' ') from plimsoll.item");
        for line in landings.lines() {
            let (stage, commits) = line.split_once('|').expect("two columns");
            let has_landed = |commit: &str| {
                let asked = ["merge-base", "--is-ancestor", commit, self.target];
                self.source.command("git", &asked).cwd(self.bare()).run().code == Some(0)
            };
            assert_eq!(stage, "merged", "{words}");
            assert_eq!(commits.split(' ').filter(|commit| has_landed(commit)).count(), 1, "{line} {words}");
        }
        assert_eq!(self.events("merged"), self.items, "{words}");
        assert_eq!(self.server.sql("select ended from plimsoll.plan"), "done", "{words}");
    }

    /// The database's clock goes so much faster: leases that were not renewed since are over.
    pub(super) fn let_leases_end(&self) {
        self.server.sql(
            "create or replace function plimsoll.moment() returns bigint language sql volatile as
             'select (extract(epoch from clock_timestamp()) * 1000)::bigint + 100000'",
        );
    }

    /// A hook of the remote for pushes to the target, with `$HOME` of whoever pushes.
    pub(super) fn write_hook(&self, name: &str, on_target: &str) {
        let script = format!(
            "#!/bin/sh\nwhile read old new ref; do\nif [ $ref = refs/heads/plimsoll/night ]; then\n{on_target}\nfi\ndone\nexit 0\n"
        );
        self.source.write_program(format!("../bare.git/hooks/{name}"), &script);
    }

    /// So often something happened.
    pub(super) fn events(&self, kind: &str) -> usize {
        let count = format!("select count(*) from plimsoll.event where kind = '{kind}'");
        self.server.sql(&count).parse().expect("a number")
    }
}

pub(super) fn number(item: &str) -> String {
    item.chars().skip_while(|letter| !letter.is_ascii_digit()).take_while(char::is_ascii_digit).collect()
}

/// Ticks the item in the plan of its own run, and commits everything.
pub(super) fn tick(item: &str) -> String {
    format!(
        "sed -i 's/^- \\[ \\] {item}$/- [x] {item}/' plimsoll-item.md && git add -A && git commit -qm 'Finish {item}'"
    )
}

/// Does its item by this command line.
pub(super) fn does(turn: &Turn<'_>, line: &str) -> Step {
    let item = turn.item.clone().unwrap_or_default();
    match turn.step {
        0 => Step::bash(format!("{line} && {}", tick(&item))).usage(30_000),
        _ => Step::text(format!("{item} is done.\n\n{}", turn.promise)).usage(31_000),
    }
}

/// Writes a file for its item, and is done.
pub(super) fn honest(turn: &Turn<'_>) -> Step {
    let Some(item) = turn.item.clone() else { return Step::text(format!("All done.\n\n{}", turn.promise)) };
    does(turn, &format!("{NO_DATABASE} && mkdir -p done && echo '{item}' > done/{}.txt", number(&item)))
}

pub(super) fn join(machine: &World, arguments: &[&str]) -> Running {
    join_in(machine, machine.project(), arguments)
}

/// The same from this folder.
pub(super) fn join_in(machine: &World, folder: PathBuf, arguments: &[&str]) -> Running {
    let ours = ["fleet", "join", "night"];
    let all: Vec<&str> = ours.iter().chain(arguments).chain(&CLIENT).copied().collect();
    machine.plimsoll(&all).cwd(folder).timeout(LIMIT).spawn()
}

/// The same with one worker, by a program that starts another.
pub(super) fn join_by(machine: &World, by: &[&str]) -> Running {
    let program = bin_dir().join("plimsoll").display().to_string();
    let ours = [program.as_str(), "fleet", "join", "night"];
    let all: Vec<&str> = by[1..].iter().chain(&ours).chain(&CLIENT).copied().collect();
    machine.command(by[0], &all).timeout(LIMIT).spawn()
}

/// True in name spaces of the test's own, in which it may do what it likes: a first call runs the test there to its end. Where the
/// kernel does not allow it, the test fails, and says so.
pub(super) fn is_apart(test: &str, space: &str) -> bool {
    const APART: &str = "PLIMSOLL_TEST_IS_APART";
    if std::env::var_os(APART).is_some() {
        return true;
    }
    let mut command = std::process::Command::new("unshare");
    let is_root = run_tool("id -u") == "0";
    // Without root, a user namespace gives the test all capabilities over its own processes and files.
    command.args(if is_root { &[][..] } else { &["--user", "--map-current-user", "--keep-caps"] });
    command.arg(space).arg(std::env::current_exe().expect("this program")).args(["--exact", test]);
    let output = command.arg("--nocapture").env(APART, "1").output();
    // Without a test of this name the program would succeed with none.
    let is_done = |output: &std::process::Output| {
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed")
    };
    let done = output.as_ref().is_ok_and(is_done);
    assert!(done, "it failed, or was NOT TESTED where `unshare {space}` is not allowed: {output:?}");
    false
}

/// What a tool prints.
pub(super) fn run_tool(line: &str) -> String {
    let output = std::process::Command::new("sh").args(["-c", line]).output().expect("a shell");
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Each machine ends with 0, and leaves nothing behind.
pub(super) fn all_end_well<'a>(
    machines: impl IntoIterator<Item = &'a World>,
    running: impl IntoIterator<Item = Running>,
) -> Vec<Finished> {
    let end_well = |(machine, running): (&World, Running)| {
        let finished = running.wait(LIMIT);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_tidy(machine, &finished);
        finished
    };
    machines.into_iter().zip(running).map(end_well).collect()
}

/// They have said that what was away is there again.
pub(super) fn assert_went_on(ended: &[Finished]) {
    let goes_on = |finished: &Finished| finished.stdout.contains("all is there again, and it goes on");
    assert!(ended.iter().all(goes_on), "{ended:?}");
}

/// Nothing is left on a machine: no worktree, no process.
pub(super) fn assert_tidy(machine: &World, finished: &Finished) {
    assert_tidy_in(machine, machine.project(), finished);
}

/// The same of a project in this folder.
pub(super) fn assert_tidy_in(machine: &World, project: PathBuf, finished: &Finished) {
    let worktrees = machine.git(&["worktree", "list"]);
    assert_eq!(worktrees.lines().count(), 1, "{worktrees} {finished:?}");
    machine.plimsoll(&["turns", "verify"]).cwd(project).run().expect_success();
    let left = processes(machine);
    assert!(left.is_empty(), "{left:?} {finished:?}");
}

/// The processes of this machine: nobody else has its HOME.
pub(super) fn processes(machine: &World) -> Vec<(u32, String)> {
    let home = format!("HOME={}", machine.home().display());
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of_machine = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
    };
    let command = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        (pid, String::from_utf8_lossy(&line).replace('\0', " "))
    };
    pids.filter(of_machine).map(command).filter(|(_, command)| !command.is_empty()).collect()
}

/// Everything of a machine ends at once, and it never comes back.
pub(super) fn kill_machine(machine: &World) {
    // Whoever is started meanwhile is found the next time.
    machine.wait_until(
        || {
            let left = processes(machine);
            let pids: Vec<String> = left.iter().map(|(pid, _)| pid.to_string()).collect();
            let line: Vec<&str> = ["-9"].into_iter().chain(pids.iter().map(String::as_str)).collect();
            // By another's environment: this one is no process of the machine.
            let _ =
                std::process::Command::new("kill").args(line).stderr(std::process::Stdio::null()).status();
            left.is_empty()
        },
        "the machine is off",
    );
}

pub(super) fn signal_machine(machine: &World, signal: &str) {
    for (pid, _) in processes(machine) {
        let _ = std::process::Command::new("kill").args([signal, &pid.to_string()]).status();
    }
}
