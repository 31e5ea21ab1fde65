//! Several workers: each item's run is below the item's span, and its sessions carry the labels of both runs.

use super::{named, run_id, set_telemetry, wait_for_end};
use plimsoll_policy::telemetry::trace::{self, TraceContext};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::collector::{Collector, Manner};
use plimsoll_tests::{ScriptedAgent, world};
use std::collections::BTreeSet;
use std::time::Duration;

/// Each session notes what it finds in its environment, and commits its item.
fn run_two(world: &mut World) -> Vec<(String, String)> {
    let _model = ScriptedAgent::new(|turn| {
        let item = turn.item.clone().unwrap_or_default();
        match turn.step {
            0 => Step::bash(format!(
                "f=\"{}.env\"; echo \"$TRACEPARENT\" > \"$f\"; echo \"$OTEL_RESOURCE_ATTRIBUTES\" >> \"$f\"\n\
                 sed -i 's/\\[ \\]/[x]/' plimsoll-item.md && git add -A && git commit -qm 'Finish {item}'",
                item.replace(' ', "-")
            )),
            _ => Step::text(format!("{item} is done.\n\n{}", turn.promise)),
        }
    })
    .start(world);
    let words = ["run", "--objective", "Do the plan.", "--name", "Dates", "--workers", "2"];
    let client = ["--", "--model", "opus", "--allowedTools", "Bash"];
    let all: Vec<&str> = words.into_iter().chain(client).collect();
    let finished = world.plimsoll(&all).timeout(Duration::from_secs(120)).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let branch = world.json(".claude/ralph-state.json")["branch"].as_str().expect("a branch").to_owned();
    let noted = |file: &str| {
        let text = world.git(&["show", &format!("{branch}:{file}")]);
        let mut lines = text.lines().map(str::to_owned);
        (lines.next().unwrap_or_default(), lines.next().unwrap_or_default())
    };
    ["Item-1.env", "Item-2.env"].map(noted).into()
}

#[test]
fn each_items_run_hangs_below_the_item_and_what_is_merged_is_a_span() {
    let collector = Collector::start(Manner::Good);
    let mut world = world("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n");
    set_telemetry(&mut world, collector.address());
    let noted = run_two(&mut world);
    let run_id = run_id(&world);
    // Each run has an exporter of its own, and sends its span last.
    let all_told = || {
        let spans = super::spans(&collector);
        let is_below =
            |item: &String| spans.iter().any(|span| span.name == "plimsoll run" && span.parent == *item);
        spans.iter().any(|span| span.id == trace::run_span_id(&run_id))
            && (1..=2).map(|number| trace::item_span_id(&run_id, number, 1)).all(|item| is_below(&item))
    };
    world.wait_until(all_told, "the spans of the whole run and of each item's");
    let spans = wait_for_end(&world, &collector);
    let ids: BTreeSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    assert_eq!(ids.len(), spans.len());
    let trace = TraceContext::for_run(&run_id, None);
    assert!(spans.iter().all(|span| span.trace == trace.trace_id), "one trace: {spans:#?}");
    let items = named(&spans, "item");
    assert_eq!(items.len(), 2, "{spans:#?}");
    assert!(items.iter().all(|item| item.parent == trace::run_span_id(&run_id)));
    let merged: Vec<_> = named(&spans, "merge");
    assert!(!merged.is_empty() && merged.iter().all(|merge| !merge.failed), "{merged:#?}");
    for ((parent, labels), number) in noted.iter().zip(1..) {
        let item = trace::item_span_id(&run_id, number, 1);
        let run = spans.iter().find(|span| span.name == "plimsoll run" && span.parent == item);
        let run = run.unwrap_or_else(|| panic!("no run below item {number}: {spans:#?}"));
        let iteration = spans.iter().find(|span| span.name == "iteration" && span.parent == run.id);
        assert_eq!(*parent, trace.traceparent(&iteration.expect("its session").id));
        let own = run.attributes["plimsoll.run_id"].as_str().expect("its id");
        for label in [
            format!("plimsoll.parent_run_id={run_id}"),
            format!("plimsoll.run_id={own}"),
            format!("plimsoll.item=Item%20{number}"),
            "plimsoll.iteration=1".to_owned(),
        ] {
            assert!(labels.split(',').any(|one| one == label), "{label} in {labels}");
        }
        assert_eq!(run.resource["plimsoll.parent_run_id"], run_id.as_str());
    }
}

#[test]
fn labels_are_there_without_an_exporter_too() {
    let mut world = world("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n");
    world.set_env("CLAUDE_CODE_ENABLE_TELEMETRY", "1");
    world.set_env("OTEL_RESOURCE_ATTRIBUTES", "team=night");
    let noted = run_two(&mut world);
    let run_id = run_id(&world);
    for ((parent, labels), number) in noted.iter().zip(1..) {
        let labels: Vec<&str> = labels.split(',').collect();
        let parent_run = format!("plimsoll.parent_run_id={run_id}");
        assert_eq!(labels[..2], ["team=night", parent_run.as_str()]);
        assert!(labels.contains(&format!("plimsoll.item=Item%20{number}").as_str()), "{labels:?}");
        // A trace of its own: there is no span for it to be below.
        assert!(
            parent.len() == 55 && !parent.contains(&TraceContext::for_run(&run_id, None).trace_id),
            "{parent}"
        );
    }
}
