//! Finds the keywords of all rules in one pass over a text. Uses a small hash table instead of an automaton, because
//! it is built in microseconds and keeps the hook programs small.

/// How many bytes at the start of each keyword are hashed. Shorter keywords are not supported.
const PREFIX_BYTES: usize = 3;
const HASH_BITS: u32 = 15;

/// A set of keywords, each with the rule that owns it.
pub(crate) struct KeywordIndex<R> {
    keywords: Vec<Keyword<R>>,
    /// For each hash, the number of the last keyword that has it, counted from 1; 0 for none.
    last_number_by_hash: Vec<u16>,
}

struct Keyword<R> {
    text: &'static str,
    owner: R,
    /// The number of the previous keyword with the same hash, counted from 1; 0 for none.
    previous_with_same_hash: u16,
}

impl<R: Copy> KeywordIndex<R> {
    /// Builds the index. Keywords are ASCII and are matched in any case. A keyword shorter than three bytes is
    /// ignored.
    pub(crate) fn new(keywords_and_owners: Vec<(&'static str, R)>) -> KeywordIndex<R> {
        let mut last_number_by_hash = vec![0; 1 << HASH_BITS];
        let mut keywords: Vec<Keyword<R>> = Vec::with_capacity(keywords_and_owners.len());
        for (text, owner) in keywords_and_owners.into_iter().filter(|(text, _)| text.len() >= PREFIX_BYTES) {
            let slot = hash_prefix(text.as_bytes().iter().take(PREFIX_BYTES).fold(0, append_lowercase_byte));
            keywords.push(Keyword { text, owner, previous_with_same_hash: last_number_by_hash[slot] });
            last_number_by_hash[slot] = u16::try_from(keywords.len()).unwrap_or_default();
        }
        KeywordIndex { keywords, last_number_by_hash }
    }

    /// Calls `report` for each occurrence of each keyword, with its owner, start and end.
    pub(crate) fn find_all_ignoring_case(&self, text: &[u8], report: &mut dyn FnMut(R, usize, usize)) {
        let mut prefix = text.iter().take(PREFIX_BYTES - 1).fold(0, append_lowercase_byte);
        for (start, byte) in text.iter().skip(PREFIX_BYTES - 1).enumerate() {
            prefix = append_lowercase_byte(prefix, byte);
            let mut keyword_number = self.last_number_by_hash[hash_prefix(prefix)];
            while let Some(keyword) =
                usize::from(keyword_number).checked_sub(1).map(|index| &self.keywords[index])
            {
                let end = start + keyword.text.len();
                if text
                    .get(start..end)
                    .is_some_and(|candidate| candidate.eq_ignore_ascii_case(keyword.text.as_bytes()))
                {
                    report(keyword.owner, start, end);
                }
                keyword_number = keyword.previous_with_same_hash;
            }
        }
    }
}

/// Returns the last two bytes of the prefix followed by the new byte in lower case.
fn append_lowercase_byte(prefix: u32, byte: &u8) -> u32 {
    (prefix << 8 | u32::from(byte.to_ascii_lowercase())) & 0x00ff_ffff
}

fn hash_prefix(prefix: u32) -> usize {
    (prefix.wrapping_mul(0x9e37_79b1) >> (u32::BITS - HASH_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_occurrence_is_reported_whatever_its_case() {
        let words = vec![("sk-", 1), ("sk-ant-", 2), ("://", 3), ("SECRET", 4), ("secret_key", 5), ("ab", 6)];
        let keywords = KeywordIndex::new(words);
        let mut reported = Vec::new();
        keywords.find_all_ignoring_case(
            "x SK-ant-://sEcReT_key sk-ab".as_bytes(),
            &mut |owner, start, end| {
                reported.push((owner, start, end));
            },
        );
        reported.sort_unstable();
        assert_eq!(reported, [(1, 2, 5), (1, 23, 26), (2, 2, 9), (3, 9, 12), (4, 12, 18), (5, 12, 22)]);
        keywords.find_all_ignoring_case(b"sk", &mut |_, _, _| panic!("too short"));
        keywords.find_all_ignoring_case(b"", &mut |_, _, _| panic!("nothing"));
    }
}
