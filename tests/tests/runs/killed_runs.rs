//! `kill -9` at every moment of a run: no file is torn, no work is done twice, and no two clients work at once. Also
//! the clean endings: Ctrl-C, SIGTERM and `plimsoll stop`.

use plimsoll_testkit::scripted_agent::{AgentTurn, tick_item_command};
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::world::{FinishedProgram, RunningProgram, World};
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, THREE_ITEM_PLAN, events_named, first_request_of_iteration, honest_agent,
    read_journal, verdict_markers, world_with_plan_and_dates,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

const STATE_PATH: &str = ".claude/ralph-state.json";
const PLAN: &str = "# Plan\n\n- [ ] Item one\n- [ ] Item three\n";
const EXPECTED_WORK: &str = "Item one\nItem three\n";
/// Long enough for the test to kill a process meanwhile.
const LONG_DELAY: Duration = Duration::from_secs(3);
/// Timeout for a whole run on a busy computer.
const RUN_TIMEOUT: Duration = Duration::from_secs(120);

// ---- who is killed, and when ----

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Run,
    Client,
    Both,
}

const ALL_VICTIMS: [Victim; 3] = [Victim::Run, Victim::Client, Victim::Both];

/// Kills the victim at a moment of the first session, lets the run end (with `--resume` if the run was killed), and
/// checks what must hold in every case.
fn kill_victim_and_finish_run(
    victim: Victim,
    options: &[&str],
    agent: impl FnMut(&AgentTurn<'_>, &Path) -> Step + Send + 'static,
    is_kill_moment: impl Fn(&World, &ScriptedModel) -> bool,
) -> (World, ScriptedModel) {
    let mut world = world_with_plan_and_dates(PLAN);
    let marker_file = world.home().join("the-moment");
    let mut agent = agent;
    let model = ScriptedAgent::new({
        let marker_file = marker_file.clone();
        move |turn| agent(turn, &marker_file)
    })
    .start(&mut world);
    let watch = ConsistencyWatcher::start(&world);
    let mut run = spawn_run(&world, options);
    world.wait_until(|| is_kill_moment(&world, &model), "the moment to kill");
    let client = live_client_pid(&world);
    if victim != Victim::Client {
        run.kill();
    }
    if victim != Victim::Run {
        kill_process(client.expect("a client is at work"));
    }
    let finished = if victim == Victim::Client {
        run.wait_or_kill_and_panic(RUN_TIMEOUT)
    } else {
        resume_and_wait(&world, options)
    };
    let details = format!("{victim:?}: {finished:#?}");
    assert_eq!(finished.code, Some(0), "{details}");
    watch.stop_and_assert_no_problems(&details);
    assert_eq!(world.read_json(STATE_PATH)["status"], "completed", "{details}");
    assert_eq!(world.read("work.txt"), EXPECTED_WORK, "each item is done once; {details}");
    assert_eq!(world.read("fix_plan.md").matches("- [x]").count(), 2, "{details}");
    let journal = read_journal(&world);
    let adopted_count = events_named(&journal, "adopted").len();
    // A client that was just killed may still look alive to the resumed run, which then adopts it.
    let is_expected_count = if victim == Victim::Run {
        adopted_count == 1
    } else {
        adopted_count <= usize::from(victim == Victim::Both)
    };
    assert!(is_expected_count, "{adopted_count} adopted; {details}");
    assert_one_verdict_per_iteration(&journal, &details);
    let iterations: Vec<u32> = model.main_requests().iter().map(iteration_from_prompt).collect();
    assert!(iterations.is_sorted(), "the sessions' requests do not mix: {iterations:?}; {details}");
    (world, model)
}

#[test]
fn a_run_completes_after_a_kill_before_the_first_model_response() {
    for victim in ALL_VICTIMS {
        let mut is_first_request = true;
        let agent = move |turn: &AgentTurn<'_>, _: &Path| {
            let step = honest_agent(turn);
            if std::mem::take(&mut is_first_request) { step.with_delay(LONG_DELAY) } else { step }
        };
        kill_victim_and_finish_run(victim, &[], agent, |_, model| !model.main_requests().is_empty());
    }
}

#[test]
fn a_run_completes_after_a_kill_during_a_tool_call() {
    for victim in ALL_VICTIMS {
        let mut is_first_request = true;
        let agent =
            move |turn: &AgentTurn<'_>, marker_file: &Path| match std::mem::take(&mut is_first_request) {
                true => Step::bash_call(format!(
                    "touch {} && sleep 2 && {}",
                    marker_file.display(),
                    item_command("Item one")
                )),
                false => honest_agent(turn),
            };
        kill_victim_and_finish_run(victim, &[], agent, |world, _| world.home().join("the-moment").exists());
    }
}

