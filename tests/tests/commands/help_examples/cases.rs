//! The examples that need a certain state, or whose effect the help describes.

use super::worlds::{
    EARLIER_RUN, RECORDED_SESSION, fake_token, plan_with_items, programs_folder, recorded_transcript_path,
};
use plimsoll_domain::TodoList;
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::json;

/// What one example needs, and how its effect is checked.
pub(crate) struct ExampleCase {
    /// The example as printed, without its description.
    pub(crate) script: &'static str,
    pub(crate) prepare: fn(&World),
    pub(crate) shell: Shell,
    /// Parts of lines on standard error that do not mean a failure.
    pub(crate) allowed_messages: &'static [&'static str],
    /// Returns an error that says what in the help is wrong.
    pub(crate) check: fn(&World, &FinishedProgram) -> Result<(), String>,
}

/// The way in which an example is run.
#[derive(Clone, Copy)]
pub(crate) enum Shell {
    /// `sh` without a terminal; `then` runs afterwards and shows what the example left in the shell.
    Sh { then: &'static str },
    /// Another shell, the one for which the help gives the example.
    Other { program: &'static str, first: &'static str, then: &'static str },
    /// `sh` on a terminal; `answer` is typed when `question` appears.
    Terminal { question: &'static str, answer: &'static str },
}

/// A case that needs no preparation and no check.
pub(crate) const DEFAULT_CASE: ExampleCase = ExampleCase {
    script: "",
    prepare: |_| (),
    shell: Shell::Sh { then: "" },
    allowed_messages: &[],
    check: |_, _| Ok(()),
};

/// Messages in which a run says how to look at it or to merge it.
const RUN_HINTS: &[&str] =
    &["to see what happened:", "the work is on the branch", "is ready: PROMPT.md is written"];
const CONFIRMS: Shell = Shell::Terminal { question: "[y/N]", answer: "y" };

pub(crate) fn all_cases() -> impl Iterator<Item = &'static ExampleCase> {
    RUN_CASES
        .iter()
        .chain(LOOP_CASES)
        .chain(FLEET_CASES)
        .chain(QUERY_CASES)
        .chain(CHANGE_CASES)
        .chain(SETUP_CASES)
}

fn expect_output(finished: &FinishedProgram, parts: &[&str]) -> Result<(), String> {
    match parts.iter().find(|part| !finished.stdout.contains(**part)) {
        Some(part) => Err(format!("it does not print {part:?}")),
        None => Ok(()),
    }
}

fn expect_true(condition: bool, claim: &str) -> Result<(), String> {
    if condition { Ok(()) } else { Err(format!("this is not so: {claim}")) }
}

fn open_items(text: &str) -> usize {
    TodoList::parse(text).open_items().len()
}

fn expect_plan_done(world: &World, plan: &str) -> Result<(), String> {
    let list = TodoList::parse(&world.read(plan));
    expect_true(
        list.open_items().is_empty() && !list.ticked_items().is_empty(),
        "all items of the plan are done",
    )
}

/// Commits a plan with this many open items on `main`.
pub(crate) fn commit_new_plan(world: &World, items: usize) {
    world.git(&["checkout", "-q", "-f", "main"]);
    // Remove the task of an earlier run, which would become the task of the next one.
    let _ = std::fs::remove_file(world.path("PROMPT.md"));
    world.write("fix_plan.md", &plan_with_items(items));
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "--allow-empty", "-m", "Plan again"]);
}

fn main_has_open_items(world: &World, open_count: usize) -> bool {
    open_items(&world.git(&["show", "main:fix_plan.md"])) == open_count
}

/// Ends a run by Ctrl-C after its first session.
fn interrupt_run(world: &World) {
    commit_new_plan(world, 2);
    let arguments = ["run", "--objective", "Do fix_plan.md.", "--", "--allowedTools", "Bash"];
    let mut running = world.plimsoll(&arguments).spawn();
    world.wait_until(|| running.stdout_so_far().contains("session 1"), "a first session");
    running.interrupt();
    let finished = running.wait_or_kill_and_panic(std::time::Duration::from_secs(60));
    assert_eq!(finished.code, Some(130), "{finished:?}");
    assert!(open_items(&world.read("fix_plan.md")) > 0);
}

