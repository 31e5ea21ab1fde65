//! The workflows of GitHub: the machines that they run on are named in one file, with the day on which GitHub ends them.

use crate::delivery::script;
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use serde_json::Value;

fn machines() -> Vec<Value> {
    let text = std::fs::read_to_string(workspace_root().join(".github/runners.json")).expect("runners.json");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    file["macos"].as_array().expect("a list").clone()
}

#[test]
fn no_workflow_names_a_mac_itself() {
    let folder = std::fs::read_dir(workspace_root().join(".github/workflows")).expect("workflows");
    for entry in folder.flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("a workflow");
        let named: Vec<&str> = text.lines().filter(|line| line.contains("macos-1")).collect();
        assert_eq!(named, Vec::<&str>::new(), "{}", entry.path().display());
    }
}

#[test]
fn a_machine_that_ends_within_60_days_is_named() {
    let world = World::without_git();
    let first = machines().iter().map(|machine| machine["until"].as_str().expect("a day").to_owned()).min();
    let first = first.expect("a machine").parse::<chrono::NaiveDate>().expect("a day");
    for (days, code) in [(61, 0), (59, 1), (-1, 1)] {
        let today = (first - chrono::Duration::days(days)).to_string();
        let checked = script(&world, "runners.sh", &[&today]).run();
        assert_eq!(checked.code, Some(code), "{today}: {checked:?}");
        assert_eq!(checked.stderr.contains("choose another machine"), code == 1, "{today}: {checked:?}");
    }
}
