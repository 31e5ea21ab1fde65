//! Looking through bytes of any length in bounded memory: windows that overlap, so that nothing is lost between two.

use crate::{detector, wide};
use std::borrow::Cow;

/// How much is searched at once.
const WINDOW: usize = 256 * 1024;
/// How much of it is searched again with the next: no token is longer, and a private key is known by its first line.
const OVERLAP: usize = 8 * 1024;

/// A search through bytes that come piece by piece.
#[derive(Debug, Default)]
pub struct Search {
    window: Vec<u8>,
}

impl Search {
    /// Takes the next bytes; answers the kind of what was found, and then has no need of the rest.
    pub fn read(&mut self, mut bytes: &[u8]) -> Option<&'static str> {
        while self.window.len() + bytes.len() > WINDOW {
            let (now, later) = bytes.split_at(WINDOW.saturating_sub(self.window.len()));
            self.window.extend_from_slice(now);
            if let Some(kind) = kind_in(&self.window) {
                return Some(kind);
            }
            self.window.drain(..self.window.len().saturating_sub(OVERLAP));
            bytes = later;
        }
        self.window.extend_from_slice(bytes);
        None
    }

    /// Looks through what is left.
    pub fn end(&mut self) -> Option<&'static str> {
        let found = kind_in(&self.window);
        self.window.clear();
        found
    }
}

fn kind_in(bytes: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(bytes);
    first_in(&text).or_else(|| {
        let is_wide = matches!(text, Cow::Owned(_)) || bytes.contains(&0);
        if is_wide { first_in(&wide::runs(bytes)) } else { None }
    })
}

fn first_in(text: &str) -> Option<&'static str> {
    let found = detector::find(text);
    found.iter().min_by_key(|found| found.range.start).map(|found| found.kind)
}
