//! What `plimsoll-otel` is asked to do, as its command line says it: written by `plimsoll`, read by `plimsoll-otel`.

/// What `plimsoll-otel` is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtelCommand {
    /// For `plimsoll run`: exports what standard input tells and what the journal has from this byte on.
    Follow {
        /// The length of the journal when the run began.
        from: u64,
    },
    /// For `plimsoll turns export`: OTLP/JSON on standard input, the same as protobuf on standard output.
    Encode,
}

const FOLLOW: &str = "follow";
const ENCODE: &str = "encode";

impl OtelCommand {
    /// The words of its command line.
    pub fn arguments(&self) -> Vec<String> {
        match self {
            OtelCommand::Follow { from } => vec![FOLLOW.to_owned(), from.to_string()],
            OtelCommand::Encode => vec![ENCODE.to_owned()],
        }
    }

    /// What these words ask for; none if they are no command of ours.
    pub fn of(arguments: &[String]) -> Option<OtelCommand> {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words.as_slice() {
            [FOLLOW, from] => Some(OtelCommand::Follow { from: from.parse().ok()? }),
            [ENCODE] => Some(OtelCommand::Encode),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_read_as_it_was_written_and_nothing_else_is_one() {
        for command in [OtelCommand::Follow { from: 42 }, OtelCommand::Encode] {
            assert_eq!(OtelCommand::of(&command.arguments()), Some(command));
        }
        for words in ["", "follow", "follow soon", "follow -1", "encode it"] {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            assert_eq!(OtelCommand::of(&words), None, "{words:?}");
        }
    }
}
