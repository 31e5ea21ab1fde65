//! What the command makes of the answers: output, exit codes, messages.

use super::{JOURNAL, query, world};
use plimsoll_testkit::world::{Finished, World};
use serde_json::Value;

fn empty() -> World {
    World::untouched().without_plimsoll()
}

/// Exit code and standard output.
fn outcome(arguments: &[&str]) -> (Option<i32>, String) {
    let Finished { code, stdout, .. } = query(&world(), arguments);
    (code, stdout)
}

fn out(arguments: &[&str]) -> String {
    let (code, stdout) = outcome(arguments);
    assert_eq!(code, Some(0), "{arguments:?}");
    stdout
}

/// The one who asks wrongly gets no answer, this exit code, and all of these words.
#[track_caller]
fn refused(finished: &Finished, code: i32, words: &[&str]) {
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(code), ""), "{finished:?}");
    for word in words {
        assert!(finished.stderr.contains(word), "{word} is missing in {}", finished.stderr);
    }
}

#[test]
fn answers_are_printed_as_jq_prints_them() {
    assert_eq!(
        out(&[".limits, .todo_items[0], [], {}"]),
        "{\n  \"max_cost_usd\": 50\n}\n\"Parse dates (complex)\"\n[]\n{}\n"
    );
    assert_eq!(out(&["-c", ".limits, [1, 2]"]), "{\"max_cost_usd\":50}\n[1,2]\n");
    assert_eq!(
        out(&["-r", ".completed_items[1], .completed_items[2:], .iteration"]),
        "Add\ttests\n[\n  \"Fix it's bug\"\n]\n4\n"
    );
    assert_eq!(
        out(&["-rc", r#""a\nb\u0000\u001b", ["\u007f\u001b/é"]"#]),
        "a\nb\0\u{1b}\n[\"\\u007f\\u001b/é\"]\n"
    );
}

#[test]
fn the_documents_keys_and_numbers_stay_as_they_are() {
    let document = r#"{"zebra":1,"iteration":3,"big":123456789012345678901234567890,"a":[1.0,1e3,-7,0.10],"é":"\u00e9\ud83d\ude00"}"#;
    let world = empty();
    world.write(".claude/ralph-state.json", document);
    let finished = query(&world, &["-c", "."]);
    assert_eq!(finished.stdout.trim_end(), document.replace(r"\u00e9\ud83d\ude00", "é😀"));
    assert_eq!(
        query(&world, &["-c", ".new = 1 | keys_unsorted"]).stdout,
        "[\"zebra\",\"iteration\",\"big\",\"a\",\"é\",\"new\"]\n"
    );
}

#[test]
fn the_whole_state_is_asked_with_what_others_keep_there() {
    let finished = query(&world(), &["."]);
    let asked: Value = serde_json::from_str(&finished.stdout).unwrap_or_default();
    let written: Value = world().json(".claude/ralph-state.json");
    assert_eq!(asked, written);
}

#[test]
fn the_journal_is_asked_value_by_value_or_at_once() {
    let count = JOURNAL.lines().count();
    assert_eq!(out(&["--on", "journal", ".event | length > 0"]), "true\n".repeat(count));
    assert_eq!(out(&["--on", "journal", "-s", "length"]), format!("{count}\n"));
    assert_eq!(out(&["--on", "journal", "-n", "[inputs] | length"]), format!("{count}\n"));
    assert_eq!(out(&["--on", "journal", "-ns", "., (input | length)"]), format!("null\n{count}\n"));
}

#[test]
fn a_torn_line_is_told_and_loses_nothing_else() {
    let world = world();
    world.write(
        ".claude/plimsoll/journal.jsonl",
        "{\"event\":\"a\"}\n\n{\"event\":\"tor\n{\"event\":\"b\"}\n{\"ev",
    );
    let finished = query(&world, &["--on", "journal", "-r", ".event"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), "a\nb\n"), "{finished:?}");
    for line in [3, 5] {
        let words = format!("left out at line {line} of .claude/plimsoll/journal.jsonl: not JSON");
        assert!(finished.stderr.contains(&words), "{finished:?}");
    }
    assert_eq!(query(&world, &["--on", "journal", "-s", "-c", "map(.event)"]).stdout, "[\"a\",\"b\"]\n");
}

#[test]
fn the_exit_code_tells_of_the_last_answer_when_asked_to() {
    for (filter, plain, asked) in
        [("1, null", 0, 1), ("false", 0, 1), ("null, 0", 0, 0), ("empty", 0, 4), ("1, error(\"x\")", 5, 5)]
    {
        assert_eq!(outcome(&["-n", filter]).0, Some(plain), "{filter}");
        assert_eq!(outcome(&["-n", "-e", filter]).0, Some(asked), "{filter} with -e");
    }
    assert_eq!(outcome(&["-e", ".status == \"running\""]), (Some(0), "true\n".to_owned()));
    assert_eq!(outcome(&["-n", "1, halt, 2"]), (Some(0), "1\n".to_owned()));
}

#[test]
fn an_error_says_where_and_the_next_value_is_asked() {
    let filter = "if .event == \"verdict\" then (.iteration, error({at: .iteration}), 0) else empty end";
    let finished = query(&world(), &["--on", "journal", filter]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(5), "1\n2\n"), "{finished:?}");
    assert_eq!(
        finished.stderr,
        "plimsoll: error at line 4 of .claude/plimsoll/journal.jsonl: (not a string): {\"at\":1}\n\
         plimsoll: error at line 7 of .claude/plimsoll/journal.jsonl: (not a string): {\"at\":2}\n"
    );
    refused(
        &query(&world(), &[".iteration.x"]),
        5,
        &["plimsoll: error in .claude/ralph-state.json: cannot index 4 with"],
    );
    refused(
        &query(&world(), &["-n", "{(\"a\", 1): 2} | select(.a | not)"]),
        5,
        &["error: object keys must be strings"],
    );
}

