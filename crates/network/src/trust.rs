//! The root certificates that a client trusts.

use std::sync::Arc;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// The error if there is no root certificate to verify servers with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// The system has no root certificates. Contains the errors that occurred while loading them.
    #[error("no root certificates were found on this computer{}", prefix_with_colon(.0))]
    NoRoots(String),
    /// The user's PEM text contains no valid certificate.
    #[error("it has no certificate (PEM)")]
    NoCertificateInPem,
}

fn prefix_with_colon(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// Builds the TLS settings. `root_certificates_pem` are certificates to trust instead of the system's.
pub(crate) fn build_tls_config(root_certificates_pem: Option<&[u8]>) -> Result<TlsConfig, TrustError> {
    let root_certificates = match root_certificates_pem {
        Some(pem) => parse_valid_pem_certificates(pem)?,
        None => load_system_root_certificates()?,
    };
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(root_certificates)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}

fn parse_valid_pem_certificates(pem: &[u8]) -> Result<Vec<Certificate<'static>>, TrustError> {
    let pem_items = ureq::tls::parse_pem(pem).filter_map(Result::ok);
    let certificates = pem_items.filter_map(|item| match item {
        ureq::tls::PemItem::Certificate(certificate) => Some(certificate),
        _ => None,
    });
    let certificates: Vec<Certificate<'static>> = certificates.collect();
    if certificates.is_empty() { Err(TrustError::NoCertificateInPem) } else { Ok(certificates) }
}

fn load_system_root_certificates() -> Result<Vec<Certificate<'static>>, TrustError> {
    let load_result = rustls_native_certs::load_native_certs();
    let root_certificates: Vec<Certificate<'static>> = load_result
        .certs
        .iter()
        .map(|certificate| Certificate::from_der(certificate.as_ref()).to_owned())
        .collect();
    if root_certificates.is_empty() {
        let errors = load_result.errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        return Err(TrustError::NoRoots(errors));
    }
    Ok(root_certificates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_without_a_certificate_is_rejected() {
        for pem in
            [&b""[..], b"not a certificate", b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"]
        {
            assert_eq!(build_tls_config(Some(pem)).unwrap_err(), TrustError::NoCertificateInPem);
        }
    }
}
