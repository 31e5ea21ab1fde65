//! Assertions on text of foreign origin, wherever it is shown or sent.

use plimsoll_protocol::untrusted_text::{is_hidden_or_control_character, neutralize_client_tags};

/// Asserts that a text has no hidden characters except joiners and selectors that do not follow an ASCII letter, where they would
/// hide. Line ends and tabs are allowed: Plimsoll writes them.
pub(crate) fn assert_no_hidden_characters(text: &str) {
    let letters: Vec<char> = text.chars().collect();
    let is_hidden_character =
        |letter: char| is_hidden_or_control_character(letter) && !matches!(letter, '\n' | '\t');
    for (index, letter) in letters.iter().enumerate().filter(|(_, letter)| is_hidden_character(**letter)) {
        let is_needed = "\u{200c}\u{200d}\u{fe0e}\u{fe0f}".contains(*letter);
        let is_key = letters.get(index + 1) == Some(&'\u{20e3}');
        assert!(is_needed && index > 0 && (is_key || !letters[index - 1].is_ascii()), "{text:?}");
    }
}

/// Asserts that a text has no hidden characters and no complete tag of the client.
pub(crate) fn assert_safe_for_model(text: &str) {
    assert_no_hidden_characters(text);
    assert_eq!(neutralize_client_tags(text), text);
    let lowercase = text.to_lowercase();
    for tag in ["<system", "</system", "<command-", "</function_", "<antml", "<task-"] {
        assert!(!lowercase.contains(tag), "{text:?}");
    }
}
