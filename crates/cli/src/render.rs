//! Prepares untrusted text and web pages for a reader.

pub(crate) mod redact;
pub(crate) mod visible;
pub(crate) mod web_page;
