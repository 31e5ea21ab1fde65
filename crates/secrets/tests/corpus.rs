//! The corpus: texts that are secrets, and texts that are not.

use plimsoll_secrets::{find_secrets, match_whole_value_if_key_value_is_secret};

const SECRETS: &str = include_str!("../../../tests/fixtures/secrets/secrets.txt");
const FALSE_FRIENDS: &str = include_str!("../../../tests/fixtures/secrets/friends.txt");

/// Assembled at run time, so that the file is not reported as a leak.
fn assemble(line: &str) -> String {
    let mut text =
        line.replace('¦', "").replace("\\\\n", "\u{1}").replace("\\n", "\n").replace('\u{1}', "\\n");
    for count in 1..=80 {
        text = text.replace(&format!("{{{count}}}"), &"aB3xQ9kLm2Zr".repeat(9)[..count]);
    }
    text
}

fn corpus_lines(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines().filter(|line| !line.starts_with("# ") && !line.is_empty())
}

#[test]
fn every_secret_is_found_in_full_with_its_kind() {
    let mut count = 0;
    let mut missed = Vec::new();
    for line in corpus_lines(SECRETS) {
        let (kind, text) = line.split_once('\t').unwrap();
        let text = assemble(text);
        let (before, rest) = text.split_once('«').unwrap();
        let (secret, after) = rest.split_once('»').unwrap();
        let text = format!("{before}{secret}{after}");
        let matches = find_secrets(&text);
        let kinds_and_texts: Vec<_> =
            matches.iter().map(|secret| (secret.kind, &text[secret.range.clone()])).collect();
        if kinds_and_texts != [(kind, secret)] {
            missed.push(format!("{kind} in {text}: {kinds_and_texts:?}"));
        }
        count += 1;
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert!(count >= 55, "{count}");
}

#[test]
fn false_friends_are_not_reported() {
    let mut false_matches: Vec<String> = Vec::new();
    for line in corpus_lines(FALSE_FRIENDS) {
        false_matches.extend(find_secrets(line).iter().map(|secret| format!("{}: {line}", secret.kind)));
    }
    assert!(false_matches.is_empty(), "{}", false_matches.join("\n"));
    assert_eq!(find_secrets(FALSE_FRIENDS), [], "all of them together");
}

#[test]
fn a_json_key_can_make_its_value_a_secret() {
    for (key, value) in
        [("password", "swordfish"), ("api_key", "a1b2c3d4e5f6"), ("Authorization", "Basic dXNlcjpw")]
    {
        assert!(match_whole_value_if_key_value_is_secret(key, value).is_some(), "{key}");
    }
    for (key, value) in
        [("password", "Password"), ("pwd", "/home/me2"), ("token_type", "a1b2c3d4e5f6"), ("token", "comma")]
    {
        assert!(match_whole_value_if_key_value_is_secret(key, value).is_none(), "{key}");
    }
}
