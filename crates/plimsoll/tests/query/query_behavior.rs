//! The output, exit codes and messages of the command.

use super::{JOURNAL, create_world, run_query};
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::Value;

fn create_empty_world() -> World {
    World::without_plimsoll_files().without_plimsoll_programs()
}

/// Runs a query and returns its exit code and standard output.
fn exit_code_and_output(arguments: &[&str]) -> (Option<i32>, String) {
    let FinishedProgram { code, stdout, .. } = run_query(&create_world(), arguments);
    (code, stdout)
}

fn successful_output(arguments: &[&str]) -> String {
    let (code, stdout) = exit_code_and_output(arguments);
    assert_eq!(code, Some(0), "{arguments:?}");
    stdout
}

/// Asserts that a wrong query prints no result, exits with this code, and prints all of these texts as
/// errors.
#[track_caller]
fn assert_refused(finished: &FinishedProgram, exit_code: i32, messages: &[&str]) {
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(exit_code), ""), "{finished:?}");
    for message in messages {
        assert!(finished.stderr.contains(message), "{message} is missing in {}", finished.stderr);
    }
}

#[test]
fn results_are_printed_as_jq_prints_them() {
    assert_eq!(
        successful_output(&[".limits, .todo_items[0], [], {}"]),
        "{\n  \"max_cost_usd\": 50\n}\n\"Parse dates (complex)\"\n[]\n{}\n"
    );
    assert_eq!(successful_output(&["-c", ".limits, [1, 2]"]), "{\"max_cost_usd\":50}\n[1,2]\n");
    assert_eq!(
        successful_output(&["-r", ".completed_items[1], .completed_items[2:], .iteration"]),
        "Add\ttests\n[\n  \"Fix it's bug\"\n]\n4\n"
    );
    assert_eq!(
        successful_output(&["-rc", r#""a\nb\u0000\u001b", ["\u007f\u001b/é"]"#]),
        "a\nb\0\u{1b}\n[\"\\u007f\\u001b/é\"]\n"
    );
}

#[test]
fn keys_and_numbers_of_the_document_are_unchanged() {
    let document = r#"{"zebra":1,"iteration":3,"big":123456789012345678901234567890,"a":[1.0,1e3,-7,0.10],"é":"\u00e9\ud83d\ude00"}"#;
    let world = create_empty_world();
    world.write(".claude/ralph-state.json", document);
    let finished = run_query(&world, &["-c", "."]);
    assert_eq!(finished.stdout.trim_end(), document.replace(r"\u00e9\ud83d\ude00", "é😀"));
    assert_eq!(
        run_query(&world, &["-c", ".new = 1 | keys_unsorted"]).stdout,
        "[\"zebra\",\"iteration\",\"big\",\"a\",\"é\",\"new\"]\n"
    );
}

#[test]
fn the_whole_state_is_queried_including_keys_of_other_programs() {
    let finished = run_query(&create_world(), &["."]);
    let queried: Value = serde_json::from_str(&finished.stdout).unwrap_or_default();
    let written: Value = create_world().read_json(".claude/ralph-state.json");
    assert_eq!(queried, written);
}

#[test]
fn the_journal_is_queried_value_by_value_or_at_once() {
    let count = JOURNAL.lines().count();
    assert_eq!(successful_output(&["--on", "journal", ".event | length > 0"]), "true\n".repeat(count));
    assert_eq!(successful_output(&["--on", "journal", "-s", "length"]), format!("{count}\n"));
    assert_eq!(successful_output(&["--on", "journal", "-n", "[inputs] | length"]), format!("{count}\n"));
    assert_eq!(
        successful_output(&["--on", "journal", "-ns", "., (input | length)"]),
        format!("null\n{count}\n")
    );
}

#[test]
fn a_torn_line_is_reported_and_loses_nothing_else() {
    let world = create_world();
    world.write(
        ".claude/plimsoll/journal.jsonl",
        "{\"event\":\"a\"}\n\n{\"event\":\"tor\n{\"event\":\"b\"}\n{\"ev",
    );
    let finished = run_query(&world, &["--on", "journal", "-r", ".event"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), "a\nb\n"), "{finished:?}");
    for line in [3, 5] {
        let message =
            format!("line {line} of .claude/plimsoll/journal.jsonl: left out, because it is not JSON");
        assert!(finished.stderr.contains(&message), "{finished:?}");
    }
    assert_eq!(run_query(&world, &["--on", "journal", "-s", "-c", "map(.event)"]).stdout, "[\"a\",\"b\"]\n");
}

#[test]
fn the_exit_code_depends_on_the_last_result_if_requested() {
    for (filter, exit_code, exit_code_with_option) in
        [("1, null", 0, 1), ("false", 0, 1), ("null, 0", 0, 0), ("empty", 0, 4), ("1, error(\"x\")", 5, 5)]
    {
        assert_eq!(exit_code_and_output(&["-n", filter]).0, Some(exit_code), "{filter}");
        assert_eq!(
            exit_code_and_output(&["-n", "-e", filter]).0,
            Some(exit_code_with_option),
            "{filter} with -e"
        );
    }
    assert_eq!(exit_code_and_output(&["-e", ".status == \"running\""]), (Some(0), "true\n".to_owned()));
    assert_eq!(exit_code_and_output(&["-n", "1, halt, 2"]), (Some(0), "1\n".to_owned()));
}

#[test]
fn an_error_names_its_place_and_the_next_value_is_queried() {
    let filter = "if .event == \"verdict\" then (.iteration, error({at: .iteration}), 0) else empty end";
    let finished = run_query(&create_world(), &["--on", "journal", filter]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(5), "1\n2\n"), "{finished:?}");
    assert_eq!(
        finished.stderr,
        "error: line 4 of .claude/plimsoll/journal.jsonl: (not a string): {\"at\":1}\n\
         error: line 7 of .claude/plimsoll/journal.jsonl: (not a string): {\"at\":2}\n"
    );
    assert_refused(
        &run_query(&create_world(), &[".iteration.x"]),
        5,
        &["error: .claude/ralph-state.json: cannot index 4 with"],
    );
    assert_refused(
        &run_query(&create_world(), &["-n", "{(\"a\", 1): 2} | select(.a | not)"]),
        5,
        &["error: object keys must be strings"],
    );
}

