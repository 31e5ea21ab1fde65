//! How foreign words and pages reach a reader.

pub(crate) mod redact;
pub(crate) mod visible;
pub(crate) mod web_page;
