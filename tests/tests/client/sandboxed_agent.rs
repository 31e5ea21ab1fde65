//! An agent that Claude Code keeps in its sandbox: what it writes into the project brings none of our programs to do
//! outside what it may not do itself, and the commands that are made for it work inside.

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::World;
use plimsoll_tests::{LIFELIKE, ScriptedAgent, journal, run, world};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Stands in a file that no prompt, page or record may hold.
const SECRET: &str = "SECRET-OUTSIDE-THE-PROJECT";

/// A night whose first session does this in its sandbox, and afterwards only talks.
fn sandboxed(script: &str) -> (World, ScriptedModel) {
    for program in ["bwrap", "socat"] {
        let found = std::process::Command::new(program).arg("--version").output();
        assert!(found.is_ok(), "{program} is missing: Claude Code's sandbox needs bubblewrap and socat");
    }
    // The sandbox has a /dev of its own: what scripts/test.sh keeps in memory is not there.
    let _ = tempfile::env::override_temp_dir(Path::new("/tmp"));
    let mut world = world("# Plan\n\n- [ ] Item one\n");
    let sandbox = json!({"enabled": true, "autoAllowBashIfSandboxed": true, "allowUnsandboxedCommands": false, "failIfUnavailable": true});
    let settings = json!({"sandbox": sandbox}).to_string();
    world.write(world.home().join(".claude/settings.json"), &settings);
    world.write(world.home().join("secret"), SECRET);
    world.write(world.home().join(".bashrc"), "# mine\n");
    let script = world.write_program("attack.sh", script).display().to_string();
    let model = ScriptedAgent::new(move |turn| match (turn.iteration, turn.step) {
        (1, 0) => Step::bash(format!("sh {script} > attacked.txt 2>&1; rm -f attack.sh")),
        _ => Step::text("Done for now."),
    })
    .with_real_client()
    .at_real_pace()
    .start(&mut world);
    (world, model)
}

/// What the client writes itself, beside `.claude*`, and where the user's runs have their records.
const CLIENTS: [&str; 6] =
    [".cache", ".config/git/ignore", ".local/share", ".local/state/claude", ".local/state/plimsoll", ".npm"];

/// What lies in the home that neither the client nor a run writes.
fn outside(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![world.home()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(world.home()).unwrap().to_owned();
            let is_clients = name.to_string_lossy().starts_with(".claude")
                || CLIENTS.iter().any(|own| name.starts_with(own));
            match path.is_dir() && !path.is_symlink() {
                _ if is_clients => {}
                true => folders.push(path),
                false => drop(found.insert(name, std::fs::read(&path).unwrap_or_default())),
            }
        }
    }
    found
}

fn attacked(world: &World) -> String {
    std::fs::read_to_string(world.path("attacked.txt")).unwrap_or_default()
}

