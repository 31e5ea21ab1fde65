//! The examples that need a certain state, or of which the help says what they do.

use super::worlds::{EARLIER_RUN, RECORDED, plan_of, programs, recorded_transcript, secret};
use plimsoll_domain::TodoList;
use plimsoll_testkit::world::{Finished, World};
use serde_json::json;

/// What one example needs, and how to see what it did.
pub(crate) struct Case {
    /// The example as printed, without its description.
    pub(crate) script: &'static str,
    pub(crate) prepare: fn(&World),
    pub(crate) shell: Shell,
    /// Parts of lines on standard error that tell of no failure.
    pub(crate) notes: &'static [&'static str],
    /// The error says what of the help is not true.
    pub(crate) check: fn(&World, &Finished) -> Result<(), String>,
}

/// What runs an example.
#[derive(Clone, Copy)]
pub(crate) enum Shell {
    /// `sh`, without a terminal; `then` shows what the example left in it.
    Sh { then: &'static str },
    /// Another shell, for which the help says the example is.
    Other { program: &'static str, first: &'static str, then: &'static str },
    /// `sh` on a terminal, at which this is typed.
    Terminal { question: &'static str, answer: &'static str },
}

/// Nothing to prepare, and nothing said.
pub(crate) const ONLY_RUNS: Case =
    Case { script: "", prepare: |_| (), shell: Shell::Sh { then: "" }, notes: &[], check: |_, _| Ok(()) };

/// How a run tells how to look at it or to merge it.
const ADVICE: &[&str] =
    &["to see what happened:", "the work is on the branch", "is ready: PROMPT.md is written"];
const AGREES: Shell = Shell::Terminal { question: "[y/N]", answer: "y" };

pub(crate) fn all_cases() -> impl Iterator<Item = &'static Case> {
    RUNS.iter().chain(LOOPS).chain(FLEETS).chain(LOOKING).chain(CHANGING).chain(SETUP)
}

fn prints(finished: &Finished, parts: &[&str]) -> Result<(), String> {
    match parts.iter().find(|part| !finished.stdout.contains(**part)) {
        Some(part) => Err(format!("it does not print {part:?}")),
        None => Ok(()),
    }
}

fn holds(is_so: bool, what: &str) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(format!("this is not so: {what}")) }
}

fn open_items(text: &str) -> usize {
    TodoList::parse(text).open_items().len()
}

fn is_done(world: &World, plan: &str) -> Result<(), String> {
    let list = TodoList::parse(&world.read(plan));
    holds(list.open_items().is_empty() && !list.ticked_items().is_empty(), "all items of the plan are done")
}

/// Puts a plan of so many open items on `main`.
pub(crate) fn plan_again(world: &World, items: usize) {
    world.git(&["checkout", "-q", "-f", "main"]);
    // The task of an earlier run, which would be that of the next.
    let _ = std::fs::remove_file(world.path("PROMPT.md"));
    world.write("fix_plan.md", &plan_of(items));
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "--allow-empty", "-m", "Plan again"]);
}

fn is_on_main(world: &World, open: usize) -> bool {
    open_items(&world.git(&["show", "main:fix_plan.md"])) == open
}

/// Ends a run by Ctrl-C after its first session.
fn interrupt_run(world: &World) {
    plan_again(world, 2);
    let words = ["run", "--objective", "Do fix_plan.md.", "--", "--allowedTools", "Bash"];
    let mut running = world.plimsoll(&words).spawn();
    world.wait_until(|| running.stdout_so_far().contains("iteration 1"), "a first session");
    running.interrupt();
    let finished = running.wait(std::time::Duration::from_secs(60));
    assert_eq!(finished.code, Some(130), "{finished:?}");
    assert!(open_items(&world.read("fix_plan.md")) > 0);
}

/// Ends a run by the circuit breaker, and removes the cause.
fn open_breaker(world: &World) {
    plan_again(world, 1);
    world.write(world.home().join("idle"), "");
    let words = ["run", "--objective", "Do fix_plan.md.", "--", "--allowedTools", "Bash"];
    let finished = world.plimsoll(&words).run();
    assert_eq!(finished.code, Some(4), "{finished:?}");
    std::fs::remove_file(world.home().join("idle")).expect("the file");
}