#[test]
fn a_kill_between_edit_and_tick_hands_the_edit_to_the_next_session() {
    for victim in ALL_VICTIMS {
        let mut request_count = 0;
        let agent = move |turn: &AgentTurn<'_>, _: &Path| {
            if turn.item_text.as_deref() != Some("Item one") || request_count > 3 {
                return honest_agent(turn);
            }
            request_count += 1;
            match (request_count, turn.assistant_message_count) {
                (1, 0) => Step::bash_call("sed -i '45,80s/$/ changed/' src/dates.txt"),
                (2, 1) => Step::bash_call(item_command("Item one")).with_delay(LONG_DELAY),
                _ => honest_agent(turn),
            }
        };
        let (_, model) =
            kill_victim_and_finish_run(victim, &[], agent, |_, model| model.main_requests().len() >= 2);
        if victim != Victim::Run {
            let next_prompt = first_request_of_iteration(&model, 2);
            assert!(next_prompt.contains("| src/dates.txt | 45-80 |"), "{victim:?}: {next_prompt}");
            assert!(next_prompt.contains("ended in the middle of its work"), "{victim:?}: {next_prompt}");
        }
    }
}

#[test]
fn a_kill_after_a_checkpoint_keeps_the_handoff_for_the_next_session() {
    for victim in ALL_VICTIMS {
        let mut is_first_session = true;
        let agent = move |turn: &AgentTurn<'_>, _: &Path| {
            if !is_first_session {
                return honest_agent(turn);
            }
            match turn.assistant_message_count {
                0 => Step::bash_call("sed -i '45,80s/$/ changed/' src/dates.txt")
                    .with_input_tokens(560_000)
                    .with_delay(LIFELIKE_DELAY),
                1 => Step::bash_call("echo on").with_input_tokens(870_000).with_delay(LIFELIKE_DELAY),
                _ => {
                    is_first_session = false;
                    assert!(turn.request_contains("CCS_CHECKPOINT_TRIGGERED|L2|87|"), "the model is told");
                    Step::from_text("I stop.\n\nSummary: half\nProgress on the item: 70%\nNext step: line 81")
                        .with_delay(LONG_DELAY)
                }
            }
        };
        let (world, model) =
            kill_victim_and_finish_run(victim, &[], agent, |_, model| model.main_requests().len() >= 3);
        let next_prompt = first_request_of_iteration(&model, 2);
        let state = world.read_json(STATE_PATH);
        let handoff = state["context_checkpoint"]["handoff_file"].as_str().expect("a handoff");
        for part in [handoff, "stopped at 87%", "| src/dates.txt | 45-80 |"] {
            assert!(next_prompt.contains(part), "{victim:?}: {part} in {next_prompt}");
        }
        assert!(world.read(handoff).contains("45-80"));
        assert_eq!(
            next_prompt.contains("70%"),
            victim == Victim::Run,
            "only an adopted session could say so: {next_prompt}"
        );
    }
}

#[test]
fn a_kill_right_after_the_result_repeats_no_session() {
    for victim in ALL_VICTIMS {
        let agent = |turn: &AgentTurn<'_>, _: &Path| honest_agent(turn);
        // The client may have ended by itself by then, so it is killed only if it still runs.
        let has_result =
            |world: &World, _: &ScriptedModel| session_outputs(world).contains("\"type\":\"result\"");
        let mut world = world_with_plan_and_dates(PLAN);
        let marker_file = PathBuf::new();
        let model = ScriptedAgent::new(move |turn| agent(turn, &marker_file)).start(&mut world);
        let watch = ConsistencyWatcher::start(&world);
        let mut run = spawn_run(&world, &[]);
        let started_at = Instant::now();
        while !has_result(&world, &model) {
            assert!(started_at.elapsed() < Duration::from_secs(40), "a result");
            sleep(Duration::from_millis(1));
        }
        if victim != Victim::Client {
            run.kill();
        }
        if victim != Victim::Run
            && let Some(client) = live_client_pid(&world)
        {
            kill_process(client);
        }
        let finished = if victim == Victim::Client {
            run.wait_or_kill_and_panic(RUN_TIMEOUT)
        } else {
            resume_and_wait(&world, &[])
        };
        let details = format!("{victim:?}: {finished:#?}");
        assert_eq!(finished.code, Some(0), "{details}");
        watch.stop_and_assert_no_problems(&details);
        assert_eq!(world.read("work.txt"), EXPECTED_WORK, "{details}");
        assert_eq!(world.read_json(STATE_PATH)["iteration"], 2, "{details}");
        assert_eq!(model.main_requests().len(), 4, "{details}");
        assert_one_verdict_per_iteration(&read_journal(&world), &details);
    }
}

