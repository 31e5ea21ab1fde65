//! An unattended run of five items with every fault that can happen overnight. In the morning all items are done except
//! the one that could not be done; nothing is done twice, and nothing is lost.

use plimsoll_testkit::scripted_agent::{AgentTurn, tick_item_command};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, events_named, read_journal, usage_limit_error, verdict_markers,
    world_with_plan_and_dates,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const ITEM_COUNT: u32 = 5;
/// No session makes progress on this item.
const STUCK_ITEM: u32 = 2;
/// The client dies once in the middle of these items.
const CRASHING_ITEMS: [u32; 1] = [1];
/// The API is overloaded for one session when this item is started.
const OVERLOADED_ITEM: u32 = 3;
/// The usage limit is reached when this item is started.
const USAGE_LIMIT_ITEM: u32 = 4;
/// The client compacts in the middle of this item.
const COMPACTED_ITEM: u32 = 5;

fn item_name(number: u32) -> String {
    format!("Item {number:02}")
}

fn item_number(item: &str) -> u32 {
    item.trim_start_matches("Item ").parse().unwrap_or(0)
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs()
}

/// Counts the faults that have already happened.
#[derive(Default)]
struct FaultCounts {
    overload_count: u32,
    resets_at: Option<u64>,
    crashed_items: BTreeMap<u32, bool>,
    compaction_count: u32,
    finished_items: BTreeSet<u32>,
}

impl FaultCounts {
    fn next_step(&mut self, turn: &AgentTurn<'_>) -> Step {
        let Some(item) = turn.item_text.clone() else {
            return Step::from_text(format!("All done.\n\n{}", turn.promise_line)).with_input_tokens(31_000);
        };
        let number = item_number(&item);
        let work = format!("echo '{item}' >> work.txt && {}", tick_item_command(&item));
        match (number, turn.assistant_message_count) {
            (OVERLOADED_ITEM, 0) if self.overload_count < 2 => {
                self.overload_count += 1;
                Step::api_error(529, "Overloaded")
            }
            (USAGE_LIMIT_ITEM, 0) if unix_seconds() < *self.resets_at.get_or_insert(unix_seconds() + 2) => {
                usage_limit_error(self.resets_at.unwrap_or_default())
            }
            (STUCK_ITEM, 0) => {
                Step::bash_call("cargo-that-is-not-there test; exit 1").with_input_tokens(30_000)
            }
            (STUCK_ITEM, _) => Step::from_text("I could not do it.").with_input_tokens(31_000),
            // Does half of the work, then kills the client, which leaves an uncommitted edit.
            (_, 0)
                if CRASHING_ITEMS.contains(&number) && self.crashed_items.insert(number, true).is_none() =>
            {
                Step::bash_call(format!(
                    "sed -i '{number}s/$/ half/' src/dates.txt; kill -9 $CLAUDE_PID; sleep 5"
                ))
            }
            (COMPACTED_ITEM, 0) if self.compaction_count == 0 => {
                Step::bash_call("seq 1 4000").with_input_tokens(30_000)
            }
            (COMPACTED_ITEM, 1) if self.compaction_count == 0 => {
                self.compaction_count += 1;
                // Usage so high that the client compacts by itself before its next request.
                Step::bash_call("seq 1 4000").with_input_tokens(190_000)
            }
            (_, _) if self.finished_items.insert(number) => Step::bash_call(work).with_input_tokens(30_000),
            _ => Step::from_text(format!("{item} is done.")).with_input_tokens(31_000),
        }
    }
}

