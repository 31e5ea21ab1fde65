//! What a filter says beside its answers, with `debug`, `stderr` and `halt_error`: on standard error. jaq hands it
//! to a logger.

use ::log::{LevelFilter, Log, Metadata, Record};
use plimsoll_terminal::console;

struct StandardError;

impl Log for StandardError {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("jaq")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let words = match record.level() {
                ::log::Level::Debug => format!("[\"DEBUG:\",{}]", record.args()),
                _ => record.args().to_string(),
            };
            console::note(words.trim_end_matches('\n'));
        }
    }

    fn flush(&self) {}
}

/// Lets it be heard.
pub(super) fn listen() {
    if ::log::set_logger(&StandardError).is_ok() {
        ::log::set_max_level(LevelFilter::Debug);
    }
}
