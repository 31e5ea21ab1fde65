//! UTF-16 without being told so: text of two bytes a letter is read as what it says, wherever it is in a file.

/// Fewer letters are chance.
const LEAST: usize = 8;

/// The runs of letters of two bytes, one a line: of either order, with or without a mark, at even and odd places.
pub(crate) fn runs(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut place = 0;
    while let Some(zero) = bytes[place..].iter().position(|byte| *byte == 0) {
        // Where there are only zeros, nothing is written.
        let zeros = bytes[place + zero..].iter().take_while(|byte| **byte == 0).count();
        let zero = zero + zeros - 1;
        // In the order of Intel the letter precedes its zero, in the other behind it: the letters are the same.
        let zero = place + zero;
        let start = if zero > 0 && is_letter(bytes[zero - 1]) { zero - 1 } else { zero + 1 };
        let (run, end) = run(bytes, start);
        if run.len() >= LEAST {
            text.push_str(&run);
            text.push('\n');
        }
        place = end.max(zero + 1).min(bytes.len());
    }
    text
}

/// Letters with a zero between them, from here on.
fn run(bytes: &[u8], start: usize) -> (String, usize) {
    let mut run = String::new();
    let mut place = start;
    while bytes.get(place).is_some_and(|byte| is_letter(*byte)) {
        run.push(char::from(bytes[place]));
        place += 1;
        if bytes.get(place) != Some(&0) {
            break;
        }
        place += 1;
    }
    (run, place)
}

fn is_letter(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~') || byte >= 0xa0
}
