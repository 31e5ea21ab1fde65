//! Converts a script's digest to base64, as a content security policy requires.

/// Converts hexadecimal digits to base64.
pub(super) fn hex_to_base64(hex: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let bytes: Vec<u32> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte * 16 + digit)).collect();
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, byte_index| bits << 8 | chunk.get(byte_index).copied().unwrap_or(0));
        for index in 0..4 {
            let base64_byte = ALPHABET[(bits >> (18 - 6 * index) & 63) as usize];
            text.push(if index <= chunk.len() { char::from(base64_byte) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_the_examples_of_the_standard() {
        for (hex, expected) in
            [("", ""), ("66", "Zg=="), ("666f", "Zm8="), ("666f6f", "Zm9v"), ("666f6f62", "Zm9vYg==")]
        {
            assert_eq!(hex_to_base64(hex), expected);
        }
    }
}
