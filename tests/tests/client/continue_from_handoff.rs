//! From a full session to a fresh one, as its user does it on the terminal: the message says what to type, `/clear` brings the
//! offer, and `/handoff continue` or `Continue from @FILE` gives the model the handoff wherever it lies, without a question.

use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;
use plimsoll_tests::LIFELIKE;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const LAST_WORDS: &str = "The parser reads dates; the docs are missing.";
/// Looks like a token of GitHub's; put together here, so that no scanner takes this file for a leak.
const TOKEN: [&str; 2] = ["ghp_", "aB3dE5fG7hK9aB3dE5fG7hK9aB3dE5fG7hK9"];

/// Makes tasks, works, and stands at 87 %.
fn model() -> ScriptedModel {
    let task = |subject: &str| json!({"subject": subject, "description": "x"});
    ScriptedModel::start(move |request: &Request| {
        match request.tool_results().len() {
            _ if request.last_text().contains("Continue from @") => Step::text("I continue.").usage(30_000),
            // What the slash command asks for: the command, then the file that it names.
            0 if request.text().contains("continue the work of an earlier session") => {
                Step::bash("plimsoll handoffs --continue").usage(30_000)
            }
            1 if request.text().contains("Continue from: ") => {
                let text = request.text();
                let (_, path) = text.rsplit_once("Continue from: ").expect("a handoff");
                let path: String =
                    path.chars().take_while(|letter| *letter != '\n' && *letter != '\\').collect();
                Step::default().tool("Read", json!({"file_path": path})).usage(31_000)
            }
            2 if request.text().contains("Continue from: ") => Step::text("I continue.").usage(32_000),
            0 => Step::default()
                .tool("TaskCreate", task("Parse dates"))
                .tool("TaskCreate", task("Write the docs"))
                .usage(560_000),
            2 => Step::default()
                .tool("TaskUpdate", json!({"taskId": "1", "status": "completed"}))
                .usage(600_000),
            // Meanwhile the user types something.
            3 => Step::bash("until [ -e typed ]; do sleep 0.1; done; echo done > parser.txt").usage(720_000),
            4 => Step::bash("echo more >> parser.txt").usage(871_000),
            _ => Step::text(LAST_WORDS).usage(871_500),
        }
        .output_tokens(1)
        .delay(LIFELIKE)
    })
}

/// Types words and sends them once they stand there: what is typed while the client clears its screen may be lost.
fn say(terminal: &mut Terminal, words: &str) {
    let end = words.trim_end().rsplit(' ').next().unwrap_or_default();
    let standing = |terminal: &Terminal| terminal.screen().matches(end).count();
    for _ in 0..5 {
        let before = standing(terminal);
        terminal.type_text(words);
        let typed = Instant::now();
        while standing(terminal) <= before && typed.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        if standing(terminal) > before {
            break;
        }
    }
    // A list of files or commands that came up closes.
    std::thread::sleep(Duration::from_millis(300));
    terminal.press_enter();
}

/// Plays it to its end; answers with the handoff's text.
fn play(world: &mut World, expected_at: &str, by_command: bool) -> String {
    let model = model();
    world.use_model(&model);
    // The client has its task list only with some models, and where it is asked for (2.1.329).
    world.set_env("CLAUDE_CODE_ENABLE_TASKS", "1");
    let tools = "Bash,TaskCreate,TaskUpdate";
    let arguments = ["--model", "opus", "--permission-mode", "default", "--allowedTools", tools];
    let mut terminal = Terminal::claude(world, &arguments, 200, 60);
    terminal.wait_for("▏ ?");
    assert!(!terminal.screen().contains("left a handoff"), "there is none yet");
    say(&mut terminal, &format!("Fix the parser with {} please", TOKEN.concat()));
    terminal.wait_for("-e typed");
    say(&mut terminal, "And tell me what is missing");
    world.write("typed", "");
    terminal.wait_for("A handoff is ready. To go on in a fresh session: /clear, then: /handoff continue");
    terminal.wait_for(LAST_WORDS);
    say(&mut terminal, "/clear");
    terminal.wait_for("An earlier session left a handoff");
    let [listed] = listed(world).try_into().expect("one handoff");
    assert_eq!((&listed["read"], &listed["state"]), (&json!(false), &json!("offered")), "{listed}");
    let file = listed["file"].as_str().expect("a path").to_owned();
    assert!(file.contains(expected_at), "{file}");
    let words = if by_command { "/handoff continue".to_owned() } else { format!("Continue from @{file} ") };
    say(&mut terminal, &words);
    let screen = terminal.wait_for("I continue.");
    assert!(!screen.contains("Do you want to"), "it asks for nothing:\n{screen}");
    let given = model.main_requests().last().expect("requests").text();
    let handoff = world.read(&file);
    for line in ["- Write the docs", LAST_WORDS] {
        assert!(handoff.contains(line) && given.contains(line), "{line}: the model has read it:\n{given}");
    }
    say(&mut terminal, "/exit");
    assert!(terminal.wait_exit().success());
    let [listed] = self::listed(world).try_into().expect("one handoff");
    assert_eq!(listed["state"], "read", "a session has opened it: {listed}");
    handoff
}

fn listed(world: &World) -> Vec<Value> {
    let listed = world.plimsoll(&["handoffs", "--json"]).run().expect_success();
    serde_json::from_str(&listed.stdout).expect(&listed.stdout)
}

/// Where each installation keeps handoffs.
const PLACES: [(&str, &str); 2] =
    [("--local", ".claude/handoffs/"), ("--user", ".local/state/plimsoll/projects/")];

fn continues(by_command: bool) {
    for (installation, expected_at) in PLACES {
        let mut world = World::untouched();
        world.plimsoll(&["init", installation]).run().expect_success();
        let handoff = play(&mut world, expected_at, by_command);
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.stable_text(&handoff), @"
            # Handoff

            ## What the user asked for (in the user's own words, the last request last)

            > Fix the parser with [redacted:github-token] please

            > And tell me what is missing


            ## Changed files, the one touched last first

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

            ## The session's last words (its own claim, unverified)

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

            What the user asked for last comes first; do not redo what is done. What the session says of itself is unverified: check it before you build on it.
            ");
        }
    }
}

#[test]
fn a_fresh_session_continues_from_the_file_that_the_user_mentions() {
    continues(false);
}

#[test]
fn a_fresh_session_continues_from_the_newest_handoff_with_the_slash_command() {
    continues(true);
}
