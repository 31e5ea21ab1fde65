//! `kill -9` at every moment of a run: nothing is torn, nothing is done twice, no two clients work at once.
//! And the polite ends: Ctrl-C, SIGTERM, `plimsoll stop`.

use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::story::{Turn, tick};
use plimsoll_testkit::world::{Finished, Running, World};
use plimsoll_tests::{
    ITEMS, LIFELIKE, ScriptedAgent, events, first_request_of, honest, journal, markers, world,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

const STATE: &str = ".claude/ralph-state.json";
const PLAN: &str = "# Plan\n\n- [ ] Item one\n- [ ] Item three\n";
const DONE: &str = "Item one\nItem three\n";
/// Long enough to kill somebody meanwhile.
const HELD: Duration = Duration::from_secs(3);
/// So long a whole run may take on a busy computer.
const LIMIT: Duration = Duration::from_secs(120);

// ---- who is killed, and when ----

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Run,
    Client,
    Both,
}

const EVERYBODY: [Victim; 3] = [Victim::Run, Victim::Client, Victim::Both];

/// Kills at a moment of the first session, lets the run end (with `--resume` where it died), and looks at what
/// must hold whoever was killed and whenever.
fn killed(
    victim: Victim,
    more: &[&str],
    tell: impl FnMut(&Turn<'_>, &Path) -> Step + Send + 'static,
    is_the_moment: impl Fn(&World, &ScriptedModel) -> bool,
) -> (World, ScriptedModel) {
    let mut world = world(PLAN);
    let mark = world.home().join("the-moment");
    let mut tell = tell;
    let model = ScriptedAgent::new({
        let mark = mark.clone();
        move |turn| tell(turn, &mark)
    })
    .start(&mut world);
    let watch = Watch::over(&world);
    let mut run = begin(&world, more);
    world.wait_until(|| is_the_moment(&world, &model), "the moment to kill");
    let client = client_pid(&world);
    if victim != Victim::Client {
        run.kill();
    }
    if victim != Victim::Run {
        kill(client.expect("a client is at work"));
    }
    let finished = if victim == Victim::Client { run.wait(LIMIT) } else { resume(&world, more) };
    let words = format!("{victim:?}: {finished:#?}");
    assert_eq!(finished.code, Some(0), "{words}");
    watch.end(&words);
    assert_eq!(world.json(STATE)["status"], "completed", "{words}");
    assert_eq!(world.read("work.txt"), DONE, "each item is done once; {words}");
    assert_eq!(world.read("fix_plan.md").matches("- [x]").count(), 2, "{words}");
    let journal = journal(&world);
    let adopted = events(&journal, "adopted").len();
    // A client that has just been killed may still be seen, and is seen off.
    let right =
        if victim == Victim::Run { adopted == 1 } else { adopted <= usize::from(victim == Victim::Both) };
    assert!(right, "{adopted} adopted; {words}");
    judged_once(&journal, &words);
    let iterations: Vec<u32> = model.main_requests().iter().map(iteration_of).collect();
    assert!(iterations.is_sorted(), "the sessions' requests do not mix: {iterations:?}; {words}");
    (world, model)
}

#[test]
fn killed_before_the_first_answer() {
    for victim in EVERYBODY {
        let mut first = true;
        let tell = move |turn: &Turn<'_>, _: &Path| {
            let step = honest(turn);
            if std::mem::take(&mut first) { step.delay(HELD) } else { step }
        };
        killed(victim, &[], tell, |_, model| !model.main_requests().is_empty());
    }
}

#[test]
fn killed_while_a_tool_works() {
    for victim in EVERYBODY {
        let mut first = true;
        let tell = move |turn: &Turn<'_>, mark: &Path| match std::mem::take(&mut first) {
            true => Step::bash(format!("touch {} && sleep 2 && {}", mark.display(), do_item("Item one"))),
            false => honest(turn),
        };
        killed(victim, &[], tell, |world, _| world.home().join("the-moment").exists());
    }
}

