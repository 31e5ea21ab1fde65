//! The status line as its users meet it: foreign faults, repositories, values of their own, other lines.

mod bad_payloads;
mod custom_segments;
mod edit_command;
mod git_segments;
mod statusline_page;
mod wrap_command;

use plimsoll_testkit::world::{Launch, World};
use serde_json::{Value, json};

/// A payload with something of everything, of a session in this project.
fn payload(world: &World) -> Value {
    payload_in(&world.project().to_string_lossy())
}

fn payload_in(place: &str) -> Value {
    let fixture = plimsoll_testkit::fixtures().join("statusline/usage.rate_limits.json");
    let text = std::fs::read_to_string(fixture).expect("a fixture").replace("/home/dev/project", place);
    let mut payload: Value = serde_json::from_str(&text).expect("a payload");
    // A limit that has been reset since is not shown.
    for (limit, percent) in [("five_hour", 42), ("seven_day", 7), ("spend_limit", 91)] {
        payload["rate_limits"][limit] = json!({"used_percentage": percent, "resets_at": 4_000_000_000_u64});
    }
    payload["effort"] = json!({"level": "high"});
    payload["cost"] = json!({
        "total_cost_usd": 1.5, "total_duration_ms": 3_600_000, "total_lines_added": 12, "total_lines_removed": 3
    });
    payload
}

/// The status line with these settings of the user's, who may name programs.
fn own_line(world: &World, look: &Value) -> Launch {
    world.write_user_settings(&json!({"statusline": look}));
    world.hook("plimsoll-statusline", &payload(world)).env("NO_COLOR", "1").env("TZ", "UTC")
}

/// The status line with these settings of the project, as the client would start it.
fn line(world: &World, look: &Value) -> Launch {
    world.write(".claude/plimsoll.json", &json!({"statusline": look}).to_string());
    world.hook("plimsoll-statusline", &payload(world)).env("NO_COLOR", "1").env("TZ", "UTC")
}
