//! The response to a request.

use crate::error::RequestError;

/// An HTTP response with any status.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body, or why it could not be read. The status is valid in both cases.
    pub body: Result<Vec<u8>, RequestError>,
}

impl Response {
    /// Returns the value of a header by its name, ignoring case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let matching_header =
            self.headers.iter().find(|(header_name, _)| header_name.eq_ignore_ascii_case(name));
        matching_header.map(|(_, value)| value.as_str())
    }
}
