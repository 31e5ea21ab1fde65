//! Whose certificate a connection accepts. libpq has weaker answers than browsers do: anybody's, or that of any server of the
//! right authority.

use crate::settings::Trust;
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

/// Why no certificate can be checked.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file is not there.
    #[error("the file of root certificates {0} is not there (sslrootcert)")]
    NoFile(PathBuf),
    /// It is something else.
    #[error("{0} holds no certificate (PEM)")]
    NotPem(PathBuf),
    /// It cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This computer trusts nobody.
    #[error("no root certificates were found on this computer (sslrootcert=system)")]
    NoSystemRoots,
    /// The library refused.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] Error),
}

/// What TLS connections are made with.
pub(crate) fn config(trust: &Trust) -> Result<ClientConfig, TrustError> {
    let provider = Arc::new(ring::default_provider());
    let authorities = match trust {
        Trust::Anyone => None,
        Trust::File { path, by_name } => Some(Authorities::new(named(path)?, *by_name)),
        Trust::System => Some(Authorities::new(native()?, true)),
    };
    let verifier = Arc::new(Verifier { authorities, provider: Arc::clone(&provider) });
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn named(path: &Path) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let pem = disk::read(path)?.ok_or_else(|| TrustError::NoFile(path.to_owned()))?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
    if found.is_empty() { Err(TrustError::NotPem(path.to_owned())) } else { Ok(found) }
}

fn native() -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() { Err(TrustError::NoSystemRoots) } else { Ok(found) }
}

#[derive(Debug)]
struct Authorities {
    roots: RootCertStore,
    /// The same, to compare: PostgreSQL's manual makes a server's certificate that is its own authority, and by the rules of the
    /// web an authority's certificate is no server's.
    certificates: Vec<CertificateDer<'static>>,
    by_name: bool,
}

impl Authorities {
    fn new(certificates: Vec<CertificateDer<'static>>, by_name: bool) -> Authorities {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        Authorities { roots, certificates, by_name }
    }
}

#[derive(Debug)]
struct Verifier {
    /// None for anybody's.
    authorities: Option<Authorities>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
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
        if !authorities.certificates.iter().any(|known| known == end_entity) {
            let algorithms = self.provider.signature_verification_algorithms.all;
            let (roots, others) = (&authorities.roots, intermediates);
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, others, now, algorithms)?;
        }
        if authorities.by_name {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    // Whoever is accepted has to have the key of what it shows, in any mode.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
