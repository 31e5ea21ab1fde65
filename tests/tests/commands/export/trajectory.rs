//! ATIF, judged by the `atif` package.

use crate::export::{RECORDED, export, judged, record_fixture, record_nested, record_subagent};
use plimsoll_testkit::world::World;
use serde_json::Value;

fn trajectory(world: &World, session: &str) -> Value {
    judged(world, "trajectory.py", &export(world, session, "atif"))
}

fn steps<'a>(trajectory: &'a Value, source: &str) -> Vec<&'a Value> {
    trajectory["steps"].as_array().unwrap().iter().filter(|step| step["source"] == source).collect()
}

#[test]
fn every_recorded_session_is_a_trajectory() {
    let world = World::without_git();
    for name in RECORDED {
        record_fixture(&world, name);
        let trajectory = trajectory(&world, name);
        assert_eq!(trajectory["session_id"], name);
        let agent = steps(&trajectory, "agent");
        assert!(!agent.is_empty() && !steps(&trajectory, "user").is_empty(), "{name}");
        let sum = |field: &str| agent.iter().filter_map(|step| step["metrics"][field].as_u64()).sum::<u64>();
        let totals = &trajectory["final_metrics"];
        assert_eq!(totals["total_prompt_tokens"], sum("prompt_tokens"), "{name}");
        assert_eq!(totals["total_cached_tokens"], sum("cached_tokens"), "{name}");
        assert!(totals["total_cost_usd"].as_f64() > Some(0.0), "{name}");
    }
}

#[test]
fn parallel_calls_keep_their_results_and_failures() {
    let world = World::without_git();
    record_fixture(&world, "parallel_tools");
    let trajectory = trajectory(&world, "parallel_tools");
    let step = steps(&trajectory, "agent")[0];
    let ids = |list: &Value, name: &str| -> Vec<String> {
        list.as_array().unwrap().iter().map(|each| each[name].as_str().unwrap().to_owned()).collect()
    };
    let asked = ids(&step["tool_calls"], "tool_call_id");
    assert_eq!(asked, ids(&step["observation"]["results"], "source_call_id"));
    assert_eq!(asked.len(), 5);
    let ok: Vec<bool> = step["observation"]["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["extra"]["ok"].as_bool().unwrap())
        .collect();
    assert_eq!(ok, [true, true, false, true, false]);
    assert_eq!(step["extra"]["failure"], "tool_error");
}

#[test]
fn a_subagent_is_a_trajectory_inside_named_by_its_call() {
    let world = World::without_git();
    let agent = record_subagent(&world);
    let trajectory = trajectory(&world, "subagent");
    let inside = trajectory["subagent_trajectories"].as_array().unwrap();
    assert_eq!(inside.len(), 1);
    assert_eq!(inside[0]["trajectory_id"], agent);
    assert!(steps(&inside[0], "agent").len() > 1);
    let results = &steps(&trajectory, "agent")[0]["observation"]["results"][0];
    assert_eq!(results["subagent_trajectory_ref"][0]["trajectory_id"], agent);
}

#[test]
fn a_compaction_is_a_step_of_the_system() {
    let world = World::without_git();
    record_fixture(&world, "compaction");
    let trajectory = trajectory(&world, "compaction");
    let compactions: Vec<_> = steps(&trajectory, "system")
        .into_iter()
        .filter(|step| step["extra"]["kind"] == "compaction")
        .collect();
    assert_eq!(compactions.len(), 1);
    assert_eq!(compactions[0]["extra"]["content"]["tokens_before"], 975_561);
}

#[test]
fn subagents_of_subagents_are_further_in_and_lost_ones_are_kept() {
    let world = World::without_git();
    record_nested(&world);
    let trajectory = trajectory(&world, "nested");
    let names = |trajectory: &Value| -> Vec<String> {
        let inside = trajectory["subagent_trajectories"].as_array();
        inside.into_iter().flatten().map(|each| each["trajectory_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&trajectory), ["one", "lost"]);
    assert_eq!(names(&trajectory["subagent_trajectories"][0]), ["two"]);
    let page = export(&world, "nested", "html");
    let places = [
        "Subagent one",
        "Subagent two",
        "deep words",
        "two is back",
        "one is back",
        "Subagent lost",
        "lost words",
    ];
    let found: Vec<usize> = places.iter().map(|words| page.find(words).expect(words)).collect();
    assert!(found.is_sorted(), "{found:?}");
    let spans = judged(&world, "otlp.py", &export(&world, "nested", "otel"));
    let agents: Vec<&Value> = spans
        .as_array()
        .unwrap()
        .iter()
        .filter(|span| span["name"].as_str().unwrap().starts_with("invoke_agent"))
        .collect();
    assert_eq!(
        agents.iter().map(|span| span["parent"] == "").collect::<Vec<_>>(),
        [true, false, false, true]
    );
}
