//! Names and doc comments that CONTRIBUTING.md rules out and that a machine can see. A reader has to see the rest.

use crate::architecture::{collect_rust_files, function_name_in_line};
use crate::architecture_pages::MODULE_PAGES;
use crate::docs::OTHER_PAGES;
use plimsoll_testkit::workspace_root;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Words that are no name for a function when they stand alone: prepositions, participles and adverbs.
const BARE_WORDS: [&str; 45] = [
    "about", "after", "all", "apart", "aside", "at", "before", "begun", "behind", "below", "beside",
    "beyond", "by", "ended", "every", "found", "given", "gone", "heard", "held", "in", "kept", "known",
    "left", "made", "meant", "note", "noted", "of", "off", "on", "out", "over", "said", "seen", "since",
    "taken", "there", "to", "told", "under", "until", "whole", "with", "within",
];

/// Verbs of speech and fate, where the field says `query`, `print`, `send`, `record`, `read` or `wait`.
const VERBS: [&str; 13] = [
    "ask", "bear", "bring", "doze", "heed", "hear", "insist", "look", "mean", "say", "stand", "tell", "wish",
];

/// Beginnings of a doc comment that leave the reader without a subject.
const BEGINNINGS: [&str; 5] = ["Who ", "Whoever ", "Of ", "So long ", "The same"];

/// Functions that the rules would reject for a reason that does not apply to them.
const EXCEPTIONS: [(&str, &str); 3] = [
    ("look_up_process", "to look up is what one does with a table"),
    ("note", "the constructor of a finding with the severity `Note`"),
    ("stand_in_script", "a stand-in is a program that replaces another one"),
];

/// Returns what breaks a rule in a source file, each with its line number.
fn naming_errors(source: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let mut previous = "";
    let mut is_test = false;
    for (index, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let begins_comment = line.starts_with("//") && !previous.starts_with("//");
        let comment = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
        if let Some(comment) = comment.filter(|_| begins_comment)
            && let Some(beginning) = BEGINNINGS.iter().find(|beginning| comment.starts_with(**beginning))
        {
            errors.push(format!("{}: a doc comment begins with `{}`", index + 1, beginning.trim_end()));
        }
        is_test |= line.starts_with("#[test]");
        if let Some(name) = function_name_in_line(line) {
            let first_word = name.split('_').next().unwrap_or(name);
            let is_ruled_out = BARE_WORDS.contains(&name) || VERBS.contains(&first_word);
            if is_ruled_out && !is_test && !EXCEPTIONS.iter().any(|(exception, _)| *exception == name) {
                errors.push(format!("{}: fn {name}", index + 1));
            }
            is_test = false;
        }
        previous = line;
    }
    errors
}

#[test]
fn no_function_or_doc_comment_breaks_a_naming_rule() {
    let mut sources = Vec::new();
    for folder in ["crates", "tests", "research", "fuzz", "scripts"] {
        collect_rust_files(&workspace_root().join(folder), &mut sources);
    }
    assert!(sources.len() > 1_000, "{}", sources.len());
    let mut errors = Vec::new();
    for path in sources {
        let source = std::fs::read_to_string(&path).expect("a source file");
        let name = path.strip_prefix(workspace_root()).expect("a path in the project").display();
        errors.extend(naming_errors(&source).into_iter().map(|error| format!("{name}:{error}")));
    }
    assert!(errors.is_empty(), "use the usual words (CONTRIBUTING.md, Naming):\n{}", errors.join("\n"));
}

#[test]
fn each_naming_rule_rejects_its_example() {
    let source = "/// Who does not answer.\n/// Of nothing.\npub fn ask_server() {}\n\n    fn of(&self) {}\n/// Of a run.\nfn open() {}\n";
    assert_eq!(
        naming_errors(source),
        [
            "1: a doc comment begins with `Who`",
            "3: fn ask_server",
            "5: fn of",
            "6: a doc comment begins with `Of`"
        ]
    );
    assert_eq!(
        naming_errors("#[test]\nfn all() {}\n// Who reads this?\nfn look_up_process() {}\nlet f = told;\n"),
        [""; 0]
    );
}

#[test]
fn each_naming_exception_is_in_use() {
    let mut sources = Vec::new();
    for folder in ["crates", "tests"] {
        collect_rust_files(&workspace_root().join(folder), &mut sources);
    }
    for (exception, reason) in EXCEPTIONS {
        let declares = |path: &PathBuf| {
            std::fs::read_to_string(path).is_ok_and(|text| text.contains(&format!("fn {exception}(")))
        };
        assert!(!reason.is_empty() && sources.iter().any(declares), "{exception}");
    }
}

/// Returns the identifier that a text in backticks names, such as `tick_item`, `World::start` or `run::close(…)`. A single word
/// such as `run` may be anything else, so it does not count.
fn named_identifier(quoted: &str) -> Option<&str> {
    let path = quoted.split('(').next().unwrap_or_default();
    let is_path = path.chars().all(|letter| letter.is_ascii_alphanumeric() || "_:".contains(letter));
    let is_in_capitals = !path.contains(|letter: char| letter.is_ascii_lowercase());
    let last = path.rsplit("::").next().unwrap_or_default();
    let is_identifier = path.contains("::") || last.contains('_');
    (is_path && is_identifier && !is_in_capitals && !last.is_empty()).then_some(last)
}

/// A page that names a function or a field is wrong once that is renamed, and no compiler reads the pages.
#[test]
fn identifiers_named_in_the_documents_exist() {
    let mut sources = Vec::new();
    for folder in ["crates", "tests", "research", "fuzz", "scripts"] {
        collect_rust_files(&workspace_root().join(folder), &mut sources);
    }
    let is_in_identifier = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut identifiers = BTreeSet::new();
    for path in sources {
        let text = std::fs::read_to_string(path).expect("a source file");
        identifiers.extend(text.split(|letter| !is_in_identifier(letter)).map(str::to_owned));
    }
    let decisions = std::fs::read_dir(workspace_root().join("docs/decisions")).expect("docs/decisions");
    let decisions = decisions.flatten().map(|entry| entry.path());
    let pages = OTHER_PAGES.into_iter().chain(MODULE_PAGES).map(|page| workspace_root().join(page));
    let mut missing = Vec::new();
    let mut count = 0;
    for page in pages.chain(decisions) {
        let text = std::fs::read_to_string(&page).expect("a page");
        for line in text.lines() {
            // CONTRIBUTING.md shows earlier names, too: `old` → `new`.
            let current_names = line.rsplit(" → ").next().unwrap_or(line);
            for identifier in current_names.split('`').skip(1).step_by(2).filter_map(named_identifier) {
                count += 1;
                if !identifiers.contains(identifier) {
                    missing.push(format!("{}: {identifier}", page.display()));
                }
            }
        }
    }
    assert!(count > 150, "the pages name {count} identifiers");
    assert_eq!(missing, [""; 0], "these names are not in the code any more");
}

#[test]
fn named_identifiers_are_told_from_other_quotations() {
    for (quoted, identifier) in [
        ("tick_item", Some("tick_item")),
        ("World::start(…)", Some("start")),
        ("flows::run::close", Some("close")),
        ("CCS_WARNING", None),
        ("run", None),
        ("plimsoll run --resume", None),
        ("crates/flows/src/run.rs", None),
    ] {
        assert_eq!(named_identifier(quoted), identifier, "{quoted}");
    }
}
