//! How long a client may be silent: the idle timeout while it waits for the model, the tool timeout while a tool runs.

use std::time::Duration;

/// The longest silences that are allowed, in seconds; 0 for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// While no tool runs.
    pub idle: u64,
    /// While a tool runs.
    pub tool: u64,
}

/// A silence that was too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    /// The limit that it exceeded, in seconds.
    pub seconds: u64,
    /// The tool that was running, with what it was asked; none for the idle timeout.
    pub tool: Option<String>,
}

/// Idleness and a long build look alike on the stream; only calls without a result distinguish them.
pub fn too_long(silent: Duration, tool: Option<&str>, timeouts: Timeouts) -> Option<Silence> {
    let seconds = if tool.is_some() { timeouts.tool } else { timeouts.idle };
    let is_over = seconds > 0 && silent > Duration::from_secs(seconds);
    is_over.then(|| Silence { seconds, tool: tool.map(str::to_owned) })
}

impl Silence {
    /// For the journal and the verdict: the option whose limit was reached, and the tool.
    pub fn words(&self) -> String {
        let time = duration(self.seconds);
        match &self.tool {
            None => format!("no output for {time}"),
            Some(tool) => format!("no output for {time} while a tool was running (--tool-timeout): {tool}"),
        }
    }
}

fn duration(seconds: u64) -> String {
    match seconds {
        _ if seconds.is_multiple_of(3600) => format!("{} h", seconds / 3600),
        _ if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        _ => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_measured_by_the_timeout_of_what_the_client_does() {
        let both = Timeouts { idle: 1800, tool: 7200 };
        for (silent, tool, timeouts, expected) in [
            (1800, None, both, None),
            (1801, None, both, Some("no output for 30 min")),
            (1801, Some("Bash: make"), both, None),
            (7200, Some("Bash: make"), both, None),
            (
                7201,
                Some("Bash: make"),
                both,
                Some("no output for 2 h while a tool was running (--tool-timeout): Bash: make"),
            ),
            (1_000_000, None, Timeouts { idle: 0, ..both }, None),
            (1_000_000, Some("Bash"), Timeouts { tool: 0, ..both }, None),
            (1801, None, Timeouts { tool: 0, ..both }, Some("no output for 30 min")),
            (
                6,
                Some("Bash"),
                Timeouts { idle: 60, tool: 5 },
                Some("no output for 5 s while a tool was running (--tool-timeout): Bash"),
            ),
        ] {
            let found = too_long(Duration::from_secs(silent), tool, timeouts);
            assert_eq!(found.map(|silence| silence.words()).as_deref(), expected, "{silent} {tool:?}");
        }
    }
}
