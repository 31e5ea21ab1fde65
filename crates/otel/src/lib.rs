//! RULE: `plimsoll-otel` sends a run's spans and journal to the user's OpenTelemetry collector, by OTLP/HTTP with protobuf. It is
//! optional: only optional programs open connections to other computers. `plimsoll run` starts it if the user's environment enables
//! the client's telemetry and names a collector, and never waits for it.
//!
//! It reads the run's events from standard input and converts them to [`spans`], follows the journal for [`logs`], and sends both
//! in batches. The queues are bounded; lost spans and logs are counted and reported once in the journal.
//!
//! Limits: a span is sent when it has ended, so the run's span is sent last. After the run's end, the remaining items must be sent
//! within five seconds.

mod attributes;
mod collector;
mod delivery;
mod ids;
mod journal_tail;
mod logs;
mod queue;
mod run_exporter;
mod spans;

use plimsoll_domain::build::BuildInfo;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_flows::telemetry::command::parse_follow_arguments;
use plimsoll_terminal::command_line::missing_or_unknown_command_message;
use plimsoll_terminal::console::{fail_with, print_text};
use plimsoll_terminal::signals;
use std::process::ExitCode;

const USAGE: &str = "Sends the spans and the journal of Plimsoll's runs to an OpenTelemetry collector.

Usage: plimsoll-otel --version         print the version; with --json also target and commit
       plimsoll-otel --help            print this

`plimsoll run` starts it where CLAUDE_CODE_ENABLE_TELEMETRY=1 and OTEL_EXPORTER_OTLP_ENDPOINT are set.";

/// Runs the command that the arguments of this process select.
pub fn main() -> ExitCode {
    signals::turn_file_size_signal_into_error();
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--version" | "-V"] => print_text(format!("plimsoll-otel {}", env!("CARGO_PKG_VERSION"))),
        ["--version", "--json"] => print_text(BuildInfo::for_current_program("plimsoll-otel").to_json()),
        ["--help" | "-h"] => print_text(USAGE),
        _ => match parse_follow_arguments(&arguments) {
            Some(journal_offset) => run_exporter::export_run_telemetry_from_stdin(journal_offset),
            None => {
                return fail_with(
                    format!("{}\n\n{USAGE}", missing_or_unknown_command_message(&arguments)),
                    ExitStatus::Usage,
                );
            }
        },
    }
    ExitCode::SUCCESS
}
