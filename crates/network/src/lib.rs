//! RULE: HTTP and TLS for the optional programs. `linear` and `otel` use it, and nothing else links it; only it knows `ureq`.
//!
//! A [`Client`] sends one request after another to one address. It follows no redirect, so that headers with a key go nowhere but
//! to their address. A status is an answer, not an error. This computer is asked without a proxy, which would look for the address
//! on its own computer.
//!
//! The client trusts the certificates of this computer, as its other programs do (`SSL_CERT_FILE` and `SSL_CERT_DIR` come first).
//! People follow proxies with certificates of their own, and a list of ours would grow old.
//!
//! Limits: it repeats nothing. Its callers know which answers are worth another try, and have the words for each fault.

mod client;
mod error;
mod response;
mod trust;

pub use client::{Client, is_loopback};
pub use error::RequestError;
pub use response::Response;
pub use trust::TrustError;
pub use ureq::http::Uri;
