//! `--verify-sandbox`: projects pass their tests in it, and what an agent wrote into a project reaches nothing outside.

use crate::park_items::run_scripted_sessions;
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::scripted_agent::AgentTurn;
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::{
    ScriptedAgent, events_named, read_journal, run_cases_in_parallel, world_with_plan_and_dates,
};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const PLAN: &str = "# Plan\n\n- [ ] Item 1\n";
const SECRET: &str = "SECRET-OUTSIDE-THE-PROJECT";

/// Places worlds below /tmp: scripts/test.sh keeps them in /dev/shm, but the sandbox has a /dev of its own.
pub fn use_plain_temporary_folder() {
    let bwrap_version = Command::new("bwrap").arg("--version").output();
    assert!(bwrap_version.is_ok(), "bwrap is missing: install bubblewrap");
    let _ = tempfile::env::override_temp_dir(Path::new("/tmp"));
}

fn sandbox_world() -> World {
    use_plain_temporary_folder();
    world_with_plan_and_dates(PLAN)
}

/// Prepares a run for a shell loop, which runs the verify commands once.
fn start_run(world: &World, options: &[&str], verify_commands: &[String]) -> FinishedProgram {
    let mut arguments = vec!["start", "--objective", "Do the plan."];
    arguments.extend(options);
    verify_commands.iter().for_each(|command| arguments.extend(["--verify", command]));
    world.plimsoll(&arguments).run()
}

/// Returns for each verify command whether it passed, and the text about it.
fn verify_outcomes(world: &World) -> Vec<(bool, String)> {
    let journal = read_journal(world);
    let verified = events_named(&journal, "verified")[0]["verify"].as_array().cloned().unwrap_or_default();
    let outcome = |verdict: &Value| {
        (
            verdict["passed"] == true,
            verdict["said"].as_str().or(verdict["words"].as_str()).unwrap_or_default().to_owned(),
        )
    };
    verified.iter().map(outcome).collect()
}

/// The folder of the run whose records include this file.
fn run_folder(world: &World, file: &str) -> PathBuf {
    let mut runs = std::fs::read_dir(world.runs_folder()).unwrap().flatten().map(|entry| entry.path());
    runs.find(|path| path.join(file).exists()).expect("a run")
}

const CARGO_TEST: &str = r#"#[test]
fn it_writes_where_it_may() {
    let temporary = std::env::temp_dir().join("x");
    std::fs::write(&temporary, "x").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
}
"#;

const PYTHON_TEST: &str = r#"import os, socket, tempfile, unittest

class Test(unittest.TestCase):
    def test_it_writes_where_it_may(self):
        with tempfile.TemporaryDirectory() as folder:
            open(os.path.join(folder, "x"), "w").close()
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname()).close()
"#;

const NPM_LOCK: &str = r#"{"name": "x", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {"": {"name": "x", "version": "1.0.0"}}}"#;

/// Makes the user's own Rust toolchain available, which is below another HOME.
fn add_rust_toolchain(world: &mut World) {
    let home = std::env::var("HOME").unwrap_or_default();
    let folder = |variable: &str, name: &str| {
        std::env::var(variable).map_or_else(|_| Path::new(&home).join(name), PathBuf::from)
    };
    let (cargo_home, rustup_home) = (folder("CARGO_HOME", ".cargo"), folder("RUSTUP_HOME", ".rustup"));
    let path = std::env::var("PATH").unwrap_or_default();
    let programs = std::env::split_paths(&path).find(|folder| folder.join("cargo").exists()).expect("cargo");
    let world_path =
        world.env_with_programs_on_path().into_iter().find(|(name, _)| name == "PATH").expect("a PATH").1;
    world.set_env("PATH", format!("{}:{world_path}", programs.display()));
    world.set_env("CARGO_HOME", cargo_home.display().to_string());
    world.set_env("RUSTUP_HOME", rustup_home.display().to_string());
    // The folder names another toolchain than the one that is there.
    if let Ok(toolchain) = std::env::var("RUSTUP_TOOLCHAIN") {
        world.set_env("RUSTUP_TOOLCHAIN", toolchain);
    }
}