#[test]
fn a_kill_during_the_verify_command_repeats_only_the_verification() {
    let mut world = world_with_plan_and_dates(PLAN);
    let model = ScriptedAgent::new(honest_agent).start(&mut world);
    let verify_log = world.home().join("verified");
    let verify = format!("echo x >> {} && sleep 2", verify_log.display());
    let watch = ConsistencyWatcher::start(&world);
    let mut run = spawn_run(&world, &["--verify", &verify, "--verify-each", "promise"]);
    world.wait_until(|| verify_log.exists(), "the verify command");
    run.kill();
    let finished = resume_and_wait(&world, &[]);
    let details = format!("{finished:#?}");
    assert_eq!(finished.code, Some(0), "{details}");
    watch.stop_and_assert_no_problems(&details);
    assert_eq!(world.read_json(STATE_PATH)["status"], "completed");
    assert_eq!(world.read("work.txt"), EXPECTED_WORK);
    assert_eq!(
        world.read(verify_log).lines().count(),
        2,
        "verified again: the first time nobody heard the answer"
    );
    assert_eq!(model.main_requests().len(), 4, "and no session was started for it");
    assert_one_verdict_per_iteration(&read_journal(&world), &details);
}

/// `plimsoll run` died before it could record the pid, and the client then finished alone.
#[test]
fn a_finished_session_without_a_recorded_pid_is_judged_not_repeated() {
    let mut world = world_with_plan_and_dates(PLAN);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => Step::bash_call(item_command("Item one")).with_delay(LONG_DELAY),
        _ => honest_agent(turn),
    })
    .start(&mut world);
    let mut run = spawn_run(&world, &[]);
    world.wait_until(|| !model.main_requests().is_empty(), "the first request");
    run.kill();
    overwrite_state(&world, |state| {
        state["iteration_record"]["phase"] = "planned".into();
        state["iteration_record"]
            .as_object_mut()
            .expect("a record")
            .retain(|key, _| !key.starts_with("p") || key == "phase");
    });
    world.wait_until(|| session_outputs(&world).contains("\"type\":\"result\""), "its result");
    world.wait_until(|| live_client_sessions(&world).is_empty(), "its end");
    let finished = resume_and_wait(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    assert_eq!(world.read("work.txt"), EXPECTED_WORK);
    let journal = read_journal(&world);
    assert_eq!(
        verdict_markers(&journal),
        ["RALPH_CONTINUE|next|1 open item", "RALPH_STOP|completed|2 items"]
    );
    assert_eq!(world.read_json(STATE_PATH)["iteration"], 2);
}

/// `plimsoll run` died before it could record the pid, and the client still works: it is found by its session and its
/// run.
#[test]
fn a_running_client_without_a_recorded_pid_is_adopted() {
    let mut world = world_with_plan_and_dates(PLAN);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => Step::bash_call(item_command("Item one")).with_delay(LONG_DELAY),
        _ => honest_agent(turn),
    })
    .start(&mut world);
    let watch = ConsistencyWatcher::start(&world);
    let mut run = spawn_run(&world, &[]);
    world.wait_until(|| !model.main_requests().is_empty(), "the first request");
    run.kill();
    overwrite_state(&world, |state| {
        state["iteration_record"]["phase"] = "planned".into();
        state["iteration_record"]["pid"] = Value::Null;
        state["iteration_record"]["process_started"] = Value::Null;
    });
    let finished = resume_and_wait(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    watch.stop_and_assert_no_problems("unnoted");
    assert_eq!(world.read("work.txt"), EXPECTED_WORK);
    assert_eq!(events_named(&read_journal(&world), "adopted").len(), 1);
    assert_eq!(model.main_requests().len(), 4);
}

