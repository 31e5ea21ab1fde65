//! RULE: HTTP and TLS for the optional programs. Only `linear` and `otel` link this crate, and only this crate uses `ureq`.
//!
//! A [`Client`] sends one request after another to one address. It follows no redirect, so that headers with a key are sent only to
//! that address. An HTTP error status is a response, not an error. Requests to this computer use no proxy, because a proxy would
//! connect to its own loopback address.
//!
//! The client trusts the certificates of this computer, as its other programs do (`SSL_CERT_FILE` and `SSL_CERT_DIR` come first).
//! A built-in list would become outdated, and would not contain the certificates of company proxies.
//!
//! Limits: it does not retry. Its callers know which responses are worth a retry, and write the message for each error.

mod client;
mod error;
mod response;
mod trust;

pub use client::{Client, is_loopback_or_localhost};
pub use error::RequestError;
pub use response::Response;
pub use trust::TrustError;
pub use ureq::http::Uri;
