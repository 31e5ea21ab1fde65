//! Measures how much is missed: each kind of secret in each shape, compared with the figures that SECURITY.md
//! publishes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a corpus that cannot be read fails the test")]

use plimsoll_secrets::{find_secrets, first_secret_kind};
use std::collections::BTreeMap;

const KINDS: &str = include_str!("../../../tests/fixtures/secrets/kinds.txt");
const FALSE_FRIENDS: [&str; 2] = [
    include_str!("../../../tests/fixtures/secrets/friends.txt"),
    include_str!("../../../tests/fixtures/secrets/more_friends.txt"),
];
const SECURITY: &str = include_str!("../../../SECURITY.md");

/// Random letters, the same in each run.
struct RandomLetters(u64);

impl RandomLetters {
    fn draw_letters(&mut self, letters: &str, count: usize) -> String {
        let letters: Vec<char> = letters.chars().collect();
        let mut next_index = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap()
        };
        (0..count).map(|_| letters[next_index() % letters.len()]).collect()
    }

    /// Returns the text with random pieces filled in, and those pieces that are long enough to be recognized.
    fn fill_template(&mut self, text: &str) -> (String, Vec<String>) {
        const DIGITS: &str = "0123456789";
        const LOWERCASE: &str = "abcdefghijklmnopqrstuvwxyz";
        const UPPERCASE: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let (mut result, mut pieces) = (String::new(), Vec::new());
        let text = text.replace('¦', "").replace("\\n", "\n");
        let mut parts = text.split('{');
        result.push_str(parts.next().unwrap());
        for part in parts {
            let (kind, rest) = part.split_once('}').unwrap();
            let (kind, count) = kind.split_once(':').unwrap_or((kind, "0"));
            let count = count.parse().unwrap();
            let letters = match kind {
                "a" => self.draw_letters(&[DIGITS, LOWERCASE, UPPERCASE].concat(), count),
                "l" => self.draw_letters(&[DIGITS, LOWERCASE].concat(), count),
                "h" => self.draw_letters("0123456789abcdef", count),
                "d" => self.draw_letters("123456789", count),
                "u" => self.draw_letters(&[UPPERCASE, "234567"].concat(), count),
                "b" => self.draw_letters(&[DIGITS, LOWERCASE, UPPERCASE, "+/"].concat(), count),
                "n" => self.draw_letters(&[LOWERCASE, "234567"].concat(), count),
                "q" => self.draw_letters("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", count),
                "L" => self.draw_letters(&[LOWERCASE, UPPERCASE].concat(), count),
                "g" => [8, 4, 4, 4, 12].map(|count| self.draw_letters("0123456789abcdef", count)).join("-"),
                unknown => panic!("{unknown}"),
            };
            result.push_str(&letters);
            result.push_str(rest);
            pieces.extend(Some(letters).filter(|piece| piece.len() >= 6));
        }
        (result, pieces)
    }
}

/// A planted secret in its surrounding text.
struct PlantedSecret {
    name: &'static str,
    shape: &'static str,
    text: String,
    /// The pieces that must not be readable after redaction.
    pieces: Vec<String>,
}

/// Shapes for secrets that are recognized by themselves. `@` is replaced with the secret.
const SHAPES_WITHOUT_NAME: [(&str, &str); 10] = [
    ("bare", "@"),
    ("in a sentence", "it is @ and works"),
    ("quoted", "let it = \"@\";"),
    ("environment", "export THE_THING=@"),
    ("JSON", "{\"it\": \"@\", \"on\": true}"),
    ("JSON in JSON", "{\\\"it\\\": \\\"@\\\"}"),
    ("YAML", "thing:\n  it: @\n  on: true"),
    ("URL", "https://example.invalid/x?it=@&on=1"),
    ("header", "curl -H 'X-Thing: @' https://example.invalid"),
    ("Markdown", "| it | `@` |"),
];
/// Shapes for secrets that are recognized only by the name before them. `#` is replaced with the name.
const SHAPES_WITH_NAME: [(&str, &str); 6] = [
    ("environment", "export #=@"),
    ("quoted", "# = \"@\""),
    ("JSON", "{\"#\": \"@\", \"on\": true}"),
    ("JSON in JSON", "{\\\"#\\\": \\\"@\\\"}"),
    ("YAML", "x:\n  #: @\n  on: true"),
    ("setting", "#=@\nother=1\n"),
];