/// The state, the output and the prompt are gone: the run continues from the copies and waits for the client to finish.
#[test]
fn a_client_is_adopted_after_git_clean_removed_our_files() {
    let mut world = world_with_plan_and_dates(PLAN);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => Step::bash_call(item_command("Item one")).with_delay(LONG_DELAY),
        _ => honest_agent(turn),
    })
    .start(&mut world);
    let mut run = spawn_run(&world, &[]);
    world.wait_until(|| !model.main_requests().is_empty(), "the first request");
    run.kill();
    world.git(&["clean", "-ffdxq"]);
    assert!(!world.exists(".claude"));
    let finished = resume_and_wait(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    assert_eq!(world.read("work.txt"), EXPECTED_WORK);
    let journal = read_journal(&world);
    let endings: Vec<&Value> =
        events_named(&journal, "verdict").iter().map(|entry| &entry["ending"]["ending"]).collect();
    // If the deleted output cannot be opened, the run learns that the client has ended, but not how.
    let first_ending = if plimsoll_system::OPENS_DELETED_OUTPUT { "completed" } else { "crashed" };
    assert_eq!(endings, [first_ending, "completed"], "{finished:#?}");
    assert_eq!(events_named(&journal, "run_started").len(), 1, "the journal is whole");
    assert_eq!(events_named(&journal, "adopted").len(), 1);
    assert_eq!(model.main_requests().len(), 4);
}

// ---- killed between a verdict and what follows it ----

/// Restores what a kill between the verdict and its report leaves: no archive, and a journal that ends before the
/// verdict's line. If the kill came after that line was written, only the archive is missing.
fn remove_verdict_report(world: &World, keep_journal_line: bool) {
    let archive = archived_state_path(world);
    std::fs::remove_file(&archive).expect("an archive");
    let journal = world.read(".claude/plimsoll/journal.jsonl");
    let last_line = journal.trim_end().rfind('\n').map_or("", |end| &journal[end + 1..]);
    assert!(last_line.contains("\"event\":\"verdict\""), "the verdict is reported last: {last_line}");
    if keep_journal_line {
        return;
    }
    for path in [".claude/plimsoll/journal.jsonl", ".git/plimsoll/journal.jsonl"] {
        let text = world.read(path);
        world.write(path, text.strip_suffix(last_line).unwrap_or(&text));
    }
}

/// Returns the path of the archived state of this world's only run.
fn archived_state_path(world: &World) -> PathBuf {
    let run_id = world.read_json(STATE_PATH)["run_id"].as_str().expect("an id").to_owned();
    world.path(format!(".claude/plimsoll/runs/{run_id}/state.json"))
}

#[test]
fn resuming_an_ended_run_reports_a_verdict_that_a_kill_left_unreported() {
    let mut world = world_with_plan_and_dates(PLAN);
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    assert_eq!(spawn_run(&world, &[]).wait_or_kill_and_panic(RUN_TIMEOUT).code, Some(0));
    let reported_markers = verdict_markers(&read_journal(&world));
    for has_journal_line in [false, true] {
        remove_verdict_report(&world, has_journal_line);
        let resumed = resume_and_wait(&world, &[]);
        assert_eq!(resumed.code, Some(0), "{resumed:?}");
        assert_eq!(resumed.stdout, "RALPH_STOP|completed|this run has ended\n");
        assert_eq!(
            verdict_markers(&read_journal(&world)),
            reported_markers,
            "told once; after the line: {has_journal_line}"
        );
        assert_one_verdict_per_iteration(&read_journal(&world), "completed");
        assert_eq!(
            world.read_json(archived_state_path(&world))["status"],
            "completed",
            "after the line: {has_journal_line}"
        );
    }
    // With everything in place nothing is written, neither a second report nor one from a later plan.
    world.write("fix_plan.md", "- [ ] Item four\n");
    let report_files =
        || (world.read(".claude/plimsoll/journal.jsonl"), world.read(archived_state_path(&world)));
    let before = report_files();
    assert_eq!(resume_and_wait(&world, &["--max-iterations", "60"]).code, Some(0));
    assert_eq!(resume_and_wait(&world, &[]).code, Some(0));
    assert_eq!(report_files(), before);
    assert!(!world.read(archived_state_path(&world).with_file_name("fix_plan.md")).contains("four"));
}

