//! Field-by-field leniency: each field is first captured as raw JSON and then parsed separately, so a value of the wrong
//! type loses only that field. Capturing never fails on text that JavaScript writes and Rust rejects, such as a lone
//! surrogate in a string that was truncated in the middle of an emoji.

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Parses a value that is not a list. Returns `None` for a list, for `null` and for the wrong type. (serde would
/// accept a list as an object and fill the fields by position.)
pub(crate) fn parse_unless_list_or_null<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    let json = raw.get();
    if json.starts_with('[') || json == "null" { None } else { parse_last_key_wins(json).ok() }
}

/// Parses any JSON value. If a key is duplicated, the last value wins, as in JavaScript; serde alone rejects an object with
/// a duplicate of a key that it expects.
pub(crate) fn parse_last_key_wins<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    serde_json::from_str(json).or_else(|error| {
        let Ok(last_value_by_key) = serde_json::from_str::<BTreeMap<String, &RawValue>>(json) else {
            return Err(error);
        };
        serde_json::from_str(&serde_json::to_string(&last_value_by_key)?)
    })
}

/// Deserializes any field except a list. Returns the default for a list and for the wrong type.
pub(crate) fn field_or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(parse_unless_list_or_null(raw).unwrap_or_default())
}

/// Deserializes a string. An empty string counts as missing, so that an empty id never matches anything.
pub(crate) fn non_empty_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(decode_string_lossy(<&RawValue>::deserialize(deserializer)?).filter(|text| !text.is_empty()))
}

/// Deserializes a flag. Anything but `true` is false.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(<&RawValue>::deserialize(deserializer)?.get() == "true")
}

/// Deserializes a string without copying it, unless it has escapes. An empty string counts as missing, and so does any other
/// type.
pub(crate) fn borrowed_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Cow<'de, str>>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    let quoted = raw.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let text = match quoted {
        Some(text) if !text.contains('\\') => Some(Cow::Borrowed(text)),
        _ => decode_string_lossy(raw).map(Cow::Owned),
    };
    Ok(text.filter(|text| !text.is_empty()))
}

/// Deserializes a string whose empty value is meaningful. Returns `None` for any other type.
pub(crate) fn possibly_empty_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    Ok(decode_string_lossy(<&RawValue>::deserialize(deserializer)?))
}

/// Deserializes a count: any number that is not negative, rounded.
pub(crate) fn rounded_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    // A JSON string cannot be mistaken for a number here, because it still has its quotation marks.
    let integer = raw.get().parse::<u64>().ok();
    let round_decimal = || {
        let number = raw.get().parse::<f64>().ok()?;
        (number.is_finite() && (0.0..9e15).contains(&number)).then(|| number.round() as u64)
    };
    Ok(integer.or_else(round_decimal))
}

/// Deserializes any number that is not negative. Returns `None` for any other value.
pub(crate) fn non_negative_number<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    let number = parse_unless_list_or_null::<f64>(<&RawValue>::deserialize(deserializer)?);
    Ok(number.filter(|number| number.is_finite() && *number >= 0.0))
}

/// Deserializes a list and omits the elements that cannot be parsed.
pub(crate) fn readable_elements<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    let all_objects = serde_json::from_str::<Vec<JsonObject<T>>>(raw.get());
    let objects =
        all_objects.map(|elements| elements.into_iter().map(|JsonObject(element)| element).collect());
    Ok(objects
        .unwrap_or_else(|_| raw_elements(raw).into_iter().filter_map(parse_unless_list_or_null).collect()))
}

/// A value that must be an object in JSON. serde would accept a list as well and fill the fields by position.
pub(crate) struct JsonObject<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = JsonObject<T>;
            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<JsonObject<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields)).map(JsonObject)
            }
        }
        deserializer.deserialize_map(ObjectVisitor(std::marker::PhantomData))
    }
}

/// Deserializes a list of strings and omits all other elements.
pub(crate) fn text_elements<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(raw_elements(<&RawValue>::deserialize(deserializer)?)
        .into_iter()
        .filter_map(decode_string_lossy)
        .collect())
}

/// Deserializes an object with arbitrary keys and omits the values that cannot be parsed.
pub(crate) fn readable_entries<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    let entries: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    Ok(entries
        .into_iter()
        .filter_map(|(key, value)| Some((key, parse_unless_list_or_null(value)?)))
        .collect())
}

/// Returns the elements of a list, or an empty `Vec` for any other value.
pub(crate) fn raw_elements(raw: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// Deserializes the elements of a list, with the default for each element that is not a valid object. A list of only
/// objects is parsed in one pass. Returns an empty `Vec` for any other value.
pub(crate) fn parse_list_objects_or_defaults<'a, T: Deserialize<'a> + Default>(raw: &'a RawValue) -> Vec<T> {
    let all_objects = serde_json::from_str::<Vec<JsonObject<T>>>(raw.get());
    let objects =
        all_objects.map(|elements| elements.into_iter().map(|JsonObject(element)| element).collect());
    let object_or_default = |element: &'a RawValue| {
        let object = serde_json::from_str::<JsonObject<T>>(element.get());
        object.map_or_else(|_| T::default(), |JsonObject(element)| element)
    };
    objects.unwrap_or_else(|_| raw_elements(raw).into_iter().map(object_or_default).collect())
}

/// Deserializes a field as raw JSON, to be parsed later. `null` counts as missing.
pub(crate) fn raw_json<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Box<RawValue>>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok((raw.get() != "null").then(|| raw.to_owned()))
}

/// Returns the text between the quotes of a JSON string, with its escapes, or `None` for any other value.
fn string_body(raw: &RawValue) -> Option<&str> {
    raw.get().strip_prefix('"')?.strip_suffix('"')
}

/// Estimates the length of a JSON string's text in bytes. Returns `None` for any other value. Each backslash is
/// subtracted, which is exact for the usual escapes (`\n`, `\t`, `\"`) and off by a few bytes for the others.
pub(crate) fn estimate_decoded_string_bytes(raw: &RawValue) -> Option<u64> {
    let body = string_body(raw)?;
    // Counted in chunks whose count fits in one byte, so that the compiler can vectorize the sum: a response may be a whole
    // file.
    let count_backslashes = |chunk: &[u8]| chunk.iter().map(|byte| u8::from(*byte == b'\\')).sum::<u8>();
    let backslash_count: usize =
        body.as_bytes().chunks(255).map(|chunk| usize::from(count_backslashes(chunk))).sum();
    Some((body.len() - backslash_count) as u64)
}

/// Decodes a JSON string, with lone surrogates replaced. Returns `None` for any other value.
pub(crate) fn decode_string_lossy(raw: &RawValue) -> Option<String> {
    let body = string_body(raw)?;
    if !body.contains('\\') {
        return Some(body.to_owned());
    }
    if let Ok(text) = serde_json::from_str(raw.get()) {
        return Some(text);
    }
    // serde_json rejects lone surrogates in a `str` but accepts them as bytes.
    struct BytesVisitor;
    impl Visitor<'_> for BytesVisitor {
        type Value = String;
        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("a string")
        }
        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<String, E> {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }
    serde_json::Deserializer::from_str(raw.get()).deserialize_bytes(BytesVisitor).ok()
}