const RUNS: &[Case] = &[
    Case {
        script: "plimsoll init",
        check: |world, _| {
            let settings = world.read(world.home().join(".claude/settings.json"));
            holds(settings.contains("plimsoll-post-tool"), "the user's own settings have the hooks")
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll run --objective 'Do fix_plan.md.' -- --allowedTools Bash Edit Write",
        notes: ADVICE,
        check: |world, finished| {
            is_done(world, "fix_plan.md").and(prints(finished, &["RALPH_STOP|completed"]))
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll status",
        check: |_, finished| prints(finished, &["completed", " done\n"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll run --verify 'cargo test' -- --allowedTools Bash Edit Write",
        notes: ADVICE,
        check: |world, finished| {
            is_done(world, "fix_plan.md").and(prints(finished, &["verified: `cargo test` passed"]))
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll run 'Translate docs/ into German.' --todo pages.md --deadline 07:00 \\\n  \
                 --max-cost 20 -- --allowedTools Bash Edit Write",
        prepare: |world| world.write("pages.md", &plan_of(1)),
        notes: ADVICE,
        check: |world, finished| {
            is_done(world, "pages.md").and(prints(finished, &["Translate docs/ into German."]))
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll run --branch night -- --allowedTools Bash Edit Write",
        prepare: |world| plan_again(world, 1),
        notes: ADVICE,
        check: |world, finished| {
            is_done(world, "fix_plan.md")?;
            holds(is_on_main(world, 1), "the branch that was checked out is as it was")?;
            holds(finished.stderr.contains("git switch main && git merge night"), "the end says how to merge")
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll run --workers 3 --verify 'npm test' -- --allowedTools Bash Edit Write",
        prepare: |world| plan_again(world, 3),
        notes: ADVICE,
        check: |_, finished| prints(finished, &["3 items merged", "1 verify command passed"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll run --resume",
        prepare: interrupt_run,
        notes: ADVICE,
        check: |world, finished| {
            is_done(world, "fix_plan.md").and(prints(finished, &["RALPH_STOP|completed"]))
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll run --resume --reset-breaker",
        prepare: open_breaker,
        notes: ADVICE,
        check: |world, finished| {
            is_done(world, "fix_plan.md").and(prints(finished, &["RALPH_STOP|completed"]))
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll run --resume --answer 1 'Use port 8042'",
        prepare: |world| {
            plan_again(world, 1);
            world.write("fix_plan.md", &format!("{}  ? Which port?\n", plan_of(1)));
            assert_eq!(world.plimsoll(&["run", "--", "--allowedTools", "Bash"]).run().code, Some(7));
        },
        notes: &["answered in fix_plan.md", "to see what happened:"],
        check: |world, finished| {
            is_done(world, "fix_plan.md").and(prints(finished, &["RALPH_STOP|completed"]))?;
            holds(world.read("fix_plan.md").contains("  ! Use port 8042\n"), "the answer is in the plan")
        },
        ..ONLY_RUNS
    },
];

const LOOPS: &[Case] = &[
    Case {
        script: "eval \"$(plimsoll start --objective 'Migrate to Vitest')\"",
        shell: Shell::Sh { then: "\nenv" },
        notes: ADVICE,
        check: |world, finished| {
            let state = world.json(".claude/ralph-state.json");
            let id = state["run_id"].as_str().unwrap_or_default();
            holds(state["objective"] == "Migrate to Vitest", "the run has its task")?;
            prints(finished, &[&format!("PLIMSOLL_RUN_ID={id}\n")])
        },
        ..ONLY_RUNS
    },
    Case {
        script: "eval \"$(plimsoll start --objective 'Migrate to Vitest')\"\nwhile true; do\n  \
                 claude -p --output-format json --allowedTools Bash < PROMPT.md |\n    plimsoll gate --wait\n  \
                 [ $? -eq 1 ] || break\ndone",
        prepare: |world| {
            std::fs::remove_dir_all(world.path(".claude")).expect("our files");
            plan_again(world, 2);
            world.plimsoll(&["init"]).run().expect_success();
        },
        notes: ADVICE,
        check: |world, finished| {
            is_done(world, "fix_plan.md").and(prints(finished, &["RALPH_CONTINUE|", "RALPH_STOP|completed"]))
        },
        ..ONLY_RUNS
    },
];

const FLEETS: &[Case] = &[
    Case {
        script: "plimsoll fleet create night --verify 'npm test'",
        prepare: forget_fleet,
        check: |_, finished| prints(finished, &["its work comes together on plimsoll/night"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll fleet create night --deliver merge --max-cost 40",
        prepare: forget_fleet,
        check: |_, finished| prints(finished, &["its work comes together on main"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll fleet create night --verify 'npm test' --max-cost 40",
        prepare: forget_fleet,
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll fleet status",
        check: |_, finished| prints(finished, &["night: no worker is there; 0 of 2 items merged"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll fleet join night --workers 3 -- --allowedTools Bash Edit Write",
        notes: ADVICE,
        check: |_, finished| prints(finished, &["2 of 2 items merged"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll fleet status night",
        check: |_, finished| prints(finished, &["Items", "Workers"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll fleet log night -f",
        prepare: |world| {
            // Members that ended a moment ago count as present until their leases run out.
            let sql = "psql -X -q -d \"$PLIMSOLL_DATABASE_URL\" -c 'update plimsoll.worker set seen = 0'";
            world.command("sh", &["-c", sql]).run().expect_success();
        },
        notes: &["the fleet `night` is over"],
        check: |_, finished| prints(finished, &["the fleet was created", "every item is merged"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll doctor --fleet night",
        prepare: |world| {
            forget_fleet(world);
            world.plimsoll(&["fleet", "create", "night"]).run().expect_success();
        },
        check: |_, finished| prints(finished, &["ok       Database", "ok       Remote"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll doctor --client ~/bin/claude",
        prepare: |world| {
            let client = "#!/bin/sh\nexec claude \"$@\"\n";
            world.write_program(world.home().join("bin/claude"), client);
        },
        check: |_, finished| prints(finished, &["ok       Client", "bin/claude"]),
        ..ONLY_RUNS
    },
];

pub(crate) fn forget_fleet(world: &World) {
    plan_again(world, 2);
    world.write("PROMPT.md", "Do what fix_plan.md says.\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "--allow-empty", "-m", "Task"]);
    world.git(&["push", "-q", "-f", "origin", "main"]);
    let listed = world.plimsoll(&["fleet", "status", "--json"]).run();
    if listed.stdout.contains("night") {
        world.plimsoll(&["fleet", "forget", "night", "--yes"]).run().expect_success();
        // It has none if it delivered to `main`.
        world.command("git", &["push", "-q", "origin", ":plimsoll/night"]).run();
    }
}

/// Returns the payload of an event of the recorded session.
fn payload_of(world: &World, event: &str) -> serde_json::Value {
    json!({"session_id": RECORDED, "hook_event_name": event, "source": "resume", "cwd": world.project(),
        "transcript_path": recorded_transcript(world)})
}

/// Lets the hooks see the recorded session, whose window is 80% full.
fn measure_recorded_session(world: &World) {
    for (hook, event) in [("plimsoll-session-start", "SessionStart"), ("plimsoll-post-tool", "PostToolBatch")]
    {
        world.hook(hook, &payload_of(world, event)).run().expect_success();
    }
}

/// Writes the payload of a hook of the recorded session, and a hook that prints the usage.
pub(crate) fn prepare_payload(world: &World) {
    let payload = payload_of(world, "Stop");
    world.write("payload.json", &payload.to_string());
    world.write_program("my-hook.sh", "#!/bin/sh\necho \"$CLAUDE_CONTEXT_PERCENT\"\n");
}

const LOOKING: &[Case] = &[
    Case {
        script: "plimsoll status --json",
        check: |_, finished| holds(finished.json()["status"] == "completed", "it is JSON of the run"),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll log",
        check: |_, finished| {
            holds(!finished.stdout.contains("Look at the dates."), "nothing of the earlier run is shown")?;
            prints(finished, &["run \"Convert the dates.\" started", "run completed"])
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll log --follow",
        notes: &["is over (completed)"],
        check: |_, finished| prints(finished, &["run completed"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll log --why",
        check: |_, finished| prints(finished, &["The gate ended the run as completed, because"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll log --why L2",
        check: |_, finished| prints(finished, &["checkpoint L2 at 87%", "about 870k of 1M tokens"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll log --why refused",
        check: |_, finished| {
            prints(finished, &["The gate did not believe the promise, because: 2 items are open"])
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll log --check HEAD",
        check: |_, finished| {
            prints(finished, &["1 verify command passed on this tree", "test -e src/dates.txt"])
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll report",
        check: |world, finished| {
            let page = std::fs::read_to_string(finished.stdout.trim()).unwrap_or_default();
            let id = world.json(".claude/ralph-state.json")["run_id"].as_str().unwrap_or_default().to_owned();
            holds(
                page.contains("Convert the dates.") && finished.stdout.contains(&id),
                "it is the current run's page",
            )
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll report --open",
        check: |world, finished| {
            world.wait_until(|| world.home().join("opened").exists(), "the browser starts");
            let opened = world.read(world.home().join("opened"));
            holds(opened.trim().ends_with(finished.stdout.trim()), "the browser has the page")
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll report --run 4f2a",
        check: |_, finished| {
            let page = std::fs::read_to_string(finished.stdout.trim()).unwrap_or_default();
            holds(
                page.contains("Look at the dates.") && finished.stdout.contains(EARLIER_RUN),
                "it is the earlier run's page",
            )
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll report -o - | less",
        check: |_, finished| prints(finished, &["<!DOCTYPE html>", "Convert the dates.", "</html>"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll status --exit-code >/dev/null || echo 'close to the load line'",
        prepare: |world| {
            let journal = world.read(".claude/plimsoll/journal.jsonl");
            measure_recorded_session(world);
            // Later examples print what the run noted last.
            world.write(".claude/plimsoll/journal.jsonl", &journal);
        },
        check: |_, finished| prints(finished, &["close to the load line"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll turns",
        check: |_, finished| {
            let lines: Vec<&str> = finished.stdout.lines().collect();
            let sessions: std::collections::BTreeSet<&str> =
                lines.iter().filter_map(|line| line.split(':').next()).collect();
            holds(lines.len() == 20 && sessions.len() > 2, "20 turns of all sessions")
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll turns list --failures --since 12h",
        check: |_, finished| {
            holds(
                finished.stdout.starts_with("4f2a91bc:18") && finished.stdout.lines().count() == 1,
                "it is the one failure",
            )
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll turns list --file src/report.rs",
        check: |_, finished| {
            holds(
                finished.stdout.starts_with("4f2a91bc:16") && finished.stdout.lines().count() == 1,
                "it is the one turn with the file",
            )
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll turns show 4f2a91bc:17",
        check: |_, finished| {
            prints(finished, &["Turn 4f2a91bc:17", "Part 17.", "Bash(make part-17)", "| ok"])
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll turns grep 'connection refused'",
        check: |_, finished| prints(finished, &["4f2a91bc:18", "connection refused"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll turns stats",
        check: |_, finished| prints(finished, &["tokens added", "Bash"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll turns verify",
        check: |_, finished| {
            holds(finished.stdout.lines().all(|line| line.contains("  whole: ")), "each log is unchanged")
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll statusline explain",
        check: |_, finished| prints(finished, &[&format!("The status line of session {RECORDED}")]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll statusline explain < payload.json",
        prepare: |world| {
            let payload = json!({"session_id": RECORDED, "cwd": world.project(), "model": {"id": "m", "display_name": "Model of the payload"}});
            world.write("payload.json", &payload.to_string());
        },
        check: |_, finished| prints(finished, &["Model of the payload"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll query -r '.todo_items[]'",
        prepare: |world| {
            // The items that are open: for this a run with an open one is needed.
            let mut state = world.json(".claude/ralph-state.json");
            state["todo_items"] = json!(["Convert the rest"]);
            world.write(".claude/ralph-state.json", &state.to_string());
        },
        check: |_, finished| holds(finished.stdout == "Convert the rest\n", "it prints the open items"),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll plan --json | jq .complaints",
        prepare: |world| {
            world.write("fix_plan.md", "- [ ] Print the dates (after: 2)\n- [ ] Parse the dates\n");
        },
        check: |_, finished| prints(finished, &["item 1 depends on item 2, which comes later"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll linear check",
        prepare: |world| {
            // A note that could not be sent.
            let note = plimsoll_domain::linear::LinearNote {
                recorded_at: "2026-01-07T01:45:00Z".into(),
                run_id: EARLIER_RUN.into(),
                task_name: "Dates".into(),
                issue_name: plimsoll_testkit::linear::ISSUE.into(),
                iteration_or_item_number: 1,
                text: "Half of the dates are converted.".into(),
                ..plimsoll_domain::linear::LinearNote::default()
            };
            let project =
                plimsoll_store::Project::with_local_files(&world.project()).with_runs_folder(&world.runs());
            plimsoll_store::outbox::append_note(&project, &note).expect("the outbox");
            world.write_user_settings(&json!({"linear": {"issue": plimsoll_testkit::linear::ISSUE}}));
        },
        check: |_, finished| {
            prints(finished, &["ok       Key", "ok       Issue", "ok       Rights", "ok       Network"])
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll linear sync --dry-run",
        check: |_, finished| prints(finished, &["Half of the dates are converted."]),
        ..ONLY_RUNS
    },
];

const CHANGING: &[Case] = &[
    Case {
        script: "plimsoll linear sync",
        check: |_, finished| prints(finished, &["delivered"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll plan --fix",
        prepare: |world| world.write("fix_plan.md", "1. Parse\n2. Print\n"),
        shell: AGREES,
        check: |world, _| {
            holds(open_items(&world.read("fix_plan.md")) == 2, "numbered lines are items")?;
            world.write("fix_plan.md", "- [] Check\n");
            world.plimsoll(&["plan", "--fix", "--yes"]).run().expect_success();
            holds(world.read("fix_plan.md") == "- [ ] Check\n", "a line with an empty box is an item")
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll plan --draft SPEC.md",
        prepare: |world| {
            world.write("SPEC.md", "# Dates\n\nAll dates are ISO 8601.\n");
            std::fs::remove_file(world.path("fix_plan.md")).expect("the plan");
            let result = json!({"type": "result", "subtype": "success", "is_error": false, "terminal_reason": "completed",
                "result": "- [ ] Convert the dates (simple)\n", "total_cost_usd": 0.25});
            let client = format!(
                "#!/bin/sh\n[ \"$1\" = --version ] && {{ echo '2.1.329 (Claude Code)'; exit; }}\ncat >/dev/null\nprintf '%s\\n' '{result}'\n"
            );
            world.write_program(programs(world).join("claude"), &client);
        },
        shell: AGREES,
        check: |world, _| {
            std::fs::remove_file(programs(world).join("claude")).expect("the client");
            holds(
                world.read("fix_plan.md").contains("- [ ] Convert the dates (simple)"),
                "the items are in the plan",
            )
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll status --answer 1 'Use port 8042'",
        prepare: |world| {
            world.write("fix_plan.md", "- [ ] Item one\n  ? Which port?\n- [ ] Item two\n  ? Which host?\n")
        },
        notes: &["to start a run:", "to continue:"],
        check: |world, _| {
            holds(
                world.read("fix_plan.md").contains("  ? Which port?\n  ! Use port 8042\n"),
                "the answer is below the first question",
            )
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll status --answer 1 - < answer.txt",
        prepare: |world| world.write("answer.txt", "Use localhost\n"),
        notes: &["to start a run:", "to continue:"],
        check: |world, _| {
            holds(
                world.read("fix_plan.md").contains("  ? Which host?\n  ! Use localhost\n"),
                "the answer is in the plan",
            )
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll turns erase 4f2a91bc:17",
        check: |world, _| {
            let shown = world.plimsoll(&["turns", "show", "4f2a91bc:17"]).run().stdout;
            holds(!shown.contains("part-17") && shown.contains("erased"), "the contents are gone")
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll turns erase --secrets --dry-run",
        check: |world, finished| {
            prints(finished, &["4f2a91bc:18", "github-token"])?;
            holds(turn_log(world).contains(&secret()), "nothing is erased yet")
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll turns erase --secrets",
        check: |world, _| holds(!turn_log(world).contains(&secret()), "the secret is erased"),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll checkpoint --summary 'The parser reads dates.' \\\n  --progress 'tests missing' --next 'tests/dates.rs'",
        check: |world, finished| {
            let name = finished
                .stdout
                .lines()
                .find_map(|line| line.strip_prefix("**Handoff**: "))
                .unwrap_or_default();
            let handoff = world.read(name);
            let words = ["The parser reads dates.", "tests missing", "tests/dates.rs"];
            holds(words.iter().all(|words| handoff.contains(words)), "the handoff has the words")
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll memory",
        prepare: |world| _ = world.plimsoll(&["memory", "set", "R1", "half done"]).run().expect_success(),
        check: |_, finished| prints(finished, &["R1", "half done"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll memory set R4 'Keep the public API.'",
        check: |world, _| {
            let shown = world.plimsoll(&["memory"]).run().stdout;
            holds(shown.contains("Keep the public API."), "it is in the register")?;
            let payload = payload_of(world, "PostToolBatch");
            let memory = world
                .command(plimsoll_testkit::bin_dir().join("plimsoll-post-tool"), &["memory"])
                .stdin(payload.to_string())
                .run();
            holds(memory.stdout.contains("Keep the public API."), &format!("the agent sees it: {memory:?}"))
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll memory alloc api-spec - < spec.md",
        prepare: |world| world.write("spec.md", "GET /dates\n"),
        check: |world, _| {
            let shown = world.plimsoll(&["memory"]).run().stdout;
            holds(shown.contains("api-spec") && shown.contains("GET /dates"), "the heap has the chunk")
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll query --on memory '.frames'",
        check: |_, finished| prints(finished, &["Keep the public API."]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll memory history",
        check: |_, finished| prints(finished, &["command", "R4_CONSTRAINTS = Keep the public API."]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll with-context -- ./my-hook.sh < payload.json",
        prepare: prepare_payload,
        check: |_, finished| holds(finished.stdout == "80\n", "the hook has the usage"),
        ..ONLY_RUNS
    },
    Case { script: "plimsoll prune", check: |_, finished| prints(finished, &["Compressed "]), ..ONLY_RUNS },
];

/// Returns all turn logs of the project.
fn turn_log(world: &World) -> String {
    let folder = world.path(".claude/plimsoll/turns");
    let entries = std::fs::read_dir(folder).expect("turn logs").flatten();
    entries.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect()
}

const SETUP: &[Case] = &[
    Case {
        script: "plimsoll init --dry-run --diff",
        check: |world, finished| {
            holds(!world.home().join(".claude/settings.json").exists(), "nothing is written")?;
            prints(finished, &["nothing was written", "+++ ", "+  \"hooks\": {"])
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll init --local --memory",
        check: |world, _| {
            let settings = world.read(".claude/settings.local.json");
            holds(
                settings.contains("plimsoll-post-tool") && world.exists(".mcp.json"),
                "this project has hooks and memory",
            )
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll init --project",
        check: |world, _| {
            holds(
                world.exists(".claude/plimsoll.json") && world.exists(".gitignore"),
                "the team's files are there",
            )
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll uninstall --dry-run",
        check: |world, finished| {
            holds(world.home().join(".claude/settings.json").exists(), "nothing is removed")?;
            prints(finished, &["nothing was written", "removed"])
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll uninstall",
        check: |world, _| {
            holds(!world.home().join(".claude/settings.json").exists(), "the user's own hooks are gone")?;
            holds(world.exists(".claude/settings.local.json"), "those of this project stay")
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll generate schema > plimsoll.schema.json",
        check: |world, _| {
            holds(world.json("plimsoll.schema.json")["properties"].is_object(), "it is a schema")
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll generate man turns list > plimsoll-turns-list.1",
        check: |world, _| {
            holds(world.read("plimsoll-turns-list.1").contains(".TH plimsoll-turns-list 1"), "it is the page")
        },
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll generate man run | man -l -",
        check: |_, finished| prints(finished, &["plimsoll-run", "EXIT CODES"]),
        ..ONLY_RUNS
    },
    Case {
        script: "eval \"$(plimsoll generate completions bash)\"",
        shell: Shell::Other { program: "bash", first: "", then: "complete -p plimsoll" },
        check: |_, finished| prints(finished, &["_plimsoll"]),
        ..ONLY_RUNS
    },
    Case {
        script: "eval \"$(plimsoll generate completions zsh)\"",
        shell: Shell::Other {
            program: "zsh",
            first: "autoload -Uz compinit; compinit -u -D",
            then: "print $_comps[plimsoll]",
        },
        check: |_, finished| prints(finished, &["_plimsoll"]),
        ..ONLY_RUNS
    },
    Case {
        script: "plimsoll generate completions fish | source",
        shell: Shell::Other { program: "fish", first: "", then: "complete -C 'plimsoll ru'" },
        check: |_, finished| prints(finished, &["run\t"]),
        ..ONLY_RUNS
    },
];

#[test]
fn a_case_can_fail() {
    let finished = Finished {
        code: Some(0),
        signal: None,
        stdout: "a b".to_owned(),
        stderr: String::new(),
        elapsed: std::time::Duration::ZERO,
    };
    assert!(
        prints(&finished, &["a", "b"]).is_ok()
            && prints(&finished, &["a", "c"]).is_err()
            && holds(false, "x").is_err()
    );
}