#[test]
fn a_reopened_run_first_reports_a_verdict_that_a_kill_left_unreported() {
    let mut world = world_with_plan_and_dates(PLAN);
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    assert_eq!(
        spawn_run(&world, &["--max-iterations", "1"]).wait_or_kill_and_panic(RUN_TIMEOUT).code,
        Some(3)
    );
    remove_verdict_report(&world, false);
    let resumed = resume_and_wait(&world, &["--max-iterations", "9"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let journal = read_journal(&world);
    assert_eq!(
        verdict_markers(&journal),
        ["RALPH_STOP|max_iterations|1 iteration done", "RALPH_STOP|completed|2 items"]
    );
    assert_one_verdict_per_iteration(&journal, "opened again");
    let position = |event: &str| journal.iter().position(|entry| entry["event"] == event);
    assert!(position("verdict") < position("resumed"), "{journal:#?}");
    assert_eq!(world.read("work.txt"), EXPECTED_WORK);
}

// ---- one run at a time; a stopped run stays stopped ----

#[test]
fn a_second_simultaneous_resume_is_refused() {
    let mut world = world_with_plan_and_dates(PLAN);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.assistant_message_count) {
        (1, 0) => honest_agent(turn).with_delay(LONG_DELAY),
        _ => honest_agent(turn),
    })
    .start(&mut world);
    let mut run = spawn_run(&world, &[]);
    world.wait_until(|| !model.main_requests().is_empty(), "the first request");
    run.kill();
    let watch = ConsistencyWatcher::start(&world);
    let mut resumes = [spawn_resume(&world, &[]), spawn_resume(&world, &[])];
    let one_is_refused = || resumes.iter_mut().any(|run| !run.is_running());
    world.wait_until(one_is_refused, "one of them is refused");
    let finished_resumes = resumes.map(|run| run.wait_or_kill_and_panic(RUN_TIMEOUT));
    watch.stop_and_assert_no_problems(&format!("{finished_resumes:#?}"));
    let refused: Vec<&FinishedProgram> = finished_resumes.iter().filter(|end| end.code == Some(1)).collect();
    assert_eq!(refused.len(), 1, "{finished_resumes:#?}");
    assert!(refused[0].stderr.contains("another `plimsoll run` is active"), "{finished_resumes:#?}");
    assert!(finished_resumes.iter().any(|end| end.code == Some(0)), "{finished_resumes:#?}");
    assert_eq!(world.read("work.txt"), EXPECTED_WORK);
    assert_eq!(model.main_requests().len(), 4);
}

/// Starts a run and waits until its first session is in a tool call that takes four seconds.
fn start_run_in_long_tool_call() -> (World, ScriptedModel, RunningProgram) {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let marker_file = world.home().join("the-moment");
    let model = ScriptedAgent::new({
        let marker_file = marker_file.clone();
        move |turn| match (turn.iteration, turn.assistant_message_count) {
            (1, 0) => Step::bash_call(format!(
                "touch {} && sleep 4 && {}",
                marker_file.display(),
                item_command("Item one")
            )),
            _ => honest_agent(turn),
        }
    })
    .start(&mut world);
    let run = spawn_run(&world, &[]);
    world.wait_until(|| marker_file.exists(), "the tool");
    (world, model, run)
}

#[test]
fn resume_does_not_restart_a_run_that_was_stopped() {
    let (world, model, run) = start_run_in_long_tool_call();
    let watch = ConsistencyWatcher::start(&world);
    let stop = world.plimsoll(&["stop"]).run();
    assert_eq!((stop.code, stop.stdout.trim()), (Some(0), "RALPH_STOP|cancelled|"), "{stop:?}");
    let finished = run.wait_or_kill_and_panic(Duration::from_secs(25));
    assert_eq!(finished.code, Some(9), "{finished:#?}");
    assert_eq!(world.read_json(STATE_PATH)["status"], "cancelled");
    world.wait_until(|| live_client_sessions(&world).is_empty(), "the session is ended");
    let requests = model.main_requests().len();
    let resumed = resume_and_wait(&world, &[]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&format!("{}{}", resumed.stdout, resumed.stderr)), @r#"
    RALPH_STOP|cancelled|this run has ended
    the run "Dates" has ended (cancelled) and cannot be resumed
    "#);
    assert_eq!(world.read_json(STATE_PATH)["status"], "cancelled", "nothing brings it back");
    assert_eq!(model.main_requests().len(), requests, "and no session works for it");
    assert!(verdict_markers(&read_journal(&world)).iter().all(|marker| marker == "RALPH_STOP|cancelled|"));
    watch.stop_and_assert_no_problems("stopped");
}

#[test]
fn stop_ends_the_client_of_a_run_that_was_killed() {
    let (world, model, mut run) = start_run_in_long_tool_call();
    run.kill();
    let stop = world.plimsoll(&["stop"]).run();
    assert_eq!(stop.code, Some(0), "{stop:?}");
    world.wait_until(|| live_client_sessions(&world).is_empty(), "the orphan is ended");
    sleep(Duration::from_secs(5));
    assert_eq!(world.read_json(STATE_PATH)["status"], "cancelled");
    assert!(!world.exists("work.txt"), "its tool was ended with it");
    assert_eq!(model.main_requests().len(), 1);
}