#[test]
fn cargo_npm_python_and_git_work_inside() {
    let mut world = sandbox_world();
    add_rust_toolchain(&mut world);
    world.write("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    world.write("src/lib.rs", CARGO_TEST);
    world.write("package.json", r#"{"name": "x", "version": "1.0.0", "scripts": {"test": "node test.js"}}"#);
    world.write("package-lock.json", NPM_LOCK);
    world.write("test.js", "require('fs').writeFileSync('by-node', 'x'); require('assert')(true);\n");
    world.write("test_x.py", PYTHON_TEST);
    let has_pytest = Command::new("/usr/bin/python3")
        .args(["-m", "pytest", "--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    let python = if has_pytest { "/usr/bin/python3 -m pytest -q" } else { "/usr/bin/python3 -m unittest -q" };
    eprintln!("the Python project is tested by `{python}`; scripts/test.sh installs pytest");
    let commands = [
        "cargo test -q",
        "npm ci && npm test",
        python,
        "git status --porcelain && git log -1 --format=%h && git diff --stat",
        "test \"$HOME\" = \"$(cd ~ && pwd -P)\" && echo x > ~/.cache/kept && echo x > ~/elsewhere",
        "test -e ~/.cache/kept && test ! -e ~/elsewhere && mktemp",
        "sh -c 'exit 3'",
    ]
    .map(str::to_owned);
    let finished = start_run(&world, &["--verify-sandbox"], &commands);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let outcomes = verify_outcomes(&world);
    let passed: Vec<bool> = outcomes.iter().map(|(passed, _)| *passed).collect();
    assert_eq!(
        passed,
        [true, true, true, true, true, true, false],
        "{outcomes:#?}\n{:#?}",
        read_journal(&world)
    );
    assert!(world.exists("target/debug") && world.exists("by-node"), "the project is writable");
    assert!(run_folder(&world, "ledger.json").join("cache/kept").exists(), "the cache is the run's");
    assert!(!world.home().join(".cache/kept").exists() && !world.home().join("elsewhere").exists());
    assert_eq!(world.read_json(".claude/ralph-state.json")["verify_sandbox"], json!(true));

    let run = run_folder(&world, "ledger.json");
    let prune = || world.plimsoll(&["prune", "--max-size", "0K"]).run().expect_success();
    prune();
    assert!(run.join("cache/kept").exists(), "an unfinished run keeps its cache");
    world.plimsoll(&["stop", "--yes"]).run().expect_success();
    let pruned = prune();
    assert!(!run.join("cache").exists() && run.join("ledger.json").exists(), "{pruned:?}");
}

/// Something that an agent may have written into a test, and whether it had an effect.
struct Attack<'a> {
    name: &'static str,
    command: String,
    has_succeeded: Box<dyn Fn(&World) -> bool + 'a>,
}

fn attack<'a>(
    name: &'static str,
    command: impl Into<String>,
    has_succeeded: impl Fn(&World) -> bool + 'a,
) -> Attack<'a> {
    Attack { name, command: command.into(), has_succeeded: Box::new(has_succeeded) }
}

/// An attack that reports its own success.
fn attack_with_exit_code<'a>(name: &'static str, command: &str) -> Attack<'a> {
    let marker_file = name.replace(' ', "-");
    attack(name, format!("{command} && echo evil > {marker_file}"), move |world| world.exists(&marker_file))
}

/// A process outside the sandbox, with a secret in its environment.
struct Bystander(Child);

impl Bystander {
    fn start() -> Bystander {
        let mut command = Command::new("sleep");
        let command = command.arg("600").env("BYSTANDERS_SECRET", SECRET).stdin(Stdio::null());
        Bystander(command.spawn().expect("sleep"))
    }