#[test]
fn killed_after_an_edit_before_the_tick() {
    for victim in EVERYBODY {
        let mut firsts = 0;
        let tell = move |turn: &Turn<'_>, _: &Path| {
            if turn.item.as_deref() != Some("Item one") || firsts > 3 {
                return honest(turn);
            }
            firsts += 1;
            match (firsts, turn.step) {
                (1, 0) => Step::bash("sed -i '45,80s/$/ changed/' src/dates.txt"),
                (2, 1) => Step::bash(do_item("Item one")).delay(HELD),
                _ => honest(turn),
            }
        };
        let (_, model) = killed(victim, &[], tell, |_, model| model.main_requests().len() >= 2);
        if victim != Victim::Run {
            let next = first_request_of(&model, 2);
            assert!(next.contains("| src/dates.txt | 45-80 |"), "{victim:?}: {next}");
            assert!(next.contains("ended in the middle of its work"), "{victim:?}: {next}");
        }
    }
}

#[test]
fn killed_after_the_checkpoint_was_written() {
    for victim in EVERYBODY {
        let mut first_session = true;
        let tell = move |turn: &Turn<'_>, _: &Path| {
            if !first_session {
                return honest(turn);
            }
            match turn.step {
                0 => Step::bash("sed -i '45,80s/$/ changed/' src/dates.txt").usage(560_000).delay(LIFELIKE),
                1 => Step::bash("echo on").usage(870_000).delay(LIFELIKE),
                _ => {
                    first_session = false;
                    assert!(turn.saw("CCS_CHECKPOINT_TRIGGERED|L2|87|"), "the model is told");
                    Step::text("I stop.\n\nSummary: half\nProgress on the item: 70%\nNext step: line 81")
                        .delay(HELD)
                }
            }
        };
        let (world, model) = killed(victim, &[], tell, |_, model| model.main_requests().len() >= 3);
        let next = first_request_of(&model, 2);
        let state = world.json(STATE);
        let handoff = state["context_checkpoint"]["handoff_file"].as_str().expect("a handoff");
        for part in [handoff, "stopped at 87%", "| src/dates.txt | 45-80 |"] {
            assert!(next.contains(part), "{victim:?}: {part} in {next}");
        }
        assert!(world.read(handoff).contains("45-80"));
        assert_eq!(
            next.contains("70%"),
            victim == Victim::Run,
            "only an adopted session could say so: {next}"
        );
    }
}

#[test]
fn killed_right_after_the_result() {
    for victim in EVERYBODY {
        let tell = |turn: &Turn<'_>, _: &Path| honest(turn);
        // The client may be gone by then: whoever is killed is killed at most once.
        let moment = |world: &World, _: &ScriptedModel| output(world).contains("\"type\":\"result\"");
        let mut world = world(PLAN);
        let mark = PathBuf::new();
        let model = ScriptedAgent::new(move |turn| tell(turn, &mark)).start(&mut world);
        let watch = Watch::over(&world);
        let mut run = begin(&world, &[]);
        let started = Instant::now();
        while !moment(&world, &model) {
            assert!(started.elapsed() < Duration::from_secs(40), "a result");
            sleep(Duration::from_millis(1));
        }
        if victim != Victim::Client {
            run.kill();
        }
        if victim != Victim::Run
            && let Some(client) = client_pid(&world)
        {
            kill(client);
        }
        let finished = if victim == Victim::Client { run.wait(LIMIT) } else { resume(&world, &[]) };
        let words = format!("{victim:?}: {finished:#?}");
        assert_eq!(finished.code, Some(0), "{words}");
        watch.end(&words);
        assert_eq!(world.read("work.txt"), DONE, "{words}");
        assert_eq!(world.json(STATE)["iteration"], 2, "{words}");
        assert_eq!(model.main_requests().len(), 4, "{words}");
        judged_once(&journal(&world), &words);
    }
}