#[test]
fn one_ctrl_c_pauses_the_run_after_the_current_session() {
    let (world, model, mut run) = start_run_in_long_tool_call();
    let watch = ConsistencyWatcher::start(&world);
    run.interrupt();
    let finished = run.wait_or_kill_and_panic(RUN_TIMEOUT);
    assert_eq!(finished.code, Some(130), "{finished:#?}");
    assert_eq!(world.read("work.txt"), "Item one\n", "the session came to its own end");
    assert_eq!(world.read_json(STATE_PATH)["status"], "paused");
    assert_eq!(model.main_requests().len(), 2);
    let resumed = resume_and_wait(&world, &[]);
    assert_eq!(resumed.code, Some(0), "{resumed:#?}");
    watch.stop_and_assert_no_problems("once");
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
    assert_eq!(world.read_json(STATE_PATH)["iteration"], 3);
}

#[test]
fn two_ctrl_c_end_the_client_immediately() {
    assert_signal_ends_client_immediately(|run| {
        run.interrupt();
        sleep(Duration::from_millis(200));
        run.interrupt();
    });
}

#[test]
fn sigterm_ends_the_client_immediately() {
    assert_signal_ends_client_immediately(RunningProgram::terminate);
}

fn assert_signal_ends_client_immediately(send_signal: impl Fn(&mut RunningProgram)) {
    let (world, model, mut run) = start_run_in_long_tool_call();
    let watch = ConsistencyWatcher::start(&world);
    send_signal(&mut run);
    let signaled_at = Instant::now();
    let finished = run.wait_or_kill_and_panic(RUN_TIMEOUT);
    assert!(signaled_at.elapsed() < Duration::from_secs(20), "{finished:#?}");
    assert_eq!(finished.code, Some(130), "{finished:#?}");
    assert!(live_client_sessions(&world).is_empty(), "its child is ended");
    assert_eq!(world.read_json(STATE_PATH)["status"], "paused");
    sleep(Duration::from_secs(4));
    assert!(!world.exists("work.txt"), "and the tool of its child is");
    assert_eq!(model.main_requests().len(), 1);
    let resumed = resume_and_wait(&world, &[]);
    assert_eq!(resumed.code, Some(0), "{resumed:#?}");
    watch.stop_and_assert_no_problems("twice");
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
    assert_eq!(world.read_json(STATE_PATH)["iteration"], 3, "an interrupted session keeps its number");
}

#[test]
fn sigterm_ends_a_running_verify_command_immediately() {
    let mut world = world_with_plan_and_dates(PLAN);
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    let verify_log = world.home().join("verified");
    let verify = format!("echo $$ >> {} && sleep 20", verify_log.display());
    let mut run = spawn_run(&world, &["--verify", &verify, "--verify-each", "promise"]);
    world.wait_until(|| verify_log.exists(), "the verify command");
    run.terminate();
    let signaled_at = Instant::now();
    let finished = run.wait_or_kill_and_panic(RUN_TIMEOUT);
    assert!(signaled_at.elapsed() < Duration::from_secs(18), "{finished:#?}");
    assert_eq!(finished.code, Some(130), "{finished:#?}");
    let shell_pid = world.read(&verify_log).trim().to_owned();
    assert!(!Path::new("/proc").join(shell_pid).exists(), "the command is ended too");
    assert_eq!(world.read_json(STATE_PATH)["status"], "paused");
    let resumed = resume_and_wait(&world, &["--verify", "true"]);
    assert_eq!(resumed.code, Some(0), "{resumed:#?}");
    assert_eq!(world.read("work.txt"), EXPECTED_WORK);
}

// ---- a hook is killed ----

#[test]
fn a_checkpoint_of_a_killed_hook_is_finished_by_the_next_event() {
    let mut world = world_with_plan_and_dates(PLAN);
    let stage = Arc::new(AtomicUsize::new(0));
    let model = ScriptedAgent::new({
        let stage = Arc::clone(&stage);
        move |turn| match (turn.iteration, turn.assistant_message_count) {
            (1, 0) => Step::bash_call("sed -i '45,80s/$/ changed/' src/dates.txt")
                .with_input_tokens(200_000)
                .with_delay(LIFELIKE_DELAY),
            // Here the test puts the claim of a dead process into the record.
            (1, 1) => {
                stage.store(1, Ordering::SeqCst);
                Step::bash_call("echo on").with_input_tokens(870_000).with_delay(LONG_DELAY)
            }
            (1, _) => Step::from_text("I stop.").with_delay(LIFELIKE_DELAY),
            _ => honest_agent(turn),
        }
    })
    .start(&mut world);
    let run = spawn_run(&world, &[]);
    world.wait_until(|| stage.load(Ordering::SeqCst) == 1, "the second request");
    let record_path = write_claim_of_dead_process(&world);
    let finished = run.wait_or_kill_and_panic(RUN_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    let requests = model.main_requests();
    assert!(
        requests[2].text_since_last_assistant_message().contains("CCS_CHECKPOINT_TRIGGERED|L2|"),
        "{}",
        requests[2].text_since_last_assistant_message()
    );
    let journal = read_journal(&world);
    assert_eq!(events_named(&journal, "checkpoint").len(), 1, "finished once");
    assert_eq!(world.read_json(&record_path)["claim"], Value::Null, "the claim is settled");
    let entries = std::fs::read_dir(world.path(".claude/handoffs")).expect("handoffs").flatten();
    let handoffs = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "md"));
    assert_eq!(handoffs.count(), 1);
    assert!(first_request_of_iteration(&model, 2).contains("| src/dates.txt | 45-80 | modified"));
}

