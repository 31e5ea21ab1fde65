//! The corpus: what is one, and what is none.

use super::Secrets;

const SECRETS: &str = include_str!("../../../../../tests/fixtures/secrets/secrets.txt");
const FRIENDS: &str = include_str!("../../../../../tests/fixtures/secrets/friends.txt");

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
    let secrets = Secrets::new().unwrap();
    let mut count = 0;
    for line in lines(SECRETS) {
        let (kind, text) = line.split_once('\t').unwrap();
        let text = put_together(text);
        let (before, rest) = text.split_once('«').unwrap();
        let (secret, after) = rest.split_once('»').unwrap();
        let text = format!("{before}{secret}{after}");
        let found = secrets.find(&text);
        let whole: Vec<_> = found.iter().map(|found| (found.kind, &text[found.range.clone()])).collect();
        assert_eq!(whole, [(kind, secret)], "{text}");
        count += 1;
    }
    assert!(count >= 55, "{count}");
}

#[test]
fn false_friends_are_left_alone() {
    let secrets = Secrets::new().unwrap();
    let mut count = 0;
    for line in lines(FRIENDS) {
        assert_eq!(secrets.find(line), [], "{line}");
        count += 1;
    }
    assert!(count >= 60, "{count}");
    assert_eq!(secrets.find(FRIENDS), [], "all of them together");
}

#[test]
fn a_key_in_json_speaks_for_its_value() {
    let secrets = Secrets::new().unwrap();
    for (key, value) in
        [("password", "swordfish"), ("api_key", "a1b2c3d4e5f6"), ("Authorization", "Basic dXNlcjpw")]
    {
        assert!(secrets.keyed(key, value).is_some(), "{key}");
    }
    for (key, value) in
        [("password", "Password"), ("pwd", "/home/me2"), ("token_type", "a1b2c3d4e5f6"), ("token", "comma")]
    {
        assert!(secrets.keyed(key, value).is_none(), "{key}");
    }
}
