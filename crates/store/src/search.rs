//! Searches in bytes. Short inputs, such as the last kilobytes of a transcript, are searched with the SIMD
//! instructions that every processor of the architecture has. Longer inputs are searched after detecting the
//! processor's features; in a virtual machine, that detection takes as long as all other work of a hook.

#[cfg(target_arch = "aarch64")]
use memchr::arch::aarch64::neon::memchr::One;
#[cfg(target_arch = "x86_64")]
use memchr::arch::x86_64::sse2::memchr::One;
use memchr::{memchr, memmem, memrchr};

/// The minimum length of an input for which the faster search outweighs the cost of feature detection.
const MIN_BYTES_FOR_CPU_DETECTION: usize = 32 * 1024;

pub(crate) fn find_last_newline(bytes: &[u8]) -> Option<usize> {
    let baseline_search =
        if bytes.len() < MIN_BYTES_FOR_CPU_DETECTION { baseline_newline_search() } else { None };
    baseline_search.map_or_else(|| memrchr(b'\n', bytes), |search| search.rfind(bytes))
}

pub(crate) fn find_first_newline(bytes: &[u8]) -> Option<usize> {
    let baseline_search =
        if bytes.len() < MIN_BYTES_FOR_CPU_DETECTION { baseline_newline_search() } else { None };
    baseline_search.map_or_else(|| memchr(b'\n', bytes), |search| search.find(bytes))
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn baseline_newline_search() -> Option<One> {
    One::new(b'\n')
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn baseline_newline_search() -> Option<memchr::arch::all::memchr::One> {
    Some(memchr::arch::all::memchr::One::new(b'\n'))
}

pub(crate) fn contains_bytes(bytes: &[u8], needle: &[u8]) -> bool {
    let baseline_result = if bytes.len() < MIN_BYTES_FOR_CPU_DETECTION {
        contains_by_baseline_simd_if_usable(bytes, needle)
    } else {
        None
    };
    baseline_result.unwrap_or_else(|| memmem::find(bytes, needle).is_some())
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn contains_by_baseline_simd_if_usable(bytes: &[u8], needle: &[u8]) -> Option<bool> {
    #[cfg(target_arch = "aarch64")]
    use memchr::arch::aarch64::neon::packedpair::Finder;
    use memchr::arch::all::rabinkarp;
    #[cfg(target_arch = "x86_64")]
    use memchr::arch::x86_64::sse2::packedpair::Finder;
    let finder = Finder::new(needle)?;
    if bytes.len() < finder.min_haystack_len() {
        return Some(rabinkarp::Finder::new(needle).find(bytes, needle).is_some());
    }
    Some(finder.find(bytes, needle).is_some())
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn contains_by_baseline_simd_if_usable(_bytes: &[u8], _needle: &[u8]) -> Option<bool> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_searches_find_the_same() {
        let needle = b"\"assistant\"";
        for length in [
            0,
            1,
            11,
            12,
            13,
            40,
            5_000,
            MIN_BYTES_FOR_CPU_DETECTION - 1,
            MIN_BYTES_FOR_CPU_DETECTION,
            MIN_BYTES_FOR_CPU_DETECTION + 100,
        ] {
            let haystack = vec![b'a'; length];
            assert!(!contains_bytes(&haystack, needle), "{length}");
            assert_eq!((find_first_newline(&haystack), find_last_newline(&haystack)), (None, None));
            for position in [0, 1, length / 2, length.saturating_sub(needle.len())] {
                let mut bytes = haystack.clone();
                if let Some(target) = bytes.get_mut(position..position + needle.len()) {
                    target.copy_from_slice(needle);
                    assert!(contains_bytes(&bytes, needle), "{length}, {position}");
                    assert!(
                        !contains_bytes(&bytes[..position + needle.len() - 1], needle),
                        "{length}, {position}"
                    );
                }
                if let Some(byte) = bytes.get_mut(position) {
                    *byte = b'\n';
                    assert_eq!(
                        (find_first_newline(&bytes), find_last_newline(&bytes)),
                        (Some(position), Some(position))
                    );
                }
            }
        }
        assert!(contains_bytes(b"abc", b"b") && contains_bytes(b"abc", b"") && !contains_bytes(b"", b"b"));
    }
}
