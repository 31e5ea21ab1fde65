//! The heap: named chunks that every frame sees.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// Above this, in characters, writing still succeeds and says that it is too much.
pub const SOFT_LIMIT: usize = 8_000;
/// Above this, in UTF-16 units, nothing more is taken: the client counts what hooks say in these.
pub const HARD_LIMIT: usize = 3 * SOFT_LIMIT;
/// The longest chunk, in UTF-16 units: the client shows at most 10,000 of what one hook says, and cuts no chunk so.
pub const CHUNK_UNITS: usize = 9_500;

/// The maximum number of chunks: the index of all must fit into one hook's reply.
pub const MOST_CHUNKS: usize = 32;
/// The longest name of a chunk, in UTF-16 units.
pub const CHUNK_NAME: usize = 40;
/// The longest description, in characters.
pub const DESCRIPTION: usize = 80;

/// One chunk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Chunk {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub content: String,
    /// What it is for.
    pub description: String,
    /// The step in which it was allocated: its age counts from there.
    pub allocated: u64,
    /// The step in which it was written last.
    pub updated: u64,
    /// The revision that wrote it.
    pub rev: u64,
}

impl Chunk {
    /// Its size in characters.
    pub fn size(&self) -> usize {
        self.content.chars().count()
    }
}

/// How near the heap is to its soft limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Pressure {
    /// Below 70 %.
    Low,
    /// From 70 %.
    Elevated,
    /// From 85 %.
    High,
    /// Above the soft limit.
    Over,
}

impl Pressure {
    /// The pressure of this many characters.
    pub fn of(size: usize) -> Pressure {
        match share(size) {
            _ if size > SOFT_LIMIT => Pressure::Over,
            85.. => Pressure::High,
            70.. => Pressure::Elevated,
            _ => Pressure::Low,
        }
    }

    /// The word in reports.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// This many characters in percent of the soft limit.
pub fn share(size: usize) -> usize {
    size * 100 / SOFT_LIMIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_rises_at_its_marks() {
        for (size, pressure) in [
            (0, Pressure::Low),
            (5_599, Pressure::Low),
            (5_600, Pressure::Elevated),
            (6_799, Pressure::Elevated),
            (6_800, Pressure::High),
            (8_000, Pressure::High),
            (8_001, Pressure::Over),
        ] {
            assert_eq!(Pressure::of(size), pressure, "{size}");
        }
    }
}
