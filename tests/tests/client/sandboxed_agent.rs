//! An agent that Claude Code keeps in its sandbox: no file that it writes into the project makes a program of Plimsoll's
//! do anything outside that the agent may not do itself, and the commands that are meant for it work inside.

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::World;
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, read_journal, run_with_objective, world_with_plan_and_dates,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The content of a file that must not appear in any prompt, page or record.
const SECRET: &str = "SECRET-OUTSIDE-THE-PROJECT";

/// Prepares a run whose first session executes this script in its sandbox; the later responses are only text.
fn world_with_sandboxed_agent(script: &str) -> (World, ScriptedModel) {
    for program in ["bwrap", "socat"] {
        let output = std::process::Command::new(program).arg("--version").output();
        assert!(output.is_ok(), "{program} is missing: Claude Code's sandbox needs bubblewrap and socat");
    }
    // The sandbox has its own /dev: files that scripts/test.sh keeps in memory are not visible there.
    let _ = tempfile::env::override_temp_dir(Path::new("/tmp"));
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item one\n");
    let sandbox = json!({"enabled": true, "autoAllowBashIfSandboxed": true, "allowUnsandboxedCommands": false, "failIfUnavailable": true});
    let settings = json!({"sandbox": sandbox}).to_string();
    world.write(world.home().join(".claude/settings.json"), &settings);
    world.write(world.home().join("secret"), SECRET);
    world.write(world.home().join(".bashrc"), "# mine\n");
    let script = world.write_program("attack.sh", script).display().to_string();
    let model = ScriptedAgent::new(move |turn| match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => Step::bash_call(format!("sh {script} > attacked.txt 2>&1; rm -f attack.sh")),
        _ => Step::from_text("Done for now."),
    })
    .with_real_client()
    .with_lifelike_delay()
    .start(&mut world);
    (world, model)
}

/// Paths that the client writes itself, beside `.claude*`, and the folder of the user's run records.
const CLIENT_PATHS: [&str; 6] =
    [".cache", ".config/git/ignore", ".local/share", ".local/state/claude", ".local/state/plimsoll", ".npm"];

/// Returns the files in the home that neither the client nor a run writes.
fn home_files(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![world.home()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(world.home()).unwrap().to_owned();
            let is_client_path = name.to_string_lossy().starts_with(".claude")
                || CLIENT_PATHS.iter().any(|prefix| name.starts_with(prefix));
            match path.is_dir() && !path.is_symlink() {
                _ if is_client_path => {}
                true => folders.push(path),
                false => drop(files.insert(name, std::fs::read(&path).unwrap_or_default())),
            }
        }
    }
    files
}

fn attack_output(world: &World) -> String {
    std::fs::read_to_string(world.path("attacked.txt")).unwrap_or_default()
}

