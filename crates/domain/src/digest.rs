//! SHA-256 in hexadecimal.

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of the concatenated parts, in lower-case hexadecimal.
pub fn sha256_hex(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    to_hex(&hasher.finalize())
}

/// Formats bytes in lower-case hexadecimal.
pub fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let to_hex_digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [to_hex_digit(byte >> 4), to_hex_digit(*byte)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_matches_the_published_test_vector() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(&[b"abc"]), abc);
        assert_eq!(sha256_hex(&[b"a", b"", b"bc"]), abc);
    }
}
