//! From a full session to a fresh one, as a user does it on the terminal: the message names the commands to type,
//! `/clear` shows the offer, and `/handoff continue` or `Continue from @FILE` gives the model the handoff from any folder
//! without a question.

use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_tests::LIFELIKE_DELAY;
use serde_json::{Value, json};

const LAST_WORDS: &str = "The parser reads dates; the docs are missing.";
/// Looks like a GitHub token. It is concatenated at run time, so that no scanner reports this file as a leak.
const TOKEN: [&str; 2] = ["ghp_", "aB3dE5fG7hK9aB3dE5fG7hK9aB3dE5fG7hK9"];

/// Starts a model that creates tasks, works, and ends at 87%.
fn start_scripted_model() -> ScriptedModel {
    let task = |subject: &str| json!({"subject": subject, "description": "x"});
    ScriptedModel::start(move |request: &Request| {
        match request.all_tool_results().len() {
            _ if request.text_since_last_assistant_message().contains("Continue from @") => {
                Step::from_text("I continue.").with_input_tokens(30_000)
            }
            // The slash command first asks for the command, then for the file that the command names.
            0 if request.full_text().contains("continue the work of an earlier session") => {
                Step::bash_call("plimsoll handoffs --continue").with_input_tokens(30_000)
            }
            1 if request.full_text().contains("Continue from: ") => {
                let text = request.full_text();
                let (_, path) = text.rsplit_once("Continue from: ").expect("a handoff");
                let path: String =
                    path.chars().take_while(|letter| *letter != '\n' && *letter != '\\').collect();
                Step::default().with_tool_call("Read", json!({"file_path": path})).with_input_tokens(31_000)
            }
            2 if request.full_text().contains("Continue from: ") => {
                Step::from_text("I continue.").with_input_tokens(32_000)
            }
            0 => Step::default()
                .with_tool_call("TaskCreate", task("Parse dates"))
                .with_tool_call("TaskCreate", task("Write the docs"))
                .with_input_tokens(560_000),
            2 => Step::default()
                .with_tool_call("TaskUpdate", json!({"taskId": "1", "status": "completed"}))
                .with_input_tokens(600_000),
            // The user types something during this call.
            3 => Step::bash_call("until [ -e typed ]; do sleep 0.1; done; echo done > parser.txt")
                .with_input_tokens(720_000),
            4 => Step::bash_call("echo more >> parser.txt").with_input_tokens(871_000),
            _ => Step::from_text(LAST_WORDS).with_input_tokens(871_500),
        }
        .with_output_tokens(1)
        .with_delay(LIFELIKE_DELAY)
    })
}

/// Fills a session, continues in a fresh one, and returns the handoff's text.
fn fill_session_and_continue(world: &mut World, expected_folder: &str, with_slash_command: bool) -> String {
    let model = start_scripted_model();
    world.put_client_on_path_with_model_and_settings(&model);
    // The client has its task list only with some models, and if this variable is set (2.1.329).
    world.set_env("CLAUDE_CODE_ENABLE_TASKS", "1");
    let tools = "Bash,TaskCreate,TaskUpdate";
    let arguments = ["--model", "opus", "--permission-mode", "default", "--allowedTools", tools];
    let mut terminal = Terminal::start_claude(world, &arguments, 200, 60);
    terminal.wait_for_text("▏ ?");
    assert!(!terminal.screen_text().contains("left a handoff"), "there is none yet");
    terminal.submit_prompt(&format!("Fix the parser with {} please", TOKEN.concat()));
    terminal.wait_for_text("-e typed");
    terminal.submit_prompt("And tell me what is missing");
    world.write("typed", "");
    terminal
        .wait_for_text("A handoff is ready. To continue in a fresh session: /clear, then: /handoff continue");
    terminal.wait_for_text(LAST_WORDS);
    terminal.submit_prompt("/clear");
    terminal.wait_for_text("Plimsoll: an earlier session left a handoff");
    let [offered_handoff] = list_handoffs(world).try_into().expect("one handoff");
    assert_eq!(
        (&offered_handoff["read"], &offered_handoff["state"]),
        (&json!(false), &json!("offered")),
        "{offered_handoff}"
    );
    let file = offered_handoff["file"].as_str().expect("a path").to_owned();
    assert!(file.contains(expected_folder), "{file}");
    let text =
        if with_slash_command { "/handoff continue".to_owned() } else { format!("Continue from @{file} ") };
    terminal.submit_prompt(&text);
    let screen = terminal.wait_for_text("I continue.");
    assert!(!screen.contains("Do you want to"), "it asks for nothing:\n{screen}");
    let last_request = model.main_requests().last().expect("requests").full_text();
    let handoff = world.read(&file);
    for line in ["- Write the docs", LAST_WORDS] {
        assert!(
            handoff.contains(line) && last_request.contains(line),
            "{line}: the model has read it:\n{last_request}"
        );
    }
    terminal.submit_prompt("/exit");
    assert!(terminal.wait_for_exit().success());
    let [opened_handoff] = list_handoffs(world).try_into().expect("one handoff");
    assert_eq!(opened_handoff["state"], "read", "a session has opened it: {opened_handoff}");
    handoff
}

fn list_handoffs(world: &World) -> Vec<Value> {
    let output = world.plimsoll(&["handoffs", "--json"]).run().expect_success();
    serde_json::from_str(&output.stdout).expect(&output.stdout)
}

/// Each kind of installation, and the folder in which it keeps handoffs.
const HANDOFF_FOLDERS: [(&str, &str); 2] =
    [("--local", ".claude/handoffs/"), ("--user", ".local/state/plimsoll/projects/")];

fn assert_continues(with_slash_command: bool) {
    for (installation, expected_folder) in HANDOFF_FOLDERS {
        let mut world = World::without_plimsoll_files();
        world.plimsoll(&["init", installation]).run().expect_success();
        let handoff = fill_session_and_continue(&mut world, expected_folder, with_slash_command);
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&handoff), @"
            # Handoff

            ## What the user asked for (the user's own words, newest last)

            > Fix the parser with [redacted:github-token] please

            > And tell me what is missing

            ## Changed files, most recent first

            | File | Lines touched last | Change since [COMMIT] |
            |---|---|---|
            | parser.txt | 1-2 | new, untracked (+2 -0) |
            | typed | - | new, untracked (+0 -0) |

            ## Last command

            - `echo more >> parser.txt` → ok: (Bash completed with no output)

            ## Done (1)

            - Parse dates

            ## Open (1)

            - Write the docs

            ## Last message of the session (unverified)

            > The parser reads dates; the docs are missing.

            ## Git

            - Branch: main
            - HEAD: `[COMMIT]` First commit
            - Its work is not committed (`git status`, `git diff [COMMIT]`): parser.txt, typed.

            ## About this session

            - Session: [ID] (of no run)
            - Written: [DATE-TIME]
            - Context: 87% (L2)
            - Transcript: [HOME]/.claude/projects/[PROJECT]/[ID].jsonl

            ## How to continue

            Start with the user's last request. Do not redo finished work. The session's own claims are unverified; check them before you rely on them.
            ");
        }
    }
}

#[test]
fn a_fresh_session_continues_from_the_file_that_the_user_mentions() {
    assert_continues(false);
}

#[test]
fn a_fresh_session_continues_from_the_newest_handoff_by_slash_command() {
    assert_continues(true);
}
