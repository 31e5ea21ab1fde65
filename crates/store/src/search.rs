//! Searching the few kilobytes of a transcript that mostly suffice, by what every processor of its kind can. A longer search asks
//! first what else this one can: inside a virtual machine that takes as long as all the rest that a hook does.

#[cfg(target_arch = "aarch64")]
use memchr::arch::aarch64::neon::memchr::One;
#[cfg(target_arch = "x86_64")]
use memchr::arch::x86_64::sse2::memchr::One;
use memchr::{memchr, memmem, memrchr};

/// From here on a faster search makes up for the question.
const LONG: usize = 32 * 1024;

/// Where the last line break is.
pub(crate) fn last_break(bytes: &[u8]) -> Option<usize> {
    let plain = if bytes.len() < LONG { line_break() } else { None };
    plain.map_or_else(|| memrchr(b'\n', bytes), |plain| plain.rfind(bytes))
}

/// Where the first line break is.
pub(crate) fn first_break(bytes: &[u8]) -> Option<usize> {
    let plain = if bytes.len() < LONG { line_break() } else { None };
    plain.map_or_else(|| memchr(b'\n', bytes), |plain| plain.find(bytes))
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn line_break() -> Option<One> {
    One::new(b'\n')
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn line_break() -> Option<memchr::arch::all::memchr::One> {
    Some(memchr::arch::all::memchr::One::new(b'\n'))
}

/// True if a part occurs.
pub(crate) fn contains(bytes: &[u8], part: &[u8]) -> bool {
    let found = if bytes.len() < LONG { find_plainly(bytes, part) } else { None };
    found.unwrap_or_else(|| memmem::find(bytes, part).is_some())
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn find_plainly(bytes: &[u8], part: &[u8]) -> Option<bool> {
    #[cfg(target_arch = "aarch64")]
    use memchr::arch::aarch64::neon::packedpair::Finder;
    use memchr::arch::all::rabinkarp;
    #[cfg(target_arch = "x86_64")]
    use memchr::arch::x86_64::sse2::packedpair::Finder;
    let finder = Finder::new(part)?;
    if bytes.len() < finder.min_haystack_len() {
        return Some(rabinkarp::Finder::new(part).find(bytes, part).is_some());
    }
    Some(finder.find(bytes, part).is_some())
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn find_plainly(_bytes: &[u8], _part: &[u8]) -> Option<bool> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_search_finds_what_a_long_one_does() {
        let part = b"\"assistant\"";
        for length in [0, 1, 11, 12, 13, 40, 5_000, LONG - 1, LONG, LONG + 100] {
            let nothing = vec![b'a'; length];
            assert!(!contains(&nothing, part), "{length}");
            assert_eq!((first_break(&nothing), last_break(&nothing)), (None, None));
            for place in [0, 1, length / 2, length.saturating_sub(part.len())] {
                let mut bytes = nothing.clone();
                if let Some(there) = bytes.get_mut(place..place + part.len()) {
                    there.copy_from_slice(part);
                    assert!(contains(&bytes, part), "{length}, {place}");
                    assert!(!contains(&bytes[..place + part.len() - 1], part), "{length}, {place}");
                }
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = b'\n';
                    assert_eq!((first_break(&bytes), last_break(&bytes)), (Some(place), Some(place)));
                }
            }
        }
        assert!(contains(b"abc", b"b") && contains(b"abc", b"") && !contains(b"", b"b"));
    }
}