#[test]
fn killed_while_the_verify_command_runs() {
    let mut world = world(PLAN);
    let model = ScriptedAgent::new(honest).start(&mut world);
    let mark = world.home().join("verified");
    let verify = format!("echo x >> {} && sleep 2", mark.display());
    let watch = Watch::over(&world);
    let mut run = begin(&world, &["--verify", &verify, "--verify-each", "promise"]);
    world.wait_until(|| mark.exists(), "the verify command");
    run.kill();
    let finished = resume(&world, &[]);
    let words = format!("{finished:#?}");
    assert_eq!(finished.code, Some(0), "{words}");
    watch.end(&words);
    assert_eq!(world.json(STATE)["status"], "completed");
    assert_eq!(world.read("work.txt"), DONE);
    assert_eq!(world.read(mark).lines().count(), 2, "verified again: the first time nobody heard the answer");
    assert_eq!(model.main_requests().len(), 4, "and no session was started for it");
    judged_once(&journal(&world), &words);
}

/// `plimsoll run` died before it could note the pid, and the client came to its end alone.
#[test]
fn a_session_that_nobody_noted_is_judged_and_not_repeated() {
    let mut world = world(PLAN);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0) => Step::bash(do_item("Item one")).delay(HELD),
        _ => honest(turn),
    })
    .start(&mut world);
    let mut run = begin(&world, &[]);
    world.wait_until(|| !model.main_requests().is_empty(), "the first request");
    run.kill();
    forge(&world, |state| {
        state["iteration_record"]["phase"] = "planned".into();
        state["iteration_record"]
            .as_object_mut()
            .expect("a record")
            .retain(|key, _| !key.starts_with("p") || key == "phase");
    });
    world.wait_until(|| output(&world).contains("\"type\":\"result\""), "its result");
    world.wait_until(|| clients(&world).is_empty(), "its end");
    let finished = resume(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    assert_eq!(world.read("work.txt"), DONE);
    let journal = journal(&world);
    assert_eq!(markers(&journal), ["RALPH_CONTINUE|next|1 open item", "RALPH_STOP|completed|2 items"]);
    assert_eq!(world.json(STATE)["iteration"], 2);
}

/// The same, while the client still works: it is found by its session and its run.
#[test]
fn a_client_that_nobody_noted_is_adopted() {
    let mut world = world(PLAN);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0) => Step::bash(do_item("Item one")).delay(HELD),
        _ => honest(turn),
    })
    .start(&mut world);
    let watch = Watch::over(&world);
    let mut run = begin(&world, &[]);
    world.wait_until(|| !model.main_requests().is_empty(), "the first request");
    run.kill();
    forge(&world, |state| {
        state["iteration_record"]["phase"] = "planned".into();
        state["iteration_record"]["pid"] = Value::Null;
        state["iteration_record"]["process_started"] = Value::Null;
    });
    let finished = resume(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    watch.end("unnoted");
    assert_eq!(world.read("work.txt"), DONE);
    assert_eq!(events(&journal(&world), "adopted").len(), 1);
    assert_eq!(model.main_requests().len(), 4);
}

/// Its state, its output and its prompt are gone: the run goes on from the copies, and hears the client out.
#[test]
fn a_client_is_adopted_after_everything_of_ours_was_cleaned_away() {
    let mut world = world(PLAN);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0) => Step::bash(do_item("Item one")).delay(HELD),
        _ => honest(turn),
    })
    .start(&mut world);
    let mut run = begin(&world, &[]);
    world.wait_until(|| !model.main_requests().is_empty(), "the first request");
    run.kill();
    world.git(&["clean", "-ffdxq"]);
    assert!(!world.exists(".claude"));
    let finished = resume(&world, &[]);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    assert_eq!(world.read("work.txt"), DONE);
    let journal = journal(&world);
    let endings: Vec<&Value> =
        events(&journal, "verdict").iter().map(|entry| &entry["ending"]["ending"]).collect();
    assert_eq!(endings, ["completed"; 2], "{finished:#?}");
    assert_eq!(events(&journal, "run_started").len(), 1, "the journal is whole");
    assert_eq!(events(&journal, "adopted").len(), 1);
    assert_eq!(model.main_requests().len(), 4);
}

