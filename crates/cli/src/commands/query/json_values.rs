//! Converts jaq's values to JSON, as jq does. jaq also has byte strings, keys that are not strings, NaN, and floats that
//! are distinct from integers.

use jaq_json::{Map, Num, Rc, Val};

/// From this size on, whole numbers are printed as floats, because a float cannot represent adjacent integers exactly.
const MAX_EXACT_FLOAT: f64 = 1e17;

/// Converts a value to JSON. Returns `None` if an object has a key that is not a string.
pub(super) fn to_json_if_keys_are_strings(value: Val) -> Option<Val> {
    Some(match value {
        Val::Num(Num::Float(float)) => to_json_number(float),
        Val::BStr(bytes) => Val::TStr(bytes),
        Val::Arr(values) => {
            Val::Arr(Rc::new(values.iter().cloned().map(to_json_if_keys_are_strings).collect::<Option<_>>()?))
        }
        Val::Obj(entries) => {
            let to_json_entry = |(key, value): (&Val, &Val)| {
                let Val::TStr(_) = key else { return None };
                Some((key.clone(), to_json_if_keys_are_strings(value.clone())?))
            };
            Val::obj(entries.iter().map(to_json_entry).collect::<Option<Map>>()?)
        }
        value => value,
    })
}

/// Converts a float as jq does: a whole number becomes an integer, infinity the largest number, and NaN null.
fn to_json_number(float: f64) -> Val {
    if float.is_nan() {
        Val::Null
    } else if float.fract() == 0.0 && float.abs() < MAX_EXACT_FLOAT {
        Val::Num(Num::Int(float as isize))
    } else {
        Val::Num(Num::Float(float.clamp(f64::MIN, f64::MAX)))
    }
}
