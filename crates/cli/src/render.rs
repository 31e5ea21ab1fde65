//! How foreign words and pages reach a reader outside the terminal.

pub(crate) mod redact;
pub(crate) mod visible;
pub(crate) mod web_page;