    fn has_ended(&self) -> bool {
        // A zombie has ended, too.
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap_or_default();
        stat.rsplit(") ").next().is_none_or(|rest| rest.starts_with('Z'))
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn connect_command(family: &str, address: &str) -> String {
    format!(
        "/usr/bin/python3 -c 'import socket; socket.socket(socket.{family}).connect({address})' 2>/dev/null"
    )
}

fn file_contains(path: PathBuf, text: &str) -> bool {
    std::fs::read(path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text))
}

/// Runs every attack as a verify command, and returns the names of those that had an effect.
fn succeeding_attacks(options: &[&str]) -> Vec<&'static str> {
    let mut world = sandbox_world();
    let outside = world.home().parent().unwrap().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(world.home().join("secret"), SECRET).unwrap();
    std::fs::write(world.home().join(".bashrc"), "# mine\n").unwrap();
    world.write(".mcp.json", "{}");
    let tcp_listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket_path = outside.join("socket");
    let _unix = UnixListener::bind(&socket_path).unwrap();
    // A folder of programs on the PATH is visible inside the sandbox.
    let visible_folder = world.home().join("tools/bin");
    std::fs::create_dir_all(&visible_folder).unwrap();
    let visible_socket = visible_folder.join("socket");
    let _shown = UnixListener::bind(&visible_socket).unwrap();
    let path =
        world.env_with_programs_on_path().into_iter().find(|(name, _)| name == "PATH").expect("a PATH").1;
    world.set_env("PATH", format!("{path}:{}", visible_folder.display()));
    let abstract_name = format!("plimsoll-test-{}", std::process::id() * 2 + u32::from(options.is_empty()));
    let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    let bystanders = [Bystander::start(), Bystander::start()];
    let [kill_target, read_target] = &bystanders;
    let tcp_port = tcp_listener.local_addr().unwrap().port();
    let outside_file = outside.join("written");
    let attacks = [
        attack("write outside", format!("echo evil > {}", outside_file.display()), |_| outside_file.exists()),
        attack("write HOME", "echo evil >> ~/.bashrc", |world| {
            file_contains(world.home().join(".bashrc"), "evil")
        }),
        attack("write records", "echo evil > ~/.local/state/plimsoll/runs/evil", |world| {
            world.runs_folder().join("evil").exists()
        }),
        attack("read HOME", "cat ~/secret > stolen", |world| file_contains(world.path("stolen"), SECRET)),
        attack("read environment", "env > stolen-environment", |world| {
            file_contains(world.path("stolen-environment"), "sk-ant-")
        }),
        attack(
            "read processes",
            format!("cat /proc/{}/environ > stolen-process", read_target.0.id()),
            |world| file_contains(world.path("stolen-process"), SECRET),
        ),
        attack("kill", format!("kill {}", kill_target.0.id()), |_| kill_target.has_ended()),
        attack("leave a process", "setsid sh -c 'sleep 1; echo evil > left' > /dev/null 2>&1 &", |world| {
            world.exists("left")
        }),
        attack_with_exit_code(
            "connect tcp",
            &connect_command("AF_INET", &format!("(\"127.0.0.1\", {tcp_port})")),
        ),
        attack_with_exit_code(
            "connect unix",
            &connect_command("AF_UNIX", &format!("\"{}\"", socket_path.display())),
        ),
        attack_with_exit_code(
            "connect to a visible socket",
            &format!(
                "test -e {0} && {1}",
                visible_socket.display(),
                connect_command("AF_UNIX", &format!("\"{}\"", visible_socket.display()))
            ),
        ),
        attack_with_exit_code(
            "connect abstract",
            &connect_command("AF_UNIX", &format!("\"\\0{abstract_name}\"")),
        ),
        attack("write a git hook", "echo evil > .git/hooks/pre-commit", |world| {
            world.exists(".git/hooks/pre-commit")
        }),
        attack("write the git config", "echo '# evil' >> .git/config", |world| {
            file_contains(world.path(".git/config"), "evil")
        }),
        attack_with_exit_code("replace the git folder", "mv .git moved && mv moved .git"),
        attack("write settings", "echo '{}' > .claude/settings.json", |world| {
            world.exists(".claude/settings.json")
        }),
        attack("write our records", "echo evil > .claude/plimsoll/evil", |world| {
            world.exists(".claude/plimsoll/evil")
        }),
        attack_with_exit_code("replace the settings folder", "mv .claude moved && mv moved .claude"),
        attack("write MCP servers", "echo evil > .mcp.json", |world| {
            file_contains(world.path(".mcp.json"), "evil")
        }),
        attack_with_exit_code(
            "unmount HOME",
            "{ test -e ~/secret || umount ~; test -e ~/secret; } 2>/dev/null",
        ),
    ];
    let commands: Vec<String> = attacks.iter().map(|attack| attack.command.clone()).collect();
    let finished = start_run(&world, options, &commands);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    // The process that was left behind waits a second before it writes.
    std::thread::sleep(Duration::from_millis(1_500));
    attacks.iter().filter(|attack| (attack.has_succeeded)(&world)).map(|attack| attack.name).collect()
}

#[test]
fn attacks_by_verify_commands_succeed_only_without_the_sandbox() {
    run_cases_in_parallel(&[false, true], |is_sandboxed| {
        if *is_sandboxed {
            assert_eq!(succeeding_attacks(&["--verify-sandbox"]), [""; 0]);
        } else {
            assert_eq!(succeeding_attacks(&[]).len(), 20, "each attack works without the sandbox");
        }
    });
}

