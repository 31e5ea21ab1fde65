//! RULE: how the optional programs speak HTTP. `linear-client` and `otel` use it, and nothing else links it.
//!
//! An agent follows no redirect, so that headers with a key go nowhere but to their address; a status is an answer, not an error;
//! this computer is asked without a proxy, which would look for the address on its own computer.
//!
//! Whom we trust: the certificates of this computer, as its other programs do (`SSL_CERT_FILE` and `SSL_CERT_DIR` come first).
//! People follow proxies with certificates of their own, and a list of ours would grow old.

use std::sync::Arc;
use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// No server can be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// This computer has no root certificates.
    #[error("no root certificates were found on this computer{}", colon(.0))]
    NoRoots(String),
    /// What the user named holds none.
    #[error("it holds no certificate (PEM)")]
    NotPem,
}

fn colon(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

/// True for an address on this computer.
pub fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost",
    }
}

/// An agent for one address. `roots` are certificates (PEM) that are trusted instead of this computer's own.
///
/// # Errors
/// If the address is spoken to with TLS and nobody can be trusted.
pub fn agent(uri: &Uri, user_agent: &str, roots: Option<&[u8]>) -> Result<Agent, TrustError> {
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(user_agent);
    if is_loopback(uri) {
        config = config.proxy(None);
    }
    if uri.scheme_str() == Some("https") {
        config = config.https_only(true).tls_config(tls(roots)?);
    }
    Ok(config.build().new_agent())
}

fn tls(roots: Option<&[u8]>) -> Result<TlsConfig, TrustError> {
    let roots = match roots {
        Some(pem) => named(pem)?,
        None => native()?,
    };
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}

fn named(pem: &[u8]) -> Result<Vec<Certificate<'static>>, TrustError> {
    let items = ureq::tls::parse_pem(pem).filter_map(Result::ok);
    let certificates = items.filter_map(|item| match item {
        ureq::tls::PemItem::Certificate(certificate) => Some(certificate),
        _ => None,
    });
    let certificates: Vec<Certificate<'static>> = certificates.collect();
    if certificates.is_empty() { Err(TrustError::NotPem) } else { Ok(certificates) }
}

fn native() -> Result<Vec<Certificate<'static>>, TrustError> {
    let found = rustls_native_certs::load_native_certs();
    let roots: Vec<Certificate<'static>> =
        found.certs.iter().map(|one| Certificate::from_der(one.as_ref()).to_owned()).collect();
    if roots.is_empty() {
        let why = found.errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        return Err(TrustError::NoRoots(why));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_computer_is_known_by_its_addresses() {
        for (address, expected) in [
            ("http://127.0.0.1:4318/v1/traces", true),
            ("http://localhost:4318", true),
            ("https://[::1]:4318/", true),
            ("http://localhost.example.com/", false),
            ("http://10.0.0.1:4318", false),
        ] {
            assert_eq!(is_loopback(&address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn what_the_user_trusts_must_be_a_certificate() {
        let uri: Uri = "https://collector.example.com".parse().unwrap();
        for pem in
            [&b""[..], b"not a certificate", b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"]
        {
            assert_eq!(agent(&uri, "x", Some(pem)).unwrap_err(), TrustError::NotPem);
        }
    }
}