#[test]
fn a_filter_that_does_not_compile_is_shown_with_the_place() {
    for (filter, words) in [
        ("map(select(.a)", "the closing parenthesis for this is missing\n  1 | map(select(.a)\n    |    ^\n"),
        (".a\n\t| nose(1)", "nose/1 is not defined\n  2 | \t| nose(1)\n    | \t  ^^^^\n"),
        ("\"é\" | $x", "the variable $x is not defined\n  1 | \"é\" | $x\n    |       ^^\n"),
        ("1 +", "a term is expected here\n  1 | 1 +\n    |    ^\n"),
        ("if 1 then 2", "a else or end is expected here\n  1 | if 1 then 2\n    |            ^\n"),
        ("", "a term is expected here\n  1 | \n    | ^\n"),
        ("include \"a\"; 1", "module loading not supported\n  1 | include \"a\"; 1\n"),
        ("\"\\(1 +)\"", "a term is expected here\n  1 | \"\\(1 +)\"\n    |       ^\n"),
    ] {
        let finished = query(&world(), &[filter]);
        refused(&finished, 3, &["plimsoll: the filter does not compile: ", words]);
    }
}

#[test]
fn what_is_not_there_is_named_with_a_way_out() {
    let root = empty();
    refused(&query(&root, &["."]), 2, &["there is no run in ", "hint: ", "plimsoll run"]);
    refused(&query(&root, &["--on", "journal", "."]), 2, &["journal.jsonl yet", "hint: "]);
    refused(&query(&root, &["--on", "turns", "."]), 2, &["there is no turn log in ", "hint: "]);
    refused(&query(&root, &["--on", "memory", "."]), 2, &["there is no working memory in ", "hint: "]);
    refused(&query(&root, &["-n", "input"]), 2, &["there is no run in "]);
    assert_eq!(
        query(&root, &["-n", "1 + 1"]).expect_success().stdout,
        "2\n",
        "nothing is asked of the document"
    );
    assert!(!root.exists(".claude"), "asking writes nothing");
    root.write(".claude/ralph-state.json", "{\"iteration\": 1");
    refused(&query(&root, &["."]), 2, &["ralph-state.json does not parse", "hint: "]);
}

#[test]
fn wrong_usage_is_told() {
    for (arguments, words) in [
        (&["--argjson", "a", "{a:1}", "."][..], "--argjson a: \"{a:1}\" is not JSON"),
        (&["--arg", "2a", "x", "."], "--arg 2a: a variable's name"),
        (&["--on", "nothing", "."], "invalid value 'nothing'"),
        (&["--arg", "a"], "2 values required"),
        (&[], "<FILTER>"),
    ] {
        refused(&query(&world(), arguments), 2, &[words]);
    }
    assert_eq!(
        out(&["-n", "-r", "--arg", "a", "-1", "--arg", "a", "2", "--argjson", "b", "-3", "$a, $b"]),
        "-1\n-3\n"
    );
}

#[test]
fn what_a_filter_says_beside_its_answers_goes_to_standard_error() {
    let finished = query(&world(), &["-n", "1 | debug, stderr | empty"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), "[\"DEBUG:\",1]\n1\n"), "{finished:?}");
    refused(&query(&world(), &["-n", "\"over\\n\" | halt_error"]), 5, &["over\n"]);
    assert_eq!(out(&["-n", "$ENV.LANG, env.LANG"]), "\"C.UTF-8\"\n\"C.UTF-8\"\n");
}

#[test]
fn a_reader_that_has_gone_away_is_a_normal_end_and_a_full_disk_is_not() {
    let world = world();
    let program = super::program(super::Engine::Jaq).display().to_string();
    let piped = format!("set -o pipefail; '{program}' query -n 'range(1000000)' | head -n 2");
    let finished = world.command("bash", &["-c", &piped]).run();
    assert_eq!((finished.code, finished.stdout.as_str(), finished.stderr.as_str()), (Some(0), "0\n1\n", ""));
    let full = format!("'{program}' query . >/dev/full");
    refused(&world.command("bash", &["-c", &full]).run(), 2, &["cannot write the answers: "]);
}
