use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

const PLAN: &str = "fix_plan.md";

/// A line of a transcript, as the tests write it.
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
    Look,
    Work,
    Bash(String),
    Edit(&'static str, &'static str),
}

use Call::{Bash, Edit, Look, Work};
use Step::{Compaction, Failed, Response};

fn tick(item: &str) -> Call {
    Bash(format!("sed -i 's/\\[ \\] {item}/[x] {item}/' fix_plan.md"))
}

fn call_block(number: usize, call: &Call) -> Option<Value> {
    let (name, input) = match call {
        Call::None => return None,
        Look => ("Read", json!({"file_path": "/project/src/a.rs"})),
        Work => ("Edit", json!({"file_path": "/project/src/a.rs", "old_string": "a", "new_string": "b"})),
        Bash(command) => ("Bash", json!({"command": command})),
        Edit(old, new) => {
            ("Edit", json!({"file_path": "/project/fix_plan.md", "old_string": old, "new_string": new}))
        }
    };
    Some(json!({"type": "tool_use", "id": format!("call{number}"), "name": name, "input": input}))
}

/// The lines of these steps; each response has two, as the client writes them, and takes a second.
fn lines(first: usize, steps: &[Step]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut add = |line: Value| lines.push(Line::parse(line.to_string().as_bytes()).expect("an object"));
    for (number, step) in steps.iter().enumerate().map(|(place, step)| (first + place, step)) {
        match step {
            Response(usage, call) => {
                let blocks = [Some(json!({"type": "text", "text": "Words."})), call_block(number, call)];
                for block in blocks.into_iter().flatten() {
                    add(json!({
                        "type": "assistant", "timestamp": moment(number),
                        "message": {"id": format!("response{number}"), "model": "m", "content": [block],
                            "usage": {"input_tokens": 1, "cache_read_input_tokens": usage - 1}},
                    }));
                }
            }
            Failed => add(json!({"type": "user", "message": {"content": [
                {"type": "tool_result", "tool_use_id": format!("call{}", number - 1), "is_error": true}]}})),
            Compaction(before) => add(json!({"type": "system", "subtype": "compact_boundary",
                "compactMetadata": {"preTokens": before, "postTokens": 2_000}})),
        }
    }
    lines
}

fn moment(number: usize) -> String {
    format!("2026-01-07T11:{:02}:{:02}.500Z", number / 60, number % 60)
}

