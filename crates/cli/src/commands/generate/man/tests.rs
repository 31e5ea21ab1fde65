//! Tests of the help: every example parses, and every option has a description.

use super::*;
use clap::Parser;
use clap::error::ErrorKind;

/// Returns the example command lines of the after-help, without the explanations beside them.
fn example_lines(command: &Command) -> Vec<String> {
    let help = command.get_after_long_help().or_else(|| command.get_after_help());
    let help = help.map(ToString::to_string).unwrap_or_default().replace(" \\\n   ", "");
    let lines = help.lines().filter_map(|line| line.strip_prefix("  plimsoll"));
    lines.map(|rest| format!("plimsoll{}", rest.split("  ").next().unwrap_or_default())).collect()
}

/// Returns the words of a command line up to a redirection, a pipe or another command.
fn command_words(line: &str) -> Vec<String> {
    let words = shlex::split(line).unwrap_or_default();
    let is_shell_operator = |word: &String| word.starts_with(['>', '<', '|', '&']);
    words.into_iter().take_while(|word| !is_shell_operator(word)).collect()
}

#[test]
fn every_example_parses() {
    let mut example_count = 0;
    for line in commands_with_pages().iter().flat_map(example_lines) {
        let is_valid = match crate::commands::CommandLine::try_parse_from(command_words(&line)) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::DisplayHelp,
        };
        assert!(is_valid && command_words(&line).len() > 1, "{line}");
        example_count += 1;
    }
    assert!(example_count > 30, "{example_count}");
    assert!(
        crate::commands::CommandLine::try_parse_from(command_words("plimsoll log --lines many")).is_err()
    );
}

#[test]
fn the_main_commands_have_examples() {
    for verb in ["run", "init", "status", "log", "turns", "with-context", "memory", "query", "checkpoint"] {
        let command = commands_with_pages().into_iter().find(|page| page.get_name() == verb).unwrap();
        let prefix = format!("plimsoll {verb}");
        assert!(example_lines(&command).iter().any(|line| line.starts_with(&prefix)), "{verb}");
    }
}

#[test]
fn every_command_option_and_argument_has_help() {
    for command in commands_with_pages() {
        assert!(command.get_about().is_some(), "{}", page_name(&command));
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            assert!(argument.get_help().is_some(), "{} {}", page_name(&command), argument.get_id());
        }
    }
}

#[test]
fn a_page_keeps_the_lines_of_its_examples() {
    let page = commands_with_pages()
        .into_iter()
        .find(|page| page_name(page) == "plimsoll-turns")
        .map(|command| render_page(&command));
    let text = page.unwrap().unwrap();
    assert!(text.contains(".SH EXAMPLES\n.nf\nplimsoll turns  "), "{text}");
    let section = render_after_help("A text.\n\nTwo words:\n  .as it\n    stands\nAnd on.").to_roff();
    let expected =
        ".SH NOTES\n.PP\nA text.\n.SH \"TWO WORDS\"\n.nf\n\\&.as it\n  stands\n.fi\n.PP\nAnd on.\n";
    assert_eq!(section, expected);
}
