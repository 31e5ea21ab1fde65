//! Whom we trust: the certificates of this computer, as its other programs do. People follow proxies with
//! certificates of their own, and a list of ours would grow old.

use crate::LinearError;
use std::sync::Arc;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// TLS with the roots of this computer (`SSL_CERT_FILE` and `SSL_CERT_DIR` come first).
pub(crate) fn tls() -> Result<TlsConfig, LinearError> {
    let found = rustls_native_certs::load_native_certs();
    let roots: Vec<Certificate<'static>> =
        found.certs.iter().map(|one| Certificate::from_der(one.as_ref()).to_owned()).collect();
    if roots.is_empty() {
        let why = found.errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        return Err(LinearError::Certificates { why });
    }
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}
