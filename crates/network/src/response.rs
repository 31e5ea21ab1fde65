//! The answer to a request.

use crate::error::RequestError;

/// An answer, whatever its status.
#[derive(Debug)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The headers' names and values.
    pub headers: Vec<(String, String)>,
    /// The body, or why it could not be read: the status is known all the same.
    pub body: Result<Vec<u8>, RequestError>,
}

impl Response {
    /// Returns the value of a header by its name, in letters of either case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let named = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }
}