// ---- killed between a verdict and what follows it ----

/// What a kill between the verdict and its report leaves: the journal ends before the verdict's line, and there is no archive.
/// With `told` the kill came after the line.
fn unreport(world: &World, told: bool) {
    let archive = archive(world);
    std::fs::remove_file(&archive).expect("an archive");
    let journal = world.read(".claude/plimsoll/journal.jsonl");
    let last = journal.trim_end().rfind('\n').map_or("", |end| &journal[end + 1..]);
    assert!(last.contains("\"event\":\"verdict\""), "the verdict is reported last: {last}");
    if told {
        return;
    }
    for path in [".claude/plimsoll/journal.jsonl", ".git/plimsoll/journal.jsonl"] {
        let text = world.read(path);
        world.write(path, text.strip_suffix(last).unwrap_or(&text));
    }
}

/// The state in the archive of this world's only run.
fn archive(world: &World) -> PathBuf {
    let run_id = world.json(STATE)["run_id"].as_str().expect("an id").to_owned();
    world.path(format!(".claude/plimsoll/runs/{run_id}/state.json"))
}

#[test]
fn a_resume_of_a_run_that_is_over_reports_a_verdict_that_a_kill_kept_back() {
    let mut world = world(PLAN);
    let _model = ScriptedAgent::new(honest).start(&mut world);
    assert_eq!(begin(&world, &[]).wait(LIMIT).code, Some(0));
    let told = markers(&journal(&world));
    for was_told in [false, true] {
        unreport(&world, was_told);
        let again = resume(&world, &[]);
        assert_eq!(again.code, Some(0), "{again:?}");
        assert_eq!(again.stdout, "RALPH_STOP|completed|this run is over\n");
        assert_eq!(markers(&journal(&world)), told, "told once; after the line: {was_told}");
        judged_once(&journal(&world), "completed");
        assert_eq!(world.json(archive(&world))["status"], "completed", "after the line: {was_told}");
    }
    // With everything there, nothing is written: neither twice nor from a plan of later.
    world.write("fix_plan.md", "- [ ] Item four\n");
    let kept = || (world.read(".claude/plimsoll/journal.jsonl"), world.read(archive(&world)));
    let before = kept();
    assert_eq!(resume(&world, &["--max-iterations", "60"]).code, Some(0));
    assert_eq!(resume(&world, &[]).code, Some(0));
    assert_eq!(kept(), before);
    assert!(!world.read(archive(&world).with_file_name("fix_plan.md")).contains("four"));
}

