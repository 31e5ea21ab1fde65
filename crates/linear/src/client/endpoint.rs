//! The address of the API: Linear's public address, or a custom one for tests and gateways.

use super::error::LinearError;
use plimsoll_network::Uri;

const DEFAULT_URL: &str = "https://api.linear.app/graphql";

/// A valid API address, to which the key may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint(Uri);

impl Endpoint {
    /// Parses `custom_url`, or uses Linear's public address if it is `None`. Plain HTTP is allowed only on loopback.
    pub(crate) fn from_url_or_default(custom_url: Option<&str>) -> Result<Endpoint, LinearError> {
        let url = custom_url.unwrap_or(DEFAULT_URL).trim();
        let invalid_endpoint = |problem| LinearError::InvalidEndpoint { problem };
        let uri: Uri = url.parse().map_err(|_| invalid_endpoint("it is not an address"))?;
        let authority = uri.authority().ok_or(invalid_endpoint("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(invalid_endpoint("it contains a name or a password"));
        }
        let is_loopback = plimsoll_network::is_loopback_or_localhost(&uri);
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") if is_loopback => {}
            Some("http") => {
                return Err(invalid_endpoint("without https only this computer (127.0.0.1) is allowed"));
            }
            _ => return Err(invalid_endpoint("it must begin with https://")),
        }
        Ok(Endpoint(uri))
    }

    pub(crate) fn host(&self) -> &str {
        self.0.host().unwrap_or_default().trim_matches(['[', ']'])
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_and_loopback_addresses_are_accepted() {
        for allowed in [
            "https://api.linear.app/graphql",
            "https://gateway.example.com:8443/linear",
            "http://127.0.0.1:4000/graphql",
            "http://localhost/graphql",
            "http://[::1]:4000/",
        ] {
            assert_eq!(Endpoint::from_url_or_default(Some(allowed)).unwrap().uri().to_string(), allowed);
        }
        assert_eq!(Endpoint::from_url_or_default(None).unwrap().host(), "api.linear.app");
        for rejected in [
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
            assert!(Endpoint::from_url_or_default(Some(rejected)).is_err(), "{rejected}");
        }
    }
}