#[test]
fn the_sandbox_is_on_and_keeps_the_records_of_a_run() {
    let (world, _model) = sandboxed(
        "touch ~/evil; touch ~/.local/state/plimsoll/runs/evil; for file in ~/.local/state/plimsoll/runs/*/*; do echo '{}' > $file; done; touch .claude/plimsoll/there",
    );
    let finished = run(&world, &["--max-iterations", "1"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let said = attacked(&world);
    assert!(said.matches("Read-only file system").count() >= 4, "{said}");
    assert!(world.exists(".claude/plimsoll/there"), "what lies in the project is the agent's");
    assert!(!outside(&world).contains_key(Path::new("evil")));
    let record =
        std::fs::read_dir(world.runs()).unwrap().flatten().next().unwrap().path().join("record.json");
    assert!(std::fs::read_to_string(&record).unwrap().contains("run_id"), "{record:?}");
}

/// Whatever the agent does in a night's first session: nothing of it is started, followed or sent outside.
fn does_nothing_outside(attack: &'static str) {
    let (world, model) = sandboxed(attack);
    let before = outside(&world);
    let finished = run(&world, &["--max-iterations", "2", "--verify", "test -e never", "--verify", "true"]);
    assert_ne!(finished.code, Some(0), "{attack}: {finished:?}");
    assert_eq!(attacked(&world), "", "{attack}");
    for arguments in [&["status"][..], &["linear", "check"], &["doctor"], &["report"], &["log"], &["plan"]] {
        world.plimsoll(arguments).run();
    }
    let payload = json!({"session_id": "d8e9da22-d41b-4824-a1be-f318ff23689b", "cwd": world.project(), "model": {"id": "claude-opus-5-5", "display_name": "Opus 5.5"}});
    let line = world.hook("plimsoll-statusline", &payload).run();
    assert!(!line.stdout.contains("evil"), "{attack}: {line:?}");
    assert_eq!(outside(&world), before, "{attack}: {finished:?}");
    for request in model.requests() {
        assert!(!request.body.to_string().contains(SECRET), "{attack}: a secret was sent");
    }
}

#[test]
fn programs_that_a_sandboxed_agent_names_in_settings_are_not_started() {
    does_nothing_outside(
        r#"cat > .claude/plimsoll.json <<'END'
{"statusline": {"lines": [["evil"]], "segments": {"evil": {"command": ["sh", "-c", "touch ~/evil-status; echo evil"]}}},
 "linear": {"issue": "EVIL-1", "key_command": "touch ~/evil-linear"}, "idle_timeout_seconds": 0}
END"#,
    );
}

#[test]
fn programs_that_a_sandboxed_agent_writes_into_a_state_are_not_started() {
    does_nothing_outside(
        r#"for state in .claude/ralph-state.json .git/plimsoll/ralph-state.json; do
  jq '.verify = ["touch ~/evil-verify"] | .notify = ["sh", "-c", "touch ~/evil-notify"] | .status = "completed" | .known_items = [] | .client = "/bin/false"' $state > forged
  cat forged > $state
done"#,
    );
}

#[test]
fn the_filters_of_a_sandboxed_agents_repository_are_not_started() {
    does_nothing_outside(
        r#"mkdir nested && cd nested && git init -q . && echo '* filter=evil' > .gitattributes && echo x > file && git add -A && git -c user.name=x -c user.email=x commit -qm x
git config filter.evil.clean 'touch ~/evil-filter; cat'; git config core.fsmonitor 'touch ~/evil-monitor'; echo changed > file"#,
    );
}

#[test]
fn links_of_a_sandboxed_agent_in_place_of_what_a_run_writes_are_not_followed() {
    does_nothing_outside(
        r#"for name in .claude/plimsoll/journal.jsonl .claude/plimsoll/faults.jsonl .claude/plimsoll/windows.json .claude/plimsoll/progress.txt .git/plimsoll/todo.md .git/plimsoll/progress.txt; do
  until ln -sf ~/.bashrc $name 2>/dev/null; do :; done # the run writes there, too
done"#,
    );
}

#[test]
fn links_of_a_sandboxed_agent_in_place_of_folders_are_not_followed() {
    does_nothing_outside("rm -rf .claude/handoffs && ln -s ~ .claude/handoffs");
}

#[test]
fn a_link_of_a_sandboxed_agent_in_place_of_the_prompt_is_not_read() {
    does_nothing_outside("rm -f PROMPT.md && ln -s ~/secret PROMPT.md");
}

#[test]
fn the_commands_that_an_agent_calls_work_in_the_sandbox_and_write_nothing_outside() {
    let (world, _model) = sandboxed(
        "for command in checkpoint status 'status --markdown' 'memory set R4 Note' plan 'log' stop; do echo \"== $command\"; plimsoll $command; echo \"-- $?\"; done",
    );
    let before = outside(&world);
    let finished = run(&world, &[]);
    let said = attacked(&world);
    // Once it is stopped the run ends this shell: what follows may be lost.
    let (said, _) = said.split_once("== stop").expect("the last command");
    assert_eq!(said.matches("-- 0").count(), 6, "{said}");
    for words in ["## Ralph Checkpoint Created", "a `plimsoll run` is active", "Current Context"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(finished.code, Some(9), "the user's run hears the agent's stop: {finished:?}");
    assert!(journal(&world).iter().any(|entry| entry["event"] == "checkpoint"));
    assert_eq!(outside(&world), before);
}

/// Outside a run, after the default `init`: the project's files are in the user's state folder, which the sandbox does not let a
/// command write.
#[test]
fn a_handoff_and_the_memory_are_written_into_the_project_where_the_sandbox_allows_nothing_else() {
    let _ = tempfile::env::override_temp_dir(Path::new("/tmp"));
    let mut world = World::untouched();
    let sandbox = json!({"enabled": true, "autoAllowBashIfSandboxed": true, "allowUnsandboxedCommands": false, "failIfUnavailable": true});
    world.write(world.home().join(".claude/settings.json"), &json!({"sandbox": sandbox}).to_string());
    world.plimsoll(&["init", "--user"]).run().expect_success();
    world.plimsoll(&["memory", "set", "R5", "Written earlier"]).run().expect_success();
    let script = "for command in 'memory set R4 Written-inside' checkpoint 'handoffs --continue' 'memory show'; do echo \"== $command\"; plimsoll $command; echo \"-- $?\"; done > said.txt 2>&1";
    let model =
        ScriptedModel::steps(vec![Step::bash(script).delay(LIFELIKE), Step::text("Done.").delay(LIFELIKE)]);
    world.use_model(&model);
    let finished = world.claude(&["-p", "Note it.", "--model", "opus", "--allowedTools", "Bash"]).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let said = world.read("said.txt");
    assert_eq!(said.matches("-- 0").count(), 4, "{said}");
    assert_eq!(said.matches("keeps the files of this project in the project").count(), 1, "{said}");
    // Both are found inside and outside of the sandbox, with what was there before.
    let (_, shown) = said.split_once("== memory show").expect(&said);
    let outside = world.plimsoll(&["memory", "show"]).run().expect_success().stdout;
    for words in ["Written-inside", "Written earlier"] {
        assert!(shown.contains(words) && outside.contains(words), "{words}: {said}\n{outside}");
    }
    let handoff = said.lines().find_map(|line| line.strip_prefix("**Handoff**: ")).expect(&said).to_owned();
    assert!(handoff.starts_with(".claude/handoffs/") && world.exists(&handoff), "{said}");
    assert!(said.contains(&format!("Continue from: {handoff}")), "the session wrote it itself: {said}");
    // The hooks work outside of the sandbox, find the session's record in the project, and enter the handoff as the user's.
    let next = world.plimsoll(&["handoffs", "--continue"]).run().expect_success();
    assert!(next.stdout.contains(&handoff), "{next:?}");
    assert_eq!(world.git(&["status", "--porcelain"]).trim(), "?? said.txt", "git does not see them");
    assert!(!world.exists(".claude/ralph-state.json"), "there is no run");
}

/// A repository of the agent's own making, with a program in every place that a commit looks into.
const REPOSITORY: &str = r#"rm -rf .git; git init -q -b main . && git config user.email a@b && git config user.name n
printf '#!/bin/sh\ntouch ~/evil; touch sprung\ncat\n' > trap.sh && chmod +x trap.sh
for hook in pre-commit commit-msg post-commit post-index-change; do cp trap.sh .git/hooks/$hook; done
for key in filter.evil.clean core.fsmonitor gpg.program; do git -c core.hooksPath= -c core.fsmonitor= config $key $PWD/trap.sh; done
echo '*.x filter=evil' > .gitattributes; echo x > a.x; echo work > work.txt; rm -f sprung"#;

#[test]
fn the_commit_of_a_run_runs_nothing_of_a_repository_that_its_agent_has_made() {
    let (world, _model) = sandboxed(REPOSITORY);
    // Without a repository, as a project that is begun in the run.
    std::fs::remove_dir_all(world.path(".git")).unwrap();
    let finished = run(&world, &["--max-iterations", "1"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(world.exists(".git/hooks/pre-commit"), "{}", attacked(&world));
    assert!(!world.exists("sprung") && !world.home().join("evil").exists(), "{finished:?}");
    let commits = world.git(&[
        "-c",
        "core.hooksPath=",
        "-c",
        "core.fsmonitor=",
        "show",
        "--stat",
        "--format=%s",
        "HEAD",
    ]);
    assert!(commits.contains("ralph: checkpoint iter 1") && commits.contains("work.txt"), "{commits}");
    assert!(!commits.contains("a.x"), "a file under a filter is left out: {commits}");
}

/// The user's hooks and a filter lie in the working tree, where the agent may write: it rewrites both, and leaves work uncommitted.
const REWRITTEN: &str = r#"printf '#!/bin/sh\ntouch ~/evil; touch sprung\n' > .husky/pre-commit; cp .husky/pre-commit .husky/post-commit; chmod +x .husky/*
printf 'touch ~/evil; touch sprung\ncat\n' > tools/clean.sh; echo work > work.txt; echo data > data.own; rm -f sprung"#;

#[test]
fn the_commit_of_a_run_runs_no_hook_and_no_filter_that_its_agent_has_rewritten() {
    let (world, _model) = sandboxed(REWRITTEN);
    world.write_program(".husky/pre-commit", "#!/bin/sh\nexit 0\n");
    world.write("tools/clean.sh", "cat\n");
    world.write(".gitattributes", "*.own filter=own\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Hooks"]);
    world.git(&["config", "core.hooksPath", ".husky"]);
    world.git(&["config", "filter.own.clean", "sh tools/clean.sh"]);
    let finished = run(&world, &["--max-iterations", "1"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(world.read(".husky/pre-commit").contains("evil"), "{}", attacked(&world));
    assert!(!world.exists("sprung") && !world.home().join("evil").exists(), "{finished:?}");
    let commit = world.git(&["-c", "core.hooksPath=", "show", "--stat", "--format=%B", "HEAD"]);
    assert!(commit.contains("ralph: checkpoint iter 1") && commit.contains("work.txt"), "{commit}");
    assert!(commit.contains("Plimsoll-Run: ") && !commit.contains("data.own"), "{commit}");
}
