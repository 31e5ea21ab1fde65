//! Secrets are taken out of every format, and false friends stay.

use crate::export::{Transcript, export, record, run_export};
use plimsoll_testkit::fixtures;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};

const FORMATS: [&str; 3] = ["otel", "html", "jsonl"];

fn lines(name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(fixtures().join("secrets").join(name)).unwrap();
    text.lines().filter(|line| !line.starts_with("# ") && !line.is_empty()).map(str::to_owned).collect()
}

/// Texts with a secret, and the pieces of it that no reader may see. (Put together here; see the file.)
fn corpus() -> Vec<(String, Vec<String>)> {
    let one = |line: String| {
        let mut text = line.split_once('\t').unwrap().1.replace('¦', "");
        text = text.replace("\\\\n", "\u{1}").replace("\\n", "\n").replace('\u{1}', "\\n");
        for count in 1..=80 {
            text = text.replace(&format!("{{{count}}}"), &"aB3xQ9kLm2Zr".repeat(9)[..count]);
        }
        let secret = text.split_once('«').unwrap().1.split_once('»').unwrap().0.to_owned();
        let pieces =
            secret.split('\n').filter(|piece| piece.len() > 15 || *piece == secret).map(str::to_owned);
        (text.replace(['«', '»'], ""), pieces.collect())
    };
    lines("secrets.txt").into_iter().map(one).collect()
}

/// A session that has a text everywhere.
fn everywhere(text: &str) -> String {
    let quoted = json!({"inner": text}).to_string();
    let args = json!({"command": text, "list": [text, {"deep": quoted}]});
    Transcript::default().prompt(text).turn(text, &[("Bash", args, text)]).turn(text, &[]).lines
}

/// All texts of a JSON document, decoded.
fn texts(value: &Value, found: &mut String) {
    match value {
        Value::String(text) => *found += &format!("{text}\n"),
        Value::Array(elements) => elements.iter().for_each(|element| texts(element, found)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            *found += &format!("{key}\n");
            texts(value, found);
        }),
        _ => {}
    }
}

fn decoded(format: &str, text: &str) -> String {
    let mut found = String::new();
    match format {
        "otel" => texts(&serde_json::from_str(text).unwrap(), &mut found),
        "jsonl" => text.lines().for_each(|line| texts(&serde_json::from_str(line).unwrap(), &mut found)),
        _ => found = text.to_owned(),
    }
    found
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

#[test]
fn no_secret_is_in_any_format() {
    let world = World::without_git();
    for (place, (text, pieces)) in corpus().into_iter().enumerate() {
        let session = format!("secret-{place:03}");
        record(&world, &session, &everywhere(&text), &[]);
        let plain = decoded("jsonl", &export(&world, &session, "jsonl"));
        assert!(
            pieces.iter().all(|piece| plain.contains(piece.as_str())),
            "the text is there at all: {text}"
        );
        // All formats get the same text: of most sessions one is enough.
        let formats = if place % 12 == 0 { &FORMATS[..] } else { &["jsonl"] };
        for format in formats {
            let cleaned = run_export(&world, &session, format, &["--redact"]).expect_success().stdout;
            let cleaned = decoded(format, &cleaned);
            assert!(cleaned.contains("redacted:"), "{format}: {text}");
            for piece in &pieces {
                // What is as short as a word may stand elsewhere for itself.
                let is_word = piece == "guest" && cleaned.contains("//guest:");
                assert!(is_word || !cleaned.contains(piece.as_str()), "{format}: {piece} in {cleaned}");
            }
        }
    }
}

#[test]
fn false_friends_stay_byte_for_byte() {
    let world = World::without_git();
    let friends = lines("friends.txt");
    assert!(friends.len() >= 60);
    let mut transcript = Transcript::default();
    for line in &friends {
        transcript = transcript
            .prompt(line)
            .turn(line, &[("Bash", json!({"command": line, "deep": [{"er": line}]}), line)]);
    }
    record(&world, "friends", &transcript.turn("done", &[]).lines, &[]);
    for format in FORMATS {
        let cleaned =
            run_export(&world, "friends", format, &["--redact", "--fail-on-secret"]).expect_success();
        assert!(cleaned.stdout == export(&world, "friends", format), "{format}");
    }
}

#[test]
fn escapes_and_keys_and_cuts_hide_nothing() {
    let world = World::without_git();
    let token = format!("{}{}", "gh", "p_aB3xQ9kLm2ZraB3xQ9kLm2ZraB3xQ9kLm2Zr");
    // Written with escapes in JSON that is itself a text.
    let escaped = format!("{{\"k\":\"\\u0067{}\"}}", &token[1..]);
    // As a key; as the value of a key that says what it is; cut by the preview in the middle.
    let args = json!({"body": escaped, token.clone(): 1, "password": "swordfish", "log": format!("a\n{escaped}\nb")});
    let cut = format!("{} {token} end", "x".repeat(170));
    record(
        &world,
        "hidden",
        &Transcript::default().prompt("x").turn("y", &[("Post", args, &cut)]).lines,
        &[],
    );
    for format in FORMATS {
        let cleaned = run_export(&world, "hidden", format, &["--redact"]).expect_success().stdout;
        for piece in [&token[4..14], "swordfish"] {
            assert!(!cleaned.contains(piece), "{format}: {piece} in {cleaned}");
        }
        assert!(cleaned.contains("redacted:github-token"), "{format}");
    }
}

#[test]
fn a_secret_fails_the_export_and_is_not_told() {
    let world = World::without_git();
    let secret = format!("{}{}", "np", "m_aB3xQ9kLm2ZraB3xQ9kLm2ZraB3xQ9kLm2Zr");
    let transcript = Transcript::default()
        .prompt(&format!("use {secret}"))
        .turn("I do.", &[("Bash", json!({"command": format!("login {secret}")}), "ok")]);
    record(&world, "abcdefgh-secret", &transcript.lines, &[]);
    let failed = run_export(&world, "abcdefgh", "html", &["--fail-on-secret", "--output", "page.html"]);
    assert_eq!((failed.code, failed.stdout.as_str(), world.exists("page.html")), (Some(1), "", false));
    for place in [
        "abcdefgh#1, text: looks like npm-token",
        "abcdefgh:1, tool_calls[0].args.command: looks like npm-token",
    ] {
        assert!(failed.stderr.contains(place), "{}", failed.stderr);
    }
    assert!(!failed.stderr.contains(&secret[..12]), "{}", failed.stderr);
    run_export(&world, "abcdefgh", "html", &["--redact", "--output", "page.html"]).expect_success();
    assert!(world.read("page.html").contains("[redacted:npm-token]"));
}
