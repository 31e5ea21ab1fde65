//! The heap: named chunks of text that are visible in every frame.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// The soft limit of the whole heap, in characters. A write above it succeeds with a warning.
pub const SOFT_LIMIT_CHARS: usize = 8_000;
/// The hard limit of the whole heap, in UTF-16 units, in which the client counts a hook's output. A write
/// above it is refused.
pub const HARD_LIMIT_UTF16_UNITS: usize = 3 * SOFT_LIMIT_CHARS;
/// The maximum length of a chunk, in UTF-16 units. The client shows at most 10,000 units of one hook's
/// output, so a chunk of this length is never cut.
pub const MAX_CHUNK_UTF16_UNITS: usize = 9_500;

/// The maximum number of chunks. The index of all chunks must fit into one hook's output.
pub const MAX_CHUNKS: usize = 32;
/// The maximum length of a chunk's name, in UTF-16 units.
pub const MAX_CHUNK_NAME_UTF16_UNITS: usize = 40;
/// The maximum length of a chunk's description, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 80;

/// A named text on the heap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Chunk {
    pub name: String,
    pub content: String,
    /// The purpose of the content.
    pub description: String,
    /// The step in which the chunk was allocated. Its age is the number of steps since then.
    #[serde(rename = "allocated")]
    pub allocated_at_step: u64,
    /// The step in which the chunk was last written.
    #[serde(rename = "updated")]
    pub updated_at_step: u64,
    /// The revision in which the chunk was last written.
    pub rev: u64,
}

impl Chunk {
    /// Returns the number of characters of the content.
    pub fn char_count(&self) -> usize {
        self.content.chars().count()
    }
}

/// How close the heap is to its soft limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum HeapPressure {
    /// Below 70%.
    Low,
    /// From 70%.
    Elevated,
    /// From 85%.
    High,
    /// Above 100%.
    Over,
}

impl HeapPressure {
    /// Returns the pressure of a heap with this many characters.
    pub fn from_heap_chars(heap_chars: usize) -> HeapPressure {
        match percent_of_soft_limit(heap_chars) {
            _ if heap_chars > SOFT_LIMIT_CHARS => HeapPressure::Over,
            85.. => HeapPressure::High,
            70.. => HeapPressure::Elevated,
            _ => HeapPressure::Low,
        }
    }

    /// Returns the name of the level for reports, such as `elevated`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Returns this number of characters as a percentage of the soft limit, rounded down.
pub fn percent_of_soft_limit(char_count: usize) -> usize {
    char_count * 100 / SOFT_LIMIT_CHARS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_rises_at_70_and_85_percent_and_above_the_limit() {
        for (size, pressure) in [
            (0, HeapPressure::Low),
            (5_599, HeapPressure::Low),
            (5_600, HeapPressure::Elevated),
            (6_799, HeapPressure::Elevated),
            (6_800, HeapPressure::High),
            (8_000, HeapPressure::High),
            (8_001, HeapPressure::Over),
        ] {
            assert_eq!(HeapPressure::from_heap_chars(size), pressure, "{size}");
        }
    }
}
