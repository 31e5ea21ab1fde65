//! Field by field forgiveness: each field is first cut out as raw JSON, then read by itself, so that a value
//! of the wrong type costs that field alone. Cutting never fails on what JavaScript may write and Rust may
//! not read (a lone surrogate in a text that was cut in the middle of an emoji).

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Reads a value that is not a list; none if it has the wrong type. (serde would take a list for an object
/// and fill the fields in their order.)
pub(crate) fn read<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    let json = raw.get();
    if json.starts_with('[') || json == "null" { None } else { object(json).ok() }
}

/// Reads an object (or anything else). Of a duplicate key the last one counts, as in JavaScript: serde refuses the
/// whole then, but only if it knows the key.
pub(crate) fn object<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    serde_json::from_str(json).or_else(|error| {
        let Ok(last) = serde_json::from_str::<BTreeMap<String, &RawValue>>(json) else { return Err(error) };
        serde_json::from_str(&serde_json::to_string(&last)?)
    })
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
    // What is JSON and reads as a number here is a number there: texts carry their quotation marks.
    let whole = raw.get().parse::<u64>().ok();
    let rounded = || {
        let number = raw.get().parse::<f64>().ok()?;
        (number.is_finite() && (0.0..9e15).contains(&number)).then(|| number.round() as u64)
    };
    Ok(whole.or_else(rounded))
}

/// A part of a whole: any number that is not negative.
pub(crate) fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let number = read::<f64>(<&RawValue>::deserialize(deserializer)?);
    Ok(number.filter(|number| number.is_finite() && *number >= 0.0))
}

/// A list whose unreadable elements are left out.
pub(crate) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    let whole = serde_json::from_str::<Vec<Object<T>>>(raw.get());
    let objects = whole.map(|elements| elements.into_iter().map(|Object(element)| element).collect());
    Ok(objects.unwrap_or_else(|_| elements(raw).into_iter().filter_map(read).collect()))
}

/// What is an object in JSON too: serde would take a list for one and fill the fields in their order.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;
            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields)).map(Object)
            }
        }
        deserializer.deserialize_map(Fields(std::marker::PhantomData))
    }
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

/// The objects among the elements of a list, read in one go where there is nothing else; none if it is no list.
pub(crate) fn objects<'a, T: Deserialize<'a> + Default>(raw: &'a RawValue) -> Vec<T> {
    let whole = serde_json::from_str::<Vec<Object<T>>>(raw.get());
    let objects = whole.map(|elements| elements.into_iter().map(|Object(element)| element).collect());
    let one = |element: &'a RawValue| {
        let object = serde_json::from_str::<Object<T>>(element.get());
        object.map_or_else(|_| T::default(), |Object(element)| element)
    };
    objects.unwrap_or_else(|_| elements(raw).into_iter().map(one).collect())
}

/// A field kept as the JSON it is, for those who want to look closer.
pub(crate) fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok((raw.get() != "null").then(|| raw.to_owned()))
}

/// The letters of a JSON string as they are there; none if it is something else.
fn letters(raw: &RawValue) -> Option<&str> {
    raw.get().strip_prefix('"')?.strip_suffix('"')
}

/// About how many bytes the text of a JSON string has; none if it is something else. Every backslash is counted
/// away, which is right for all that programs write often (`\n`, `\t`, `\"`) and a byte or two off for the rest.
pub(crate) fn length(raw: &RawValue) -> Option<u64> {
    let letters = letters(raw)?;
    // In pieces whose count fits into a byte, of which a processor adds many at once: an answer may be a whole file.
    let in_piece = |piece: &[u8]| piece.iter().map(|byte| u8::from(*byte == b'\\')).sum::<u8>();
    let escapes: usize = letters.as_bytes().chunks(255).map(|piece| usize::from(in_piece(piece))).sum();
    Some((letters.len() - escapes) as u64)
}

/// The text of a JSON string, lone surrogates replaced; none if it is something else.
pub(crate) fn text_of(raw: &RawValue) -> Option<String> {
    let letters = letters(raw)?;
    if !letters.contains('\\') {
        return Some(letters.to_owned());
    }
    if let Ok(text) = serde_json::from_str(raw.get()) {
        return Some(text);
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