/// Ends a run by the circuit breaker, and removes the cause.
fn trip_breaker(world: &World) {
    commit_new_plan(world, 1);
    world.write(world.home().join("idle"), "");
    let arguments = ["run", "--objective", "Do fix_plan.md.", "--", "--allowedTools", "Bash"];
    let finished = world.plimsoll(&arguments).run();
    assert_eq!(finished.code, Some(4), "{finished:?}");
    std::fs::remove_file(world.home().join("idle")).expect("the file");
}

const RUN_CASES: &[ExampleCase] = &[
    ExampleCase {
        script: "plimsoll init",
        check: |world, _| {
            let settings = world.read(world.home().join(".claude/settings.json"));
            expect_true(settings.contains("plimsoll-post-tool"), "the user's own settings have the hooks")
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll run --objective 'Do fix_plan.md.' -- --allowedTools Bash Edit Write",
        allowed_messages: RUN_HINTS,
        check: |world, finished| {
            expect_plan_done(world, "fix_plan.md").and(expect_output(finished, &["RALPH_STOP|completed"]))
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll status",
        check: |_, finished| expect_output(finished, &["completed", " done\n"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll run --verify 'cargo test' -- --allowedTools Bash Edit Write",
        allowed_messages: RUN_HINTS,
        check: |world, finished| {
            expect_plan_done(world, "fix_plan.md")
                .and(expect_output(finished, &["verified: `cargo test` passed"]))
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll run 'Translate docs/ into German.' --todo pages.md --deadline 07:00 \\\n  \
                 --max-cost 20 -- --allowedTools Bash Edit Write",
        prepare: |world| world.write("pages.md", &plan_with_items(1)),
        allowed_messages: RUN_HINTS,
        check: |world, finished| {
            expect_plan_done(world, "pages.md")
                .and(expect_output(finished, &["Translate docs/ into German."]))
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll run --branch night -- --allowedTools Bash Edit Write",
        prepare: |world| commit_new_plan(world, 1),
        allowed_messages: RUN_HINTS,
        check: |world, finished| {
            expect_plan_done(world, "fix_plan.md")?;
            expect_true(main_has_open_items(world, 1), "the branch that was checked out is as it was")?;
            expect_true(
                finished.stderr.contains("git switch main && git merge night"),
                "the end says how to merge",
            )
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll run --workers 3 --verify 'npm test' -- --allowedTools Bash Edit Write",
        prepare: |world| commit_new_plan(world, 3),
        allowed_messages: RUN_HINTS,
        check: |_, finished| expect_output(finished, &["3 items merged", "1 verify command passed"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll run --resume",
        prepare: interrupt_run,
        allowed_messages: RUN_HINTS,
        check: |world, finished| {
            expect_plan_done(world, "fix_plan.md").and(expect_output(finished, &["RALPH_STOP|completed"]))
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll run --resume --reset-breaker",
        prepare: trip_breaker,
        allowed_messages: RUN_HINTS,
        check: |world, finished| {
            expect_plan_done(world, "fix_plan.md").and(expect_output(finished, &["RALPH_STOP|completed"]))
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll run --resume --answer 1 'Use port 8042'",
        prepare: |world| {
            commit_new_plan(world, 1);
            world.write("fix_plan.md", &format!("{}  ? Which port?\n", plan_with_items(1)));
            assert_eq!(world.plimsoll(&["run", "--", "--allowedTools", "Bash"]).run().code, Some(7));
        },
        allowed_messages: &["answered in fix_plan.md", "to see what happened:"],
        check: |world, finished| {
            expect_plan_done(world, "fix_plan.md").and(expect_output(finished, &["RALPH_STOP|completed"]))?;
            expect_true(
                world.read("fix_plan.md").contains("  ! Use port 8042\n"),
                "the answer is in the plan",
            )
        },
        ..DEFAULT_CASE
    },
];

const LOOP_CASES: &[ExampleCase] = &[
    ExampleCase {
        script: "eval \"$(plimsoll start --objective 'Migrate to Vitest')\"",
        shell: Shell::Sh { then: "\nenv" },
        allowed_messages: RUN_HINTS,
        check: |world, finished| {
            let state = world.read_json(".claude/ralph-state.json");
            let id = state["run_id"].as_str().unwrap_or_default();
            expect_true(state["objective"] == "Migrate to Vitest", "the run has its task")?;
            expect_output(finished, &[&format!("PLIMSOLL_RUN_ID={id}\n")])
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "eval \"$(plimsoll start --objective 'Migrate to Vitest')\"\nwhile true; do\n  \
                 claude -p --output-format json --allowedTools Bash < PROMPT.md |\n    plimsoll gate --wait\n  \
                 [ $? -eq 1 ] || break\ndone",
        prepare: |world| {
            std::fs::remove_dir_all(world.path(".claude")).expect("our files");
            commit_new_plan(world, 2);
            world.plimsoll(&["init"]).run().expect_success();
        },
        allowed_messages: RUN_HINTS,
        check: |world, finished| {
            expect_plan_done(world, "fix_plan.md")
                .and(expect_output(finished, &["RALPH_CONTINUE|", "RALPH_STOP|completed"]))
        },
        ..DEFAULT_CASE
    },
];

const FLEET_CASES: &[ExampleCase] = &[
    ExampleCase {
        script: "plimsoll fleet create night --verify 'npm test'",
        prepare: commit_new_plan_and_forget_fleet,
        check: |_, finished| expect_output(finished, &["the work is merged into plimsoll/night"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll fleet create night --deliver merge --max-cost 40",
        prepare: commit_new_plan_and_forget_fleet,
        check: |_, finished| expect_output(finished, &["the work is merged into main"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll fleet create night --verify 'npm test' --max-cost 40",
        prepare: commit_new_plan_and_forget_fleet,
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll fleet status",
        check: |_, finished| expect_output(finished, &["night: no active worker; 0 of 2 items merged"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll fleet join night --workers 3 -- --allowedTools Bash Edit Write",
        allowed_messages: RUN_HINTS,
        check: |_, finished| expect_output(finished, &["2 of 2 items merged"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll fleet status night",
        // The join before has ended, so no worker is active and none is listed.
        check: |_, finished| expect_output(finished, &["Items", "2 of 2 items merged"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll fleet log night -f",
        prepare: |world| {
            // Members that ended a moment ago count as present until their leases run out.
            let sql =
                "psql -X -q -d \"$PLIMSOLL_DATABASE_URL\" -c 'update plimsoll_night.worker set seen = 0'";
            world.command("sh", &["-c", sql]).run().expect_success();
        },
        allowed_messages: &["the fleet `night` is over"],
        check: |_, finished| expect_output(finished, &["the fleet was created", "every item is merged"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll doctor --fleet night",
        prepare: |world| {
            commit_new_plan_and_forget_fleet(world);
            world.plimsoll(&["fleet", "create", "night"]).run().expect_success();
        },
        check: |_, finished| expect_output(finished, &["ok       Database", "ok       Remote"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll doctor --client ~/bin/claude",
        prepare: |world| {
            let client = "#!/bin/sh\nexec claude \"$@\"\n";
            world.write_program(world.home().join("bin/claude"), client);
        },
        check: |_, finished| expect_output(finished, &["ok       Client", "bin/claude"]),
        ..DEFAULT_CASE
    },
];

pub(crate) fn commit_new_plan_and_forget_fleet(world: &World) {
    commit_new_plan(world, 2);
    world.write("PROMPT.md", "Do what fix_plan.md says.\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "--allow-empty", "-m", "Task"]);
    world.git(&["push", "-q", "-f", "origin", "main"]);
    let listed = world.plimsoll(&["fleet", "status", "--json"]).run();
    if listed.stdout.contains("night") {
        world.plimsoll(&["fleet", "forget", "night", "--yes"]).run().expect_success();
        // The branch does not exist if the fleet delivered to `main`.
        world.command("git", &["push", "-q", "origin", ":plimsoll/night"]).run();
    }
}

/// Returns the payload of an event of the recorded session.
fn payload_of(world: &World, event: &str) -> serde_json::Value {
    json!({"session_id": RECORDED_SESSION, "hook_event_name": event, "source": "resume", "cwd": world.project(),
        "transcript_path": recorded_transcript_path(world)})
}

/// Runs the hooks on the recorded session, whose window is 80% full.
fn measure_recorded_session(world: &World) {
    for (hook, event) in [("plimsoll-session-start", "SessionStart"), ("plimsoll-post-tool", "PostToolBatch")]
    {
        world.hook(hook, &payload_of(world, event)).run().expect_success();
    }
}

/// Writes the payload of a hook of the recorded session, and a hook that prints the usage.
pub(crate) fn write_payload_and_hook(world: &World) {
    let payload = payload_of(world, "Stop");
    world.write("payload.json", &payload.to_string());
    world.write_program("my-hook.sh", "#!/bin/sh\necho \"$CLAUDE_CONTEXT_PERCENT\"\n");
}

const QUERY_CASES: &[ExampleCase] = &[
    ExampleCase {
        script: "plimsoll status --json",
        check: |_, finished| {
            expect_true(finished.stdout_json()["status"] == "completed", "it is JSON of the run")
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll log",
        check: |_, finished| {
            expect_true(
                !finished.stdout.contains("Look at the dates."),
                "nothing of the earlier run is shown",
            )?;
            expect_output(finished, &["run \"Convert the dates.\" started", "run completed"])
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll log --follow",
        allowed_messages: &["has ended (completed)"],
        check: |_, finished| expect_output(finished, &["run completed"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll log --why",
        check: |_, finished| expect_output(finished, &["The gate ended the run as completed, because"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll log --why L2",
        check: |_, finished| expect_output(finished, &["checkpoint L2 at 87%", "about 870k of 1M tokens"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll log --why refused",
        check: |_, finished| {
            expect_output(finished, &["The gate refused the promise, because: 2 items are open"])
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll log --check HEAD",
        check: |_, finished| {
            expect_output(finished, &["1 verify command passed on this tree", "test -e src/dates.txt"])
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll report",
        check: |world, finished| {
            let page = std::fs::read_to_string(finished.stdout.trim()).unwrap_or_default();
            let id =
                world.read_json(".claude/ralph-state.json")["run_id"].as_str().unwrap_or_default().to_owned();
            expect_true(
                page.contains("Convert the dates.") && finished.stdout.contains(&id),
                "it is the current run's page",
            )
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll report --open",
        check: |world, finished| {
            world.wait_until(|| world.home().join("opened").exists(), "the browser starts");
            let opened = world.read(world.home().join("opened"));
            expect_true(opened.trim().ends_with(finished.stdout.trim()), "the browser has the page")
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll report --run 4f2a",
        check: |_, finished| {
            let page = std::fs::read_to_string(finished.stdout.trim()).unwrap_or_default();
            expect_true(
                page.contains("Look at the dates.") && finished.stdout.contains(EARLIER_RUN),
                "it is the earlier run's page",
            )
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll report -o - | less",
        check: |_, finished| expect_output(finished, &["<!DOCTYPE html>", "Convert the dates.", "</html>"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll status --exit-code >/dev/null || echo 'close to the load line'",
        prepare: |world| {
            let journal = world.read(".claude/plimsoll/journal.jsonl");
            measure_recorded_session(world);
            // Later examples print the newest entries of the run.
            world.write(".claude/plimsoll/journal.jsonl", &journal);
        },
        check: |_, finished| expect_output(finished, &["close to the load line"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll turns",
        check: |_, finished| {
            let lines: Vec<&str> = finished.stdout.lines().collect();
            let sessions: std::collections::BTreeSet<&str> =
                lines.iter().filter_map(|line| line.split(':').next()).collect();
            expect_true(lines.len() == 20 && sessions.len() > 2, "20 turns of all sessions")
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll turns list --failures --since 12h",
        check: |_, finished| {
            expect_true(
                finished.stdout.starts_with("4f2a91bc:18") && finished.stdout.lines().count() == 1,
                "it is the one failure",
            )
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll turns list --file src/report.rs",
        check: |_, finished| {
            expect_true(
                finished.stdout.starts_with("4f2a91bc:16") && finished.stdout.lines().count() == 1,
                "it is the one turn with the file",
            )
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll turns show 4f2a91bc:17",
        check: |_, finished| {
            expect_output(finished, &["Turn 4f2a91bc:17", "Part 17.", "Bash(make part-17)", "| ok"])
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll turns grep 'connection refused'",
        check: |_, finished| expect_output(finished, &["4f2a91bc:18", "connection refused"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll turns stats",
        check: |_, finished| expect_output(finished, &["tokens added", "Bash"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll turns verify",
        check: |_, finished| {
            expect_true(
                finished.stdout.lines().all(|line| line.contains("  intact: ")),
                "each log is unchanged",
            )
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll statusline explain",
        check: |_, finished| {
            expect_output(finished, &[&format!("The status line of session {RECORDED_SESSION}")])
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll statusline explain < payload.json",
        prepare: |world| {
            let payload = json!({"session_id": RECORDED_SESSION, "cwd": world.project(), "model": {"id": "m", "display_name": "Model of the payload"}});
            world.write("payload.json", &payload.to_string());
        },
        check: |_, finished| expect_output(finished, &["Model of the payload"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll query -r '.todo_items[]'",
        prepare: |world| {
            // The example prints the open items, so the run needs one.
            let mut state = world.read_json(".claude/ralph-state.json");
            state["todo_items"] = json!(["Convert the rest"]);
            world.write(".claude/ralph-state.json", &state.to_string());
        },
        check: |_, finished| expect_true(finished.stdout == "Convert the rest\n", "it prints the open items"),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll plan --json | jq .complaints",
        prepare: |world| {
            world.write("fix_plan.md", "- [ ] Print the dates (after: 2)\n- [ ] Parse the dates\n");
        },
        check: |_, finished| expect_output(finished, &["item 1 depends on item 2, which comes later"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll linear check",
        prepare: |world| {
            // A note that could not be sent.
            let note = plimsoll_domain::linear::LinearNote {
                recorded_at: "2026-01-07T01:45:00Z".into(),
                run_id: EARLIER_RUN.into(),
                task_name: "Dates".into(),
                issue_name: plimsoll_testkit::linear::ISSUE_IDENTIFIER.into(),
                iteration_or_item_number: 1,
                text: "Half of the dates are converted.".into(),
                ..plimsoll_domain::linear::LinearNote::default()
            };
            let project = plimsoll_store::Project::with_local_files(&world.project())
                .with_runs_folder(&world.runs_folder());
            plimsoll_store::outbox::append_note_with_best_effort_lock(&project, &note).expect("the outbox");
            world.write_plimsoll_user_settings(
                &json!({"linear": {"issue": plimsoll_testkit::linear::ISSUE_IDENTIFIER}}),
            );
        },
        check: |_, finished| {
            expect_output(
                finished,
                &["ok       Key", "ok       Issue", "ok       Rights", "ok       Network"],
            )
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll linear sync --dry-run",
        check: |_, finished| expect_output(finished, &["Half of the dates are converted."]),
        ..DEFAULT_CASE
    },
];

const CHANGE_CASES: &[ExampleCase] = &[
    ExampleCase {
        script: "plimsoll linear sync",
        check: |_, finished| expect_output(finished, &["delivered"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll plan --fix",
        prepare: |world| world.write("fix_plan.md", "1. Parse\n2. Print\n"),
        shell: CONFIRMS,
        check: |world, _| {
            expect_true(open_items(&world.read("fix_plan.md")) == 2, "numbered lines are items")?;
            world.write("fix_plan.md", "- [] Check\n");
            world.plimsoll(&["plan", "--fix", "--yes"]).run().expect_success();
            expect_true(world.read("fix_plan.md") == "- [ ] Check\n", "a line with an empty box is an item")
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll plan --draft SPEC.md",
        prepare: |world| {
            world.write("SPEC.md", "# Dates\n\nAll dates are ISO 8601.\n");
            std::fs::remove_file(world.path("fix_plan.md")).expect("the plan");
            let result = json!({"type": "result", "subtype": "success", "is_error": false, "terminal_reason": "completed",
                "result": "- [ ] Convert the dates (simple)\n", "total_cost_usd": 0.25});
            let client = format!(
                "#!/bin/sh\n[ \"$1\" = --version ] && {{ echo '2.1.329 (Claude Code)'; exit; }}\ncat >/dev/null\nprintf '%s\\n' '{result}'\n"
            );
            world.write_program(programs_folder(world).join("claude"), &client);
        },
        shell: CONFIRMS,
        check: |world, _| {
            std::fs::remove_file(programs_folder(world).join("claude")).expect("the client");
            expect_true(
                world.read("fix_plan.md").contains("- [ ] Convert the dates (simple)"),
                "the items are in the plan",
            )
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll status --answer 1 'Use port 8042'",
        prepare: |world| {
            world.write("fix_plan.md", "- [ ] Item one\n  ? Which port?\n- [ ] Item two\n  ? Which host?\n")
        },
        allowed_messages: &["to start a run:", "to continue:"],
        check: |world, _| {
            expect_true(
                world.read("fix_plan.md").contains("  ? Which port?\n  ! Use port 8042\n"),
                "the answer is below the first question",
            )
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll status --answer 1 - < answer.txt",
        prepare: |world| world.write("answer.txt", "Use localhost\n"),
        allowed_messages: &["to start a run:", "to continue:"],
        check: |world, _| {
            expect_true(
                world.read("fix_plan.md").contains("  ? Which host?\n  ! Use localhost\n"),
                "the answer is in the plan",
            )
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll turns erase 4f2a91bc:17",
        check: |world, _| {
            let shown = world.plimsoll(&["turns", "show", "4f2a91bc:17"]).run().stdout;
            expect_true(!shown.contains("part-17") && shown.contains("erased"), "the contents are gone")
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll turns erase --secrets --dry-run",
        check: |world, finished| {
            expect_output(finished, &["4f2a91bc:18", "github-token"])?;
            expect_true(read_turn_logs(world).contains(&fake_token()), "nothing is erased yet")
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll turns erase --secrets",
        check: |world, _| expect_true(!read_turn_logs(world).contains(&fake_token()), "the secret is erased"),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll checkpoint --summary 'The parser reads dates.' \\\n  --progress 'tests missing' --next 'tests/dates.rs'",
        check: |world, finished| {
            let name = finished
                .stdout
                .lines()
                .find_map(|line| line.strip_prefix("**Handoff**: "))
                .unwrap_or_default();
            let handoff = world.read(name);
            let words = ["The parser reads dates.", "tests missing", "tests/dates.rs"];
            expect_true(words.iter().all(|words| handoff.contains(words)), "the handoff has the words")
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll memory",
        prepare: |world| _ = world.plimsoll(&["memory", "set", "R1", "half done"]).run().expect_success(),
        check: |_, finished| expect_output(finished, &["R1", "half done"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll memory set R4 'Keep the public API.'",
        check: |world, _| {
            let shown = world.plimsoll(&["memory"]).run().stdout;
            expect_true(shown.contains("Keep the public API."), "it is in the register")?;
            let payload = payload_of(world, "PostToolBatch");
            let memory = world
                .command(plimsoll_testkit::find_or_build_bin_dir().join("plimsoll-post-tool"), &["memory"])
                .stdin(payload.to_string())
                .run();
            expect_true(
                memory.stdout.contains("Keep the public API."),
                &format!("the agent sees it: {memory:?}"),
            )
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll memory alloc api-spec - < spec.md",
        prepare: |world| world.write("spec.md", "GET /dates\n"),
        check: |world, _| {
            let shown = world.plimsoll(&["memory"]).run().stdout;
            expect_true(shown.contains("api-spec") && shown.contains("GET /dates"), "the heap has the chunk")
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll query --on memory '.frames'",
        check: |_, finished| expect_output(finished, &["Keep the public API."]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll memory history",
        check: |_, finished| expect_output(finished, &["command", "R4_CONSTRAINTS = Keep the public API."]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll with-context -- ./my-hook.sh < payload.json",
        prepare: write_payload_and_hook,
        check: |_, finished| expect_true(finished.stdout == "80\n", "the hook has the usage"),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll prune",
        check: |_, finished| expect_output(finished, &["Compressed "]),
        ..DEFAULT_CASE
    },
];

/// Returns the text of all turn logs of the project.
fn read_turn_logs(world: &World) -> String {
    let folder = world.path(".claude/plimsoll/turns");
    let entries = std::fs::read_dir(folder).expect("turn logs").flatten();
    entries.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect()
}

const SETUP_CASES: &[ExampleCase] = &[
    ExampleCase {
        script: "plimsoll init --dry-run --diff",
        check: |world, finished| {
            expect_true(!world.home().join(".claude/settings.json").exists(), "nothing is written")?;
            expect_output(finished, &["nothing was written", "+++ ", "+  \"hooks\": {"])
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll init --user --module",
        check: |world, _| {
            let module = world.home().join(".claude/skills/plimsoll/hooks/plimsoll.ts");
            expect_true(module.exists(), "the client finds the module")
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll init --local --memory",
        check: |world, _| {
            let settings = world.read(".claude/settings.local.json");
            expect_true(
                settings.contains("plimsoll-post-tool") && world.exists(".mcp.json"),
                "this project has hooks and memory",
            )
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll init --project",
        check: |world, _| {
            expect_true(
                world.exists(".claude/plimsoll.json") && world.exists(".gitignore"),
                "the team's files are there",
            )
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll uninstall --dry-run",
        check: |world, finished| {
            expect_true(world.home().join(".claude/settings.json").exists(), "nothing is removed")?;
            expect_output(finished, &["nothing was written", "removed"])
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll uninstall",
        check: |world, _| {
            expect_true(
                !world.home().join(".claude/settings.json").exists(),
                "the user's own hooks are gone",
            )?;
            expect_true(world.exists(".claude/settings.local.json"), "those of this project stay")
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll generate schema > plimsoll.schema.json",
        check: |world, _| {
            expect_true(world.read_json("plimsoll.schema.json")["properties"].is_object(), "it is a schema")
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll generate man turns list > plimsoll-turns-list.1",
        check: |world, _| {
            expect_true(
                world.read("plimsoll-turns-list.1").contains(".TH plimsoll-turns-list 1"),
                "it is the page",
            )
        },
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll generate man run | man -l -",
        check: |_, finished| expect_output(finished, &["plimsoll-run", "EXIT CODES"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "eval \"$(plimsoll generate completions bash)\"",
        shell: Shell::Other { program: "bash", first: "", then: "complete -p plimsoll" },
        check: |_, finished| expect_output(finished, &["_plimsoll"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "eval \"$(plimsoll generate completions zsh)\"",
        shell: Shell::Other {
            program: "zsh",
            first: "autoload -Uz compinit; compinit -u -D",
            then: "print $_comps[plimsoll]",
        },
        check: |_, finished| expect_output(finished, &["_plimsoll"]),
        ..DEFAULT_CASE
    },
    ExampleCase {
        script: "plimsoll generate completions fish | source",
        shell: Shell::Other { program: "fish", first: "", then: "complete -C 'plimsoll ru'" },
        check: |_, finished| expect_output(finished, &["run\t"]),
        ..DEFAULT_CASE
    },
];

#[test]
fn checks_report_missing_output_and_false_conditions() {
    let finished = FinishedProgram {
        code: Some(0),
        signal: None,
        stdout: "a b".to_owned(),
        stderr: String::new(),
        elapsed: std::time::Duration::ZERO,
    };
    assert!(
        expect_output(&finished, &["a", "b"]).is_ok()
            && expect_output(&finished, &["a", "c"]).is_err()
            && expect_true(false, "x").is_err()
    );
}
