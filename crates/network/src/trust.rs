//! Whom a client trusts.

use std::sync::Arc;
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

/// The settings for TLS. `roots` are certificates (PEM) that are trusted instead of this computer's own.
pub(crate) fn tls(roots: Option<&[u8]>) -> Result<TlsConfig, TrustError> {
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
    fn what_the_user_trusts_must_be_a_certificate() {
        for pem in
            [&b""[..], b"not a certificate", b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"]
        {
            assert_eq!(tls(Some(pem)).unwrap_err(), TrustError::NotPem);
        }
    }
}
