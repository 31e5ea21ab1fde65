//! An HTTP client for one URI.

use crate::error::RequestError;
use crate::response::Response;
use crate::trust::{TrustError, build_tls_config};
use std::time::Duration;
use ureq::Agent;
use ureq::http::Uri;

/// Returns true if the host is a loopback address or `localhost`.
pub fn is_loopback_or_localhost(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost",
    }
}

/// An HTTP client that sends requests to one URI. It follows no redirects, and uses no proxy for a loopback address.
#[derive(Debug)]
pub struct Client {
    agent: Agent,
    uri: Uri,
}

impl Client {
    /// Creates a client without connecting. `root_certificates_pem` are certificates to trust instead of the system's.
    ///
    /// # Errors
    /// If the URI uses HTTPS and no root certificate is available.
    pub fn new(
        uri: &Uri,
        user_agent: &str,
        root_certificates_pem: Option<&[u8]>,
    ) -> Result<Client, TrustError> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(user_agent);
        if is_loopback_or_localhost(uri) {
            config = config.proxy(None);
        }
        if uri.scheme_str() == Some("https") {
            config = config.https_only(true).tls_config(build_tls_config(root_certificates_pem)?);
        }
        Ok(Client { agent: config.build().new_agent(), uri: uri.clone() })
    }

    /// Sends a POST request and reads the response, with any HTTP status, within `timeout`. A response body of more than
    /// `max_response_bytes` bytes is an error in [`Response::body`].
    ///
    /// # Errors
    /// If no response header arrives. If reading the body fails, only [`Response::body`] is an error.
    pub fn post(
        &self,
        headers: &[(&str, &str)],
        body: &[u8],
        timeout: Duration,
        max_response_bytes: u64,
    ) -> Result<Response, RequestError> {
        let request = self.agent.post(&self.uri).config().timeout_global(Some(timeout)).build();
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let mut response = request.send(body)?;
        let to_lossy_text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers = response.headers().iter();
        Ok(Response {
            status: response.status().as_u16(),
            headers: headers
                .map(|(name, value)| (name.as_str().to_owned(), to_lossy_text(value.as_bytes())))
                .collect(),
            body: response
                .body_mut()
                .with_config()
                .limit(max_response_bytes)
                .read_to_vec()
                .map_err(RequestError::from),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_and_localhost_are_this_computer() {
        for (address, expected) in [
            ("http://127.0.0.1:4318/v1/traces", true),
            ("http://localhost:4318", true),
            ("https://[::1]:4318/", true),
            ("http://localhost.example.com/", false),
            ("http://10.0.0.1:4318", false),
        ] {
            assert_eq!(is_loopback_or_localhost(&address.parse().unwrap()), expected, "{address}");
        }
    }
}
