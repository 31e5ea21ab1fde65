//! Several workers: the run of each item is below the item's span, and its sessions carry the labels of both runs.

use super::{enable_telemetry, run_id, spans_named, wait_for_run_span};
use plimsoll_policy::telemetry::trace::{self, TraceContext};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::collector::{Collector, CollectorBehavior};
use plimsoll_tests::{ScriptedAgent, world_with_plan_and_dates};
use std::collections::BTreeSet;
use std::time::Duration;

/// Runs two workers whose sessions record their trace variables and commit their items. Returns `TRACEPARENT` and the
/// resource attributes of each item.
fn run_two_workers(world: &mut World) -> Vec<(String, String)> {
    let _model = ScriptedAgent::new(|turn| {
        let item = turn.item_text.clone().unwrap_or_default();
        match turn.assistant_message_count {
            0 => Step::bash_call(format!(
                "f=\"{}.env\"; echo \"$TRACEPARENT\" > \"$f\"; echo \"$OTEL_RESOURCE_ATTRIBUTES\" >> \"$f\"\n\
                 sed -i 's/\\[ \\]/[x]/' plimsoll-item.md && git add -A && git commit -qm 'Finish {item}'",
                item.replace(' ', "-")
            )),
            _ => Step::from_text(format!("{item} is done.\n\n{}", turn.promise_line)),
        }
    })
    .start(world);
    let run_arguments = ["run", "--objective", "Do the plan.", "--name", "Dates", "--workers", "2"];
    let client_arguments = ["--", "--model", "opus", "--allowedTools", "Bash"];
    let arguments: Vec<&str> = run_arguments.into_iter().chain(client_arguments).collect();
    let finished = world.plimsoll(&arguments).timeout(Duration::from_secs(120)).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let branch = world.read_json(".claude/ralph-state.json")["branch"].as_str().expect("a branch").to_owned();
    let read_variables = |file: &str| {
        let text = world.git(&["show", &format!("{branch}:{file}")]);
        let mut lines = text.lines().map(str::to_owned);
        (lines.next().unwrap_or_default(), lines.next().unwrap_or_default())
    };
    ["Item-1.env", "Item-2.env"].map(read_variables).into()
}

#[test]
fn each_items_run_is_below_its_item_span_and_merges_are_spans() {
    let collector = Collector::start(CollectorBehavior::Accepting);
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n");
    enable_telemetry(&mut world, collector.address());
    let item_variables = run_two_workers(&mut world);
    let run_id = run_id(&world);
    // Each run has its own exporter, which sends the run's span last.
    let has_all_run_spans = || {
        let spans = super::received_spans(&collector);
        let is_below =
            |item: &String| spans.iter().any(|span| span.name == "plimsoll run" && span.parent_id == *item);
        spans.iter().any(|span| span.id == trace::run_span_id(&run_id))
            && (1..=2).map(|number| trace::item_span_id(&run_id, number, 1)).all(|item| is_below(&item))
    };
    world.wait_until(has_all_run_spans, "the spans of the whole run and of each item's");
    let spans = wait_for_run_span(&world, &collector);
    let ids: BTreeSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    assert_eq!(ids.len(), spans.len());
    let trace = TraceContext::from_valid_traceparent_or_run_id(&run_id, None);
    assert!(spans.iter().all(|span| span.trace_id == trace.trace_id), "one trace: {spans:#?}");
    let items = spans_named(&spans, "item");
    assert_eq!(items.len(), 2, "{spans:#?}");
    assert!(items.iter().all(|item| item.parent_id == trace::run_span_id(&run_id)));
    let merges: Vec<_> = spans_named(&spans, "merge");
    assert!(!merges.is_empty() && merges.iter().all(|merge| !merge.is_failed), "{merges:#?}");
    for ((parent, labels), number) in item_variables.iter().zip(1..) {
        let item = trace::item_span_id(&run_id, number, 1);
        let run = spans.iter().find(|span| span.name == "plimsoll run" && span.parent_id == item);
        let run = run.unwrap_or_else(|| panic!("no run below item {number}: {spans:#?}"));
        let iteration = spans.iter().find(|span| span.name == "iteration" && span.parent_id == run.id);
        assert_eq!(*parent, trace.traceparent(&iteration.expect("its session").id));
        let own_run_id = run.attributes["plimsoll.run_id"].as_str().expect("its id");
        for label in [
            format!("plimsoll.parent_run_id={run_id}"),
            format!("plimsoll.run_id={own_run_id}"),
            format!("plimsoll.item=Item%20{number}"),
            "plimsoll.iteration=1".to_owned(),
        ] {
            assert!(labels.split(',').any(|one| one == label), "{label} in {labels}");
        }
        assert_eq!(run.resource["plimsoll.parent_run_id"], run_id.as_str());
    }
}

#[test]
fn labels_are_set_without_an_exporter_too() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n");
    world.set_env("CLAUDE_CODE_ENABLE_TELEMETRY", "1");
    world.set_env("OTEL_RESOURCE_ATTRIBUTES", "team=night");
    let item_variables = run_two_workers(&mut world);
    let run_id = run_id(&world);
    for ((parent, labels), number) in item_variables.iter().zip(1..) {
        let labels: Vec<&str> = labels.split(',').collect();
        let parent_run = format!("plimsoll.parent_run_id={run_id}");
        assert_eq!(labels[..2], ["team=night", parent_run.as_str()]);
        assert!(labels.contains(&format!("plimsoll.item=Item%20{number}").as_str()), "{labels:?}");
        // It has a trace of its own, because there is no span above it.
        assert!(
            parent.len() == 55
                && !parent.contains(&TraceContext::from_valid_traceparent_or_run_id(&run_id, None).trace_id),
            "{parent}"
        );
    }
}
