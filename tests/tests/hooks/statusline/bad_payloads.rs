//! Whatever single field of the payload is wrong, null or missing, and whatever two of them are: every segment that
//! does not stand on them is shown as if nothing were amiss.

use super::payload_in;
use plimsoll_policy::statusline::HiddenReason;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;

/// What each segment stands on. A field's neighbours in its object are none of its business.
const STANDS_ON: [(&str, &[&str]); 15] = [
    ("model", &["/model/display_name", "/model/id"]),
    ("effort", &["/effort/level"]),
    ("directory", &["/workspace/current_dir", "/cwd"]),
    ("git", &["/workspace/current_dir", "/cwd"]),
    (
        "load",
        &[
            "/context_window/used_percentage",
            "/context_window/total_input_tokens",
            "/context_window/context_window_size",
            "/context_window/current_usage",
            "/model/id",
        ],
    ),
    ("run", &["/workspace/project_dir", "/workspace/current_dir", "/cwd"]),
    ("cache", &["/prompt_cache/warm", "/prompt_cache/hit_ratio", "/prompt_cache/expires_at"]),
    ("cost", &["/cost/total_cost_usd"]),
    ("burn", &["/cost/total_cost_usd", "/cost/total_duration_ms"]),
    ("five_hour", &["/rate_limits/five_hour"]),
    ("weekly", &["/rate_limits/seven_day"]),
    ("spend", &["/rate_limits/spend_limit"]),
    ("lines", &["/cost/total_lines_added", "/cost/total_lines_removed"]),
    ("version", &["/version"]),
    ("style", &["/output_style/name"]),
];

/// The fields of a payload and what lies in them.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let Value::Object(fields) = value else { return };
    for (key, inner) in fields {
        let here = format!("{at}/{key}");
        found.push(here.clone());
        pointers(inner, &here, found);
    }
}

/// In every way in which a field can be wrong; none takes it away.
fn faults(sound: &Value) -> Vec<Option<Value>> {
    let wrong = if sound.is_string() { json!(7) } else { json!("x") };
    vec![None, Some(Value::Null), Some(wrong), Some(json!([sound])), Some(json!({"x": 1}))]
}

fn spoil(payload: &mut Value, pointer: &str, fault: Option<&Value>) {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    // The other fault may have taken what this one lies in.
    let Some(Value::Object(fields)) = payload.pointer_mut(parent) else { return };
    match fault {
        Some(value) => fields.insert(key.to_owned(), value.clone()),
        None => fields.remove(key),
    };
}

fn touches(pointer: &str, stands_on: &str) -> bool {
    let lies_in = |inner: &str, outer: &str| inner == outer || inner.starts_with(&format!("{outer}/"));
    lies_in(stands_on, pointer) || lies_in(pointer, stands_on)
}

fn shown(payload: &Value) -> BTreeMap<String, Result<String, HiddenReason>> {
    let (line, segments, _) =
        plimsoll_flows::hooks::statusline::explain_status_line(payload.to_string().as_bytes(), None);
    assert!(line.contains('▏'), "the load line is always there: {line:?}");
    segments.into_iter().map(|segment| (segment.name, segment.rendered)).collect()
}

fn check(sound: &BTreeMap<String, Result<String, HiddenReason>>, payload: &Value, spoilt: &[&str]) {
    let now = shown(payload);
    for (segment, stands_on) in STANDS_ON {
        let is_touched = spoilt.iter().any(|pointer| stands_on.iter().any(|field| touches(pointer, field)));
        assert!(
            is_touched || now[segment] == sound[segment],
            "{segment} with {spoilt:?}: {:?}",
            now[segment]
        );
    }
}

/// Runs in the stage's project, with its home.
fn loop_through_all() {
    let place = std::env::current_dir().expect("a project").to_string_lossy().into_owned();
    let payload = payload_in(&place);
    let sound = shown(&payload);
    for (segment, _) in STANDS_ON {
        assert!(sound[segment].is_ok(), "{segment}: {:?}", sound[segment]);
    }
    let mut all = Vec::new();
    pointers(&payload, "", &mut all);
    assert!(all.len() > 50, "{all:?}");
    let mut pairs = 0;
    for (number, first) in all.iter().enumerate() {
        let of_first = faults(payload.pointer(first).expect("a field"));
        for fault in &of_first {
            let mut spoilt = payload.clone();
            spoil(&mut spoilt, first, fault.as_ref());
            check(&sound, &spoilt, &[first]);
        }
        for second in &all[number + 1..] {
            // Of each field: gone, and of the wrong type; which differs from pair to pair.
            let of_second = faults(payload.pointer(second).expect("a field"));
            let wrong = 1 + pairs % (of_second.len() - 1);
            for (one, other) in [(0, wrong), (wrong, 0), (wrong, wrong)] {
                let mut spoilt = payload.clone();
                spoil(&mut spoilt, first, of_first[one].as_ref());
                spoil(&mut spoilt, second, of_second[other].as_ref());
                check(&sound, &spoilt, &[first, second]);
            }
            pairs += 1;
        }
    }
    assert!(pairs > 1_000, "{pairs}");
}

const STAGE: &str = "PLIMSOLL_TEST_STAGE";

#[test]
fn one_wrong_field_or_two_cost_only_the_segments_that_stand_on_them() {
    if std::env::var_os(STAGE).is_some() {
        return loop_through_all();
    }
    // The flow looks at its environment: so it gets one of its own, in a process of its own.
    let world = plimsoll_testkit::world::World::new();
    let names: Vec<&str> = STANDS_ON.iter().map(|(name, _)| *name).collect();
    let look = json!({
        "lines": [names],
        "segments": {"git": {"format": "{branch}"}, "style": {"pointer": "/output_style/name"}}
    });
    // The user's settings hold wherever the payload says that the session works.
    world.write_user_settings(&json!({"statusline": look}));
    world.write("fix_plan.md", "- [ ] one\n");
    world.plimsoll(&["start", "--objective", "Do it."]).run().expect_success();
    let itself = std::env::current_exe().expect("this program");
    let name = &plimsoll_tests::test_name(
        module_path!(),
        "one_wrong_field_or_two_cost_only_the_segments_that_stand_on_them",
    );
    let output = Command::new(itself)
        .args(["--exact", name, "--nocapture"])
        .current_dir(world.project())
        .env_clear()
        .envs(world.env())
        .env(STAGE, "1")
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}
