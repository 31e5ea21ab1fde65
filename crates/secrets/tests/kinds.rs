//! How much is missed: each kind in each shape that it is met in, and the figures that SECURITY.md publishes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a corpus that cannot be read fails the test")]

use plimsoll_secrets::{find, kind_in};
use std::collections::BTreeMap;

const KINDS: &str = include_str!("../../../tests/fixtures/secrets/kinds.txt");
const FRIENDS: [&str; 2] = [
    include_str!("../../../tests/fixtures/secrets/friends.txt"),
    include_str!("../../../tests/fixtures/secrets/more_friends.txt"),
];
const SECURITY: &str = include_str!("../../../SECURITY.md");

/// Letters drawn by lot, the same at each run.
struct Lot(u64);

impl Lot {
    fn draw(&mut self, letters: &str, count: usize) -> String {
        let letters: Vec<char> = letters.chars().collect();
        let mut next = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap()
        };
        (0..count).map(|_| letters[next() % letters.len()]).collect()
    }

    /// The text, and the longer pieces of it that were drawn.
    fn put_together(&mut self, text: &str) -> (String, Vec<String>) {
        const DIGITS: &str = "0123456789";
        const SMALL: &str = "abcdefghijklmnopqrstuvwxyz";
        const LARGE: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let (mut made, mut pieces) = (String::new(), Vec::new());
        let text = text.replace('¦', "").replace("\\n", "\n");
        let mut parts = text.split('{');
        made.push_str(parts.next().unwrap());
        for part in parts {
            let (what, rest) = part.split_once('}').unwrap();
            let (what, count) = what.split_once(':').unwrap_or((what, "0"));
            let count = count.parse().unwrap();
            let drawn = match what {
                "a" => self.draw(&[DIGITS, SMALL, LARGE].concat(), count),
                "l" => self.draw(&[DIGITS, SMALL].concat(), count),
                "h" => self.draw("0123456789abcdef", count),
                "d" => self.draw("123456789", count),
                "u" => self.draw(&[LARGE, "234567"].concat(), count),
                "b" => self.draw(&[DIGITS, SMALL, LARGE, "+/"].concat(), count),
                "n" => self.draw(&[SMALL, "234567"].concat(), count),
                "q" => self.draw("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", count),
                "L" => self.draw(&[SMALL, LARGE].concat(), count),
                "g" => [8, 4, 4, 4, 12].map(|count| self.draw("0123456789abcdef", count)).join("-"),
                other => panic!("{other}"),
            };
            made.push_str(&drawn);
            made.push_str(rest);
            pieces.extend(Some(drawn).filter(|drawn| drawn.len() >= 6));
        }
        (made, pieces)
    }
}

/// What is planted, the text around it, and what it is called.
struct Planted {
    name: &'static str,
    shape: &'static str,
    text: String,
    /// What must not be readable.
    pieces: Vec<String>,
}

/// The shapes of a text that speaks for itself. Here `@` is its place.
const ALONE: [(&str, &str); 10] = [
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
/// The shapes of one that only the name before it gives away: `#` is the name.
const NAMED: [(&str, &str); 6] = [
    ("environment", "export #=@"),
    ("quoted", "# = \"@\""),
    ("JSON", "{\"#\": \"@\", \"on\": true}"),
    ("JSON in JSON", "{\\\"#\\\": \\\"@\\\"}"),
    ("YAML", "x:\n  #: @\n  on: true"),
    ("setting", "#=@\nother=1\n"),
];

fn planted() -> Vec<Planted> {
    let mut lot = Lot(7);
    let mut planted = Vec::new();
    for line in KINDS.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('\t');
        let (name, template, setting) = (fields.next().unwrap(), fields.next().unwrap(), fields.next());
        let shapes: &[(&str, &str)] = if setting.is_some() { &NAMED } else { &ALONE };
        for (shape, around) in shapes {
            let (secret, pieces) = lot.put_together(template);
            let text = around.replace('#', setting.unwrap_or_default()).replacen('@', &secret, 1);
            planted.push(Planted { name, shape, text, pieces });
        }
    }
    planted
}

/// Found, and no longer readable: no longer piece of what was drawn is left.
fn is_found(planted: &Planted) -> bool {
    let cleaned = plimsoll_secrets::without(&planted.text);
    assert!(!planted.pieces.is_empty(), "{}", planted.name);
    !find(&planted.text).is_empty() && !planted.pieces.iter().any(|piece| cleaned.contains(piece.as_str()))
}

fn friends() -> Vec<&'static str> {
    FRIENDS
        .iter()
        .flat_map(|file| file.lines())
        .filter(|line| !line.starts_with("# ") && !line.is_empty())
        .collect()
}

/// A row of the page.
fn row(what: &str, all: usize, found: usize) -> String {
    format!("| {what} | {all} | {found} | {:.1} % |", (all - found) as f64 * 100.0 / all as f64)
}

#[test]
fn the_figures_are_those_of_the_page() {
    let planted = planted();
    let mut missed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for planted in planted.iter().filter(|planted| !is_found(planted)) {
        missed.entry(planted.name).or_default().push(planted.shape);
    }
    let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let in_wide = planted.iter().filter(|planted| kind_in(&wide(&planted.text)).is_some()).count();
    let kinds = KINDS.lines().filter(|line| !line.starts_with('#')).count();
    let without_a_miss = kinds - missed.len();
    let all_missed: usize = missed.values().map(Vec::len).sum();
    let friends = friends();
    let taken: Vec<&&str> = friends.iter().filter(|friend| !find(friend).is_empty()).collect();
    let rows = [
        row("kinds, found in every shape", kinds, without_a_miss),
        row("secrets planted, each kind in its shapes", planted.len(), planted.len() - all_missed),
        row("the same as UTF-16", planted.len(), in_wide),
        row("false friends, left alone", friends.len(), friends.len() - taken.len()),
    ];
    assert!(kinds >= 60 && without_a_miss >= 60, "{missed:?}");
    assert!(friends.len() >= 200 && taken.is_empty(), "{} {taken:?}", friends.len());
    let absent: Vec<&String> = rows.iter().filter(|row| !SECURITY.contains(row.as_str())).collect();
    assert!(absent.is_empty(), "SECURITY.md lacks\n{}\nmissed: {missed:#?}", rows.join("\n"));
}

#[test]
fn friends_together_stay_friends() {
    for file in FRIENDS {
        assert_eq!(
            find(file).iter().map(|found| (found.kind, &file[found.range.clone()])).collect::<Vec<_>>(),
            []
        );
        assert_eq!(kind_in(file.as_bytes()), None);
    }
}
