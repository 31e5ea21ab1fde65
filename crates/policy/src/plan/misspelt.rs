//! What an item's bracket wants to say and does not: a size, or what the item waits for.

use super::after::after_numbers;
use plimsoll_domain::size::Size;
use plimsoll_domain::text::{clip, one_line};

/// What a bracket at the end of an item says that wants to state a size, or what the item waits for, and is not understood;
/// and what to write instead.
pub(super) fn misspelt(item: &str) -> Option<String> {
    brackets_at_end(item).into_iter().find_map(|bracket| {
        let inside = bracket[1..bracket.len() - 1].trim().to_lowercase();
        let (first, rest) = size_at_start(&inside);
        let parts = || rest.split([',', ';']).map(str::trim);
        let understood: Vec<String> =
            after_numbers(bracket).into_iter().map(|(_, number)| number.to_string()).collect();
        let after = if understood.is_empty() {
            after_meant(rest.replace([',', ';'], " ").trim()).or_else(|| parts().find_map(after_meant))
        } else {
            Some(understood.join(", "))
        };
        let size = first.or_else(|| if after.is_some() { parts().find_map(size_named) } else { None });
        let is_lost =
            (size.is_some() && Size::stated(item).is_none()) || (after.is_some() && understood.is_empty());
        is_lost.then(|| {
            let after = after.map(|numbers| format!("after: {numbers}"));
            let right: Vec<String> =
                size.map(|size| size.word().to_owned()).into_iter().chain(after).collect();
            let bracket = clip(&one_line(bracket), 40);
            format!("`{bracket}`, which is not understood: write `({})`", right.join(", "))
        })
    })
}

/// The brackets at the end, but not one that belongs to the word before it, as a link's or a call's does.
fn brackets_at_end(item: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = item.trim_end_matches(['.', ' ']);
    while let Some(opens) = [(')', '('), (']', '[')].iter().find(|(closes, _)| rest.ends_with(*closes)) {
        let Some(place) = rest.rfind(opens.1) else { break };
        let before = &rest[..place];
        if !before.is_empty() && !before.ends_with(' ') {
            break;
        }
        found.push(&rest[place..]);
        rest = before.trim_end();
    }
    found
}

const SIZES: [Size; 5] = [Size::VeryComplex, Size::Trivial, Size::Simple, Size::Medium, Size::Complex];

fn size_named(word: &str) -> Option<Size> {
    SIZES.into_iter().find(|size| size.word() == word.replace(['-', '_'], " "))
}

/// The size that these words begin with, and what follows; no size where they merely continue in plain words, as in
/// "complex numbers" and "medium-sized".
fn size_at_start(words: &str) -> (Option<Size>, &str) {
    let found = SIZES
        .into_iter()
        .find(|size| size_named(words.get(..size.word().len()).unwrap_or_default()) == Some(*size));
    let Some(size) = found else { return (None, words) };
    let rest = &words[size.word().len()..];
    let tail = rest.trim_start();
    let ends = tail.is_empty()
        || tail.starts_with([',', ':', ';', '.', '!', '?', '=', '–', '—'])
        || tail.starts_with("- ");
    let is_meant = ends || (tail != rest && after_meant(tail).is_some());
    if is_meant { (Some(size), tail) } else { (None, words) }
}

/// What to write behind `after:` where these words want to say what an item waits for: with a colon, or with nothing but
/// numbers. "after 2 days" does not.
fn after_meant(words: &str) -> Option<String> {
    let rest = words.strip_prefix("after").filter(|rest| !rest.starts_with(char::is_alphanumeric))?;
    let is_number = |word: &&str| word.parse::<usize>().is_ok();
    let named: Vec<&str> = rest
        .split([' ', '#', '&', ':'])
        .filter(|word| !["", "and", "item", "items", "number", "no."].contains(word))
        .collect();
    if !named.is_empty() && named.iter().all(is_number) {
        return Some(named.join(", "));
    }
    rest.trim_start().starts_with(':').then(|| "N".to_owned())
}
