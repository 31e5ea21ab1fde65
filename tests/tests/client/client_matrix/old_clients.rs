//! Old clients with the entries that `init` writes for them, and with those that it wrote for a newer client: a user may start an old
//! one with the same settings file.

use super::harness::{SESSION_ID, headless_session, world_with_client};
use plimsoll_protocol::settings::{HookSupport, hooks_settings};
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::world::World;

/// The last client that drops all hooks of a file because of one unknown event, and one that drops only the entry.
const OLD_CLIENTS: [(&str, bool); 2] = [("2.0.77", false), ("2.1.101", true)];

/// Runs a session and returns whether our hooks recorded its start and its end.
fn run_session_and_check_hooks_ran(world: &World) -> bool {
    headless_session(world, "Work on the dates.", &["--allowedTools", "Bash"]).run().expect_success();
    let record = format!(".claude/plimsoll/sessions/{SESSION_ID}.json");
    if !world.project().join(&record).exists() {
        return false;
    }
    let record = world.read_json(&record);
    assert!(record["started_at"].is_string() && record["ended_at"].is_string(), "{record}");
    true
}

fn start_model() -> ScriptedModel {
    ScriptedModel::start_with_steps_repeating_last(vec![Step::bash_call("echo one"), Step::from_text("done")])
}

#[test]
fn old_clients_run_the_hooks_that_init_writes_for_them() {
    for (version, _) in OLD_CLIENTS {
        let model = start_model();
        let world = world_with_client(version, &model);
        world.plimsoll(&["init", "--local"]).run().expect_success();
        let settings = world.read(".claude/settings.local.json");
        assert!(!settings.contains("PreModelSwitch"), "{version}: {settings}");
        assert!(run_session_and_check_hooks_ran(&world), "{version}");
    }
}

#[test]
fn an_old_client_ignores_only_unknown_events_of_the_modern_template_or_drops_it_and_doctor_says_so() {
    for (version, ignores_only_unknown_events) in OLD_CLIENTS {
        let model = start_model();
        let world = world_with_client(version, &model);
        let settings = hooks_settings(HookSupport::Modern, &str::to_owned);
        world.write(".claude/settings.local.json", &settings.to_string());
        assert_eq!(run_session_and_check_hooks_ran(&world), ignores_only_unknown_events, "{version}");
        let doctor = world.plimsoll(&["doctor", "--json"]).run().stdout;
        assert_eq!(!doctor.contains("settings.unknown_event"), ignores_only_unknown_events, "{doctor}");
        assert!(doctor.contains("settings.newer_than_client"), "{doctor}");
    }
}
