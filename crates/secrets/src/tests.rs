//! What is compiled when, and that every rule of the tables can be used.

use crate::detector::tests::{compiled, rules};
use crate::{find, kind_in};

#[test]
fn a_text_without_a_keyword_compiles_nothing_and_each_pattern_can_be_compiled() {
    // Both in one test: the rules are shared by the whole process, and other tests are in programs of their own.
    let plain =
        "fn main() {\n    println!(\"The quick brown fox jumps over the lazy dog, 1234 times.\");\n}\n";
    assert_eq!((find(plain), kind_in(plain.as_bytes())), (Vec::new(), None));
    assert_eq!(compiled().0, 0, "{:?}", rules().iter().find(|rule| rule.is_compiled()).map(|rule| rule.kind));
    let all = compiled().1;
    assert!(all > 380, "{all}");
    for rule in rules() {
        assert!(rule.compiled().is_some(), "{}: {:?}", rule.kind, rule.keywords);
        assert!(rule.reach > 0 && rule.reach <= 4096 && !rule.keywords.is_empty(), "{}", rule.kind);
    }
    assert_eq!(compiled(), (all, all));
}
