//! The digest of a script, as a page's policy names it.

/// Hexadecimal as base 64.
pub(super) fn base64_of_hex(hex: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let bytes: Vec<u32> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte * 16 + digit)).collect();
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let all = (0..3).fold(0, |all, place| all << 8 | part.get(place).copied().unwrap_or(0));
        for place in 0..4 {
            let letter = LETTERS[(all >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= part.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_the_one_of_the_standard() {
        for (hex, expected) in
            [("", ""), ("66", "Zg=="), ("666f", "Zm8="), ("666f6f", "Zm9v"), ("666f6f62", "Zm9vYg==")]
        {
            assert_eq!(base64_of_hex(hex), expected);
        }
    }
}
