//! Turns bytes into choices, so that a small change of a fuzzer's input is a small change of the test case.

/// A byte string that values are drawn from. When it is used up, everything drawn is zero or empty.
pub(crate) struct Draw<'a>(&'a [u8]);

impl<'a> Draw<'a> {
    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Draw<'a> {
        Draw(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() % 2 == 1
    }

    /// Returns a number of any size; most are small, some are at a limit of their type.
    pub(crate) fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..200 => u64::from(small),
            200..220 => u64::from(self.byte()) * 10_000,
            220..240 => u64::from(self.byte()) << (self.byte() % 56),
            240..250 => u64::MAX - u64::from(self.byte()),
            _ => 9_007_199_254_740_992 + u64::from(self.byte()),
        }
    }

    /// Takes this many bytes, or all that are left.
    pub(crate) fn take_bytes(&mut self, max_length: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(max_length.min(self.0.len()));
        self.0 = rest;
        head
    }

    /// Returns a text, sometimes repeated until it is long. Only one value of the first byte draws a text beyond the limits: with
    /// more of them most inputs of a fuzzer consisted of long texts and took ten times as long.
    pub(crate) fn text(&mut self) -> String {
        let (length, times) = match self.byte() {
            254 => (usize::from(self.byte() % 8), 1 + usize::from(self.byte()) * 2),
            length => (usize::from(length % 32), 1),
        };
        String::from_utf8_lossy(self.take_bytes(length)).repeat(times)
    }

    /// Returns one of these texts, or any text.
    pub(crate) fn one_of_or_text(&mut self, choices: &[&str]) -> String {
        match usize::from(self.byte()) {
            index if index < choices.len() * 8 => choices[index % choices.len()].to_owned(),
            _ => self.text(),
        }
    }

    pub(crate) fn optional<T>(&mut self, draw_value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| draw_value(self))
    }

    pub(crate) fn list<T>(&mut self, max_length: u8, mut draw_element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.byte() % (max_length + 1)).map(|_| draw_element(self)).collect()
    }
}

/// Splits an input at its first 0xff byte, which occurs in no UTF-8 text.
pub(crate) fn split_at_separator(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == 0xff) {
        Some(index) => (&bytes[..index], &bytes[index + 1..]),
        None => (bytes, &[]),
    }
}

/// Returns a number that depends on every byte, for choices in inputs that have no bytes for them.
pub(crate) fn hash_of_bytes(bytes: &[u8]) -> usize {
    let hash = bytes.iter().fold(17_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)));
    (hash >> 7) as usize
}
