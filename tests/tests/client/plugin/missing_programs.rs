//! The plugin without the programs.

use super::harness::{attachments, folder, session};
use plimsoll_testkit::scripted_model::{ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;

const WORDS: &str = "programs are not installed";

fn bare(model: &ScriptedModel) -> World {
    let mut world = World::new().without_plimsoll();
    world.use_model(model);
    world
}

#[test]
fn a_session_is_told_once_and_is_otherwise_as_without_the_plugin() {
    let model =
        ScriptedModel::steps(vec![Step::bash("echo one"), Step::bash("echo two"), Step::text("done")]);
    let world = bare(&model);
    let finished = session(&world, "Work.", &["--allowedTools", "Bash"]).expect_success();
    assert_eq!(finished.result()["result"], "done");
    assert_eq!(finished.stderr, "");
    let said = attachments(&world);
    let of = |kind: &str| said.iter().filter(|(found, _)| found == kind).count();
    assert_eq!((of("hook_system_message"), of("hook_additional_context")), (1, 1), "{said:#?}");
    let wrong: Vec<_> =
        said.iter().filter(|(kind, _)| kind.contains("error") || kind.contains("cancel")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let last = model.main_requests().last().expect("a request").text();
    assert_eq!(last.matches("are not installed on this machine").count(), 1, "{last}");
}

#[test]
fn a_person_reads_it_once_on_the_screen() {
    let model = ScriptedModel::steps(vec![Step::bash("echo one"), Step::text("That was all.")]);
    let world = bare(&model);
    let folder = folder().display().to_string();
    let mut terminal =
        Terminal::claude(&world, &["--plugin-dir", &folder, "--allowedTools", "Bash"], 100, 40);
    terminal.wait_for(WORDS);
    terminal.type_text("hello there");
    terminal.wait_for("hello there");
    terminal.press_enter();
    let screen = terminal.wait_for("That was all.");
    assert_eq!(screen.matches(WORDS).count(), 1, "{screen}");
    assert!(!screen.contains("failed") && !screen.contains("not found"), "{screen}");
    terminal.close();
}