/// No event follows the kill, so the run finishes the checkpoint when it judges the session.
#[test]
fn a_checkpoint_of_a_killed_hook_is_finished_by_the_run_without_an_event() {
    let mut world = world_with_plan_and_dates(PLAN);
    let stage = Arc::new(AtomicUsize::new(0));
    let model = ScriptedAgent::new({
        let stage = Arc::clone(&stage);
        move |turn| match (turn.iteration, turn.assistant_message_count) {
            (1, 0) => Step::bash_call("sed -i '45,80s/$/ changed/' src/dates.txt")
                .with_input_tokens(200_000)
                .with_delay(LIFELIKE_DELAY),
            (1, _) => {
                stage.store(1, Ordering::SeqCst);
                Step::from_text("I stop.").with_delay(LONG_DELAY)
            }
            _ => honest_agent(turn),
        }
    })
    .start(&mut world);
    let run = spawn_run(&world, &[]);
    world.wait_until(|| stage.load(Ordering::SeqCst) == 1, "the second request");
    write_claim_of_dead_process(&world);
    let finished = run.wait_or_kill_and_panic(RUN_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    assert_eq!(events_named(&read_journal(&world), "checkpoint").len(), 1);
    assert!(first_request_of_iteration(&model, 2).contains("| src/dates.txt | 45-80 | modified"));
}

// ---- helpers ----

/// Writes the claim of a dead process into the session's record and returns the record's path.
fn write_claim_of_dead_process(world: &World) -> String {
    sleep(Duration::from_millis(300));
    let session = world.read_json(STATE_PATH)["session_id"].as_str().expect("a session").to_owned();
    let path = format!(".claude/plimsoll/sessions/{session}.json");
    let mut record = world.read_json(&path);
    record["announced"] = "L2".into();
    record["claim"] =
        json!({"level": "L2", "percent": 86, "pid": 4_000_000, "at": "2026-01-07T12:00:00.000Z"});
    world.write(&path, &record.to_string());
    path
}

fn item_command(item: &str) -> String {
    format!("echo '{item}' >> work.txt && {}", tick_item_command(item))
}

const CLIENT_ARGUMENTS: [&str; 8] =
    ["--", "--model", "opus", "--allowedTools", "Bash", "Edit", "Write", "Read"];

fn spawn_run(world: &World, options: &[&str]) -> RunningProgram {
    let base_arguments = ["run", "--objective", "Do the plan.", "--name", "Dates"];
    let arguments: Vec<&str> =
        base_arguments.iter().chain(options).chain(&CLIENT_ARGUMENTS).copied().collect();
    world.plimsoll(&arguments).spawn()
}

fn spawn_resume(world: &World, options: &[&str]) -> RunningProgram {
    let arguments: Vec<&str> =
        ["run", "--resume"].iter().chain(options).chain(&CLIENT_ARGUMENTS).copied().collect();
    world.plimsoll(&arguments).spawn()
}

fn resume_and_wait(world: &World, options: &[&str]) -> FinishedProgram {
    spawn_resume(world, options).wait_or_kill_and_panic(RUN_TIMEOUT)
}

/// Returns everything that the sessions of the run have written so far.
fn session_outputs(world: &World) -> String {
    let runs = world.path(".claude/plimsoll/runs");
    let folders = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten().flatten());
    let streams =
        files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|kind| kind == "jsonl"));
    streams.map(|path| std::fs::read_to_string(path).unwrap_or_default()).collect()
}

/// Returns the client's pid from the state, if that client still runs.
fn live_client_pid(world: &World) -> Option<u32> {
    let pid = u32::try_from(world.read_json(STATE_PATH)["iteration_record"]["pid"].as_u64()?).ok()?;
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    command.windows(12).any(|part| part == b"--session-id").then_some(pid)
}

fn kill_process(pid: u32) {
    let status = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "kill -9 {pid}");
}

