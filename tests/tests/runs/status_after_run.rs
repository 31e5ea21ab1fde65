//! The morning after: what `plimsoll status` and `plimsoll log` say about a night with a pause and a checkpoint.

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::story::Turn;
use plimsoll_testkit::world::{Finished, Running, World};
use plimsoll_tests::{ITEMS, LIFELIKE, ScriptedAgent, assert_in_order, honest, run, world};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Three items; the service is overloaded in the second session, which reaches its checkpoint when it is had again.
struct Night {
    world: World,
    overloaded: Arc<AtomicBool>,
    _model: ScriptedModel,
}

impl Night {
    /// The night up to its pause.
    fn until_the_pause() -> Night {
        let mut world = world(ITEMS);
        let overloaded = Arc::new(AtomicBool::new(true));
        let model = ScriptedAgent::new({
            let overloaded = Arc::clone(&overloaded);
            move |turn| match turn.iteration {
                2 if overloaded.load(Ordering::SeqCst) => Step::error(529, "Overloaded").delay(LIFELIKE),
                2 => fill_up(turn).delay(LIFELIKE),
                _ => honest(turn).delay(LIFELIKE),
            }
        })
        .start(&mut world);
        let finished = run(&world, &["--no-wait", "--max-cost", "50"]);
        assert_eq!(finished.code, Some(6), "{finished:?}");
        Night { world, overloaded, _model: model }
    }

    /// The rest of it; while it goes on, status sees somebody at work.
    fn resume(&self) {
        self.overloaded.store(false, Ordering::SeqCst);
        let running = self.world.plimsoll(&["run", "--resume"]).spawn();
        let is_seen = || said(&self.ask(&["status"]), "Status") == "running: a `plimsoll run` is active";
        self.world.wait_until(is_seen, "the run is seen at work");
        assert_eq!(self.world.plimsoll(&["status", "--json"]).run().json()["at_work"], true);
        let finished = running.wait(Duration::from_secs(120));
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }

    fn ask(&self, arguments: &[&str]) -> String {
        let finished = self.world.plimsoll(arguments).run().expect_success();
        assert!(!finished.stdout.contains('\u{1b}'), "no colours off a terminal: {finished:?}");
        finished.stdout
    }

    fn follow(&self) -> Running {
        let following = self.world.plimsoll(&["log", "--follow"]).spawn();
        self.world.wait_until(
            || following.stdout_so_far().contains("paused: overloaded"),
            "the log so far is shown",
        );
        following
    }
}

/// The second item does not get done before the window is nearly full.
fn fill_up(turn: &Turn<'_>) -> Step {
    match turn.step {
        0 => Step::bash("sed -i '45,80s/$/ changed/' src/dates.txt").usage(600_000),
        1 => Step::bash("echo more").usage(870_000),
        _ => Step::text("I stop here.").usage(872_000),
    }
}

fn said<'a>(screen: &'a str, title: &str) -> &'a str {
    let line = screen.lines().find(|line| line.starts_with(title));
    line.unwrap_or_else(|| panic!("no {title} in\n{screen}"))[title.len()..].trim()
}

#[test]
fn status_and_log_tell_in_the_morning_what_the_night_came_to() {
    let night = Night::until_the_pause();
    let paused = night.ask(&["status"]);
    insta::assert_snapshot!(night.world.stable_text(&paused), @r#"
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
    assert_eq!(night.world.plimsoll(&["status", "--json"]).run().json()["at_work"], false);

    night.resume();
    let screen = night.ask(&["status"]);
    let lines: Vec<&str> = screen.lines().collect();
    assert!(lines.len() <= 24 && lines.iter().all(|line| line.chars().count() <= 100), "{screen}");
    insta::assert_snapshot!(night.world.stable_text(&screen), @"
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
    let handoff = night.world.json(".claude/ralph-state.json")["context_checkpoint"]["handoff_file"].clone();
    assert!(screen.contains(handoff.as_str().expect("a handoff")), "{screen}");

    let log = night.ask(&["log"]);
    insta::assert_snapshot!(night.world.stable_text(&log), @r#"
    ── [DAY]
    [TIME]   -  run "Dates" started: 3 items, at most 50 sessions
    [TIME]   1  session began (fresh)
    [TIME]   1  session ended, peak 3%
    [TIME]   1  ticked "Item one"; continues: 2 open items ($0.01 so far)
    [TIME]   2  session began (fresh)
    [TIME]   2  session ended
    [TIME]   2  paused: overloaded: API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:[PORT]). ($0.01 so far)
    [TIME]   2  run resumed
    [TIME]   2  session began (fresh)
    [TIME]   2  checkpoint L2 at 87%: .claude/handoffs/[DATE-TIME].md (item "Item two")
    [TIME]   2  session ended, peak 87%
    [TIME]   2  uncommitted work committed as [COMMIT]… (1 file): ralph: checkpoint iter 2 (L2 at 87%)
    [TIME]   2  continues from .claude/handoffs/[DATE-TIME].md ($0.49 so far)
    [TIME]   3  session began (it resumes from the checkpoint)
    [TIME]   3  session ended, peak 3%
    [TIME]   3  ticked "Item two"; continues: 1 open item ($0.50 so far)
    [TIME]   4  session began (fresh)
    [TIME]   4  session ended, peak 3%
    [TIME]   4  ticked "Item three"; run completed: 3 items ($0.51 so far)
    "#);
    let newest = night.ask(&["log", "--lines", "1"]);
    assert_eq!(newest.lines().last(), log.lines().last());
}

#[test]
fn a_followed_log_goes_on_with_the_resumed_run_and_ends_with_it() {
    let night = Night::until_the_pause();
    let mut following = night.follow();
    let mut interrupted = night.follow();
    interrupted.interrupt();
    assert_eq!(interrupted.wait(Duration::from_secs(5)).signal, Some(2), "Ctrl-C ends it");
    let piped = "plimsoll log --follow | head -n 1";
    let piped = night.world.command("sh", &["-c", piped]).run();
    assert_eq!(piped.stdout.lines().count(), 1, "{piped:?}");
    assert!(following.is_running(), "the run is only paused");

    night.resume();
    let Finished { code, stdout, stderr, .. } = following.wait(Duration::from_secs(10));
    assert_eq!(code, Some(0), "{stderr}");
    assert_in_order(&stdout, &["paused: overloaded", "checkpoint L2", "run completed: 3 items"]);
    assert_eq!(stderr.trim_end(), "plimsoll: the run \"Dates\" is over (completed)");
    assert_eq!(stdout, night.ask(&["log"]), "the same as it is read afterwards");
}

#[test]
fn where_nothing_has_happened_nothing_is_shown_and_nothing_is_written() {
    let world = World::untouched();
    let before = world.git(&["status", "--porcelain", "--ignored"]);
    let log = world.plimsoll(&["log"]).run().expect_success();
    assert_eq!(log.stdout, "");
    insta::assert_snapshot!(world.stable_text(&log.stderr), @"The journal [HOME]/.local/state/plimsoll/projects/project-[HASH]/journal.jsonl is empty: it begins with a run, or with the first warning or end of a session with our hooks (`plimsoll init`).");
    let status = world.plimsoll(&["status"]).run().expect_success();
    insta::assert_snapshot!(world.stable_text(&status.stdout), @"There is no run in [PROJECT]. Start one with `plimsoll run`.");
    assert_eq!(world.git(&["status", "--porcelain", "--ignored"]), before);
    assert!(!world.exists(".claude") && !world.exists(".git/plimsoll"));
}
