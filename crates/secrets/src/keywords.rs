//! Where the keywords of all rules are in a text, in one pass. A table of some lines instead of an automaton: it is made
//! in microseconds, and a hook program stays as small as it has to be.

/// How many bytes of each keyword are looked up; none is shorter.
const KEY: usize = 3;
const BITS: u32 = 15;

/// Some words, and who waits for each.
pub(crate) struct Keywords<R> {
    words: Vec<Word<R>>,
    /// For each hash of three bytes the last word with it, counted from 1; 0 for none.
    last: Vec<u16>,
}

struct Word<R> {
    word: &'static str,
    reader: R,
    /// The word before it with the same hash, counted from 1.
    before: u16,
}

impl<R: Copy> Keywords<R> {
    /// Words in ASCII, of three bytes at least, of which capital and small letters are the same.
    pub(crate) fn new(wanted: Vec<(&'static str, R)>) -> Keywords<R> {
        let mut last = vec![0; 1 << BITS];
        let mut words: Vec<Word<R>> = Vec::with_capacity(wanted.len());
        for (word, reader) in wanted.into_iter().filter(|(word, _)| word.len() >= KEY) {
            let place = hash(word.as_bytes().iter().take(KEY).fold(0, rolled));
            words.push(Word { word, reader, before: last[place] });
            last[place] = u16::try_from(words.len()).unwrap_or_default();
        }
        Keywords { words, last }
    }

    /// Reports each place of each word: the rule that waits for it, where it begins and ends.
    pub(crate) fn find(&self, text: &[u8], tell: &mut dyn FnMut(R, usize, usize)) {
        let mut key = text.iter().take(KEY - 1).fold(0, rolled);
        for (start, byte) in text.iter().skip(KEY - 1).enumerate() {
            key = rolled(key, byte);
            let mut number = self.last[hash(key)];
            while let Some(known) = usize::from(number).checked_sub(1).map(|number| &self.words[number]) {
                let end = start + known.word.len();
                if text.get(start..end).is_some_and(|said| said.eq_ignore_ascii_case(known.word.as_bytes())) {
                    tell(known.reader, start, end);
                }
                number = known.before;
            }
        }
    }
}

/// The last three bytes, in small letters.
fn rolled(key: u32, byte: &u8) -> u32 {
    (key << 8 | u32::from(byte.to_ascii_lowercase())) & 0x00ff_ffff
}

fn hash(key: u32) -> usize {
    (key.wrapping_mul(0x9e37_79b1) >> (u32::BITS - BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_every_word_is_told_whatever_its_case() {
        let words = vec![("sk-", 1), ("sk-ant-", 2), ("://", 3), ("SECRET", 4), ("secret_key", 5), ("ab", 6)];
        let keywords = Keywords::new(words);
        let mut told = Vec::new();
        keywords.find("x SK-ant-://sEcReT_key sk-ab".as_bytes(), &mut |who, start, end| {
            told.push((who, start, end));
        });
        told.sort_unstable();
        assert_eq!(told, [(1, 2, 5), (1, 23, 26), (2, 2, 9), (3, 9, 12), (4, 12, 18), (5, 12, 22)]);
        keywords.find(b"sk", &mut |_, _, _| panic!("too short"));
        keywords.find(b"", &mut |_, _, _| panic!("nothing"));
    }
}
