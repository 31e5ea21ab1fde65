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
    assert!(said(&paused, "Status").starts_with("paused"), "{paused}");
    assert!(said(&paused, "Status").contains("overloaded"), "{paused}");
    assert!(said(&paused, "Status").contains("no `plimsoll run` is waiting"), "{paused}");
    assert_eq!(said(&paused, "Next"), "plimsoll run --resume");
    assert_eq!(night.world.plimsoll(&["status", "--json"]).run().json()["at_work"], false);

    night.resume();
    let screen = night.ask(&["status"]);
    let lines: Vec<&str> = screen.lines().collect();
    assert!(lines.len() <= 24 && lines.iter().all(|line| line.chars().count() <= 100), "{screen}");
    assert!(lines[0].starts_with("Dates ("), "{screen}");
    assert_eq!(said(&screen, "Status"), "completed: 3 items");
    assert_eq!(said(&screen, "Items"), "3 of 3 done");
    assert_in_order(&screen, &["[x] Item one", "[x] Item two", "[x] Item three"]);
    assert_eq!(said(&screen, "Sessions"), "4 of at most 50, 1 pause");
    assert_eq!(said(&screen, "Peaks"), "3% 87%* 3% 3% (* checkpoint)");
    let handoff = night.world.json(".claude/ralph-state.json")["context_checkpoint"]["handoff_file"].clone();
    let handoff = handoff.as_str().expect("a handoff");
    let checkpoint = format!("1 session, the last: {handoff} (L2 at 87%, session 2)");
    assert_eq!(said(&screen, "Checkpoints"), checkpoint);
    assert!(
        said(&screen, "Cost").starts_with('$') && said(&screen, "Cost").contains(" of $50.00, "),
        "{screen}"
    );
    assert!(said(&screen, "Time").contains(", ended "), "{screen}");
    assert!(said(&screen, "Next").starts_with("nothing: the run is done"), "{screen}");

    let log = night.ask(&["log"]);
    let goes_on = format!("  continues from {handoff}");
    let written = format!("  2  checkpoint L2 at 87%: {handoff} (item \"Item two\")");
    assert_in_order(
        &log,
        &[
            "  -  run \"Dates\" started: 3 items, at most 50 sessions",
            "  1  session began (fresh)",
            "  1  session ended, peak 3%",
            "  1  ticked \"Item one\"; continues: 2 open items ($",
            "  2  session began (fresh)",
            "  2  paused: overloaded: ",
            "  2  session began (fresh)",
            &written,
            "  2  uncommitted work committed as ",
            &goes_on,
            "  3  session began (it resumes from the checkpoint)",
            "  3  ticked \"Item two\"; continues: 1 open item ($",
            "  4  session began (fresh)",
            "  4  ticked \"Item three\"; run completed: 3 items ($",
        ],
    );
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
    assert!(log.stderr.contains("journal.jsonl is empty"), "{}", log.stderr);
    let status = world.plimsoll(&["status"]).run().expect_success();
    assert!(status.stdout.starts_with("There is no run in "), "{}", status.stdout);
    assert_eq!(world.git(&["status", "--porcelain", "--ignored"]), before);
    assert!(!world.exists(".claude") && !world.exists(".git/plimsoll"));
}
