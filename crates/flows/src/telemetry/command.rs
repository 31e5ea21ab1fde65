//! The command line of `plimsoll-otel`: written by `plimsoll`, read by `plimsoll-otel`.

const FOLLOW_SUBCOMMAND: &str = "follow";

/// Returns the arguments with which `plimsoll run` starts the program: it exports the events from standard
/// input, and the journal from this byte on.
pub(super) fn follow_arguments(journal_offset: u64) -> Vec<String> {
    vec![FOLLOW_SUBCOMMAND.to_owned(), journal_offset.to_string()]
}

/// Parses the arguments of [`follow_arguments`] and returns the journal offset; `None` for other arguments.
pub fn parse_follow_arguments(arguments: &[String]) -> Option<u64> {
    match arguments {
        [subcommand, journal_offset] if subcommand == FOLLOW_SUBCOMMAND => journal_offset.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_written_arguments_are_parsed() {
        assert_eq!(parse_follow_arguments(&follow_arguments(42)), Some(42));
        for command_line in ["", "follow", "follow soon", "follow -1", "send 1"] {
            let arguments: Vec<String> = command_line.split(' ').map(str::to_owned).collect();
            assert_eq!(parse_follow_arguments(&arguments), None, "{arguments:?}");
        }
    }
}
