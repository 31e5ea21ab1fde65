//! jaq knows more than JSON: byte strings, keys that are no strings, numbers that are none, and a float apart
//! from an integer. What leaves it is made JSON here, as jq does.

use jaq_json::{Map, Num, Rc, Val};

/// Above this a float has no exact neighbours, and is printed as one.
const LARGEST_WHOLE: f64 = 1e17;

/// The value as JSON; none if it has a key that is no string.
pub(super) fn json(value: Val) -> Option<Val> {
    Some(match value {
        Val::Num(Num::Float(float)) => number(float),
        Val::BStr(bytes) => Val::TStr(bytes),
        Val::Arr(values) => Val::Arr(Rc::new(values.iter().cloned().map(json).collect::<Option<_>>()?)),
        Val::Obj(entries) => {
            let entry = |(key, value): (&Val, &Val)| {
                let Val::TStr(_) = key else { return None };
                Some((key.clone(), json(value.clone())?))
            };
            Val::obj(entries.iter().map(entry).collect::<Option<Map>>()?)
        }
        value => value,
    })
}

/// `10 / 2` is 5, a number too large is the largest, and what is no number is null.
fn number(float: f64) -> Val {
    if float.is_nan() {
        Val::Null
    } else if float.fract() == 0.0 && float.abs() < LARGEST_WHOLE {
        Val::Num(Num::Int(float as isize))
    } else {
        Val::Num(Num::Float(float.clamp(f64::MIN, f64::MAX)))
    }
}
