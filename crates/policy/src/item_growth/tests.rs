use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

const PLAN: &str = "fix_plan.md";

/// A line of a transcript in short form.
#[derive(Debug, Clone)]
enum Step {
    /// A response with this usage, and what its call does.
    Response(u64, Call),
    /// The call before it failed.
    Failed,
    /// A compaction at this usage.
    Compaction(u64),
}

#[derive(Debug, Clone)]
enum Call {
    None,
    ReadSource,
    EditSource,
    Bash(String),
    EditPlan(&'static str, &'static str),
}

use Call::{Bash, EditPlan, EditSource, ReadSource};
use Step::{Compaction, Failed, Response};

fn tick_command(item: &str) -> Call {
    Bash(format!("sed -i 's/\\[ \\] {item}/[x] {item}/' fix_plan.md"))
}

fn call_block(number: usize, call: &Call) -> Option<Value> {
    let (name, input) = match call {
        Call::None => return None,
        ReadSource => ("Read", json!({"file_path": "/project/src/a.rs"})),
        EditSource => {
            ("Edit", json!({"file_path": "/project/src/a.rs", "old_string": "a", "new_string": "b"}))
        }
        Bash(command) => ("Bash", json!({"command": command})),
        EditPlan(old, new) => {
            ("Edit", json!({"file_path": "/project/fix_plan.md", "old_string": old, "new_string": new}))
        }
    };
    Some(json!({"type": "tool_use", "id": format!("call{number}"), "name": name, "input": input}))
}

/// Builds the transcript lines of these steps; each response has two, as the client writes them, and takes a second.
fn transcript_lines(first_number: usize, steps: &[Step]) -> Vec<TranscriptEntry> {
    let mut lines = Vec::new();
    let mut push_line =
        |line: Value| lines.push(TranscriptEntry::parse(line.to_string().as_bytes()).expect("an object"));
    for (number, step) in steps.iter().enumerate().map(|(place, step)| (first_number + place, step)) {
        match step {
            Response(usage, call_kind) => {
                let blocks = [Some(json!({"type": "text", "text": "Words."})), call_block(number, call_kind)];
                for block in blocks.into_iter().flatten() {
                    push_line(json!({
                        "type": "assistant", "timestamp": step_timestamp(number),
                        "message": {"id": format!("response{number}"), "model": "m", "content": [block],
                            "usage": {"input_tokens": 1, "cache_read_input_tokens": usage - 1}},
                    }));
                }
            }
            Failed => push_line(json!({"type": "user", "message": {"content": [
                {"type": "tool_result", "tool_use_id": format!("call{}", number - 1), "is_error": true}]}})),
            Compaction(tokens_before) => push_line(json!({"type": "system", "subtype": "compact_boundary",
                "compactMetadata": {"preTokens": tokens_before, "postTokens": 2_000}})),
        }
    }
    lines
}

fn step_timestamp(number: usize) -> String {
    format!("2026-01-07T11:{:02}:{:02}.500Z", number / 60, number % 60)
}

fn to_strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn measure_growth(steps: &[Step], items: &[String], plan_changed_at: Option<usize>) -> SessionGrowth {
    let plan_changed_at = plan_changed_at.map(|number| Timestamp::from(step_timestamp(number)));
    let mut reader = GrowthReader::new(PLAN, items, plan_changed_at, ContextGrowth::default());
    transcript_lines(0, steps).iter().for_each(|line| reader.record_growth_and_ticks_dropping_failed(line));
    reader.into_session_growth_inferring_missing_ticks()
}

#[test]
fn growth_counts_tokens_removed_by_compactions_and_is_never_negative() {
    let no_call = Call::None;
    for (usages, expected) in [
        (vec![], 0),
        (vec![Response(20_000, no_call.clone())], 0),
        (vec![Response(20_000, no_call.clone()), Response(50_000, no_call.clone())], 30_000),
        // The client drops old thinking: less usage is no negative growth.
        (
            vec![
                Response(20_000, no_call.clone()),
                Response(50_000, no_call.clone()),
                Response(45_000, no_call.clone()),
                Response(51_000, no_call.clone()),
            ],
            31_000,
        ),
        // 10k came with a tool's result before the compaction; the base after it is no growth.
        (
            vec![
                Response(20_000, no_call.clone()),
                Response(90_000, no_call.clone()),
                Compaction(100_000),
                Response(25_000, no_call.clone()),
                Response(40_000, no_call.clone()),
            ],
            80_000 + 15_000,
        ),
        // A compaction that reports less than the usage before it, and one before any response.
        (vec![Compaction(5_000), Response(20_000, no_call.clone()), Compaction(3_000)], 0),
    ] {
        assert_eq!(measure_growth(&usages, &[], None).growth.growth_tokens, expected, "{usages:?}");
    }
}