#[test]
fn a_run_that_is_opened_again_reports_the_verdict_that_a_kill_kept_back_first() {
    let mut world = world(PLAN);
    let _model = ScriptedAgent::new(honest).start(&mut world);
    assert_eq!(begin(&world, &["--max-iterations", "1"]).wait(LIMIT).code, Some(3));
    unreport(&world, false);
    let again = resume(&world, &["--max-iterations", "9"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    let journal = journal(&world);
    assert_eq!(
        markers(&journal),
        ["RALPH_STOP|max_iterations|1 iteration done", "RALPH_STOP|completed|2 items"]
    );
    judged_once(&journal, "opened again");
    let position = |event: &str| journal.iter().position(|entry| entry["event"] == event);
    assert!(position("verdict") < position("resumed"), "{journal:#?}");
    assert_eq!(world.read("work.txt"), DONE);
}

// ---- one at a time, and for good ----

#[test]
fn of_two_resumes_at_once_the_second_is_refused() {
    let mut world = world(PLAN);
    let model = ScriptedAgent::new(|turn| match (turn.iteration, turn.step) {
        (1, 0) => honest(turn).delay(HELD),
        _ => honest(turn),
    })
    .start(&mut world);
    let mut run = begin(&world, &[]);
    world.wait_until(|| !model.main_requests().is_empty(), "the first request");
    run.kill();
    let watch = Watch::over(&world);
    let mut both = [begin_resume(&world, &[]), begin_resume(&world, &[])];
    let one_is_refused = || both.iter_mut().any(|run| !run.is_running());
    world.wait_until(one_is_refused, "one of them is refused");
    let ends = both.map(|run| run.wait(LIMIT));
    watch.end(&format!("{ends:#?}"));
    let refused: Vec<&Finished> = ends.iter().filter(|end| end.code == Some(1)).collect();
    assert_eq!(refused.len(), 1, "{ends:#?}");
    assert!(refused[0].stderr.contains("another `plimsoll run` is active"), "{ends:#?}");
    assert!(ends.iter().any(|end| end.code == Some(0)), "{ends:#?}");
    assert_eq!(world.read("work.txt"), DONE);
    assert_eq!(model.main_requests().len(), 4);
}

/// A run that does nothing but hold still in a tool.
fn held_run() -> (World, ScriptedModel, Running) {
    let mut world = world(ITEMS);
    let mark = world.home().join("the-moment");
    let model = ScriptedAgent::new({
        let mark = mark.clone();
        move |turn| match (turn.iteration, turn.step) {
            (1, 0) => Step::bash(format!("touch {} && sleep 4 && {}", mark.display(), do_item("Item one"))),
            _ => honest(turn),
        }
    })
    .start(&mut world);
    let run = begin(&world, &[]);
    world.wait_until(|| mark.exists(), "the tool");
    (world, model, run)
}

#[test]
fn a_stopped_run_stays_stopped() {
    let (world, model, run) = held_run();
    let watch = Watch::over(&world);
    let stop = world.plimsoll(&["stop"]).run();
    assert_eq!((stop.code, stop.stdout.trim()), (Some(0), "RALPH_STOP|cancelled|"), "{stop:?}");
    let finished = run.wait(Duration::from_secs(25));
    assert_eq!(finished.code, Some(9), "{finished:#?}");
    assert_eq!(world.json(STATE)["status"], "cancelled");
    world.wait_until(|| clients(&world).is_empty(), "the session is ended");
    let requests = model.main_requests().len();
    let again = resume(&world, &[]);
    assert_eq!(again.code, Some(0), "{again:?}");
    insta::assert_snapshot!(world.stable_text(&format!("{}{}", again.stdout, again.stderr)), @r#"
    RALPH_STOP|cancelled|this run is over
    plimsoll: the run "Dates" is over (cancelled): there is nothing to resume
    "#);
    assert_eq!(world.json(STATE)["status"], "cancelled", "nothing brings it back");
    assert_eq!(model.main_requests().len(), requests, "and no session works for it");
    assert!(markers(&journal(&world)).iter().all(|marker| marker == "RALPH_STOP|cancelled|"));
    watch.end("stopped");
}

#[test]
fn stop_ends_the_client_of_a_run_that_was_killed() {
    let (world, model, mut run) = held_run();
    run.kill();
    let stop = world.plimsoll(&["stop"]).run();
    assert_eq!(stop.code, Some(0), "{stop:?}");
    world.wait_until(|| clients(&world).is_empty(), "the orphan is ended");
    sleep(Duration::from_secs(5));
    assert_eq!(world.json(STATE)["status"], "cancelled");
    assert!(!world.exists("work.txt"), "its tool was ended with it");
    assert_eq!(model.main_requests().len(), 1);
}

#[test]
fn ctrl_c_once_stops_after_this_session() {
    let (world, model, mut run) = held_run();
    let watch = Watch::over(&world);
    run.interrupt();
    let finished = run.wait(LIMIT);
    assert_eq!(finished.code, Some(130), "{finished:#?}");
    assert_eq!(world.read("work.txt"), "Item one\n", "the session came to its own end");
    assert_eq!(world.json(STATE)["status"], "paused");
    assert_eq!(model.main_requests().len(), 2);
    let again = resume(&world, &[]);
    assert_eq!(again.code, Some(0), "{again:#?}");
    watch.end("once");
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
    assert_eq!(world.json(STATE)["iteration"], 3);
}

#[test]
fn ctrl_c_twice_ends_the_client_now() {
    ended_now(|run| {
        run.interrupt();
        sleep(Duration::from_millis(200));
        run.interrupt();
    });
}

#[test]
fn sigterm_ends_the_client_now() {
    ended_now(Running::terminate);
}

fn ended_now(signal: impl Fn(&mut Running)) {
    let (world, model, mut run) = held_run();
    let watch = Watch::over(&world);
    signal(&mut run);
    let signalled = Instant::now();
    let finished = run.wait(LIMIT);
    assert!(signalled.elapsed() < Duration::from_secs(20), "{finished:#?}");
    assert_eq!(finished.code, Some(130), "{finished:#?}");
    assert!(clients(&world).is_empty(), "its child is ended");
    assert_eq!(world.json(STATE)["status"], "paused");
    sleep(Duration::from_secs(4));
    assert!(!world.exists("work.txt"), "and the tool of its child is");
    assert_eq!(model.main_requests().len(), 1);
    let again = resume(&world, &[]);
    assert_eq!(again.code, Some(0), "{again:#?}");
    watch.end("twice");
    assert_eq!(world.read("work.txt"), "Item one\nItem two\nItem three\n");
    assert_eq!(world.json(STATE)["iteration"], 3, "an interrupted session keeps its number");
}

#[test]
fn ctrl_c_twice_does_not_wait_for_a_verify_command() {
    let mut world = world(PLAN);
    let _model = ScriptedAgent::new(honest).start(&mut world);
    let mark = world.home().join("verified");
    let verify = format!("echo $$ >> {} && sleep 20", mark.display());
    let mut run = begin(&world, &["--verify", &verify, "--verify-each", "promise"]);
    world.wait_until(|| mark.exists(), "the verify command");
    run.terminate();
    let signalled = Instant::now();
    let finished = run.wait(LIMIT);
    assert!(signalled.elapsed() < Duration::from_secs(18), "{finished:#?}");
    assert_eq!(finished.code, Some(130), "{finished:#?}");
    let shell = world.read(&mark).trim().to_owned();
    assert!(!Path::new("/proc").join(shell).exists(), "the command is ended too");
    assert_eq!(world.json(STATE)["status"], "paused");
    let again = resume(&world, &["--verify", "true"]);
    assert_eq!(again.code, Some(0), "{again:#?}");
    assert_eq!(world.read("work.txt"), DONE);
}

// ---- a hook is killed ----

#[test]
fn a_checkpoint_whose_hook_was_killed_is_finished_by_the_next_event() {
    let mut world = world(PLAN);
    let moment = Arc::new(AtomicUsize::new(0));
    let model = ScriptedAgent::new({
        let moment = Arc::clone(&moment);
        move |turn| match (turn.iteration, turn.step) {
            (1, 0) => Step::bash("sed -i '45,80s/$/ changed/' src/dates.txt").usage(200_000).delay(LIFELIKE),
            // Here the test puts the claim of a dead process into the record.
            (1, 1) => {
                moment.store(1, Ordering::SeqCst);
                Step::bash("echo on").usage(870_000).delay(HELD)
            }
            (1, _) => Step::text("I stop.").delay(LIFELIKE),
            _ => honest(turn),
        }
    })
    .start(&mut world);
    let run = begin(&world, &[]);
    world.wait_until(|| moment.load(Ordering::SeqCst) == 1, "the second request");
    let path = claimed_by_the_dead(&world);
    let finished = run.wait(LIMIT);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    let requests = model.main_requests();
    assert!(requests[2].last_text().contains("CCS_CHECKPOINT_TRIGGERED|L2|"), "{}", requests[2].last_text());
    let journal = journal(&world);
    assert_eq!(events(&journal, "checkpoint").len(), 1, "finished once");
    assert_eq!(world.json(&path)["claim"], Value::Null, "the claim is settled");
    let names = std::fs::read_dir(world.path(".claude/handoffs")).expect("handoffs").flatten();
    let handoffs = names.filter(|entry| entry.path().extension().is_some_and(|end| end == "md"));
    assert_eq!(handoffs.count(), 1);
    assert!(first_request_of(&model, 2).contains("| src/dates.txt | 45-80 | modified"));
}

/// No event comes after the kill: the one who judges finishes the checkpoint.
#[test]
fn a_checkpoint_whose_hook_was_killed_last_is_finished_by_the_run() {
    let mut world = world(PLAN);
    let moment = Arc::new(AtomicUsize::new(0));
    let model = ScriptedAgent::new({
        let moment = Arc::clone(&moment);
        move |turn| match (turn.iteration, turn.step) {
            (1, 0) => Step::bash("sed -i '45,80s/$/ changed/' src/dates.txt").usage(200_000).delay(LIFELIKE),
            (1, _) => {
                moment.store(1, Ordering::SeqCst);
                Step::text("I stop.").delay(HELD)
            }
            _ => honest(turn),
        }
    })
    .start(&mut world);
    let run = begin(&world, &[]);
    world.wait_until(|| moment.load(Ordering::SeqCst) == 1, "the second request");
    claimed_by_the_dead(&world);
    let finished = run.wait(LIMIT);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    assert_eq!(events(&journal(&world), "checkpoint").len(), 1);
    assert!(first_request_of(&model, 2).contains("| src/dates.txt | 45-80 | modified"));
}

// ---- what the tests share ----

/// The claim of a dead process in the session's record; where that is.
fn claimed_by_the_dead(world: &World) -> String {
    sleep(Duration::from_millis(300));
    let session = world.json(STATE)["session_id"].as_str().expect("a session").to_owned();
    let path = format!(".claude/plimsoll/sessions/{session}.json");
    let mut record = world.json(&path);
    record["announced"] = "L2".into();
    record["claim"] =
        json!({"level": "L2", "percent": 86, "pid": 4_000_000, "at": "2026-01-07T12:00:00.000Z"});
    world.write(&path, &record.to_string());
    path
}

fn do_item(item: &str) -> String {
    format!("echo '{item}' >> work.txt && {}", tick(item))
}

const CLIENT: [&str; 8] = ["--", "--model", "opus", "--allowedTools", "Bash", "Edit", "Write", "Read"];

fn begin(world: &World, more: &[&str]) -> Running {
    let ours = ["run", "--objective", "Do the plan.", "--name", "Dates"];
    let all: Vec<&str> = ours.iter().chain(more).chain(&CLIENT).copied().collect();
    world.plimsoll(&all).spawn()
}

fn begin_resume(world: &World, more: &[&str]) -> Running {
    let all: Vec<&str> = ["run", "--resume"].iter().chain(more).chain(&CLIENT).copied().collect();
    world.plimsoll(&all).spawn()
}

fn resume(world: &World, more: &[&str]) -> Finished {
    begin_resume(world, more).wait(LIMIT)
}

/// What all sessions of the run have said so far.
fn output(world: &World) -> String {
    let runs = world.path(".claude/plimsoll/runs");
    let folders = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten().flatten());
    let streams =
        files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|kind| kind == "jsonl"));
    streams.map(|path| std::fs::read_to_string(path).unwrap_or_default()).collect()
}

