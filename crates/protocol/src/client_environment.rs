//! Parses numbers in environment variables as the client (2.1.329) does.

/// The smallest compaction window. The client raises a smaller one in its environment to this size, and ignores a smaller
/// one in a settings file.
pub const MIN_COMPACTION_WINDOW_TOKENS: u64 = 100_000;

/// Parses a positive whole number: `150000`, `150_000`, `1.5e5`. Any other text is parsed up to its first non-digit:
/// `150000 tokens`. Returns `None` if the number is not positive.
pub fn parse_leading_positive_integer(text: &str) -> Option<u64> {
    let text = text.trim();
    let number_text = match (is_scientific_notation(text), strip_thousands_separators_if_valid(text)) {
        (true, _) => return text.parse().ok().and_then(to_exact_positive_integer),
        (false, Some(unseparated_text)) => unseparated_text,
        (false, None) => text.to_owned(),
    };
    let unsigned_text = number_text.strip_prefix('+').unwrap_or(&number_text);
    let digits_end =
        unsigned_text.find(|character: char| !character.is_ascii_digit()).unwrap_or(unsigned_text.len());
    unsigned_text[..digits_end].parse().ok().filter(|number| *number > 0)
}

/// Parses a leading decimal number: `50`, `50%`. Returns `None` if there is none.
pub fn parse_leading_decimal(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_end_of_number = |end: &usize| text.is_char_boundary(*end) && text[..*end].parse::<f64>().is_ok();
    let longest_end = (1..=text.len()).rev().find(is_end_of_number)?;
    text[..longest_end].parse().ok().filter(|number: &f64| number.is_finite())
}

/// Parses a compaction window in tokens: a whole number, or a number with the unit `k` or `m`. Raises a smaller
/// window to the minimum.
pub fn parse_compaction_window_raised_to_minimum(text: &str) -> Option<u64> {
    let text = text.trim();
    let tokens_per_unit = match text.chars().last()?.to_ascii_lowercase() {
        'k' => 1e3,
        'm' => 1e6,
        _ => {
            return parse_leading_positive_integer(text)
                .map(|tokens| tokens.max(MIN_COMPACTION_WINDOW_TOKENS));
        }
    };
    let tokens = (parse_leading_decimal(text)? * tokens_per_unit).round();
    (tokens >= 1.0)
        .then(|| to_exact_positive_integer(tokens))
        .flatten()
        .map(|tokens| tokens.max(MIN_COMPACTION_WINDOW_TOKENS))
}

fn is_scientific_notation(text: &str) -> bool {
    let number = text.strip_prefix(['+', '-']).unwrap_or(text);
    let starts_like_number = number.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    starts_like_number && number.contains(['e', 'E']) && number.parse::<f64>().is_ok()
}

/// Removes thousands separators, all of one kind. Returns `None` if there are none or if they are misplaced.
fn strip_thousands_separators_if_valid(text: &str) -> Option<String> {
    let separator =
        text.chars().find(|character| ['_', ',', ' ', '\u{a0}', '\u{202f}'].contains(character))?;
    let (first_group, remaining_groups) = text.split_once(separator)?;
    let sign_and_digits = first_group.strip_prefix(['+', '-']).unwrap_or(first_group);
    let is_all_digits = |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    let is_valid_first_group = is_all_digits(sign_and_digits) && sign_and_digits.len() <= 3;
    let are_valid_remaining_groups =
        remaining_groups.split(separator).all(|group| is_all_digits(group) && group.len() == 3);
    (is_valid_first_group && are_valid_remaining_groups).then(|| text.replace(separator, ""))
}

/// Converts a positive whole number that JavaScript represents exactly.
fn to_exact_positive_integer(number: f64) -> Option<u64> {
    let is_whole = number.fract() == 0.0 && (1.0..9e15).contains(&number);
    is_whole.then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_parsed_as_the_client_parses_them() {
        for (text, expected) in [
            ("150000", Some(150_000)),
            (" 150_000 ", Some(150_000)),
            ("150,000", Some(150_000)),
            ("1 500 000", Some(1_500_000)),
            ("150\u{202f}000", Some(150_000)),
            ("+150_000", Some(150_000)),
            ("1.5e5", Some(150_000)),
            ("15E4", Some(150_000)),
            // Only the leading digits count.
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
            assert_eq!(parse_leading_positive_integer(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_compaction_window_may_have_a_unit_and_has_a_minimum() {
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
            assert_eq!(parse_compaction_window_raised_to_minimum(text), expected, "{text:?}");
        }
    }

    #[test]
    fn text_after_a_decimal_number_is_ignored() {
        for (text, expected) in [
            ("50", Some(50.0)),
            (" 62.5 % ", Some(62.5)),
            ("50%", Some(50.0)),
            ("x50", None),
            ("", None),
            ("inf", None),
        ] {
            assert_eq!(parse_leading_decimal(text), expected, "{text:?}");
        }
    }
}
