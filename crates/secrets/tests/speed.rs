//! No text takes long: neither an ordinary one nor one that was written against a rule.

use secrets::{Search, find};
use std::time::{Duration, Instant};

const TABLES: [&str; 3] = [
    include_str!("../rules/tokens.tsv"),
    include_str!("../rules/ours.tsv"),
    include_str!("../rules/betterleaks.tsv"),
];
const MEGABYTE: usize = 1024 * 1024;

/// Every keyword of every rule, and a few that are known in the code.
fn keywords() -> Vec<String> {
    let lines = TABLES.iter().flat_map(|table| table.lines()).filter(|line| !line.starts_with('#'));
    let mut keywords: Vec<String> =
        lines.filter_map(|line| line.split('\t').nth(1)).flat_map(|words| words.split(',')).map(str::to_owned).collect();
    keywords.extend(["password", "api_key", "secret", "-----BEGIN "].map(str::to_owned));
    keywords.extend([format!("-----BEGIN {}KEY-----\n", "PRIVATE "), "PuTTY-User-Key-File-".to_owned()]);
    keywords.sort_unstable();
    keywords.dedup();
    keywords
}

/// A megabyte against a rule: its keyword alone, with what every pattern goes on with, and with a value that is too short.
fn against(keyword: &str, number: usize) -> String {
    let after = [
        "",
        " ",
        "=",
        "aB3xQ9kLm2Zr",
        "aB3xQ9kLm2ZraB3xQ9kLm2ZraB3xQ9kLm2Zr aB3xQ9kLm2Zr",
        " . - _ \" = \"aB3xQ9kLm2Zr",
        "-0123456789-0123456789-",
        "_\n\"'",
    ];
    let piece = format!("{keyword}{}", after[number % after.len()]);
    piece.repeat(MEGABYTE / piece.len())
}

#[test]
fn a_megabyte_against_each_rule_is_read_in_bounded_time() {
    let keywords = keywords();
    assert!(keywords.len() > 400, "{}", keywords.len());
    let mut slowest = (Duration::ZERO, String::new());
    for (number, keyword) in keywords.iter().enumerate() {
        let text = against(keyword, number);
        let began = Instant::now();
        find(&text);
        if began.elapsed() > slowest.0 {
            slowest = (began.elapsed(), keyword.clone());
        }
    }
    println!("{slowest:?}");
}
