//! What must hold of foreign words wherever they are shown or sent.

use plimsoll_protocol::untrusted_text::{break_client_tags, is_hidden_character};

/// Only a joiner or a selector may be left, and none beside a letter of ASCII, where it would hide. Line ends and tabs are
/// ours.
pub(crate) fn nothing_hides(shown: &str) {
    let letters: Vec<char> = shown.chars().collect();
    let hidden = |letter: char| is_hidden_character(letter) && !matches!(letter, '\n' | '\t');
    for (place, letter) in letters.iter().enumerate().filter(|(_, letter)| hidden(**letter)) {
        let is_needed = "\u{200c}\u{200d}\u{fe0e}\u{fe0f}".contains(*letter);
        let is_key = letters.get(place + 1) == Some(&'\u{20e3}');
        assert!(is_needed && place > 0 && (is_key || !letters[place - 1].is_ascii()), "{shown:?}");
    }
}

/// The same, and no tag of the client's is whole.
pub(crate) fn may_be_sent(text: &str) {
    nothing_hides(text);
    assert_eq!(break_client_tags(text), text);
    let lower = text.to_lowercase();
    for tag in ["<system", "</system", "<command-", "</function_", "<antml", "<task-"] {
        assert!(!lower.contains(tag), "{text:?}");
    }
}
