//! The format of our files: a number in each, so that an older program does not misread, or write over, what a newer one wrote.
//!
//! Rule: what a field means never changes within a format, and new fields may be missed. A file without the number is of the
//! first format, from before there was one. Records of logs have the same number for themselves (`log_line::Header::v`).

use crate::text::json_text;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The format that this version writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// The field `format` of a file. Written, it is [`FORMAT`]; a file with a higher number is not read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Format;

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(FORMAT)
    }
}

impl<'de> Deserialize<'de> for Format {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Format, D::Error> {
        match u32::deserialize(deserializer)? {
            0..=FORMAT => Ok(Format),
            newer => Err(de::Error::custom(format!("format {newer} is newer than {FORMAT}"))),
        }
    }
}

/// The number of a document that a newer version wrote; none for any other bytes.
pub fn newer(document: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct Numbered {
        format: u32,
    }
    // serde would fill the field from a list, too.
    let is_object = document.trim_ascii_start().starts_with(b"{");
    let Numbered { format } = serde_json::from_str(json_text(document).ok()?).ok().filter(|_| is_object)?;
    (format > FORMAT).then_some(format)
}

/// The same of a record of a log.
pub fn newer_record(line: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct Numbered {
        header: Version,
    }
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    let Numbered { header: Version { v } } = serde_json::from_str(json_text(line).ok()?).ok()?;
    (v > FORMAT).then_some(v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_number_is_refused_and_named_and_no_other() {
        for (text, is_read, expected) in [
            ("0", true, None),
            ("1", true, None),
            ("2", false, Some(2)),
            ("99", false, Some(99)),
            ("-1", false, None),
            ("\"2\"", false, None),
            ("4294967296", false, None),
        ] {
            assert_eq!(serde_json::from_str::<Format>(text).is_ok(), is_read, "{text}");
            assert_eq!(newer(format!("{{\"more\": [], \"format\": {text}}}").as_bytes()), expected, "{text}");
            let record = format!("{{\"header\":{{\"v\":{text},\"seq\":3}},\"content\":{{}}}}");
            assert_eq!(newer_record(record.as_bytes()), expected, "{text}");
        }
        for text in ["", "{", "{}", "[2]", "{\"format\": 2"] {
            assert_eq!((newer(text.as_bytes()), newer_record(text.as_bytes())), (None, None), "{text}");
        }
        assert_eq!(serde_json::to_string(&Format).unwrap(), FORMAT.to_string());
    }
}
