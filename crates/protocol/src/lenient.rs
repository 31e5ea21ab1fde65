//! Field by field forgiveness: each field is first cut out as raw JSON, then read by itself, so that a value
//! of the wrong type costs that field alone. Cutting never fails on what JavaScript may write and Rust may
//! not read (a lone surrogate in a text that was cut in the middle of an emoji).

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Reads a value that is not a list; none if it has the wrong type. (serde would take a list for an object
/// and fill the fields in their order.)
pub(crate) fn read<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    if raw.get().starts_with('[') { None } else { serde_json::from_str(raw.get()).ok() }
}

/// Any field but a list: its value, or its default where the type is wrong.
pub(crate) fn field<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(read(raw).unwrap_or_default())
}

/// A text; the empty text counts as missing, so that an empty id never matches anything.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(text_of(<&RawValue>::deserialize(deserializer)?).filter(|text| !text.is_empty()))
}

/// A text where the empty one means something.
pub(crate) fn whole_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(text_of(<&RawValue>::deserialize(deserializer)?))
}

/// A count: any number that is not negative, rounded.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    let whole = serde_json::from_str::<u64>(raw.get()).ok();
    let rounded = || {
        let number = serde_json::from_str::<f64>(raw.get()).ok()?;
        (number.is_finite() && (0.0..9e15).contains(&number)).then(|| number.round() as u64)
    };
    Ok(whole.or_else(rounded))
}

/// A list whose unreadable elements are left out.
pub(crate) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(elements(<&RawValue>::deserialize(deserializer)?).into_iter().filter_map(read).collect())
}

/// A list of texts; elements that are none are left out.
pub(crate) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(elements(<&RawValue>::deserialize(deserializer)?).into_iter().filter_map(text_of).collect())
}

/// An object of any keys whose unreadable values are left out.
pub(crate) fn map<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    let entries: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    Ok(entries.into_iter().filter_map(|(key, value)| Some((key, read(value)?))).collect())
}

/// The elements of a list; none if it is something else.
pub(crate) fn elements(raw: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// A field kept as the JSON it is, for those who want to look closer.
pub(crate) fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok((raw.get() != "null").then(|| raw.to_owned()))
}

/// The text of a JSON string, lone surrogates replaced; none if it is something else.
pub(crate) fn text_of(raw: &RawValue) -> Option<String> {
    if !raw.get().starts_with('"') {
        return None;
    }
    // serde_json refuses lone surrogates in a `str`, and hands them out as bytes.
    struct Bytes;
    impl Visitor<'_> for Bytes {
        type Value = String;
        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("a string")
        }
        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<String, E> {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }
    serde_json::Deserializer::from_str(raw.get()).deserialize_bytes(Bytes).ok()
}
