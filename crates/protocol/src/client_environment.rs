//! How the client (2.1.329) reads the numbers in its environment variables.

/// The client raises a smaller compaction window to this, and ignores a smaller one in a settings file.
pub const LEAST_COMPACTION_WINDOW: u64 = 100_000;

/// Reads a whole number: `150000`, `150_000`, `1.5e5`, and the digits in front of anything else, such as `150000 tokens`.
/// None if it is not positive.
pub fn integer(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = match (is_scientific(text), without_separators(text)) {
        (true, _) => return text.parse().ok().and_then(whole),
        (false, Some(digits)) => digits,
        (false, None) => text.to_owned(),
    };
    let digits = digits.strip_prefix('+').unwrap_or(&digits);
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok().filter(|number| *number > 0)
}

/// Reads a decimal number, with anything behind it: `50`, `50%`. None if there is none.
pub fn decimal(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = |end: &usize| text.is_char_boundary(*end) && text[..*end].parse::<f64>().is_ok();
    let longest = (1..=text.len()).rev().find(end)?;
    text[..longest].parse().ok().filter(|number: &f64| number.is_finite())
}

/// Reads a compaction window: a whole number, or one with `k` or `m` behind it.
pub fn compaction_window(text: &str) -> Option<u64> {
    let text = text.trim();
    let unit = match text.chars().last()?.to_ascii_lowercase() {
        'k' => 1e3,
        'm' => 1e6,
        _ => return integer(text).map(|tokens| tokens.max(LEAST_COMPACTION_WINDOW)),
    };
    let tokens = (decimal(text)? * unit).round();
    (tokens >= 1.0).then(|| whole(tokens)).flatten().map(|tokens| tokens.max(LEAST_COMPACTION_WINDOW))
}

fn is_scientific(text: &str) -> bool {
    let number = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = number.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    is_number && number.contains(['e', 'E']) && number.parse::<f64>().is_ok()
}

/// Removes the separators of thousands, all of one kind; none if there are none in the right places.
fn without_separators(text: &str) -> Option<String> {
    let separator = text.chars().find(|letter| ['_', ',', ' ', '\u{a0}', '\u{202f}'].contains(letter))?;
    let (first, groups) = text.split_once(separator)?;
    let sign_and_digits = first.strip_prefix(['+', '-']).unwrap_or(first);
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_first = is_digits(sign_and_digits) && sign_and_digits.len() <= 3;
    let are_groups = groups.split(separator).all(|group| is_digits(group) && group.len() == 3);
    (is_first && are_groups).then(|| text.replace(separator, ""))
}

/// A number that is whole, positive, and that JavaScript has exactly.
fn whole(number: f64) -> Option<u64> {
    let is_whole = number.fract() == 0.0 && (1.0..9e15).contains(&number);
    is_whole.then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_as_the_client_reads_them() {
        for (text, expected) in [
            ("150000", Some(150_000)),
            (" 150_000 ", Some(150_000)),
            ("150,000", Some(150_000)),
            ("1 500 000", Some(1_500_000)),
            ("150\u{202f}000", Some(150_000)),
            ("+150_000", Some(150_000)),
            ("1.5e5", Some(150_000)),
            ("15E4", Some(150_000)),
            // The digits in front count.
            ("150000 tokens", Some(150_000)),
            ("150000.7", Some(150_000)),
            ("150_00", Some(150)),
            ("1_500,000", Some(1)),
            ("1.55e1", None),
            ("-5", None),
            ("-150_000", None),
            ("0", None),
            ("", None),
            ("many", None),
        ] {
            assert_eq!(integer(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_compaction_window_may_have_a_unit_and_has_a_least_size() {
        for (text, expected) in [
            ("150_000", Some(150_000)),
            ("200k", Some(200_000)),
            ("1.5M", Some(1_500_000)),
            ("200 k", Some(200_000)),
            ("50000", Some(100_000)),
            ("150", Some(100_000)),
            ("auto", None),
            ("k", None),
            ("-200k", None),
            ("0k", None),
            ("é", None),
        ] {
            assert_eq!(compaction_window(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_decimal_number_may_have_something_behind_it() {
        for (text, expected) in [
            ("50", Some(50.0)),
            (" 62.5 % ", Some(62.5)),
            ("50%", Some(50.0)),
            ("x50", None),
            ("", None),
            ("inf", None),
        ] {
            assert_eq!(decimal(text), expected, "{text:?}");
        }
    }
}
