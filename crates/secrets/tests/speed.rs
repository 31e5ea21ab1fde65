//! No text takes long: neither an ordinary one nor one that was written against a rule.

use cpu_time::ThreadTime;
use plimsoll_secrets::{Search, find};
use std::time::Duration;

const TABLES: [&str; 3] = [
    include_str!("../rules/tokens.tsv"),
    include_str!("../rules/ours.tsv"),
    include_str!("../rules/betterleaks.tsv"),
];
/// Of each text: what takes a time that grows with the square of the length is seen here, too.
const LENGTH: usize = 256 * 1024;
/// The time of a processor, whatever else is at work. Without optimisation some texts need half of it; what the tests are built
/// with by default needs a fifth, a release a twentieth. A search that looks at each byte again at each keyword takes minutes.
const MOST: Duration = Duration::from_millis(2500);

/// The first keyword of every rule, and a few that are known in the code.
fn keywords() -> Vec<String> {
    let lines = TABLES.iter().flat_map(|table| table.lines()).filter(|line| !line.starts_with('#'));
    let first = |line: &'static str| line.split('\t').nth(1)?.split(',').next();
    let mut keywords: Vec<String> = lines.filter_map(first).map(str::to_owned).collect();
    keywords
        .extend(["password", "api_key", "secret", "secret=", "--token ", "<password>"].map(str::to_owned));
    keywords.extend([format!("-----BEGIN {}KEY-----\n", "PRIVATE "), "PuTTY-User-Key-File-".to_owned()]);
    keywords.sort_unstable();
    keywords.dedup();
    keywords
}

/// A long text against a rule: its keyword alone, with what patterns continue with, or with a value that is no secret.
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
    piece.repeat(LENGTH / piece.len())
}

#[test]
fn a_long_text_against_each_rule_is_read_in_bounded_time() {
    let keywords = keywords();
    assert!(keywords.len() > 300, "{}", keywords.len());
    let slow = |(number, keyword): (usize, &String)| {
        let text = against(keyword, number);
        let began = ThreadTime::now();
        find(&text);
        Some((began.elapsed(), keyword.clone())).filter(|(time, _)| *time > MOST)
    };
    let found: Vec<_> = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            let of_half = keywords.iter().enumerate().filter(move |(number, _)| number % 2 == half);
            scope.spawn(move || of_half.filter_map(slow).collect::<Vec<_>>())
        });
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    });
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn ten_megabytes_of_ordinary_code_are_searched_in_little_memory_and_time() {
    let code = include_str!("../src/assignment.rs").replace("password", "frequency").repeat(1000);
    let began = ThreadTime::now();
    let mut search = Search::default();
    for piece in code.as_bytes()[..10 * 1024 * 1024].chunks(64 * 1024) {
        assert_eq!(search.read(piece), None);
    }
    assert_eq!(search.end(), None);
    assert!(began.elapsed() < MOST, "{:?}", began.elapsed());
}