/// The client that the state names, while it lives.
fn client_pid(world: &World) -> Option<u32> {
    let pid = u32::try_from(world.json(STATE)["iteration_record"]["pid"].as_u64()?).ok()?;
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    command.windows(12).any(|part| part == b"--session-id").then_some(pid)
}

fn kill(pid: u32) {
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()), "kill -9 {pid}");
}

fn iteration_of(request: &Request) -> u32 {
    let text = request.first_text();
    let number = text.split("You are session ").nth(1).and_then(|rest| rest.split(' ').next());
    number.and_then(|number| number.parse().ok()).expect("a prompt with its iteration")
}

/// One final verdict for each iteration.
fn judged_once(journal: &[Value], words: &str) {
    let verdicts = events(journal, "verdict");
    let iterations: BTreeSet<u64> = verdicts.iter().filter_map(|entry| entry["iteration"].as_u64()).collect();
    assert_eq!(iterations.len(), verdicts.len(), "{verdicts:#?}; {words}");
}

/// Changes the state and its copy as if time stood elsewhere.
fn forge(world: &World, change: impl FnOnce(&mut Value)) {
    let mut state = world.json(STATE);
    change(&mut state);
    for path in [STATE, ".git/plimsoll/ralph-state.json"] {
        world.write("forged", &state.to_string());
        std::fs::rename(world.path("forged"), world.path(path)).expect("the forged state");
    }
}

