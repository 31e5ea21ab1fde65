//! Ids as the protocol has them.

/// The bytes of hexadecimal digits.
pub(crate) fn bytes_of(hexadecimal: &str) -> Vec<u8> {
    let pair = |at: usize| hexadecimal.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..hexadecimal.len()).step_by(2).filter_map(pair).collect()
}