#[test]
fn in_the_morning_all_items_but_the_impossible_one_are_done() {
    let plan: String = (1..=ITEM_COUNT).map(|number| format!("- [ ] {}\n", item_name(number))).collect();
    let mut world = world_with_plan_and_dates(&plan);
    world.set_env("ANTHROPIC_API_KEY", "");
    world.set_env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-scripted-model-only-000000");
    // The client compacts at 200k by itself; with that window our own thresholds would be reached first.
    world.write(".claude/plimsoll.json", r#"{"windows": {"claude-sonnet-4-6": 1000000}}"#);
    let mut faults = FaultCounts::default();
    let model = ScriptedAgent::new(move |turn| {
        let step = faults.next_step(turn);
        // The usage that is read from the transcript matters for these items.
        let needs_delay = turn
            .item_text
            .as_deref()
            .map(item_number)
            .is_some_and(|number| number <= STUCK_ITEM || number == COMPACTED_ITEM);
        if needs_delay { step.with_delay(LIFELIKE_DELAY) } else { step }
    })
    .with_real_client()
    .start(&mut world);
    let notifications_file = world.home().join("told.txt");
    std::fs::write(world.home().join("tell.sh"), "cat >> \"$1\"; echo >> \"$1\"\n").expect("a file");
    let notify = format!("sh {} {}", world.home().join("tell.sh").display(), notifications_file.display());
    let finished = world
        .plimsoll(&["run", "--objective", "Do the plan.", "--name", "Night", "--notify", &notify, "--"])
        .arg("--model")
        .arg("claude-sonnet-4-6")
        .arg("--allowedTools")
        .arg("Bash")
        .timeout(Duration::from_secs(400))
        .run();
    let journal = read_journal(&world);
    for entry in &journal {
        eprintln!("{entry}");
    }
    let verdicts = verdict_markers(&journal);
    assert_eq!(finished.code, Some(4), "{finished:?}\n{verdicts:#?}");

    let state = world.read_json(".claude/ralph-state.json");
    assert_eq!(state["status"], "circuit_breaker");
    assert_eq!(state["todo_items"], json!([item_name(STUCK_ITEM)]), "everything else is done");
    assert_eq!(
        (&state["breaker"]["opened"]["cause"], &state["set_aside"]),
        (&json!("no_progress"), &json!([item_name(STUCK_ITEM)]))
    );
    let mut work: Vec<String> = world.read("work.txt").lines().map(str::to_owned).collect();
    let in_order = work.clone();
    work.sort();
    work.dedup();
    assert_eq!(work, in_order, "in the list's order, and nothing twice");
    assert_eq!(work.len() as u32, ITEM_COUNT - 1, "nothing lost");

    let count = |beginning: &str| verdicts.iter().filter(|marker| marker.starts_with(beginning)).count();
    assert_eq!(count("RALPH_PAUSE|-|overloaded"), 1, "{verdicts:#?}");
    assert_eq!(count("RALPH_PAUSE|2"), 1, "the usage limit, until its reset: {verdicts:#?}");
    let count_endings = |word: &str| {
        events_named(&journal, "verdict")
            .into_iter()
            .filter(|entry| entry["ending"]["ending"] == word)
            .count()
    };
    assert_eq!(count_endings("crashed"), CRASHING_ITEMS.len());
    let compactions: Vec<&Value> = events_named(&journal, "session_start")
        .into_iter()
        .filter(|entry| entry["source"] == "compact")
        .collect();
    assert_eq!(compactions.len(), 1);
    // The crashed item takes two sessions; the stuck one takes two, and three more at the end.
    assert_eq!(
        state["iteration"],
        ITEM_COUNT as usize - 1 + CRASHING_ITEMS.len() + 5,
        "limits and overloads are no iterations: {verdicts:#?}"
    );
    // The half-done work of a crash was kept, and the next session was told about it.
    for number in CRASHING_ITEMS {
        assert!(world.read("src/dates.txt").contains(&format!("line {number} half\n")));
        let is_told = model.main_requests().iter().any(|request| {
            let text = request.full_text();
            text.contains("ended in the middle of its work")
                && text.contains(&format!("\n> {}\n", item_name(number)))
        });
        assert!(is_told, "{}", item_name(number));
    }
    assert_eq!(world.git(&["status", "--porcelain", "--", "src"]), "");
    let commit_log = world.git(&["log", "--format=%s"]);
    assert_eq!(commit_log.matches("ralph: checkpoint iter").count(), CRASHING_ITEMS.len(), "{commit_log}");

    let notified: Vec<Value> = std::fs::read_to_string(notifications_file)
        .expect("notified")
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    let notified_events: Vec<&str> =
        notified.iter().filter_map(|message| message["event"].as_str()).collect();
    assert_eq!(notified_events, ["paused", "paused", "ended"], "once a pause, and at the end: {notified:?}");

    let screen = world.plimsoll(&["status"]).run().expect_success().stdout;
    assert!(
        screen.lines().count() <= 24 && screen.contains(&format!("{} of {ITEM_COUNT}", ITEM_COUNT - 1)),
        "{screen}"
    );
    let log = world.plimsoll(&["log"]).run().expect_success().stdout;
    for part in ["set aside", "overloaded", "usage limit", "run stuck: 3 sessions in a row changed nothing"] {
        assert!(log.contains(part), "{part} in\n{log}");
    }
    eprintln!("{} sessions in {:?}\n{screen}", state["iteration"], finished.elapsed);
}
