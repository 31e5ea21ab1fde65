//! Times are in units of 100 ns since 1601. Files have no permission to be executed.

use super::ModificationTime;
use std::fs::Metadata;
use std::os::windows::fs::MetadataExt;

const UNITS_PER_SECOND: i64 = 10_000_000;
/// From 1601 to 1970, in units of 100 ns.
const UNITS_UNTIL_1970: i64 = 116_444_736_000_000_000;

pub(super) fn modification_time(metadata: &Metadata) -> ModificationTime {
    let units_since_1970 = metadata.last_write_time().cast_signed() - UNITS_UNTIL_1970;
    ModificationTime {
        seconds: units_since_1970.div_euclid(UNITS_PER_SECOND),
        nanoseconds: units_since_1970.rem_euclid(UNITS_PER_SECOND) * 100,
    }
}

pub(super) fn is_executable_by_owner(_metadata: &Metadata) -> bool {
    false
}
