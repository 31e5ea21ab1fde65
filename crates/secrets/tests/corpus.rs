//! The corpus: what is one, and what is none.

use plimsoll_secrets::{find, keyed};

const SECRETS: &str = include_str!("../../../tests/fixtures/secrets/secrets.txt");
const FRIENDS: &str = include_str!("../../../tests/fixtures/secrets/friends.txt");

/// Put together here, so that the file is not taken for a leak.
fn put_together(line: &str) -> String {
    let mut text =
        line.replace('¦', "").replace("\\\\n", "\u{1}").replace("\\n", "\n").replace('\u{1}', "\\n");
    for count in 1..=80 {
        text = text.replace(&format!("{{{count}}}"), &"aB3xQ9kLm2Zr".repeat(9)[..count]);
    }
    text
}

fn lines(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines().filter(|line| !line.starts_with("# ") && !line.is_empty())
}

#[test]
fn every_secret_is_found_whole_and_named() {
    let mut count = 0;
    let mut missed = Vec::new();
    for line in lines(SECRETS) {
        let (kind, text) = line.split_once('\t').unwrap();
        let text = put_together(text);
        let (before, rest) = text.split_once('«').unwrap();
        let (secret, after) = rest.split_once('»').unwrap();
        let text = format!("{before}{secret}{after}");
        let found = find(&text);
        let whole: Vec<_> = found.iter().map(|found| (found.kind, &text[found.range.clone()])).collect();
        if whole != [(kind, secret)] {
            missed.push(format!("{kind} in {text}: {whole:?}"));
        }
        count += 1;
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert!(count >= 55, "{count}");
}

#[test]
fn false_friends_are_left_alone() {
    let mut taken: Vec<String> = Vec::new();
    for line in lines(FRIENDS) {
        taken.extend(find(line).iter().map(|found| format!("{}: {line}", found.kind)));
    }
    assert!(taken.is_empty(), "{}", taken.join("\n"));
    assert_eq!(find(FRIENDS), [], "all of them together");
}

#[test]
fn a_key_in_json_speaks_for_its_value() {
    for (key, value) in
        [("password", "swordfish"), ("api_key", "a1b2c3d4e5f6"), ("Authorization", "Basic dXNlcjpw")]
    {
        assert!(keyed(key, value).is_some(), "{key}");
    }
    for (key, value) in
        [("password", "Password"), ("pwd", "/home/me2"), ("token_type", "a1b2c3d4e5f6"), ("token", "comma")]
    {
        assert!(keyed(key, value).is_none(), "{key}");
    }
}
