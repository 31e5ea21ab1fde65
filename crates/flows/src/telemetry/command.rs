//! The command line of `plimsoll-otel`: written by `plimsoll`, read by `plimsoll-otel`.

const FOLLOW: &str = "follow";

/// Returns the arguments with which `plimsoll run` starts it: it exports what standard input tells, and the journal from this byte on.
pub(super) fn follow_arguments(from: u64) -> Vec<String> {
    vec![FOLLOW.to_owned(), from.to_string()]
}

/// Reads the arguments that [`follow_arguments`] made; `None` if they are others.
pub fn parse_follow_arguments(arguments: &[String]) -> Option<u64> {
    match arguments {
        [follow, from] if follow == FOLLOW => from.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_read_as_they_were_written_and_no_others_are() {
        assert_eq!(parse_follow_arguments(&follow_arguments(42)), Some(42));
        for words in ["", "follow", "follow soon", "follow -1", "send 1"] {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            assert_eq!(parse_follow_arguments(&words), None, "{words:?}");
        }
    }
}
