//! However one or two fields of the payload are wrong, null or missing: every segment that does not depend on them is
//! shown as usual.

use super::full_payload_in;
use plimsoll_policy::statusline::HiddenReason;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;

/// The fields that each segment depends on. Other fields of the same object do not matter to it.
const SEGMENT_FIELDS: [(&str, &[&str]); 15] = [
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

/// Collects the JSON pointers of all fields of a payload, nested ones included.
fn collect_pointers(value: &Value, prefix: &str, collected: &mut Vec<String>) {
    let Value::Object(fields) = value else { return };
    for (key, inner) in fields {
        let pointer = format!("{prefix}/{key}");
        collected.push(pointer.clone());
        collect_pointers(inner, &pointer, collected);
    }
}

/// Returns a replacement for each way in which a field can be wrong; `None` removes the field.
fn faulty_values(valid: &Value) -> Vec<Option<Value>> {
    let wrong = if valid.is_string() { json!(7) } else { json!("x") };
    vec![None, Some(Value::Null), Some(wrong), Some(json!([valid])), Some(json!({"x": 1}))]
}

fn apply_fault(payload: &mut Value, pointer: &str, fault: Option<&Value>) {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    // The other fault may have removed the object that contains this field.
    let Some(Value::Object(fields)) = payload.pointer_mut(parent) else { return };
    match fault {
        Some(value) => fields.insert(key.to_owned(), value.clone()),
        None => fields.remove(key),
    };
}

fn affects(pointer: &str, field: &str) -> bool {
    let is_same_or_inside =
        |inner: &str, outer: &str| inner == outer || inner.starts_with(&format!("{outer}/"));
    is_same_or_inside(field, pointer) || is_same_or_inside(pointer, field)
}

fn segments_shown(payload: &Value) -> BTreeMap<String, Result<String, HiddenReason>> {
    let (line, segments, _) =
        plimsoll_flows::hooks::statusline::explain_status_line(payload.to_string().as_bytes(), None);
    assert!(line.contains('▏'), "the load line is always there: {line:?}");
    segments.into_iter().map(|segment| (segment.name, segment.rendered)).collect()
}

fn assert_unaffected_segments(
    expected: &BTreeMap<String, Result<String, HiddenReason>>,
    payload: &Value,
    faulty_pointers: &[&str],
) {
    let actual = segments_shown(payload);
    for (segment, fields) in SEGMENT_FIELDS {
        let is_affected =
            faulty_pointers.iter().any(|pointer| fields.iter().any(|field| affects(pointer, field)));
        assert!(
            is_affected || actual[segment] == expected[segment],
            "{segment} with {faulty_pointers:?}: {:?}",
            actual[segment]
        );
    }
}

/// Runs in the project of the test's world, with its home.
fn try_all_faulty_payloads() {
    let project = std::env::current_dir().expect("a project").to_string_lossy().into_owned();
    let payload = full_payload_in(&project);
    let expected = segments_shown(&payload);
    for (segment, _) in SEGMENT_FIELDS {
        assert!(expected[segment].is_ok(), "{segment}: {:?}", expected[segment]);
    }
    let mut pointers = Vec::new();
    collect_pointers(&payload, "", &mut pointers);
    assert!(pointers.len() > 50, "{pointers:?}");
    let mut pair_count = 0;
    for (number, first) in pointers.iter().enumerate() {
        let first_faults = faulty_values(payload.pointer(first).expect("a field"));
        for fault in &first_faults {
            let mut faulty_payload = payload.clone();
            apply_fault(&mut faulty_payload, first, fault.as_ref());
            assert_unaffected_segments(&expected, &faulty_payload, &[first]);
        }
        for second in &pointers[number + 1..] {
            // Each field is once removed and once of a wrong type; the wrong type differs from pair to pair.
            let second_faults = faulty_values(payload.pointer(second).expect("a field"));
            let wrong_type = 1 + pair_count % (second_faults.len() - 1);
            for (first_fault, second_fault) in [(0, wrong_type), (wrong_type, 0), (wrong_type, wrong_type)] {
                let mut faulty_payload = payload.clone();
                apply_fault(&mut faulty_payload, first, first_faults[first_fault].as_ref());
                apply_fault(&mut faulty_payload, second, second_faults[second_fault].as_ref());
                assert_unaffected_segments(&expected, &faulty_payload, &[first, second]);
            }
            pair_count += 1;
        }
    }
    assert!(pair_count > 1_000, "{pair_count}");
}

const CHILD_PROCESS_VARIABLE: &str = "PLIMSOLL_TEST_STAGE";

#[test]
fn wrong_fields_hide_only_the_segments_that_depend_on_them() {
    if std::env::var_os(CHILD_PROCESS_VARIABLE).is_some() {
        return try_all_faulty_payloads();
    }
    // The status line reads its environment, so it runs in a process of its own with an environment of its own.
    let world = plimsoll_testkit::world::World::new();
    let names: Vec<&str> = SEGMENT_FIELDS.iter().map(|(name, _)| *name).collect();
    let settings = json!({
        "lines": [names],
        "segments": {"git": {"format": "{branch}"}, "style": {"pointer": "/output_style/name"}}
    });
    // The user's settings apply wherever the payload says that the session works.
    world.write_plimsoll_user_settings(&json!({"statusline": settings}));
    world.write("fix_plan.md", "- [ ] one\n");
    world.plimsoll(&["start", "--objective", "Do it."]).run().expect_success();
    let test_program = std::env::current_exe().expect("this program");
    let name = &plimsoll_tests::exact_test_name(
        module_path!(),
        "wrong_fields_hide_only_the_segments_that_depend_on_them",
    );
    let output = Command::new(test_program)
        .args(["--exact", name, "--nocapture"])
        .current_dir(world.project())
        .env_clear()
        .envs(world.env_with_programs_on_path())
        .env(CHILD_PROCESS_VARIABLE, "1")
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}
