//! Tests that patterns are compiled only when needed, and that every rule of the tables can be used.

use crate::detector::tests::{all_rules, count_compiled_rules};
use crate::{find_secrets, first_secret_kind};

#[test]
fn rules_are_compiled_only_when_needed_and_all_compile() {
    // Both in one test: the rules are shared by the whole process, and other tests run in other processes.
    let plain =
        "fn main() {\n    println!(\"The quick brown fox jumps over the lazy dog, 1234 times.\");\n}\n";
    assert_eq!((find_secrets(plain), first_secret_kind(plain.as_bytes())), (Vec::new(), None));
    assert_eq!(
        count_compiled_rules().0,
        0,
        "{:?}",
        all_rules().iter().find(|rule| rule.is_compiled()).map(|rule| rule.kind)
    );
    let rule_count = count_compiled_rules().1;
    assert!(rule_count > 380, "{rule_count}");
    for rule in all_rules() {
        assert!(rule.compiled_patterns().is_some(), "{}: {:?}", rule.kind, rule.keywords);
        assert!(
            rule.max_bytes_after > 0 && rule.max_bytes_after <= 4096 && !rule.keywords.is_empty(),
            "{}",
            rule.kind
        );
    }
    assert_eq!(count_compiled_rules(), (rule_count, rule_count));
}
