//! Conversion of ids to the bytes of the protocol.

/// Decodes pairs of hexadecimal digits; pairs with other characters are skipped.
pub(crate) fn decode_hex(hex_digits: &str) -> Vec<u8> {
    let byte_at =
        |index: usize| hex_digits.get(index..index + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..hex_digits.len()).step_by(2).filter_map(byte_at).collect()
}
