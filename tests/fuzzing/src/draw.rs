//! From bytes to choices, so that a fuzzer's small change is a small change of what is tried.

/// Bytes that are drawn from; when they are used up, everything drawn is zero or empty.
pub(crate) struct Draw<'a>(&'a [u8]);

impl<'a> Draw<'a> {
    pub(crate) fn from(bytes: &'a [u8]) -> Draw<'a> {
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

    /// A number of any size; most are small, some lie at an edge.
    pub(crate) fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..200 => u64::from(small),
            200..220 => u64::from(self.byte()) * 10_000,
            220..240 => u64::from(self.byte()) << (self.byte() % 56),
            240..250 => u64::MAX - u64::from(self.byte()),
            _ => 9_007_199_254_740_992 + u64::from(self.byte()),
        }
    }

    /// So many bytes, or what is left.
    pub(crate) fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A text; sometimes repeated until it is long. One byte alone draws a text beyond our limits: with several of them, most inputs
    /// of a fuzzer were of nothing but long texts, and took ten times as long.
    pub(crate) fn text(&mut self) -> String {
        let (length, times) = match self.byte() {
            254 => (usize::from(self.byte() % 8), 1 + usize::from(self.byte()) * 2),
            length => (usize::from(length % 32), 1),
        };
        String::from_utf8_lossy(self.bytes(length)).repeat(times)
    }

    /// One of some texts that mean something here, or any text.
    pub(crate) fn one_of(&mut self, known: &[&str]) -> String {
        match usize::from(self.byte()) {
            place if place < known.len() * 8 => known[place % known.len()].to_owned(),
            _ => self.text(),
        }
    }

    pub(crate) fn some<T>(&mut self, one: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| one(self))
    }

    pub(crate) fn list<T>(&mut self, most: u8, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.byte() % (most + 1)).map(|_| one(self)).collect()
    }
}

/// An input of several parts: 0xff stands between them, which is in no text.
pub(crate) fn parts(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == 0xff) {
        Some(place) => (&bytes[..place], &bytes[place + 1..]),
        None => (bytes, &[]),
    }
}

/// A number that changes with every byte, to choose by where an input has no bytes for choices.
pub(crate) fn dice(bytes: &[u8]) -> usize {
    let mixed = bytes.iter().fold(17_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)));
    (mixed >> 7) as usize
}
