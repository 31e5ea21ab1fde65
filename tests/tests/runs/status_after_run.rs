//! What `plimsoll status` and `plimsoll log` show in the morning after a night with a pause and a checkpoint.

use plimsoll_testkit::scripted_agent::AgentTurn;
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::{FinishedProgram, RunningProgram, World};
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, THREE_ITEM_PLAN, assert_in_order, honest_agent, run_with_objective,
    world_with_plan_and_dates,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A run of three items: the service is overloaded in the second session, which reaches a checkpoint once the service
/// works again.
struct OvernightRun {
    world: World,
    overloaded: Arc<AtomicBool>,
    _model: ScriptedModel,
}

impl OvernightRun {
    /// Plays the night up to its pause.
    fn run_until_pause() -> OvernightRun {
        let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
        let overloaded = Arc::new(AtomicBool::new(true));
        let model = ScriptedAgent::new({
            let overloaded = Arc::clone(&overloaded);
            move |turn| match turn.iteration {
                2 if overloaded.load(Ordering::SeqCst) => {
                    Step::api_error(529, "Overloaded").with_delay(LIFELIKE_DELAY)
                }
                2 => fill_window_step(turn).with_delay(LIFELIKE_DELAY),
                _ => honest_agent(turn).with_delay(LIFELIKE_DELAY),
            }
        })
        .start(&mut world);
        let finished = run_with_objective(&world, &["--no-wait", "--max-cost", "50"]);
        assert_eq!(finished.code, Some(6), "{finished:?}");
        OvernightRun { world, overloaded, _model: model }
    }

    /// Resumes the run and waits for its end. Meanwhile `status` must show that a run is active.
    fn resume_to_end(&self) {
        self.overloaded.store(false, Ordering::SeqCst);
        let running = self.world.plimsoll(&["run", "--resume"]).spawn();
        let is_shown_as_running = || {
            status_line_text(&self.run_command(&["status"]), "Status")
                == "running: a `plimsoll run` is active"
        };
        self.world.wait_until(is_shown_as_running, "the run is seen at work");
        assert_eq!(self.world.plimsoll(&["status", "--json"]).run().stdout_json()["at_work"], true);
        let finished = running.wait_or_kill_and_panic(Duration::from_secs(120));
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }

    fn run_command(&self, arguments: &[&str]) -> String {
        let finished = self.world.plimsoll(arguments).run().expect_success();
        assert!(!finished.stdout.contains('\u{1b}'), "no colours off a terminal: {finished:?}");
        finished.stdout
    }

    fn follow_log(&self) -> RunningProgram {
        let following = self.world.plimsoll(&["log", "--follow"]).spawn();
        self.world.wait_until(
            || following.stdout_so_far().contains("paused: overloaded"),
            "the log so far is shown",
        );
        following
    }
}

/// Nearly fills the window before the second item is done.
fn fill_window_step(turn: &AgentTurn<'_>) -> Step {
    match turn.assistant_message_count {
        0 => Step::bash_call("sed -i '45,80s/$/ changed/' src/dates.txt").with_input_tokens(600_000),
        1 => Step::bash_call("echo more").with_input_tokens(870_000),
        _ => Step::from_text("I stop here.").with_input_tokens(872_000),
    }
}

fn status_line_text<'a>(screen: &'a str, title: &str) -> &'a str {
    let line = screen.lines().find(|line| line.starts_with(title));
    line.unwrap_or_else(|| panic!("no {title} in\n{screen}"))[title.len()..].trim()
}