fn iteration_from_prompt(request: &Request) -> u32 {
    let text = request.first_message_text();
    let number = text.split("You are session ").nth(1).and_then(|rest| rest.split(' ').next());
    number.and_then(|number| number.parse().ok()).expect("a prompt with its iteration")
}

/// Asserts that each iteration has only one final verdict.
fn assert_one_verdict_per_iteration(journal: &[Value], details: &str) {
    let verdicts = events_named(journal, "verdict");
    let iterations: BTreeSet<u64> = verdicts.iter().filter_map(|entry| entry["iteration"].as_u64()).collect();
    assert_eq!(iterations.len(), verdicts.len(), "{verdicts:#?}; {details}");
}

/// Changes the state and its copy. Each file is replaced by a rename, so that no reader sees half of it.
fn overwrite_state(world: &World, change: impl FnOnce(&mut Value)) {
    let mut state = world.read_json(STATE_PATH);
    change(&mut state);
    for path in [STATE_PATH, ".git/plimsoll/ralph-state.json"] {
        world.write("forged", &state.to_string());
        std::fs::rename(world.path("forged"), world.path(path)).expect("the forged state");
    }
}

/// Returns the session ids of this world's live clients.
fn live_client_sessions(world: &World) -> BTreeSet<String> {
    live_client_sessions_of_home(&world.home())
}

fn live_client_sessions_of_home(home: &Path) -> BTreeSet<String> {
    let home_variable = format!("HOME={}", home.display());
    let mut sessions = BTreeSet::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let arguments: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
        let Some(option_index) = arguments.iter().position(|word| *word == b"--session-id") else { continue };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|variable| variable == home_variable.as_bytes()) {
            sessions
                .extend(arguments.get(option_index + 1).map(|id| String::from_utf8_lossy(id).into_owned()));
        }
    }
    sessions
}

/// Checks files and processes in a background thread.
struct ConsistencyWatcher {
    stop_requested: Arc<AtomicBool>,
    checker: JoinHandle<(usize, BTreeSet<String>)>,
}

impl ConsistencyWatcher {
    fn start(world: &World) -> ConsistencyWatcher {
        let stop_requested = Arc::new(AtomicBool::new(false));
        let (project, home) = (world.project(), world.home());
        let checker = std::thread::spawn({
            let stop_requested = Arc::clone(&stop_requested);
            move || {
                let (mut check_count, mut problems) = (0, BTreeSet::new());
                while !stop_requested.load(Ordering::SeqCst) {
                    collect_file_problems(&project, &mut problems);
                    if check_count % 10 == 0 {
                        let sessions = live_client_sessions_of_home(&home);
                        if sessions.len() > 1 {
                            problems.insert(format!("two clients at work: {sessions:?}"));
                        }
                    }
                    check_count += 1;
                    sleep(Duration::from_millis(3));
                }
                (check_count, problems)
            }
        });
        ConsistencyWatcher { stop_requested, checker }
    }

    fn stop_and_assert_no_problems(self, details: &str) {
        self.stop_requested.store(true, Ordering::SeqCst);
        let (check_count, problems) = self.checker.join().expect("the watch comes to its end");
        assert!(check_count > 10, "{check_count} looks; {details}");
        assert!(problems.is_empty(), "{problems:#?}; {details}");
    }
}

fn collect_file_problems(project: &Path, problems: &mut BTreeSet<String>) {
    let parses = |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
    for path in [project.join(STATE_PATH), project.join(".git/plimsoll/ralph-state.json")] {
        if let Ok(text) = std::fs::read_to_string(&path)
            && !parses(&text)
        {
            problems.insert(format!("{} does not parse: {text}", path.display()));
        }
    }
    let journal = std::fs::read_to_string(project.join(".claude/plimsoll/journal.jsonl")).unwrap_or_default();
    // A line that is still being written has no newline yet.
    let complete_lines = journal.rfind('\n').map_or("", |end| &journal[..end]);
    problems
        .extend(complete_lines.lines().filter(|line| !parses(line)).map(|line| format!("journal: {line}")));
    for entry in std::fs::read_dir(project.join(".claude/handoffs")).into_iter().flatten().flatten() {
        let is_handoff = entry.path().extension().is_some_and(|kind| kind == "md");
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        if is_handoff && !is_complete_handoff(&text) {
            problems.insert(format!("half a handoff {}: {text}", entry.path().display()));
        }
    }
}

/// Returns true if the handoff begins with its title, says what to do next, and ends with a newline.
fn is_complete_handoff(handoff: &str) -> bool {
    handoff.starts_with("# ") && handoff.contains("\n## What to do next\n\n") && handoff.ends_with('\n')
}
