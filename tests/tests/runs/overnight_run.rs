//! A night alone: five items, and everything that goes wrong in a night. In the morning all is done but
//! the one item that nobody could do; nothing twice, nothing lost.

use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::{Turn, tick};
use plimsoll_tests::{LIFELIKE, ScriptedAgent, events, journal, markers, usage_limit, world};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const ITEMS: u32 = 5;
/// Nobody gets anywhere with this one.
const STUCK: u32 = 2;
/// The client dies in the middle of this one, once.
const CRASHES: [u32; 1] = [1];
/// The API is overloaded when this one is begun, for a session.
const OVERLOADED: u32 = 3;
/// The plan's quota is used up when this one is begun.
const LIMITED: u32 = 4;
/// The client compacts in the middle of this one.
const COMPACTED: u32 = 5;

fn item(number: u32) -> String {
    format!("Item {number:02}")
}

fn number_of(item: &str) -> u32 {
    item.trim_start_matches("Item ").parse().unwrap_or(0)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs()
}

/// What goes wrong, and how often it already has.
#[derive(Default)]
struct Night {
    overloads: u32,
    resets_at: Option<u64>,
    crashes: BTreeMap<u32, bool>,
    compactions: u32,
    worked: BTreeSet<u32>,
}

impl Night {
    fn answer(&mut self, turn: &Turn<'_>) -> Step {
        let Some(item) = turn.item.clone() else {
            return Step::text(format!("All done.\n\n{}", turn.promise)).usage(31_000);
        };
        let number = number_of(&item);
        let work = format!("echo '{item}' >> work.txt && {}", tick(&item));
        match (number, turn.step) {
            (OVERLOADED, 0) if self.overloads < 2 => {
                self.overloads += 1;
                Step::error(529, "Overloaded")
            }
            (LIMITED, 0) if now() < *self.resets_at.get_or_insert(now() + 2) => {
                usage_limit(self.resets_at.unwrap_or_default())
            }
            (STUCK, 0) => Step::bash("cargo-that-is-not-there test; exit 1").usage(30_000),
            (STUCK, _) => Step::text("I could not do it.").usage(31_000),
            // Half of the work, then the client is gone, with an edit that is not committed.
            (_, 0) if CRASHES.contains(&number) && self.crashes.insert(number, true).is_none() => {
                Step::bash(format!("sed -i '{number}s/$/ half/' src/dates.txt; kill -9 $CLAUDE_PID; sleep 5"))
            }
            (COMPACTED, 0) if self.compactions == 0 => Step::bash("seq 1 4000").usage(30_000),
            (COMPACTED, 1) if self.compactions == 0 => {
                self.compactions += 1;
                // So full that the client itself compacts before its next request.
                Step::bash("seq 1 4000").usage(190_000)
            }
            (_, _) if self.worked.insert(number) => Step::bash(work).usage(30_000),
            _ => Step::text(format!("{item} is done.")).usage(31_000),
        }
    }
}