#[test]
fn output_of_the_last_response_counts_and_lines_of_subagents_do_not() {
    let lines = [
        json!({"type": "assistant", "message": {"id": "a", "model": "m", "usage": {"input_tokens": 100, "output_tokens": 1}}}),
        json!({"type": "assistant", "message": {"id": "a", "model": "m", "usage": {"input_tokens": 100, "output_tokens": 40}}}),
        json!({"type": "assistant", "isSidechain": true, "message": {"id": "b", "model": "m", "usage": {"input_tokens": 90_000}}}),
        json!({"type": "assistant", "message": {"id": "c", "model": "<synthetic>", "usage": {"input_tokens": 0}}}),
        json!({"type": "assistant", "message": {"id": "d", "model": "m", "usage": {"input_tokens": 160, "output_tokens": 7}}}),
    ];
    let mut reader = GrowthReader::new(PLAN, &[], None, ContextGrowth::default());
    for line in lines {
        reader.record_growth_and_ticks_dropping_failed(
            &TranscriptEntry::parse(line.to_string().as_bytes()).expect("an object"),
        );
    }
    assert_eq!(reader.into_session_growth_inferring_missing_ticks().growth.growth_tokens, 67);
}

/// Each row has the steps, the items ticked meanwhile, the time of the plan's last change, and the tokens charged to
/// each item at the session's end; the last figure is the open item's.
#[test]
fn each_item_is_charged_with_the_growth_up_to_its_own_tick() {
    let one_two = to_strings(&["one", "two"]);
    let response = |usage, call: Call| Response(usage, call);
    for (case, steps, ticked, plan_changed_in_step, expected) in [
        (
            "ticked one after the other",
            vec![
                response(10, EditSource),
                response(70, tick_command("one")),
                response(80, EditSource),
                response(90, tick_command("two")),
                response(95, Call::None),
            ],
            &one_two,
            None,
            (vec![60, 25], 0),
        ),
        (
            "in the other order",
            vec![
                response(10, EditSource),
                response(70, tick_command("two")),
                response(80, EditSource),
                response(90, tick_command("one")),
                response(95, Call::None),
            ],
            &one_two,
            None,
            (vec![25, 60], 0),
        ),
        (
            "in one call",
            vec![
                response(10, EditSource),
                response(71, EditPlan("- [ ] one\n- [ ] two", "- [x] one\n- [x] two")),
            ],
            &one_two,
            None,
            (vec![31, 30], 0),
        ),
        (
            "the next item is begun after the last tick",
            vec![
                response(10, EditSource),
                response(70, tick_command("one")),
                response(80, ReadSource),
                response(90, EditSource),
                response(99, Call::None),
            ],
            &to_strings(&["one"]),
            None,
            (vec![60], 29),
        ),
        (
            "after the last tick it only looks and speaks",
            vec![
                response(10, EditSource),
                response(70, tick_command("one")),
                response(80, ReadSource),
                response(99, Call::None),
            ],
            &to_strings(&["one"]),
            None,
            (vec![89], 0),
        ),
        (
            "a failed edit ticks nothing",
            vec![
                response(10, EditPlan("- [ ] one", "- [x] one")),
                Failed,
                response(70, EditPlan("- [ ] one", "- [x] one")),
                response(80, tick_command("two")),
            ],
            &one_two,
            None,
            (vec![60, 10], 0),
        ),
        (
            "the tick that lasts counts, and a look at a box does not",
            vec![
                response(10, EditPlan("- [ ] one", "- [x] one")),
                response(40, EditPlan("- [x] one", "- [ ] one")),
                response(60, EditPlan("- [ ] one", "- [x] one")),
                response(70, Bash("grep '\\[x\\] one' fix_plan.md".to_owned())),
                response(90, tick_command("two")),
            ],
            &one_two,
            None,
            (vec![50, 30], 0),
        ),
        (
            "calls without a name tick in the plan's order",
            vec![
                response(10, Bash("sed -i '3s/\\[ \\]/[x]/' fix_plan.md".to_owned())),
                response(50, Bash("sed -i '3s/\\[ \\]/[x]/' fix_plan.md".to_owned())),
                response(90, Bash("sed -i '4s/\\[ \\]/[x]/' fix_plan.md".to_owned())),
            ],
            &one_two,
            None,
            (vec![40, 40], 0),
        ),
        (
            "one that no call shows shares with the next item",
            vec![response(10, EditSource), response(50, EditSource), response(90, tick_command("two"))],
            &one_two,
            None,
            (vec![40, 40], 0),
        ),
        (
            "ticked by a script, when the plan was changed last; the next item was begun after it",
            vec![
                response(10, EditSource),
                response(50, Bash("./done.sh".to_owned())),
                response(60, EditSource),
                response(90, Call::None),
            ],
            &to_strings(&["one"]),
            Some(1),
            (vec![40], 40),
        ),
        (
            "ticked by a script, and nothing is known of when",
            vec![
                response(10, EditSource),
                response(50, Bash("./done.sh".to_owned())),
                response(90, EditSource),
            ],
            &to_strings(&["one"]),
            None,
            (vec![80], 0),
        ),
        (
            "with a compaction between the two",
            vec![
                response(10, EditSource),
                response(70, tick_command("one")),
                response(90, EditSource),
                Compaction(95),
                response(20, EditSource),
                response(50, tick_command("two")),
            ],
            &one_two,
            None,
            (vec![60, 25 + 30], 0),
        ),
    ] {
        let growth = measure_growth(&steps, ticked, plan_changed_in_step);
        let attribution = attribute_growth_between_ticks_to_items(
            &growth,
            OpenItems { assigned: None, next_in_plan: Some("three") },
            true,
        );
        let open_item_tokens = attribution.open_item_tokens.map_or(0, |(_, tokens)| tokens);
        assert_eq!((attribution.tokens_by_ticked_item, open_item_tokens), expected, "{case}");
    }
}

