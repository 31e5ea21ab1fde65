//! The help is true: what it shows as an example is understood, and nothing goes unexplained.

use super::*;
use clap::Parser;
use clap::error::ErrorKind;

/// The lines below the options that show a command line of ours, without what is said of them.
fn examples(command: &Command) -> Vec<String> {
    let help = command.get_after_long_help().or_else(|| command.get_after_help());
    let help = help.map(ToString::to_string).unwrap_or_default().replace(" \\\n   ", "");
    let lines = help.lines().filter_map(|line| line.strip_prefix("  plimsoll"));
    lines.map(|rest| format!("plimsoll{}", rest.split("  ").next().unwrap_or_default())).collect()
}

/// The words up to a redirection, a pipe or another command.
fn words(line: &str) -> Vec<String> {
    let words = shlex::split(line).unwrap_or_default();
    let is_shells = |word: &String| word.starts_with(['>', '<', '|', '&']);
    words.into_iter().take_while(|word| !is_shells(word)).collect()
}

#[test]
fn every_example_is_understood() {
    let mut seen = 0;
    for line in pages().iter().flat_map(examples) {
        let understood = match crate::commands::Command::try_parse_from(words(&line)) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::DisplayHelp,
        };
        assert!(understood && words(&line).len() > 1, "{line}");
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
    assert!(crate::commands::Command::try_parse_from(words("plimsoll log --lines many")).is_err());
}

#[test]
fn the_main_commands_have_examples() {
    for verb in ["run", "init", "status", "log", "turns", "with-context", "memory", "query", "checkpoint"] {
        let page = pages().into_iter().find(|page| page.get_name() == verb).unwrap();
        let own = format!("plimsoll {verb}");
        assert!(examples(&page).iter().any(|line| line.starts_with(&own)), "{verb}");
    }
}

#[test]
fn every_command_option_and_argument_says_what_it_is() {
    for page in pages() {
        assert!(page.get_about().is_some(), "{}", name_of(&page));
        for argument in page.get_arguments().filter(|argument| !argument.is_hide_set()) {
            assert!(argument.get_help().is_some(), "{} {}", name_of(&page), argument.get_id());
        }
    }
}

#[test]
fn a_page_keeps_the_lines_of_its_examples() {
    let page = pages().into_iter().find(|page| name_of(page) == "plimsoll-turns").map(|found| page(&found));
    let text = page.unwrap().unwrap();
    assert!(text.contains(".SH EXAMPLES\n.nf\nplimsoll turns  "), "{text}");
    let below = below_the_options("A text.\n\nTwo words:\n  .as it\n    stands\nAnd on.").to_roff();
    let expected =
        ".SH NOTES\n.PP\nA text.\n.SH \"TWO WORDS\"\n.nf\n\\&.as it\n  stands\n.fi\n.PP\nAnd on.\n";
    assert_eq!(below, expected);
}
