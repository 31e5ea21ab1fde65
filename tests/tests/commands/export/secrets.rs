//! Redaction removes secrets from every format and keeps harmless look-alikes.

use crate::export::{TranscriptBuilder, export_session, record_session, run_export};
use plimsoll_testkit::fixtures_dir;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};

const FORMATS: [&str; 3] = ["otel", "html", "jsonl"];

fn fixture_lines(name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(fixtures_dir().join("secrets").join(name)).unwrap();
    text.lines().filter(|line| !line.starts_with("# ") && !line.is_empty()).map(str::to_owned).collect()
}

/// Returns texts with a secret, each with the pieces of the secret that no reader may see. The secrets are assembled
/// here; see the file.
fn secret_corpus() -> Vec<(String, Vec<String>)> {
    let parse_line = |line: String| {
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
    fixture_lines("secrets.txt").into_iter().map(parse_line).collect()
}

/// Returns a transcript that has this text in every place.
fn transcript_with_text_everywhere(text: &str) -> String {
    let quoted = json!({"inner": text}).to_string();
    let args = json!({"command": text, "list": [text, {"deep": quoted}]});
    TranscriptBuilder::default()
        .with_prompt(text)
        .with_turn(text, &[("Bash", args, text)])
        .with_turn(text, &[])
        .lines
}

/// Appends all texts of a JSON document, decoded.
fn collect_texts(value: &Value, collected: &mut String) {
    match value {
        Value::String(text) => *collected += &format!("{text}\n"),
        Value::Array(elements) => elements.iter().for_each(|element| collect_texts(element, collected)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            *collected += &format!("{key}\n");
            collect_texts(value, collected);
        }),
        _ => {}
    }
}

fn decode_export(format: &str, text: &str) -> String {
    let mut decoded_text = String::new();
    match format {
        "otel" => collect_texts(&serde_json::from_str(text).unwrap(), &mut decoded_text),
        "jsonl" => text
            .lines()
            .for_each(|line| collect_texts(&serde_json::from_str(line).unwrap(), &mut decoded_text)),
        _ => decoded_text = text.to_owned(),
    }
    decoded_text
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

#[test]
fn redaction_leaves_no_secret_in_any_format() {
    let world = World::without_git();
    for (index, (text, pieces)) in secret_corpus().into_iter().enumerate() {
        let session = format!("secret-{index:03}");
        record_session(&world, &session, &transcript_with_text_everywhere(&text), &[]);
        let plain = decode_export("jsonl", &export_session(&world, &session, "jsonl"));
        assert!(
            pieces.iter().all(|piece| plain.contains(piece.as_str())),
            "the text is there at all: {text}"
        );
        // All formats are made from the same text, so for most sessions one format is enough.
        let formats = if index % 12 == 0 { &FORMATS[..] } else { &["jsonl"] };
        for format in formats {
            let cleaned = run_export(&world, &session, format, &["--redact"]).expect_success().stdout;
            let cleaned = decode_export(format, &cleaned);
            assert!(cleaned.contains("redacted:"), "{format}: {text}");
            for piece in &pieces {
                // A secret as short as a word may also occur elsewhere as an ordinary word.
                let is_word = piece == "guest" && cleaned.contains("//guest:");
                assert!(is_word || !cleaned.contains(piece.as_str()), "{format}: {piece} in {cleaned}");
            }
        }
    }
}

#[test]
fn harmless_look_alikes_are_kept_byte_for_byte() {
    let world = World::without_git();
    let look_alikes = fixture_lines("friends.txt");
    assert!(look_alikes.len() >= 60);
    let mut transcript = TranscriptBuilder::default();
    for line in &look_alikes {
        transcript = transcript
            .with_prompt(line)
            .with_turn(line, &[("Bash", json!({"command": line, "deep": [{"er": line}]}), line)]);
    }
    record_session(&world, "friends", &transcript.with_turn("done", &[]).lines, &[]);
    for format in FORMATS {
        let cleaned =
            run_export(&world, "friends", format, &["--redact", "--fail-on-secret"]).expect_success();
        assert!(cleaned.stdout == export_session(&world, "friends", format), "{format}");
    }
}

#[test]
fn secrets_in_keys_escapes_and_truncated_previews_are_redacted() {
    let world = World::without_git();
    let token = format!("{}{}", "gh", "p_aB3xQ9kLm2ZraB3xQ9kLm2ZraB3xQ9kLm2Zr");
    // The secret is escaped in JSON that is itself a string.
    let escaped = format!("{{\"k\":\"\\u0067{}\"}}", &token[1..]);
    // The secret is a key, the value of a key that gives it away, and cut in the middle by the preview.
    let args = json!({"body": escaped, token.clone(): 1, "password": "swordfish", "log": format!("a\n{escaped}\nb")});
    let cut = format!("{} {token} end", "x".repeat(170));
    record_session(
        &world,
        "hidden",
        &TranscriptBuilder::default().with_prompt("x").with_turn("y", &[("Post", args, &cut)]).lines,
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
fn fail_on_secret_fails_the_export_without_printing_the_secret() {
    let world = World::without_git();
    let secret = format!("{}{}", "np", "m_aB3xQ9kLm2ZraB3xQ9kLm2ZraB3xQ9kLm2Zr");
    let transcript = TranscriptBuilder::default()
        .with_prompt(&format!("use {secret}"))
        .with_turn("I do.", &[("Bash", json!({"command": format!("login {secret}")}), "ok")]);
    record_session(&world, "abcdefgh-secret", &transcript.lines, &[]);
    let failed = run_export(&world, "abcdefgh", "html", &["--fail-on-secret", "--output", "page.html"]);
    assert_eq!((failed.code, failed.stdout.as_str(), world.exists("page.html")), (Some(1), "", false));
    for location in [
        "abcdefgh#1, text: looks like npm-token",
        "abcdefgh:1, tool_calls[0].args.command: looks like npm-token",
    ] {
        assert!(failed.stderr.contains(location), "{}", failed.stderr);
    }
    assert!(!failed.stderr.contains(&secret[..12]), "{}", failed.stderr);
    run_export(&world, "abcdefgh", "html", &["--redact", "--output", "page.html"]).expect_success();
    assert!(world.read("page.html").contains("[redacted:npm-token]"));
}