fn plant_all() -> Vec<PlantedSecret> {
    let mut random = RandomLetters(7);
    let mut planted = Vec::new();
    for line in KINDS.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('\t');
        let (name, template, name_in_text) = (fields.next().unwrap(), fields.next().unwrap(), fields.next());
        let shapes: &[(&str, &str)] =
            if name_in_text.is_some() { &SHAPES_WITH_NAME } else { &SHAPES_WITHOUT_NAME };
        for (shape, template_text) in shapes {
            let (secret, pieces) = random.fill_template(template);
            let text = template_text.replace('#', name_in_text.unwrap_or_default()).replacen('@', &secret, 1);
            planted.push(PlantedSecret { name, shape, text, pieces });
        }
    }
    planted
}

/// Returns true if the secret is found and none of its longer pieces is readable after redaction.
fn is_found_and_redacted(planted: &PlantedSecret) -> bool {
    let redacted = plimsoll_secrets::redact(&planted.text);
    assert!(!planted.pieces.is_empty(), "{}", planted.name);
    !find_secrets(&planted.text).is_empty()
        && !planted.pieces.iter().any(|piece| redacted.contains(piece.as_str()))
}

fn false_friends() -> Vec<&'static str> {
    FALSE_FRIENDS
        .iter()
        .flat_map(|file| file.lines())
        .filter(|line| !line.starts_with("# ") && !line.is_empty())
        .collect()
}

/// Returns a row of the table in SECURITY.md.
fn table_row(label: &str, total: usize, found: usize) -> String {
    format!("| {label} | {total} | {found} | {:.1} % |", (total - found) as f64 * 100.0 / total as f64)
}

#[test]
fn the_figures_match_security_md() {
    let planted = plant_all();
    let mut missed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for secret in planted.iter().filter(|secret| !is_found_and_redacted(secret)) {
        missed.entry(secret.name).or_default().push(secret.shape);
    }
    let to_utf16 = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let found_in_utf16 =
        planted.iter().filter(|secret| first_secret_kind(&to_utf16(&secret.text)).is_some()).count();
    let kind_count = KINDS.lines().filter(|line| !line.starts_with('#')).count();
    let fully_found = kind_count - missed.len();
    let all_missed: usize = missed.values().map(Vec::len).sum();
    let false_friends = false_friends();
    let false_matches: Vec<&&str> =
        false_friends.iter().filter(|text| !find_secrets(text).is_empty()).collect();
    let rows = [
        table_row("kinds, found in every shape", kind_count, fully_found),
        table_row("secrets planted, each kind in its shapes", planted.len(), planted.len() - all_missed),
        table_row("the same as UTF-16", planted.len(), found_in_utf16),
        table_row(
            "false friends, left alone",
            false_friends.len(),
            false_friends.len() - false_matches.len(),
        ),
    ];
    assert!(kind_count >= 60 && fully_found >= 60, "{missed:?}");
    assert!(
        false_friends.len() >= 200 && false_matches.is_empty(),
        "{} {false_matches:?}",
        false_friends.len()
    );
    let missing_rows: Vec<&String> = rows.iter().filter(|row| !SECURITY.contains(row.as_str())).collect();
    assert!(missing_rows.is_empty(), "SECURITY.md lacks\n{}\nmissed: {missed:#?}", rows.join("\n"));
}

#[test]
fn false_friends_in_one_text_are_not_reported() {
    for file in FALSE_FRIENDS {
        assert_eq!(
            find_secrets(file)
                .iter()
                .map(|secret| (secret.kind, &file[secret.range.clone()]))
                .collect::<Vec<_>>(),
            []
        );
        assert_eq!(first_secret_kind(file.as_bytes()), None);
    }
}