#[test]
fn a_filter_that_does_not_compile_is_shown_with_the_position() {
    for (filter, message) in [
        ("map(select(.a)", "the closing parenthesis for this is missing\n  1 | map(select(.a)\n    |    ^\n"),
        (".a\n\t| nose(1)", "nose/1 is not defined\n  2 | \t| nose(1)\n    | \t  ^^^^\n"),
        ("\"é\" | $x", "the variable $x is not defined\n  1 | \"é\" | $x\n    |       ^^\n"),
        ("1 +", "a term is expected here\n  1 | 1 +\n    |    ^\n"),
        ("if 1 then 2", "a else or end is expected here\n  1 | if 1 then 2\n    |            ^\n"),
        ("", "a term is expected here\n  1 | \n    | ^\n"),
        ("include \"a\"; 1", "module loading not supported\n  1 | include \"a\"; 1\n"),
        ("\"\\(1 +)\"", "a term is expected here\n  1 | \"\\(1 +)\"\n    |       ^\n"),
    ] {
        let finished = run_query(&create_world(), &[filter]);
        assert_refused(&finished, 3, &["error: the filter does not compile: ", message]);
    }
}

#[test]
fn a_missing_document_is_reported_with_a_hint() {
    let root = create_empty_world();
    assert_refused(&run_query(&root, &["."]), 2, &["there is no run in ", "hint: ", "plimsoll run"]);
    assert_refused(&run_query(&root, &["--on", "journal", "."]), 2, &["journal.jsonl yet", "hint: "]);
    assert_refused(&run_query(&root, &["--on", "turns", "."]), 2, &["there is no turn log in ", "hint: "]);
    assert_refused(
        &run_query(&root, &["--on", "memory", "."]),
        2,
        &["there is no working memory in ", "hint: "],
    );
    assert_refused(&run_query(&root, &["-n", "input"]), 2, &["there is no run in "]);
    assert_eq!(
        run_query(&root, &["-n", "1 + 1"]).expect_success().stdout,
        "2\n",
        "nothing is asked of the document"
    );
    assert!(!root.exists(".claude"), "asking writes nothing");
    root.write(".claude/ralph-state.json", "{\"iteration\": 1");
    assert_refused(&run_query(&root, &["."]), 2, &["ralph-state.json does not parse", "hint: "]);
}

#[test]
fn wrong_usage_is_reported() {
    for (arguments, message) in [
        (&["--argjson", "a", "{a:1}", "."][..], "--argjson a: \"{a:1}\" is not JSON"),
        (&["--arg", "2a", "x", "."], "--arg 2a: a variable's name"),
        (&["--on", "nothing", "."], "invalid value 'nothing'"),
        (&["--arg", "a"], "2 values required"),
        (&[], "<FILTER>"),
    ] {
        assert_refused(&run_query(&create_world(), arguments), 2, &[message]);
    }
    assert_eq!(
        successful_output(&[
            "-n",
            "-r",
            "--arg",
            "a",
            "-1",
            "--arg",
            "a",
            "2",
            "--argjson",
            "b",
            "-3",
            "$a, $b"
        ]),
        "-1\n-3\n"
    );
}

#[test]
fn side_output_of_a_filter_goes_to_standard_error() {
    let finished = run_query(&create_world(), &["-n", "1 | debug, stderr | empty"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), "[\"DEBUG:\",1]\n1\n"), "{finished:?}");
    assert_refused(&run_query(&create_world(), &["-n", "\"over\\n\" | halt_error"]), 5, &["over\n"]);
    assert_eq!(successful_output(&["-n", "$ENV.LANG, env.LANG"]), "\"C.UTF-8\"\n\"C.UTF-8\"\n");
}

#[test]
fn a_closed_reader_is_no_error_and_a_full_disk_is_one() {
    let world = create_world();
    let program = super::program_path(super::Engine::Jaq).display().to_string();
    let piped_command_line = format!("set -o pipefail; '{program}' query -n 'range(1000000)' | head -n 2");
    let finished = world.command("bash", &["-c", &piped_command_line]).run();
    assert_eq!((finished.code, finished.stdout.as_str(), finished.stderr.as_str()), (Some(0), "0\n1\n", ""));
    let full_disk_command_line = format!("'{program}' query . >/dev/full");
    assert_refused(
        &world.command("bash", &["-c", &full_disk_command_line]).run(),
        2,
        &["cannot write the answers: "],
    );
}
