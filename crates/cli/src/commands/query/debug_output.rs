//! The output of `debug`, `stderr` and `halt_error` in a filter, printed to standard error. jaq passes it to a logger.

use ::log::{LevelFilter, Log, Metadata, Record};
use plimsoll_terminal::console;

struct StderrLogger;

impl Log for StderrLogger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("jaq")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let message = match record.level() {
                ::log::Level::Debug => format!("[\"DEBUG:\",{}]", record.args()),
                _ => record.args().to_string(),
            };
            console::print_to_stderr(message.trim_end_matches('\n'));
        }
    }

    fn flush(&self) {}
}

/// Installs the logger that prints jaq's messages to standard error.
pub(super) fn install_logger() {
    if ::log::set_logger(&StderrLogger).is_ok() {
        ::log::set_max_level(LevelFilter::Debug);
    }
}
