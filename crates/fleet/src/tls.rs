//! Verifies server certificates. Some modes of libpq check less than a browser: they accept any certificate, or one of a trusted
//! authority for any host.

use crate::settings::CertificateTrust;
use plimsoll_store::{StoreError, disk};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An error while preparing the certificate check.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("the file of root certificates {0} does not exist (sslrootcert)")]
    NoFile(PathBuf),
    /// The file contains no PEM certificate.
    #[error("{0} has no certificate (PEM)")]
    NoPemCertificate(PathBuf),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("no root certificates were found on this computer (sslrootcert=system)")]
    NoSystemRoots,
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] Error),
}

/// Returns the TLS configuration, which accepts the server certificates that `trust` allows.
pub(crate) fn tls_client_config(trust: &CertificateTrust) -> Result<ClientConfig, TrustError> {
    let provider = Arc::new(ring::default_provider());
    let authorities = match trust {
        CertificateTrust::Any => None,
        CertificateTrust::File { path, checks_host_name } => {
            Some(TrustedAuthorities::new(read_root_certificates(path)?, *checks_host_name))
        }
        CertificateTrust::System => Some(TrustedAuthorities::new(load_system_certificates()?, true)),
    };
    let verifier = Arc::new(CertificateVerifier { authorities, provider: Arc::clone(&provider) });
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn read_root_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let pem = disk::read(path)?.ok_or_else(|| TrustError::NoFile(path.to_owned()))?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
    if certificates.is_empty() {
        Err(TrustError::NoPemCertificate(path.to_owned()))
    } else {
        Ok(certificates)
    }
}

fn load_system_certificates() -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let certificates = rustls_native_certs::load_native_certs().certs;
    if certificates.is_empty() { Err(TrustError::NoSystemRoots) } else { Ok(certificates) }
}

#[derive(Debug)]
struct TrustedAuthorities {
    roots: RootCertStore,
    /// A server certificate that equals one of these is accepted: PostgreSQL's manual suggests a self-signed one, which
    /// `webpki` would reject because an authority's certificate is not valid for a server.
    certificates: Vec<CertificateDer<'static>>,
    checks_host_name: bool,
}

impl TrustedAuthorities {
    fn new(certificates: Vec<CertificateDer<'static>>, checks_host_name: bool) -> TrustedAuthorities {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        TrustedAuthorities { roots, certificates, checks_host_name }
    }
}

#[derive(Debug)]
struct CertificateVerifier {
    /// `None` accepts any certificate.
    authorities: Option<TrustedAuthorities>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else { return Ok(ServerCertVerified::assertion()) };
        let certificate = ParsedCertificate::try_from(end_entity)?;
        if !authorities.certificates.iter().any(|trusted| trusted == end_entity) {
            let algorithms = self.provider.signature_verification_algorithms.all;
            let (roots, intermediate_certificates) = (&authorities.roots, intermediates);
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                roots,
                intermediate_certificates,
                now,
                algorithms,
            )?;
        }
        if authorities.checks_host_name {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    // In every mode, the server must prove that it has the private key of its certificate.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