#[test]
fn a_command_that_times_out_in_the_sandbox_leaves_no_process() {
    run_cases_in_parallel(&[false, true], |is_sandboxed| {
        let world = sandbox_world();
        world.write(".claude/plimsoll.json", r#"{"verify_timeout_seconds": 1}"#);
        let options: &[&str] = if *is_sandboxed { &["--verify-sandbox"] } else { &[] };
        let command =
            "setsid sh -c 'echo begun > begun; sleep 3; echo evil > left' > /dev/null 2>&1 & sleep 30";
        let finished = start_run(&world, options, &[command.to_owned()]);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(world.exists("begun") && !verify_outcomes(&world)[0].0, "{:?}", read_journal(&world));
        std::thread::sleep(Duration::from_millis(3_500));
        assert_eq!(world.exists("left"), !is_sandboxed, "it leaves its group, and not the sandbox");
    });
}

/// Returns a PATH with the usual programs except bubblewrap, and with these programs.
fn path_without_bubblewrap(world: &World, programs: &[(&str, &str)]) -> String {
    let folder = world.home().join("programs");
    std::fs::create_dir_all(&folder).unwrap();
    for usual in ["/usr/local/bin", "/usr/bin", "/bin"] {
        for entry in std::fs::read_dir(usual).into_iter().flatten().flatten() {
            if entry.file_name() != "bwrap" {
                // The first program of a name counts.
                let _ = std::os::unix::fs::symlink(entry.path(), folder.join(entry.file_name()));
            }
        }
    }
    for (name, text) in programs {
        world.write_program(folder.join(name), text);
    }
    format!("{}:{}", folder.display(), find_or_build_bin_dir().display())
}

#[test]
fn without_bubblewrap_no_sandboxed_run_starts_or_resumes() {
    let world = sandbox_world();
    let start = |path: &str| {
        let arguments = ["start", "--objective", "Do it.", "--verify", "true", "--verify-sandbox"];
        world.plimsoll(&arguments).env("PATH", path).run()
    };
    let refusal_message = |finished: FinishedProgram| {
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(!world.exists(".claude/ralph-state.json"), "{finished:?}");
        world.replace_varying_parts_with_placeholders(&finished.stderr)
    };
    let path = path_without_bubblewrap(&world, &[]);
    insta::assert_snapshot!(refusal_message(start(&path)), @"
    error: --verify-sandbox needs bubblewrap (bwrap), which is not on your PATH
    hint: install it (Debian and Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)
    ");

    // A bwrap that comes with the project is not started.
    let in_project = world.write_program("tools/bwrap", "#!/bin/sh\ntouch \"$HOME/started\"\n");
    let with_project = format!("{}:{path}", in_project.parent().unwrap().display());
    insta::assert_snapshot!(refusal_message(start(&with_project)), @"
    error: --verify-sandbox needs bubblewrap (bwrap), which is not on your PATH; [PROJECT]/tools/bwrap is ignored: inside the project
    hint: install it (Debian and Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)
    ");
    assert!(!world.home().join("started").exists());

    let world = sandbox_world();
    let bwrap_error = "bwrap: No permissions to create new namespace";
    let path = path_without_bubblewrap(
        &world,
        &[("bwrap", &format!("#!/bin/sh\necho '{bwrap_error}' >&2\nexit 1\n"))],
    );
    let arguments = ["start", "--objective", "Do it.", "--verify", "true", "--verify-sandbox"];
    let finished = world.plimsoll(&arguments).env("PATH", &path).run();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"
    error: --verify-sandbox: bubblewrap cannot make a sandbox here: bwrap: No permissions to create new namespace
    hint: it needs user namespaces: in a container allow them, on Ubuntu give bwrap an AppArmor profile that has `userns`
    ");
    assert!(!world.exists(".claude/ralph-state.json"), "{finished:?}");

    // A run that was started with the option keeps it.
    assert_eq!(start_run(&world, &["--verify-sandbox"], &["true".to_owned()]).code, Some(0));
    let client = world.write_program(world.home().join("client"), "#!/bin/sh\n").display().to_string();
    let resumed = world.plimsoll(&["run", "--resume", "--client", &client]).env("PATH", &path).run();
    assert_eq!(resumed.code, Some(1), "{resumed:?}");
    assert_eq!(resumed.stderr, finished.stderr);
}

const FINISH_SCRIPT: &str = "begin; answers 30000; tick \"$item\"; says 'The item is done.'\n";

#[test]
fn without_its_sandbox_a_command_is_not_run_and_reverts_no_tick() {
    let mut world = sandbox_world();
    let path = path_without_bubblewrap(&world, &[]);
    let bwrap = world.home().join("programs/bwrap");
    std::os::unix::fs::symlink("/usr/bin/bwrap", &bwrap).unwrap();
    world.set_env("PATH", path);
    let remove_bwrap_script = format!("rm {}; {FINISH_SCRIPT}", bwrap.display());
    let options = ["--verify-sandbox", "--verify", "echo x >> ran", "--max-iterations", "1"];
    let finished = run_scripted_sessions(&world, &[&remove_bwrap_script], &options);
    assert!(!bwrap.exists() && finished.code != Some(0), "{finished:?}");
    assert_eq!(world.read("ran"), "x\n", "it ran before the session: {finished:?}");
    assert_eq!(world.read("fix_plan.md"), PLAN.replace("[ ]", "[x]"));
    let journal = read_journal(&world);
    let verdict = &events_named(&journal, "verdict")[0]["verify"][0];
    assert!(
        verdict.to_string().contains("could not be started: --verify-sandbox needs bubblewrap"),
        "{verdict}"
    );
}

#[test]
fn the_sandbox_is_recommended_once_if_the_clients_sandbox_is_on() {
    const SANDBOX_ON: &str = r#"{"sandbox": {"enabled": true}}"#;
    const SANDBOX_OFF: &str = r#"{"sandbox": {"enabled": false}}"#;
    let verify: &[&str] = &["--verify", "true"];
    let cases: [(&[&str], Option<&str>, usize); 4] = [
        (verify, None, 1),
        (verify, Some(SANDBOX_OFF), 0),
        (&[], None, 0),
        (&["--verify", "true", "--verify-sandbox"], None, 0),
    ];
    run_cases_in_parallel(&cases, |(options, local, expected)| {
        let world = sandbox_world();
        world.write(world.home().join(".claude/settings.json"), SANDBOX_ON);
        if let Some(local) = local {
            world.write(".claude/settings.local.json", local);
        }
        let finished = run_scripted_sessions(
            &world,
            &[FINISH_SCRIPT],
            &[options, &["--max-iterations", "1"][..]].concat(),
        );
        let count = finished.stderr.matches("--verify-sandbox confines them").count();
        assert_eq!(count, *expected, "{options:?} {local:?}: {finished:?}");
    });
}

#[test]
fn the_sandbox_refuses_a_project_that_contains_the_home() {
    let mut world = sandbox_world();
    world.set_env("HOME", world.path("home").display().to_string());
    std::fs::create_dir(world.path("home")).unwrap();
    let finished = start_run(&world, &["--verify-sandbox"], &["true".to_owned()]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"
    error: --verify-sandbox cannot hide your home: the project [PROJECT] is or contains it
    hint: move the project into a folder of its own
    ");
}

/// Does its item and gives the promise.
fn finish_item_step(turn: &AgentTurn<'_>) -> plimsoll_testkit::scripted_model::Step {
    use plimsoll_testkit::scripted_model::Step;
    let Some(item) = turn.item_text.clone() else {
        return Step::from_text(format!("All done.\n\n{}", turn.promise_line));
    };
    match turn.assistant_message_count {
        0 => Step::bash_call(format!(
            "echo x > by-agent && sed -i 's/^- \\[ \\] {item}$/- [x] {item}/' plimsoll-item.md && git add -A && git commit -qm 'Finish {item}'"
        ))
        .with_input_tokens(30_000),
        _ => Step::from_text(format!("{item} is done.\n\n{}", turn.promise_line)).with_input_tokens(31_000),
    }
}

#[test]
fn setup_and_verify_commands_of_workers_run_in_the_sandbox() {
    let mut world = sandbox_world();
    world.write(world.home().join("secret"), SECRET);
    world.write(".gitignore", "prepared\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Ignore"]);
    let model = ScriptedAgent::new(finish_item_step).start(&mut world);
    let is_secret_hidden = format!("test ! -e {}", world.home().join("secret").display());
    let setup = format!("{is_secret_hidden} && git rev-parse HEAD > prepared && echo evil > ~/evil");
    let verify = format!(
        "{is_secret_hidden} && test -s prepared && git status > /dev/null && printf x > ~/.cache/kept"
    );
    let arguments = ["run", "--objective", "Do the plan.", "--workers", "2", "--verify-sandbox"];
    let commands =
        ["--setup", &setup, "--verify", &verify, "--", "--model", "opus", "--allowedTools", "Bash"];
    let finished = world.plimsoll(&[&arguments[..], &commands[..]].concat()).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(!world.home().join("evil").exists());
    // What an item's tests leave in their cache does not reach the commands that verify the merge.
    let caches =
        ["1", "merge"].map(|tree| run_folder(&world, "workers.json").join("cache").join(tree).join("kept"));
    let caches = caches.map(|cache| std::fs::read_to_string(cache).unwrap_or_default());
    assert!(caches.iter().all(|cache| cache == "x"), "{caches:?}: {finished:?}");
    drop(model);
}