#[test]
fn in_the_morning_everything_is_done_but_the_one_item_that_nobody_could_do() {
    let plan: String = (1..=ITEMS).map(|number| format!("- [ ] {}\n", item(number))).collect();
    let mut world = world(&plan);
    world.set_env("ANTHROPIC_API_KEY", "");
    world.set_env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-scripted-model-only-000000");
    // On 200k the client compacts by itself; our own levels would come first.
    world.write(".claude/plimsoll.json", r#"{"windows": {"claude-sonnet-4-6": 1000000}}"#);
    let mut night = Night::default();
    let model = ScriptedAgent::new(move |turn| {
        let step = night.answer(turn);
        // Where what is read off the transcript decides.
        let matters =
            turn.item.as_deref().map(number_of).is_some_and(|number| number <= STUCK || number == COMPACTED);
        if matters { step.delay(LIFELIKE) } else { step }
    })
    .with_real_client()
    .start(&mut world);
    let told = world.home().join("told.txt");
    std::fs::write(world.home().join("tell.sh"), "cat >> \"$1\"; echo >> \"$1\"\n").expect("a file");
    let notify = format!("sh {} {}", world.home().join("tell.sh").display(), told.display());
    let finished = world
        .plimsoll(&["run", "--objective", "Do the plan.", "--name", "Night", "--notify", &notify, "--"])
        .arg("--model")
        .arg("claude-sonnet-4-6")
        .arg("--allowedTools")
        .arg("Bash")
        .timeout(Duration::from_secs(400))
        .run();
    let journal = journal(&world);
    for e in &journal {
        eprintln!("{e}");
    }
    let verdicts = markers(&journal);
    assert_eq!(finished.code, Some(4), "{finished:?}\n{verdicts:#?}");

    let state = world.json(".claude/ralph-state.json");
    assert_eq!(state["status"], "circuit_breaker");
    assert_eq!(state["todo_items"], json!([item(STUCK)]), "everything else is done");
    assert_eq!(
        (&state["breaker"]["opened"]["cause"], &state["set_aside"]),
        (&json!("no_progress"), &json!([item(STUCK)]))
    );
    let mut work: Vec<String> = world.read("work.txt").lines().map(str::to_owned).collect();
    let in_order = work.clone();
    work.sort();
    work.dedup();
    assert_eq!(work, in_order, "in the list's order, and nothing twice");
    assert_eq!(work.len() as u32, ITEMS - 1, "nothing lost");

    let count = |beginning: &str| verdicts.iter().filter(|marker| marker.starts_with(beginning)).count();
    assert_eq!(count("RALPH_PAUSE|-|overloaded"), 1, "{verdicts:#?}");
    assert_eq!(count("RALPH_PAUSE|2"), 1, "the usage limit, until its reset: {verdicts:#?}");
    let of_ending = |word: &str| {
        events(&journal, "verdict").into_iter().filter(|entry| entry["ending"]["ending"] == word).count()
    };
    assert_eq!(of_ending("crashed"), CRASHES.len());
    let compactions: Vec<&Value> =
        events(&journal, "session_start").into_iter().filter(|entry| entry["source"] == "compact").collect();
    assert_eq!(compactions.len(), 1);
    // The crashed one twice, the stuck one twice and three times again at the end.
    assert_eq!(
        state["iteration"],
        ITEMS as usize - 1 + CRASHES.len() + 5,
        "limits and overloads are no iterations: {verdicts:#?}"
    );
    // What a crash left half done was kept, and told to the next session.
    for number in CRASHES {
        assert!(world.read("src/dates.txt").contains(&format!("line {number} half\n")));
        let told = model.main_requests().iter().any(|request| {
            let text = request.text();
            text.contains("ended in the middle of its work")
                && text.contains(&format!("\n> {}\n", item(number)))
        });
        assert!(told, "{}", item(number));
    }
    assert_eq!(world.git(&["status", "--porcelain", "--", "src"]), "");
    let wip = world.git(&["log", "--format=%s"]);
    assert_eq!(wip.matches("ralph: checkpoint iter").count(), CRASHES.len(), "{wip}");

    let notified: Vec<Value> = std::fs::read_to_string(told)
        .expect("notified")
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    let told: Vec<&str> = notified.iter().filter_map(|message| message["event"].as_str()).collect();
    assert_eq!(told, ["paused", "paused", "ended"], "once a pause, and at the end: {notified:?}");

    let screen = world.plimsoll(&["status"]).run().expect_success().stdout;
    assert!(
        screen.lines().count() <= 24 && screen.contains(&format!("{} of {ITEMS}", ITEMS - 1)),
        "{screen}"
    );
    let log = world.plimsoll(&["log"]).run().expect_success().stdout;
    for part in ["set aside", "overloaded", "usage limit", "circuit_breaker"] {
        assert!(log.contains(part), "{part} in\n{log}");
    }
    eprintln!("{} sessions in {:?}\n{screen}", state["iteration"], finished.elapsed);
}
