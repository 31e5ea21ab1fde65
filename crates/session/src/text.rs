//! Small truths about text.

/// The longest beginning of at most `limit` characters, with `…` where something was left out.
pub fn clip(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    text.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

/// The longest end of at most `limit` characters, with `…` where something was left out.
pub fn clip_start(text: &str, limit: usize) -> String {
    let length = text.chars().count();
    if length <= limit {
        return text.to_owned();
    }
    std::iter::once('…').chain(text.chars().skip(length - limit.saturating_sub(1))).collect()
}

/// The beginning and the end of a text, together at most `limit` characters, with `…` between them.
pub fn clip_middle(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    format!("{}\n{}", clip(text, limit / 2), clip_start(text, limit.saturating_sub(limit / 2 + 1)))
}

/// One line: runs of white space and control characters become one space.
pub fn one_line(text: &str) -> String {
    text.split(|letter: char| letter.is_whitespace() || letter.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// `1 item`, `2 items`.
pub fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("{number} {noun}") } else { format!("{number} {noun}s") }
}

/// Tokens as a person reads them: `950`, `66k`, `1.2M`.
pub fn tokens(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..999_500 => format!("{}k", (number + 500) / 1_000),
        _ if number % 1_000_000 < 50_000 => format!("{}M", number / 1_000_000),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}