fn items(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn read(steps: &[Step], items: &[String], plan_changed_at: Option<usize>) -> SessionGrowth {
    let plan_changed_at = plan_changed_at.map(|number| Timestamp::from(moment(number)));
    let mut reader = GrowthReader::new(PLAN, items, plan_changed_at, MeasuredGrowth::default());
    lines(0, steps).iter().for_each(|line| reader.read_line(line));
    reader.finish()
}

#[test]
fn growth_adds_what_each_compaction_took_away_and_is_never_negative() {
    let none = Call::None;
    for (usages, expected) in [
        (vec![], 0),
        (vec![Response(20_000, none.clone())], 0),
        (vec![Response(20_000, none.clone()), Response(50_000, none.clone())], 30_000),
        // The client drops old thinking: less usage is no negative growth.
        (
            vec![
                Response(20_000, none.clone()),
                Response(50_000, none.clone()),
                Response(45_000, none.clone()),
                Response(51_000, none.clone()),
            ],
            31_000,
        ),
        // 10k came with a tool's result before the compaction; the base after it is no growth.
        (
            vec![
                Response(20_000, none.clone()),
                Response(90_000, none.clone()),
                Compaction(100_000),
                Response(25_000, none.clone()),
                Response(40_000, none.clone()),
            ],
            80_000 + 15_000,
        ),
        // A compaction that says less than the usage before it, and one before any response.
        (vec![Compaction(5_000), Response(20_000, none.clone()), Compaction(3_000)], 0),
    ] {
        assert_eq!(read(&usages, &[], None).growth.tokens, expected, "{usages:?}");
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
    let mut reader = GrowthReader::new(PLAN, &[], None, MeasuredGrowth::default());
    for line in lines {
        reader.read_line(&Line::parse(line.to_string().as_bytes()).expect("an object"));
    }
    assert_eq!(reader.finish().growth.tokens, 67);
}

/// Steps, the items ticked meanwhile, when the plan was changed last, and what each item is charged with at the session's end;
/// the last figure is the open item's.
#[test]
fn each_item_is_charged_with_the_growth_up_to_its_own_tick() {
    let one_two = items(&["one", "two"]);
    let response = |usage, call: Call| Response(usage, call);
    for (what, steps, ticked, changed, expected) in [
        (
            "ticked one after the other",
            vec![
                response(10, Work),
                response(70, tick("one")),
                response(80, Work),
                response(90, tick("two")),
                response(95, Call::None),
            ],
            &one_two,
            None,
            (vec![60, 25], 0),
        ),
        (
            "in the other order",
            vec![
                response(10, Work),
                response(70, tick("two")),
                response(80, Work),
                response(90, tick("one")),
                response(95, Call::None),
            ],
            &one_two,
            None,
            (vec![25, 60], 0),
        ),
        (
            "in one call",
            vec![response(10, Work), response(71, Edit("- [ ] one\n- [ ] two", "- [x] one\n- [x] two"))],
            &one_two,
            None,
            (vec![31, 30], 0),
        ),
        (
            "the next item is begun after the last tick",
            vec![
                response(10, Work),
                response(70, tick("one")),
                response(80, Look),
                response(90, Work),
                response(99, Call::None),
            ],
            &items(&["one"]),
            None,
            (vec![60], 29),
        ),
        (
            "after the last tick it only looks and speaks",
            vec![response(10, Work), response(70, tick("one")), response(80, Look), response(99, Call::None)],
            &items(&["one"]),
            None,
            (vec![89], 0),
        ),
        (
            "a failed edit ticks nothing",
            vec![
                response(10, Edit("- [ ] one", "- [x] one")),
                Failed,
                response(70, Edit("- [ ] one", "- [x] one")),
                response(80, tick("two")),
            ],
            &one_two,
            None,
            (vec![60, 10], 0),
        ),
        (
            "the tick that lasts counts, and a look at a box does not",
            vec![
                response(10, Edit("- [ ] one", "- [x] one")),
                response(40, Edit("- [x] one", "- [ ] one")),
                response(60, Edit("- [ ] one", "- [x] one")),
                response(70, Bash("grep '\\[x\\] one' fix_plan.md".to_owned())),
                response(90, tick("two")),
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
            vec![response(10, Work), response(50, Work), response(90, tick("two"))],
            &one_two,
            None,
            (vec![40, 40], 0),
        ),
        (
            "ticked by a script, when the plan was changed last; the next item was begun after it",
            vec![
                response(10, Work),
                response(50, Bash("./done.sh".to_owned())),
                response(60, Work),
                response(90, Call::None),
            ],
            &items(&["one"]),
            Some(1),
            (vec![40], 40),
        ),
        (
            "ticked by a script, and nothing is known of when",
            vec![response(10, Work), response(50, Bash("./done.sh".to_owned())), response(90, Work)],
            &items(&["one"]),
            None,
            (vec![80], 0),
        ),
        (
            "with a compaction between the two",
            vec![
                response(10, Work),
                response(70, tick("one")),
                response(90, Work),
                Compaction(95),
                response(20, Work),
                response(50, tick("two")),
            ],
            &one_two,
            None,
            (vec![60, 25 + 30], 0),
        ),
    ] {
        let growth = read(&steps, ticked, changed);
        let charges = charge(&growth, OpenItems { own: None, next: Some("three") }, true);
        let of_open = charges.open.map_or(0, |(_, tokens)| tokens);
        assert_eq!((charges.ticked, of_open), expected, "{what}");
    }
}

#[test]
fn what_follows_the_last_tick_belongs_to_the_item_that_was_begun() {
    let growth = |ticked_at: &[u64], wrote| SessionGrowth {
        growth: MeasuredGrowth { tokens: 100, charged: 40, ..MeasuredGrowth::default() },
        ticked_at: ticked_at.to_vec(),
        wrote_since_tick: wrote,
    };
    let (own, next) = (Some("own"), Some("next"));
    // Ticked, open item, last one ticked before, left.
    type Expected<'a> = (&'a [u64], Option<(&'a str, u64)>, u64, u64);
    type Row<'a> = (&'a [u64], bool, Option<&'a str>, Option<&'a str>, bool, Expected<'a>);
    let table: [Row<'_>; 11] = [
        (&[70], false, None, next, false, (&[60], None, 0, 0)),
        (&[70], false, own, next, true, (&[60], None, 0, 0)),
        (&[70], true, None, next, false, (&[30], None, 0, 30)),
        (&[70], true, None, next, true, (&[30], Some(("next", 30)), 0, 0)),
        (&[70], true, own, next, true, (&[30], Some(("own", 30)), 0, 0)),
        (&[70], true, None, None, false, (&[60], None, 0, 0)),
        (&[], false, own, next, true, (&[], Some(("own", 60)), 0, 0)),
        (&[], true, None, next, true, (&[], Some(("next", 60)), 0, 0)),
        (&[], false, None, next, true, (&[], None, 60, 0)),
        // Before what was charged, and behind the end: no item is charged twice.
        (&[10, 70], false, None, None, true, (&[0, 60], None, 0, 0)),
        (&[900], true, None, next, true, (&[60], None, 0, 0)),
    ];
    for (ticked_at, wrote, own, next, has_ended, (ticked, open, before, left)) in table {
        let charges = charge(&growth(ticked_at, wrote), OpenItems { own, next }, has_ended);
        let expected = Charges {
            ticked: ticked.to_vec(),
            open: open.map(|(item, tokens)| (item.to_owned(), tokens)),
            last_ticked_before: before,
            left,
        };
        assert_eq!(charges, expected, "{ticked_at:?} {wrote} {own:?} {next:?} {has_ended}");
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    let call = prop_oneof![
        3 => Just(Work),
        2 => Just(Look),
        2 => Just(Call::None),
        1 => Just(Edit("- [ ] one", "- [x] one")),
        1 => Just(Edit("[ ]", "[x]")),
        1 => Just(tick("two")),
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
            (prop::collection::vec(any_step(), 1..12), prop::sample::subsequence(vec!["one", "two", "three"], 0..=3),
                prop::option::of(0_usize..40), any::<bool>()),
            1..5,
        ),
        has_own in any::<bool>(),
        has_next in any::<bool>(),
    ) {
        let (mut growth, mut charged, mut number) = (MeasuredGrowth::default(), 0, 0);
        let mut has_ticked = false;
        let mut all = Vec::new();
        for (place, (steps, ticked, changed, is_own)) in turns.iter().enumerate() {
            let has_ended = place + 1 == turns.len();
            let ticked = items(ticked);
            all.extend(steps.iter().cloned());
            if ticked.is_empty() && !has_ended {
                // A Stop without a new tick measures nothing; its lines are read later.
                continue;
            }
            let changed = changed.map(|number| Timestamp::from(moment(number)));
            let mut reader = GrowthReader::new(PLAN, &ticked, changed, growth);
            lines(number, &all[number..]).iter().for_each(|line| reader.read_line(line));
            number = all.len();
            let session = reader.finish();
            prop_assert!(session.growth.tokens >= growth.tokens);
            prop_assert_eq!(session.ticked_at.len(), ticked.len());
            let own = Some("own").filter(|_| has_own && *is_own);
            let charges = charge(&session, OpenItems { own, next: Some("next").filter(|_| has_next) }, has_ended);
            // Growth of a session without any item belongs to nobody.
            let of_before = if has_ticked { charges.last_ticked_before } else { 0 };
            let nobodys = charges.last_ticked_before - of_before;
            charged += charges.ticked.iter().sum::<u64>() + charges.open.map_or(0, |(_, tokens)| tokens) + of_before;
            prop_assert!(!has_ended || charges.left == 0);
            has_ticked |= !ticked.is_empty();
            growth = MeasuredGrowth { charged: session.growth.tokens - charges.left, ..session.growth };
            prop_assert_eq!(charged + nobodys, growth.charged);
            prop_assert!(nobodys == 0 || !has_ticked);
        }
        prop_assert_eq!(growth.tokens, sum_of_growth(&all));
    }
}

/// Independent of the reader: the highest usage of each part between compactions, less its first one.
fn sum_of_growth(steps: &[Step]) -> u64 {
    let parts = steps.split_inclusive(|step| matches!(step, Compaction(_)));
    let grown = |part: &[Step]| {
        let usages: Vec<u64> = part
            .iter()
            .filter_map(|step| match step {
                Response(usage, _) | Compaction(usage) => Some(*usage),
                Failed => None,
            })
            .collect();
        usages.iter().max().map_or(0, |most| most - usages[0])
    };
    parts.map(grown).sum()
}
