//! No text takes long to search, not even one that was constructed against a rule.

use cpu_time::ThreadTime;
use plimsoll_secrets::{SecretSearch, find_secrets};
use std::time::Duration;

const TABLES: [&str; 3] = [
    include_str!("../rules/tokens.tsv"),
    include_str!("../rules/ours.tsv"),
    include_str!("../rules/betterleaks.tsv"),
];
/// The length of each text. Long enough that quadratic time would exceed the limit.
const TEXT_BYTES: usize = 256 * 1024;
/// Measured in processor time, so that other work on the machine does not matter. Without optimization some
/// texts need half of it, with the default test profile a fifth, in a release build a twentieth. A search
/// that reads each byte again at each keyword takes minutes.
const MAX_CPU_TIME: Duration = Duration::from_millis(2500);

/// Returns the first keyword of every rule, and a few keywords that are defined in code.
fn all_keywords() -> Vec<String> {
    let lines = TABLES.iter().flat_map(|table| table.lines()).filter(|line| !line.starts_with('#'));
    let first_keyword = |line: &'static str| line.split('\t').nth(1)?.split(',').next();
    let mut keywords: Vec<String> = lines.filter_map(first_keyword).map(str::to_owned).collect();
    keywords
        .extend(["password", "api_key", "secret", "secret=", "--token ", "<password>"].map(str::to_owned));
    keywords.extend([format!("-----BEGIN {}KEY-----\n", "PRIVATE "), "PuTTY-User-Key-File-".to_owned()]);
    keywords.sort_unstable();
    keywords.dedup();
    keywords
}

/// Returns a long text against a rule: its keyword repeated, with a continuation that its pattern allows or a
/// value that is no secret.
fn adversarial_text(keyword: &str, number: usize) -> String {
    let continuations = [
        "",
        " ",
        "=",
        "aB3xQ9kLm2Zr",
        "aB3xQ9kLm2ZraB3xQ9kLm2ZraB3xQ9kLm2Zr aB3xQ9kLm2Zr",
        " . - _ \" = \"aB3xQ9kLm2Zr",
        "-0123456789-0123456789-",
        "_\n\"'",
    ];
    let piece = format!("{keyword}{}", continuations[number % continuations.len()]);
    piece.repeat(TEXT_BYTES / piece.len())
}

#[test]
fn a_long_text_against_each_rule_is_read_in_bounded_time() {
    let keywords = all_keywords();
    assert!(keywords.len() > 300, "{}", keywords.len());
    let search_time_if_slow = |(number, keyword): (usize, &String)| {
        let text = adversarial_text(keyword, number);
        let started = ThreadTime::now();
        find_secrets(&text);
        Some((started.elapsed(), keyword.clone())).filter(|(elapsed, _)| *elapsed > MAX_CPU_TIME)
    };
    let slow_keywords: Vec<_> = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            let half_of_keywords = keywords.iter().enumerate().filter(move |(number, _)| number % 2 == half);
            scope.spawn(move || half_of_keywords.filter_map(search_time_if_slow).collect::<Vec<_>>())
        });
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    });
    assert!(slow_keywords.is_empty(), "{slow_keywords:?}");
}

#[test]
fn ten_megabytes_of_code_are_searched_quickly_in_little_memory() {
    let code = include_str!("../src/assignment.rs").replace("password", "frequency").repeat(1000);
    let started = ThreadTime::now();
    let mut search = SecretSearch::default();
    for piece in code.as_bytes()[..10 * 1024 * 1024].chunks(64 * 1024) {
        assert_eq!(search.push_and_search_full_windows(piece), None);
    }
    assert_eq!(search.search_remaining_bytes(), None);
    assert!(started.elapsed() < MAX_CPU_TIME, "{:?}", started.elapsed());
}