#[test]
fn the_sandbox_protects_the_records_of_a_run() {
    let (world, _model) = world_with_sandboxed_agent(
        "touch ~/evil; touch ~/.local/state/plimsoll/runs/evil; for file in ~/.local/state/plimsoll/runs/*/*; do echo '{}' > $file; done; touch .claude/plimsoll/there",
    );
    let finished = run_with_objective(&world, &["--max-iterations", "1"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let output = attack_output(&world);
    assert!(output.matches("Read-only file system").count() >= 4, "{output}");
    assert!(world.exists(".claude/plimsoll/there"), "what lies in the project is the agent's");
    assert!(!home_files(&world).contains_key(Path::new("evil")));
    let record =
        std::fs::read_dir(world.runs_folder()).unwrap().flatten().next().unwrap().path().join("record.json");
    assert!(std::fs::read_to_string(&record).unwrap().contains("run_id"), "{record:?}");
}

/// Asserts that files that an agent writes in the first session of a run are not executed, followed or sent outside.
fn assert_attack_changes_nothing_outside(attack: &'static str) {
    let (world, model) = world_with_sandboxed_agent(attack);
    let files_before = home_files(&world);
    let finished = run_with_objective(
        &world,
        &["--max-iterations", "2", "--verify", "test -e never", "--verify", "true"],
    );
    assert_ne!(finished.code, Some(0), "{attack}: {finished:?}");
    assert_eq!(attack_output(&world), "", "{attack}");
    for arguments in [&["status"][..], &["linear", "check"], &["doctor"], &["report"], &["log"], &["plan"]] {
        world.plimsoll(arguments).run();
    }
    let payload = json!({"session_id": "d8e9da22-d41b-4824-a1be-f318ff23689b", "cwd": world.project(), "model": {"id": "claude-opus-5-5", "display_name": "Opus 5.5"}});
    let line = world.hook("plimsoll-statusline", &payload).run();
    assert!(!line.stdout.contains("evil"), "{attack}: {line:?}");
    assert_eq!(home_files(&world), files_before, "{attack}: {finished:?}");
    for request in model.requests() {
        assert!(!request.body.to_string().contains(SECRET), "{attack}: a secret was sent");
    }
}

#[test]
fn programs_that_the_agent_names_in_settings_are_not_started() {
    assert_attack_changes_nothing_outside(
        r#"cat > .claude/plimsoll.json <<'END'
{"statusline": {"lines": [["evil"]], "segments": {"evil": {"command": ["sh", "-c", "touch ~/evil-status; echo evil"]}}},
 "linear": {"issue": "EVIL-1", "key_command": "touch ~/evil-linear"}, "idle_timeout_seconds": 0}
END"#,
    );
}

#[test]
fn programs_that_the_agent_writes_into_the_state_are_not_started() {
    assert_attack_changes_nothing_outside(
        r#"for state in .claude/ralph-state.json .git/plimsoll/ralph-state.json; do
  jq '.verify = ["touch ~/evil-verify"] | .notify = ["sh", "-c", "touch ~/evil-notify"] | .status = "completed" | .known_items = [] | .client = "/bin/false"' $state > forged
  cat forged > $state
done"#,
    );
}

#[test]
fn git_filters_of_a_repository_that_the_agent_made_are_not_started() {
    assert_attack_changes_nothing_outside(
        r#"mkdir nested && cd nested && git init -q . && echo '* filter=evil' > .gitattributes && echo x > file && git add -A && git -c user.name=x -c user.email=x commit -qm x
git config filter.evil.clean 'touch ~/evil-filter; cat'; git config core.fsmonitor 'touch ~/evil-monitor'; echo changed > file"#,
    );
}

#[test]
fn links_that_the_agent_puts_in_place_of_run_files_are_not_followed() {
    assert_attack_changes_nothing_outside(
        r#"for name in .claude/plimsoll/journal.jsonl .claude/plimsoll/faults.jsonl .claude/plimsoll/windows.json .claude/plimsoll/progress.txt .git/plimsoll/todo.md .git/plimsoll/progress.txt; do
  until ln -sf ~/.bashrc $name 2>/dev/null; do :; done # the run writes there, too
done"#,
    );
}

#[test]
fn links_that_the_agent_puts_in_place_of_folders_are_not_followed() {
    assert_attack_changes_nothing_outside("rm -rf .claude/handoffs && ln -s ~ .claude/handoffs");
}

#[test]
fn a_link_that_the_agent_puts_in_place_of_the_prompt_is_not_read() {
    assert_attack_changes_nothing_outside("rm -f PROMPT.md && ln -s ~/secret PROMPT.md");
}

#[test]
fn plimsoll_commands_work_in_the_sandbox_and_write_nothing_outside() {
    let (world, _model) = world_with_sandboxed_agent(
        "for command in checkpoint status 'status --markdown' 'memory set R4 Note' plan 'log' stop; do echo \"== $command\"; plimsoll $command; echo \"-- $?\"; done",
    );
    let files_before = home_files(&world);
    let finished = run_with_objective(&world, &[]);
    let output = attack_output(&world);
    // Once it is stopped the run ends this shell: later output may be lost.
    let (output_before_stop, _) = output.split_once("== stop").expect("the last command");
    assert_eq!(output_before_stop.matches("-- 0").count(), 6, "{output_before_stop}");
    for words in ["## Ralph Checkpoint Created", "a `plimsoll run` is active", "Current Context"] {
        assert!(output_before_stop.contains(words), "{words}: {output_before_stop}");
    }
    assert_eq!(finished.code, Some(9), "the user's run hears the agent's stop: {finished:?}");
    assert!(read_journal(&world).iter().any(|entry| entry["event"] == "checkpoint"));
    assert_eq!(home_files(&world), files_before);
}

/// Outside a run, after the default `init`: the project's files are in the user's state folder, which the sandbox protects from
/// commands.
#[test]
fn in_the_sandbox_handoff_and_memory_are_written_into_the_project() {
    let _ = tempfile::env::override_temp_dir(Path::new("/tmp"));
    let mut world = World::without_plimsoll_files();
    let sandbox = json!({"enabled": true, "autoAllowBashIfSandboxed": true, "allowUnsandboxedCommands": false, "failIfUnavailable": true});
    world.write(world.home().join(".claude/settings.json"), &json!({"sandbox": sandbox}).to_string());
    world.plimsoll(&["init", "--user"]).run().expect_success();
    world.plimsoll(&["memory", "set", "R5", "Written earlier"]).run().expect_success();
    let script = "for command in 'memory set R4 Written-inside' checkpoint 'handoffs --continue' 'memory show'; do echo \"== $command\"; plimsoll $command; echo \"-- $?\"; done > said.txt 2>&1";
    let model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::bash_call(script).with_delay(LIFELIKE_DELAY),
        Step::from_text("Done.").with_delay(LIFELIKE_DELAY),
    ]);
    world.put_client_on_path_with_model_and_settings(&model);
    let finished = world.claude(&["-p", "Note it.", "--model", "opus", "--allowedTools", "Bash"]).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let output = world.read("said.txt");
    assert_eq!(output.matches("-- 0").count(), 4, "{output}");
    assert_eq!(output.matches("keeps the files of this project in the project").count(), 1, "{output}");
    // Both are found inside and outside of the sandbox, together with what was there before.
    let (_, shown_inside) = output.split_once("== memory show").expect(&output);
    let shown_outside = world.plimsoll(&["memory", "show"]).run().expect_success().stdout;
    for words in ["Written-inside", "Written earlier"] {
        assert!(
            shown_inside.contains(words) && shown_outside.contains(words),
            "{words}: {output}\n{shown_outside}"
        );
    }
    let handoff =
        output.lines().find_map(|line| line.strip_prefix("**Handoff**: ")).expect(&output).to_owned();
    assert!(handoff.starts_with(".claude/handoffs/") && world.exists(&handoff), "{output}");
    assert!(output.contains(&format!("Continue from: {handoff}")), "the session wrote it itself: {output}");
    // The hooks run outside of the sandbox: they find the session's record in the project and register the handoff for the user.
    let continued = world.plimsoll(&["handoffs", "--continue"]).run().expect_success();
    assert!(continued.stdout.contains(&handoff), "{continued:?}");
    assert_eq!(world.git(&["status", "--porcelain"]).trim(), "?? said.txt", "git does not see them");
    assert!(!world.exists(".claude/ralph-state.json"), "there is no run");
}