/// The sessions of this world's clients that are alive.
fn clients(world: &World) -> BTreeSet<String> {
    clients_at(&world.home())
}

fn clients_at(home: &Path) -> BTreeSet<String> {
    let wanted = format!("HOME={}", home.display());
    let mut sessions = BTreeSet::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
        let Some(place) = words.iter().position(|word| *word == b"--session-id") else { continue };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()) {
            sessions.extend(words.get(place + 1).map(|id| String::from_utf8_lossy(id).into_owned()));
        }
    }
    sessions
}

/// Looks at the files and the processes all the time.
struct Watch {
    over: Arc<AtomicBool>,
    looking: JoinHandle<(usize, BTreeSet<String>)>,
}

impl Watch {
    fn over(world: &World) -> Watch {
        let over = Arc::new(AtomicBool::new(false));
        let (project, home) = (world.project(), world.home());
        let looking = std::thread::spawn({
            let over = Arc::clone(&over);
            move || {
                let (mut looks, mut trouble) = (0, BTreeSet::new());
                while !over.load(Ordering::SeqCst) {
                    look(&project, &mut trouble);
                    if looks % 10 == 0 {
                        let at_work = clients_at(&home);
                        if at_work.len() > 1 {
                            trouble.insert(format!("two clients at work: {at_work:?}"));
                        }
                    }
                    looks += 1;
                    sleep(Duration::from_millis(3));
                }
                (looks, trouble)
            }
        });
        Watch { over, looking }
    }

