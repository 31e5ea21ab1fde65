//! Finds UTF-16 text anywhere in a file, without knowing the encoding in advance.

/// Shorter runs are chance.
const MIN_RUN_LETTERS: usize = 8;

/// Returns the runs of two-byte letters, one per line: in either byte order, with or without a byte order
/// mark, at even and odd offsets.
pub(crate) fn extract_utf16_runs(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut position = 0;
    while let Some(zero) = bytes[position..].iter().position(|byte| *byte == 0) {
        // A range of zeros only is skipped.
        let zeros = bytes[position + zero..].iter().take_while(|byte| **byte == 0).count();
        let last_zero = zero + zeros - 1;
        // In little-endian order the letter precedes its zero, in big-endian order it follows it. The letters
        // are the same.
        let zero_position = position + last_zero;
        let start = if zero_position > 0 && is_text_byte(bytes[zero_position - 1]) {
            zero_position - 1
        } else {
            zero_position + 1
        };
        let (letters, end) = read_run(bytes, start);
        if letters.len() >= MIN_RUN_LETTERS {
            text.push_str(&letters);
            text.push('\n');
        }
        position = end.max(zero_position + 1).min(bytes.len());
    }
    text
}

/// Reads letters with a zero after each, and returns them with the position after the run.
fn read_run(bytes: &[u8], start: usize) -> (String, usize) {
    let mut letters = String::new();
    let mut position = start;
    while bytes.get(position).is_some_and(|byte| is_text_byte(*byte)) {
        letters.push(char::from(bytes[position]));
        position += 1;
        if bytes.get(position) != Some(&0) {
            break;
        }
        position += 1;
    }
    (letters, position)
}

fn is_text_byte(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~') || byte >= 0xa0
}