/// Creates a repository with a program in every place that git reads during a commit.
const TRAPPED_REPOSITORY_SCRIPT: &str = r#"rm -rf .git; git init -q -b main . && git config user.email a@b && git config user.name n
printf '#!/bin/sh\ntouch ~/evil; touch sprung\ncat\n' > trap.sh && chmod +x trap.sh
for hook in pre-commit commit-msg post-commit post-index-change; do cp trap.sh .git/hooks/$hook; done
for key in filter.evil.clean core.fsmonitor gpg.program; do git -c core.hooksPath= -c core.fsmonitor= config $key $PWD/trap.sh; done
echo '*.x filter=evil' > .gitattributes; echo x > a.x; echo work > work.txt; rm -f sprung"#;

#[test]
fn a_run_commit_executes_nothing_of_a_repository_that_the_agent_made() {
    let (world, _model) = world_with_sandboxed_agent(TRAPPED_REPOSITORY_SCRIPT);
    // Removes the repository: the project has none until the agent creates one in the run.
    std::fs::remove_dir_all(world.path(".git")).unwrap();
    let finished = run_with_objective(&world, &["--max-iterations", "1"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(world.exists(".git/hooks/pre-commit"), "{}", attack_output(&world));
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

/// The user's hooks and a filter are in the working tree, where the agent may write: this rewrites both and leaves work
/// uncommitted.
const REWRITE_HOOKS_SCRIPT: &str = r#"printf '#!/bin/sh\ntouch ~/evil; touch sprung\n' > .husky/pre-commit; cp .husky/pre-commit .husky/post-commit; chmod +x .husky/*
printf 'touch ~/evil; touch sprung\ncat\n' > tools/clean.sh; echo work > work.txt; echo data > data.own; rm -f sprung"#;

#[test]
fn a_run_commit_executes_no_hook_or_filter_that_the_agent_rewrote() {
    let (world, _model) = world_with_sandboxed_agent(REWRITE_HOOKS_SCRIPT);
    world.write_program(".husky/pre-commit", "#!/bin/sh\nexit 0\n");
    world.write("tools/clean.sh", "cat\n");
    world.write(".gitattributes", "*.own filter=own\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Hooks"]);
    world.git(&["config", "core.hooksPath", ".husky"]);
    world.git(&["config", "filter.own.clean", "sh tools/clean.sh"]);
    let finished = run_with_objective(&world, &["--max-iterations", "1"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(world.read(".husky/pre-commit").contains("evil"), "{}", attack_output(&world));
    assert!(!world.exists("sprung") && !world.home().join("evil").exists(), "{finished:?}");
    let commit = world.git(&["-c", "core.hooksPath=", "show", "--stat", "--format=%B", "HEAD"]);
    assert!(commit.contains("ralph: checkpoint iter 1") && commit.contains("work.txt"), "{commit}");
    assert!(commit.contains("Plimsoll-Run: ") && !commit.contains("data.own"), "{commit}");
}
