//! Finds UTF-16 text anywhere in a file, without knowing the encoding in advance.

/// The minimum length of a run, as UTF-8. Shorter runs are usually not text.
const MIN_RUN_BYTES: usize = 8;

/// Returns the runs of UTF-16 characters below U+0100, one run per line. Finds them in either byte order, with or without
/// a byte order mark, at even and odd offsets.
pub(crate) fn extract_latin1_utf16_runs(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut position = 0;
    while let Some(zero_offset) = bytes[position..].iter().position(|byte| *byte == 0) {
        // Skips all zeros but the last of a sequence.
        let zero_count = bytes[position + zero_offset..].iter().take_while(|byte| **byte == 0).count();
        let last_zero_offset = zero_offset + zero_count - 1;
        // In little-endian order the character precedes its zero byte, in big-endian order it follows it. The result
        // is the same.
        let zero_position = position + last_zero_offset;
        let start = if zero_position > 0 && is_text_byte(bytes[zero_position - 1]) {
            zero_position - 1
        } else {
            zero_position + 1
        };
        let (run_text, end) = read_latin1_utf16_run(bytes, start);
        if run_text.len() >= MIN_RUN_BYTES {
            text.push_str(&run_text);
            text.push('\n');
        }
        position = end.max(zero_position + 1).min(bytes.len());
    }
    text
}

/// Reads characters that are each followed by a zero byte. Returns them and the position after the run.
fn read_latin1_utf16_run(bytes: &[u8], start: usize) -> (String, usize) {
    let mut run_text = String::new();
    let mut position = start;
    while bytes.get(position).is_some_and(|byte| is_text_byte(*byte)) {
        run_text.push(char::from(bytes[position]));
        position += 1;
        if bytes.get(position) != Some(&0) {
            break;
        }
        position += 1;
    }
    (run_text, position)
}

fn is_text_byte(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~') || byte >= 0xa0
}