#[test]
fn status_and_log_show_a_night_with_a_pause_and_a_checkpoint() {
    let night = OvernightRun::run_until_pause();
    let paused = night.run_command(&["status"]);
    insta::assert_snapshot!(night.world.replace_varying_parts_with_placeholders(&paused), @r#"
    Dates ([ID])
    Status       paused (and no `plimsoll run` is waiting): overloaded: API Error: 529 Overloaded. This
                 is a server-side issue, usually temporary — try again in a moment. If it persists, che…
    Current item "Item two", session 2
    Context      ? (nothing has been answered yet, or the transcript cannot be read)
    Items        1 of 3 done, 2 open
      [x] Item one
      [ ] Item two
      [ ] Item three
    Sessions     2 of at most 50, 1 pause
    Peaks        3% ?
    Cost         $0.01 of $50.00, 61k tokens
    Time         started [TIME], [DURATION] ago
    Next         plimsoll run --resume
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: [SIZE]
    "#);
    assert_eq!(night.world.plimsoll(&["status", "--json"]).run().stdout_json()["at_work"], false);

    night.resume_to_end();
    let screen = night.run_command(&["status"]);
    let lines: Vec<&str> = screen.lines().collect();
    assert!(lines.len() <= 24 && lines.iter().all(|line| line.chars().count() <= 100), "{screen}");
    insta::assert_snapshot!(night.world.replace_varying_parts_with_placeholders(&screen), @"
    Dates ([ID])
    Status       completed: 3 items
    Items        3 of 3 done
      [x] Item one
      [x] Item two
      [x] Item three
    Sessions     4 of at most 50, 1 pause
    Peaks        3% 87%* 3% 3% (* checkpoint)
    Checkpoints  1 session, the last: .claude/handoffs/[DATE-TIME].md (L2 at 87%, session 2)
    Cost         $0.51 of $50.00, 2.5M tokens
    Time         started [TIME], ended [TIME], took [DURATION]
    Next         nothing: the run is done; see git log and plimsoll report
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: [SIZE]
    ");
    let handoff =
        night.world.read_json(".claude/ralph-state.json")["context_checkpoint"]["handoff_file"].clone();
    assert!(screen.contains(handoff.as_str().expect("a handoff")), "{screen}");

    let log = night.run_command(&["log"]);
    insta::assert_snapshot!(night.world.replace_varying_parts_with_placeholders(&log), @r#"
    ── [DAY]
    [TIME]   -  run "Dates" started: 3 items, at most 50 sessions
    [TIME]   1  session began (fresh)
    [TIME]   1  session ended, peak 3%
    [TIME]   1  ticked "Item one"; continuing: 2 open items ($0.01 so far)
    [TIME]   2  session began (fresh)
    [TIME]   2  session ended
    [TIME]   2  paused: overloaded: API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:[PORT]). ($0.01 so far)
    [TIME]   2  run resumed
    [TIME]   2  session began (fresh)
    [TIME]   2  checkpoint L2 at 87%: .claude/handoffs/[DATE-TIME].md (item "Item two")
    [TIME]   2  session ended, peak 87%
    [TIME]   2  uncommitted work committed as [COMMIT]… (1 file): ralph: checkpoint iter 2 (L2 at 87%)
    [TIME]   2  continuing from .claude/handoffs/[DATE-TIME].md ($0.49 so far)
    [TIME]   3  session began (it resumes from the checkpoint)
    [TIME]   3  session ended, peak 3%
    [TIME]   3  ticked "Item two"; continuing: 1 open item ($0.50 so far)
    [TIME]   4  session began (fresh)
    [TIME]   4  session ended, peak 3%
    [TIME]   4  ticked "Item three"; run completed: 3 items ($0.51 so far)
    "#);
    let newest = night.run_command(&["log", "--lines", "1"]);
    assert_eq!(newest.lines().last(), log.lines().last());
}

#[test]
fn log_follow_continues_with_the_resumed_run_and_ends_with_it() {
    let night = OvernightRun::run_until_pause();
    let mut following = night.follow_log();
    let mut interrupted = night.follow_log();
    interrupted.interrupt();
    assert_eq!(interrupted.wait_or_kill_and_panic(Duration::from_secs(5)).signal, Some(2), "Ctrl-C ends it");
    let piped = "plimsoll log --follow | head -n 1";
    let piped = night.world.command("sh", &["-c", piped]).run();
    assert_eq!(piped.stdout.lines().count(), 1, "{piped:?}");
    assert!(following.is_running(), "the run is only paused");

    night.resume_to_end();
    let FinishedProgram { code, stdout, stderr, .. } =
        following.wait_or_kill_and_panic(Duration::from_secs(10));
    assert_eq!(code, Some(0), "{stderr}");
    assert_in_order(&stdout, &["paused: overloaded", "checkpoint L2", "run completed: 3 items"]);
    assert_eq!(stderr.trim_end(), "the run \"Dates\" has ended (completed)");
    assert_eq!(stdout, night.run_command(&["log"]), "the same as it is read afterwards");
}

#[test]
fn status_and_log_without_a_run_write_nothing() {
    let world = World::without_plimsoll_files();
    let before = world.git(&["status", "--porcelain", "--ignored"]);
    let log = world.plimsoll(&["log"]).run().expect_success();
    assert_eq!(log.stdout, "");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&log.stderr), @"The journal [HOME]/.local/state/plimsoll/projects/project-[HASH]/journal.jsonl is empty: it begins with a run, or with the first warning or end of a session with our hooks (`plimsoll init`).");
    let status = world.plimsoll(&["status"]).run().expect_success();
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&status.stdout), @"There is no run in [PROJECT]. Start one with `plimsoll run`.");
    assert_eq!(world.git(&["status", "--porcelain", "--ignored"]), before);
    assert!(!world.exists(".claude") && !world.exists(".git/plimsoll"));
}
