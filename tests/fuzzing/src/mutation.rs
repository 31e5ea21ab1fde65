//! A simple byte mutator with a seed: the same inputs on every machine.

/// Words that parsers stumble over.
const WORDS: [&[u8]; 34] = [
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
/// No input grows beyond this.
const LONGEST: usize = 64 * 1024;

/// Makes inputs of seeds.
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// One whose inputs are the same for the same name.
    pub fn new(name: &str) -> Mutator {
        let state = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Mutator { state }
    }

    /// A seed with a few changes.
    pub fn input(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seeds.get(self.below(seeds.len())).cloned().unwrap_or_default();
        for _ in 0..=self.below(4) {
            self.change(&mut bytes, seeds);
        }
        bytes.truncate(LONGEST);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let from = self.below(bytes.len() + 1);
        let to = (from + 1 + self.below(16)).min(bytes.len());
        match self.below(7) {
            0 if from < bytes.len() => bytes[from] ^= 1 << self.below(8),
            1 if from < bytes.len() => bytes[from] = self.below(256) as u8,
            2 => drop(bytes.drain(from..to)),
            3 => {
                let word = WORDS[self.below(WORDS.len())];
                drop(bytes.splice(from..to, word.iter().copied()));
            }
            4 => {
                let word = WORDS[self.below(WORDS.len())];
                drop(bytes.splice(from..from, word.iter().copied()));
            }
            5 => {
                let piece = bytes[from..to].to_vec();
                let at = self.below(bytes.len() + 1);
                drop(bytes.splice(at..at, piece));
            }
            _ => {
                let Some(other) = seeds.get(self.below(seeds.len())) else { return };
                let start = self.below(other.len() + 1);
                let end = (start + self.below(200)).min(other.len());
                drop(bytes.splice(from..to, other[start..end].iter().copied()));
            }
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        // xorshift64*: short, and good enough for this.
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let drawn = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        if limit == 0 { 0 } else { drawn as usize % limit }
    }
}