    fn end(self, words: &str) {
        self.over.store(true, Ordering::SeqCst);
        let (looks, trouble) = self.looking.join().expect("the watch comes to its end");
        assert!(looks > 10, "{looks} looks; {words}");
        assert!(trouble.is_empty(), "{trouble:#?}; {words}");
    }
}

fn look(project: &Path, trouble: &mut BTreeSet<String>) {
    let parses = |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
    for path in [project.join(STATE), project.join(".git/plimsoll/ralph-state.json")] {
        if let Ok(text) = std::fs::read_to_string(&path)
            && !parses(&text)
        {
            trouble.insert(format!("{} does not parse: {text}", path.display()));
        }
    }
    let journal = std::fs::read_to_string(project.join(".claude/plimsoll/journal.jsonl")).unwrap_or_default();
    // A line that is being written has no end yet.
    let whole = journal.rfind('\n').map_or("", |end| &journal[..end]);
    trouble.extend(whole.lines().filter(|line| !parses(line)).map(|line| format!("journal: {line}")));
    for entry in std::fs::read_dir(project.join(".claude/handoffs")).into_iter().flatten().flatten() {
        let is_handoff = entry.path().extension().is_some_and(|kind| kind == "md");
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        if is_handoff && !is_whole(&text) {
            trouble.insert(format!("half a handoff {}: {text}", entry.path().display()));
        }
    }
}

/// A handoff begins with its title, says what to do next, and ends with a whole line.
fn is_whole(handoff: &str) -> bool {
    handoff.starts_with("# ") && handoff.contains("\n## What to do next\n\n") && handoff.ends_with('\n')
}
