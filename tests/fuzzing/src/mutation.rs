//! A simple byte mutator with a fixed seed: it produces the same inputs on every machine.

/// Fragments that parsers are likely to mishandle.
const SPLICED_FRAGMENTS: [&[u8]; 34] = [
    b"null",
    b"true",
    b"-1",
    b"0.5",
    b"1e308",
    b"1e400",
    b"18446744073709551615",
    b"9007199254740993",
    b"[]",
    b"{}",
    b"\"\"",
    b"[[[[[[[[",
    b"{\"a\":",
    b"\"\\ud83d\"",
    b"\\u0000",
    b"\\",
    b"\"",
    b"\n",
    b"\r\n",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xae",
    b"\xf0\x9f\x91\xa9\xe2\x80\x8d",
    b"\xcc\x81",
    b"\x1b[31m",
    b"\x1b]0;x\x07",
    b"\xc2\x9b2J",
    b"<!--",
    b"-->",
    b"|",
    b"- [x] ",
    b"```",
    b"</plimsoll-memory>",
    b"$blob",
];
/// Longer inputs are truncated.
const MAX_INPUT_BYTES: usize = 64 * 1024;

/// Makes fuzzing inputs by mutating seeds.
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// Creates a mutator that always produces the same inputs for the same name.
    pub fn new(name: &str) -> Mutator {
        let state = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Mutator { state }
    }

    /// Returns a random seed with a few changes.
    pub fn mutated_seed(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seeds.get(self.random_below(seeds.len())).cloned().unwrap_or_default();
        for _ in 0..=self.random_below(4) {
            self.mutate(&mut bytes, seeds);
        }
        bytes.truncate(MAX_INPUT_BYTES);
        bytes
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let range_start = self.random_below(bytes.len() + 1);
        let range_end = (range_start + 1 + self.random_below(16)).min(bytes.len());
        match self.random_below(7) {
            0 if range_start < bytes.len() => bytes[range_start] ^= 1 << self.random_below(8),
            1 if range_start < bytes.len() => bytes[range_start] = self.random_below(256) as u8,
            2 => drop(bytes.drain(range_start..range_end)),
            3 => {
                let word = SPLICED_FRAGMENTS[self.random_below(SPLICED_FRAGMENTS.len())];
                drop(bytes.splice(range_start..range_end, word.iter().copied()));
            }
            4 => {
                let word = SPLICED_FRAGMENTS[self.random_below(SPLICED_FRAGMENTS.len())];
                drop(bytes.splice(range_start..range_start, word.iter().copied()));
            }
            5 => {
                let piece = bytes[range_start..range_end].to_vec();
                let insert_at = self.random_below(bytes.len() + 1);
                drop(bytes.splice(insert_at..insert_at, piece));
            }
            _ => {
                let Some(other_seed) = seeds.get(self.random_below(seeds.len())) else { return };
                let start = self.random_below(other_seed.len() + 1);
                let end = (start + self.random_below(200)).min(other_seed.len());
                drop(bytes.splice(range_start..range_end, other_seed[start..end].iter().copied()));
            }
        }
    }

    fn random_below(&mut self, limit: usize) -> usize {
        // xorshift64*: short, and random enough for mutations.
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let random = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        if limit == 0 { 0 } else { random as usize % limit }
    }
}
