//! Limits how long a client may produce no output: the idle timeout applies while it waits for the model, the tool timeout while
//! a tool runs.

use std::time::Duration;

/// The longest allowed times without output, in seconds; 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SilenceTimeouts {
    /// Applies while no tool runs.
    pub idle_seconds: u64,
    /// Applies while a tool runs.
    pub tool_seconds: u64,
}

/// A timeout that was exceeded because the client produced no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExceededTimeout {
    /// The exceeded limit, in seconds.
    pub limit_seconds: u64,
    /// The running tool with its arguments; `None` for the idle timeout.
    pub running_tool: Option<String>,
}

/// Returns the exceeded timeout if the client was silent for longer than allowed.
///
/// An idle client and a long build look alike in the output; only a call without a result distinguishes them. Therefore the tool
/// timeout applies while a tool is running.
pub fn exceeded_timeout_after_silence(
    silence_duration: Duration,
    running_tool: Option<&str>,
    timeouts: SilenceTimeouts,
) -> Option<ExceededTimeout> {
    let limit_seconds = if running_tool.is_some() { timeouts.tool_seconds } else { timeouts.idle_seconds };
    let is_exceeded = limit_seconds > 0 && silence_duration > Duration::from_secs(limit_seconds);
    is_exceeded.then(|| ExceededTimeout { limit_seconds, running_tool: running_tool.map(str::to_owned) })
}

impl ExceededTimeout {
    /// Describes the timeout for the journal and the verdict: the limit, and the tool with the option that sets its timeout.
    pub fn describe(&self) -> String {
        let limit = format_seconds_in_largest_whole_unit(self.limit_seconds);
        match &self.running_tool {
            None => format!("no output for {limit}"),
            Some(tool) => format!("no output for {limit} while a tool was running (--tool-timeout): {tool}"),
        }
    }
}

/// Formats seconds in hours or minutes if that is a whole number, such as `2 h`, otherwise in seconds.
fn format_seconds_in_largest_whole_unit(seconds: u64) -> String {
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
    fn the_tool_timeout_applies_only_while_a_tool_runs() {
        let default_timeouts = SilenceTimeouts { idle_seconds: 1800, tool_seconds: 7200 };
        for (silent_seconds, tool, timeouts, expected) in [
            (1800, None, default_timeouts, None),
            (1801, None, default_timeouts, Some("no output for 30 min")),
            (1801, Some("Bash: make"), default_timeouts, None),
            (7200, Some("Bash: make"), default_timeouts, None),
            (
                7201,
                Some("Bash: make"),
                default_timeouts,
                Some("no output for 2 h while a tool was running (--tool-timeout): Bash: make"),
            ),
            (1_000_000, None, SilenceTimeouts { idle_seconds: 0, ..default_timeouts }, None),
            (1_000_000, Some("Bash"), SilenceTimeouts { tool_seconds: 0, ..default_timeouts }, None),
            (
                1801,
                None,
                SilenceTimeouts { tool_seconds: 0, ..default_timeouts },
                Some("no output for 30 min"),
            ),
            (
                6,
                Some("Bash"),
                SilenceTimeouts { idle_seconds: 60, tool_seconds: 5 },
                Some("no output for 5 s while a tool was running (--tool-timeout): Bash"),
            ),
        ] {
            let exceeded =
                exceeded_timeout_after_silence(Duration::from_secs(silent_seconds), tool, timeouts);
            assert_eq!(
                exceeded.map(|silence| silence.describe()).as_deref(),
                expected,
                "{silent_seconds} {tool:?}"
            );
        }
    }
}
