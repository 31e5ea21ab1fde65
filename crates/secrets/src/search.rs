//! Searches bytes of any length for secrets in bounded memory. The search uses windows that overlap, so that it misses
//! nothing at a boundary.

use crate::{detector, utf16};
use std::borrow::Cow;

/// How many bytes are searched at once.
const WINDOW_BYTES: usize = 256 * 1024;
/// How many bytes of a window are searched again with the next one. No token is longer, and a private key is
/// recognized by its first line.
const OVERLAP_BYTES: usize = 8 * 1024;

/// A search through bytes that arrive in chunks.
#[derive(Debug, Default)]
pub struct SecretSearch {
    window: Vec<u8>,
}

impl SecretSearch {
    /// Adds the next bytes and searches each window that they fill; the last, incomplete window is only buffered. Returns
    /// the kind of the first secret found; the caller need not read any further then.
    pub fn push_and_search_full_windows(&mut self, mut bytes: &[u8]) -> Option<&'static str> {
        while self.window.len() + bytes.len() > WINDOW_BYTES {
            let (head, tail) = bytes.split_at(WINDOW_BYTES.saturating_sub(self.window.len()));
            self.window.extend_from_slice(head);
            if let Some(kind) = first_secret_kind_in_window(&self.window) {
                return Some(kind);
            }
            self.window.drain(..self.window.len().saturating_sub(OVERLAP_BYTES));
            bytes = tail;
        }
        self.window.extend_from_slice(bytes);
        None
    }

    /// Searches the buffered bytes that no full window contained, and clears the buffer.
    pub fn search_remaining_bytes(&mut self) -> Option<&'static str> {
        let kind = first_secret_kind_in_window(&self.window);
        self.window.clear();
        kind
    }
}

fn first_secret_kind_in_window(bytes: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(bytes);
    kind_of_first_match(&text).or_else(|| {
        let may_be_utf16 = matches!(text, Cow::Owned(_)) || bytes.contains(&0);
        if may_be_utf16 { kind_of_first_match(&utf16::extract_latin1_utf16_runs(bytes)) } else { None }
    })
}

fn kind_of_first_match(text: &str) -> Option<&'static str> {
    let matches = detector::find_all_matches(text);
    matches.iter().min_by_key(|secret| secret.range.start).map(|secret| secret.kind)
}
