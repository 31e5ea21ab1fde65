//! The status line as its users see it: broken payloads, repositories, segments of their own, wrapped status lines.

mod bad_payloads;
mod custom_segments;
mod edit_command;
mod git_segments;
mod statusline_page;
mod wrap_command;

use plimsoll_testkit::world::{Launch, World};
use serde_json::{Value, json};

/// Returns a payload with a value of every kind, of a session in this project.
fn full_payload(world: &World) -> Value {
    full_payload_in(&world.project().to_string_lossy())
}

fn full_payload_in(project: &str) -> Value {
    let fixture = plimsoll_testkit::fixtures_dir().join("statusline/usage.rate_limits.json");
    let text = std::fs::read_to_string(fixture).expect("a fixture").replace("/home/dev/project", project);
    let mut payload: Value = serde_json::from_str(&text).expect("a payload");
    // A limit that has been reset since then is not shown.
    for (limit, percent) in [("five_hour", 42), ("seven_day", 7), ("spend_limit", 91)] {
        payload["rate_limits"][limit] = json!({"used_percentage": percent, "resets_at": 4_000_000_000_u64});
    }
    payload["effort"] = json!({"level": "high"});
    payload["cost"] = json!({
        "total_cost_usd": 1.5, "total_duration_ms": 3_600_000, "total_lines_added": 12, "total_lines_removed": 3
    });
    payload
}

/// Returns a launch of the status line with these settings of the user, which may name programs.
fn launch_with_user_settings(world: &World, settings: &Value) -> Launch {
    world.write_plimsoll_user_settings(&json!({"statusline": settings}));
    world.hook("plimsoll-statusline", &full_payload(world)).env("NO_COLOR", "1").env("TZ", "UTC")
}

/// Returns a launch of the status line with these settings of the project, as the client would start it.
fn launch_with_project_settings(world: &World, settings: &Value) -> Launch {
    world.write(".claude/plimsoll.json", &json!({"statusline": settings}).to_string());
    world.hook("plimsoll-statusline", &full_payload(world)).env("NO_COLOR", "1").env("TZ", "UTC")
}