#[test]
fn growth_after_the_last_tick_is_charged_to_the_item_begun_then() {
    let growth = |ticked_at: &[u64], wrote_file| SessionGrowth {
        growth: ContextGrowth { growth_tokens: 100, attributed_tokens: 40, ..ContextGrowth::default() },
        growth_at_ticks: ticked_at.to_vec(),
        wrote_file_since_tick: wrote_file,
    };
    let (assigned, next) = (Some("own"), Some("next"));
    // The tokens of ticked items, of the open item, of the item that was ticked last before, and the uncharged
    // tokens.
    type Expected<'a> = (&'a [u64], Option<(&'a str, u64)>, u64, u64);
    type Row<'a> = (&'a [u64], bool, Option<&'a str>, Option<&'a str>, bool, Expected<'a>);
    let table: [Row<'_>; 11] = [
        (&[70], false, None, next, false, (&[60], None, 0, 0)),
        (&[70], false, assigned, next, true, (&[60], None, 0, 0)),
        (&[70], true, None, next, false, (&[30], None, 0, 30)),
        (&[70], true, None, next, true, (&[30], Some(("next", 30)), 0, 0)),
        (&[70], true, assigned, next, true, (&[30], Some(("own", 30)), 0, 0)),
        (&[70], true, None, None, false, (&[60], None, 0, 0)),
        (&[], false, assigned, next, true, (&[], Some(("own", 60)), 0, 0)),
        (&[], true, None, next, true, (&[], Some(("next", 60)), 0, 0)),
        (&[], false, None, next, true, (&[], None, 60, 0)),
        // Ticks before the charged part and after the end: no item is charged twice.
        (&[10, 70], false, None, None, true, (&[0, 60], None, 0, 0)),
        (&[900], true, None, next, true, (&[60], None, 0, 0)),
    ];
    for (
        ticked_at,
        wrote_file,
        own,
        next,
        has_ended,
        (ticked, open, previous_item_tokens, uncharged_tokens),
    ) in table
    {
        let attribution = attribute_growth_between_ticks_to_items(
            &growth(ticked_at, wrote_file),
            OpenItems { assigned: own, next_in_plan: next },
            has_ended,
        );
        let expected = ItemAttribution {
            tokens_by_ticked_item: ticked.to_vec(),
            open_item_tokens: open.map(|(item, tokens)| (item.to_owned(), tokens)),
            previous_item_tokens,
            unattributed_tokens: uncharged_tokens,
        };
        assert_eq!(attribution, expected, "{ticked_at:?} {wrote_file} {own:?} {next:?} {has_ended}");
    }
}

fn step_strategy() -> impl Strategy<Value = Step> {
    let call = prop_oneof![
        3 => Just(EditSource),
        2 => Just(ReadSource),
        2 => Just(Call::None),
        1 => Just(EditPlan("- [ ] one", "- [x] one")),
        1 => Just(EditPlan("[ ]", "[x]")),
        1 => Just(tick_command("two")),
        1 => Just(Bash("sed -i '3s/\\[ \\]/[x]/' fix_plan.md".to_owned())),
    ];
    prop_oneof![
        12 => (1_u64..1_000, call).prop_map(|(usage, call)| Response(usage, call)),
        1 => (1_u64..1_000).prop_map(Compaction),
    ]
}

proptest! {
    /// Over any number of Stops, the items of a session are charged with all of its growth, each token once.
    #[test]
    fn the_charges_of_a_session_add_up_to_its_growth(
        turns in prop::collection::vec(
            (prop::collection::vec(step_strategy(), 1..12), prop::sample::subsequence(vec!["one", "two", "three"], 0..=3),
                prop::option::of(0_usize..40), any::<bool>()),
            1..5,
        ),
        has_own in any::<bool>(),
        has_next in any::<bool>(),
    ) {
        let (mut growth, mut charged, mut read_step_count) = (ContextGrowth::default(), 0, 0);
        let mut has_ticked = false;
        let mut all_steps = Vec::new();
        for (turn_index, (steps, ticked, plan_changed_in_step, is_assigned)) in turns.iter().enumerate() {
            let has_ended = turn_index + 1 == turns.len();
            let ticked = to_strings(ticked);
            all_steps.extend(steps.iter().cloned());
            if ticked.is_empty() && !has_ended {
                // A Stop without a new tick measures nothing; its lines are read later.
                continue;
            }
            let plan_changed_at = plan_changed_in_step.map(|number| Timestamp::from(step_timestamp(number)));
            let mut reader = GrowthReader::new(PLAN, &ticked, plan_changed_at, growth);
            transcript_lines(read_step_count, &all_steps[read_step_count..]).iter().for_each(|line| reader.record_growth_and_ticks_dropping_failed(line));
            read_step_count = all_steps.len();
            let session = reader.into_session_growth_inferring_missing_ticks();
            prop_assert!(session.growth.growth_tokens >= growth.growth_tokens);
            prop_assert_eq!(session.growth_at_ticks.len(), ticked.len());
            let assigned = Some("own").filter(|_| has_own && *is_assigned);
            let attribution = attribute_growth_between_ticks_to_items(&session, OpenItems { assigned, next_in_plan: Some("next").filter(|_| has_next) }, has_ended);
            // Growth of a session without any item is charged to no item.
            let previous_item_tokens = if has_ticked { attribution.previous_item_tokens } else { 0 };
            let unassigned_tokens = attribution.previous_item_tokens - previous_item_tokens;
            charged += attribution.tokens_by_ticked_item.iter().sum::<u64>() + attribution.open_item_tokens.map_or(0, |(_, tokens)| tokens) + previous_item_tokens;
            prop_assert!(!has_ended || attribution.unattributed_tokens == 0);
            has_ticked |= !ticked.is_empty();
            growth = ContextGrowth { attributed_tokens: session.growth.growth_tokens - attribution.unattributed_tokens, ..session.growth };
            prop_assert_eq!(charged + unassigned_tokens, growth.attributed_tokens);
            prop_assert!(unassigned_tokens == 0 || !has_ticked);
        }
        prop_assert_eq!(growth.growth_tokens, expected_growth(&all_steps));
    }
}

/// Computes the growth independently of the reader: the highest usage of each part between compactions, less its
/// first one.
fn expected_growth(steps: &[Step]) -> u64 {
    let parts = steps.split_inclusive(|step| matches!(step, Compaction(_)));
    let growth_of_part = |part: &[Step]| {
        let usages: Vec<u64> = part
            .iter()
            .filter_map(|step| match step {
                Response(usage, _) | Compaction(usage) => Some(*usage),
                Failed => None,
            })
            .collect();
        usages.iter().max().map_or(0, |highest| highest - usages[0])
    };
    parts.map(growth_of_part).sum()
}
