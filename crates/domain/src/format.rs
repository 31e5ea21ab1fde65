//! The version number in Plimsoll's files. It keeps an older program from misreading or overwriting what a
//! newer one wrote.
//!
//! Rule: within a format the meaning of a field never changes, and new fields are optional. A file without a
//! number has the first format, from before the number was introduced. Log records have their own number in
//! the header (`log_line::RecordHeader::format_version`).

use crate::text::json_bytes_to_str;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The format that this version writes, and the newest format that it reads.
pub const CURRENT_FORMAT: u32 = 1;

/// The field `format` of a file. It is written as [`CURRENT_FORMAT`]; reading fails if the number is higher.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FormatVersion;

impl Serialize for FormatVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(CURRENT_FORMAT)
    }
}

impl<'de> Deserialize<'de> for FormatVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FormatVersion, D::Error> {
        match u32::deserialize(deserializer)? {
            0..=CURRENT_FORMAT => Ok(FormatVersion),
            newer_format => {
                Err(de::Error::custom(format!("format {newer_format} is newer than {CURRENT_FORMAT}")))
            }
        }
    }
}

/// Returns the format of a document if a newer version wrote it; `None` for any other bytes.
pub fn newer_format_of_document(document: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct VersionedDocument {
        format: u32,
    }
    // serde also accepts an array for a struct, so check for an object.
    let is_object = document.trim_ascii_start().starts_with(b"{");
    let VersionedDocument { format } =
        serde_json::from_str(json_bytes_to_str(document).ok()?).ok().filter(|_| is_object)?;
    (format > CURRENT_FORMAT).then_some(format)
}

/// Returns the format of a log record if a newer version wrote it.
pub fn newer_format_of_record(line: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct VersionedRecord {
        header: RecordHeader,
    }
    #[derive(Deserialize)]
    struct RecordHeader {
        v: u32,
    }
    let VersionedRecord { header: RecordHeader { v } } =
        serde_json::from_str(json_bytes_to_str(line).ok()?).ok()?;
    (v > CURRENT_FORMAT).then_some(v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_newer_number_is_refused_and_reported() {
        for (text, is_read, expected) in [
            ("0", true, None),
            ("1", true, None),
            ("2", false, Some(2)),
            ("99", false, Some(99)),
            ("-1", false, None),
            ("\"2\"", false, None),
            ("4294967296", false, None),
        ] {
            assert_eq!(serde_json::from_str::<FormatVersion>(text).is_ok(), is_read, "{text}");
            assert_eq!(
                newer_format_of_document(format!("{{\"more\": [], \"format\": {text}}}").as_bytes()),
                expected,
                "{text}"
            );
            let record = format!("{{\"header\":{{\"v\":{text},\"seq\":3}},\"content\":{{}}}}");
            assert_eq!(newer_format_of_record(record.as_bytes()), expected, "{text}");
        }
        for text in ["", "{", "{}", "[2]", "{\"format\": 2"] {
            assert_eq!(
                (newer_format_of_document(text.as_bytes()), newer_format_of_record(text.as_bytes())),
                (None, None),
                "{text}"
            );
        }
        assert_eq!(serde_json::to_string(&FormatVersion).unwrap(), CURRENT_FORMAT.to_string());
    }
}
