//! Where Linear is asked: its own address, or another one for tests and for those who follow a gateway.

use super::error::LinearError;
use plimsoll_network::Uri;

const LINEAR: &str = "https://api.linear.app/graphql";

/// An address that a key may be sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint(Uri);

impl Endpoint {
    /// Linear's own address, unless another is named. Without TLS only this computer is spoken to.
    pub(crate) fn new(named: Option<&str>) -> Result<Endpoint, LinearError> {
        let url = named.unwrap_or(LINEAR).trim();
        let wrong = |what| LinearError::Endpoint { what };
        let uri: Uri = url.parse().map_err(|_| wrong("it is not an address"))?;
        let authority = uri.authority().ok_or(wrong("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("it contains a name or a password"));
        }
        let is_loopback = plimsoll_network::is_loopback(&uri);
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") if is_loopback => {}
            Some("http") => return Err(wrong("without https only this computer (127.0.0.1) is allowed")),
            _ => return Err(wrong("it must begin with https://")),
        }
        Ok(Endpoint(uri))
    }

    /// The computer.
    pub(crate) fn host(&self) -> &str {
        self.0.host().unwrap_or_default().trim_matches(['[', ']'])
    }

    /// The whole address.
    pub(crate) fn uri(&self) -> &Uri {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_to_https_or_to_this_computer() {
        for good in [
            "https://api.linear.app/graphql",
            "https://gateway.example.com:8443/linear",
            "http://127.0.0.1:4000/graphql",
            "http://localhost/graphql",
            "http://[::1]:4000/",
        ] {
            assert_eq!(Endpoint::new(Some(good)).unwrap().uri().to_string(), good);
        }
        assert_eq!(Endpoint::new(None).unwrap().host(), "api.linear.app");
        for bad in [
            "",
            "nowhere",
            "/graphql",
            "ftp://127.0.0.1/",
            "http://api.linear.app/graphql",
            "http://localhost.example.com/",
            "http://localhost@example.com/",
            "https://me:secret@api.linear.app/graphql",
            "http://0.0.0.0:4000/",
        ] {
            assert!(Endpoint::new(Some(bad)).is_err(), "{bad}");
        }
    }
}
