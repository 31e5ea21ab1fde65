//! The values that filters work on. jaq's own value answers in places where jq raises an error: it indexes an object with a number,
//! divides by zero, and takes any value as a key. It also refuses places that jq creates. [`Json`] wraps it and does both as jq does.

use jaq_core::box_iter::BoxIter;
use jaq_core::path::Opt;
use jaq_core::val::Range;
use jaq_core::{Error, ValR, ValT, ValX};
use jaq_json::{Map, Rc, Val, read};
use jaq_std::ValT as _;
use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

/// No index creates a longer array: jq would ask the system for the memory first.
const MAX_CREATED: usize = 1 << 24;

/// A value of jaq's that behaves like one of jq's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Json(pub(super) Val);

impl Json {
    /// The number of characters, elements or fields, or the distance of a number from zero.
    pub(super) fn length(&self) -> ValR<Json> {
        match &self.0 {
            Val::Null => Ok(Json::from(0_usize)),
            Val::Num(_) if *self < Json::from(0_usize) => -self.clone(),
            Val::Num(_) => Ok(self.clone()),
            Val::TStr(text) => Ok(Json::from(String::from_utf8_lossy(text).chars().count())),
            Val::BStr(bytes) => Ok(Json::from(bytes.len())),
            Val::Arr(values) => Ok(Json::from(values.len())),
            Val::Obj(fields) => Ok(Json::from(fields.len())),
            Val::Bool(_) => Err(Error::str(format_args!("{self} has no length"))),
        }
    }

    /// True if all of `other` is in this value; an error where the two are of different kinds.
    pub(super) fn contains(&self, other: &Json) -> ValR<bool, Json> {
        let is_same_kind = match (&self.0, &other.0) {
            (Val::Bool(one), Val::Bool(other)) => one == other,
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        };
        if !is_same_kind {
            let words = format_args!("{self} and {other} cannot have their containment checked");
            return Err(Error::str(words));
        }
        Ok(contains(&self.0, &other.0))
    }

    /// True if an object has this key, or an array this index.
    pub(super) fn has(&self, key: &Json) -> ValR<bool, Json> {
        match (&self.0, &key.0) {
            (Val::Null, _) => Ok(false),
            (Val::Obj(fields), Val::TStr(_)) => Ok(fields.contains_key(&key.0)),
            (Val::Arr(values), Val::Num(_)) => {
                let index = whole(&key.0).and_then(|index| usize::try_from(index).ok());
                Ok(index.is_some_and(|index| index < values.len()))
            }
            _ => Err(Error::str(format_args!("cannot check whether {self} has the key {key}"))),
        }
    }

    /// The positions at which a value, a run of values or a text is in this one.
    pub(super) fn indices(self, wanted: &Json) -> ValR<Json> {
        match (&self.0, &wanted.0) {
            (Val::Null, _) | (Val::Obj(_), Val::TStr(_)) | (Val::Arr(_), Val::Arr(_)) => self.index(wanted),
            (Val::TStr(text), Val::TStr(part)) => {
                let (text, part) = (String::from_utf8_lossy(text), String::from_utf8_lossy(part));
                let is_at = |(place, (start, _)): (usize, (usize, char))| {
                    text[start..].starts_with(part.as_ref()).then_some(Json::from(place))
                };
                let places = text.char_indices().enumerate().filter_map(is_at);
                Ok(if part.is_empty() { Json(Val::Null) } else { places.collect() })
            }
            (Val::Arr(values), part) => {
                let places = values.iter().enumerate().filter(|(_, value)| *value == part);
                Ok(places.map(|(place, _)| Json::from(place)).collect())
            }
            _ => Err(Error::index(self, wanted.clone())),
        }
    }

    /// The place of a value in a sorted array; where it is missing, its place counted down from -1.
    pub(super) fn search(&self, wanted: &Json) -> ValR<Json> {
        // jq looks at the length first.
        let Val::Arr(values) = &self.0 else {
            let is_empty = self.length()? == Json::from(0_usize);
            return if is_empty { Ok(Json::from(-1_isize)) } else { Err(Error::typ(self.clone(), "array")) };
        };
        let place = values.binary_search(&wanted.0);
        Ok(Json::from(place.map_or_else(|place| -1 - place.cast_signed(), usize::cast_signed)))
    }

    /// The JSON in a text: one value, neither none nor several.
    pub(super) fn parse(&self) -> ValR<Json> {
        let Val::TStr(text) = &self.0 else { return Err(Error::typ(self.clone(), "string")) };
        let parsed = read::parse_single(text);
        parsed.map(Json).map_err(|error| Error::str(format_args!("cannot parse {self} as JSON: {error}")))
    }

    /// The value as JSON text.
    pub(super) fn to_text(&self) -> Json {
        Json::from(self.0.to_string())
    }
}

fn contains(one: &Val, other: &Val) -> bool {
    match (one, other) {
        (Val::Obj(fields), Val::Obj(wanted)) => {
            wanted.iter().all(|(key, wanted)| fields.get(key).is_some_and(|value| contains(value, wanted)))
        }
        (Val::Arr(values), Val::Arr(wanted)) => {
            wanted.iter().all(|wanted| values.iter().any(|value| contains(value, wanted)))
        }
        (Val::TStr(text), Val::TStr(part)) => {
            String::from_utf8_lossy(text).contains(String::from_utf8_lossy(part).as_ref())
        }
        _ => one == other,
    }
}

/// The number without its fraction, as jq takes it for an index; none where it is no number.
fn whole(number: &Val) -> Option<isize> {
    let float = || number.as_f64().filter(|float| !float.is_nan());
    number.as_isize().or_else(|| float().map(|float| float as isize))
}

/// True without a fraction. jq reads nothing at an index with one, but writes there as if it had none.
fn is_whole(number: &Val) -> bool {
    number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

/// The bounds of a slice as whole numbers: jq rounds the first down and the last up.
fn bounds(range: Range<&Json>) -> ValR<Range<Val>, Json> {
    let rounded = |bound: Option<&Json>, round: fn(f64) -> f64| match bound.map(|Json(value)| value) {
        None | Some(Val::Null) => Ok(None),
        Some(number @ Val::Num(_)) => {
            let rounded = number.as_f64().map_or(0, |float| round(float) as isize);
            Ok(Some(Val::from(number.as_isize().unwrap_or(rounded))))
        }
        Some(other) => Err(Error::typ(Json(other.clone()), "number")),
    };
    Ok(rounded(range.start, f64::floor)?..rounded(range.end, f64::ceil)?)
}

/// The bounds in an object that names a slice (`{"start": 1, "end": null}`).
fn bounds_of_object(fields: &Map) -> ValR<Range<Json>, Json> {
    let bound = |name: &'static str| {
        let bound = fields.get(&Val::utf8_str(name)).cloned().map(Json);
        bound.ok_or_else(|| Error::str(format_args!("a slice needs {name:?}")))
    };
    Ok(Some(bound("start")?)..Some(bound("end")?))
}

fn of_jaq(outcome: jaq_json::ValR) -> ValR<Json> {
    outcome.map(Json).map_err(|error| Error::new(Json(error.into_val())))
}

impl fmt::Display for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

macro_rules! from {
    ($($source:ty),*) => {$(
        impl From<$source> for Json {
            fn from(source: $source) -> Json {
                Json(Val::from(source))
            }
        }
    )*};
}

from!(bool, isize, usize, f64, String);

impl From<Range<Json>> for Json {
    fn from(range: Range<Json>) -> Json {
        let bare = |bound: Option<Json>| Some(bound.map(|Json(value)| value).unwrap_or_default());
        Json(Val::from(bare(range.start)..bare(range.end)))
    }
}

impl FromIterator<Json> for Json {
    fn from_iter<T: IntoIterator<Item = Json>>(values: T) -> Json {
        Json(values.into_iter().map(|Json(value)| value).collect())
    }
}

macro_rules! arithmetic {
    ($($operation:ident $method:ident),*) => {$(
        impl $operation for Json {
            type Output = ValR<Json>;

            fn $method(self, other: Json) -> ValR<Json> {
                of_jaq(self.0.$method(other.0))
            }
        }
    )*};
}

arithmetic!(Add add, Sub sub, Mul mul);

impl Div for Json {
    type Output = ValR<Json>;

    fn div(self, divisor: Json) -> ValR<Json> {
        match (&self.0, &divisor.0) {
            (Val::Num(_), Val::Num(_)) if divisor.0.as_f64() == Some(0.0) => {
                Err(divided_by_zero(&self, &divisor))
            }
            _ => of_jaq(self.0 / divisor.0),
        }
    }
}

impl Rem for Json {
    type Output = ValR<Json>;

    /// The remainder of the whole numbers, without their fractions.
    fn rem(self, divisor: Json) -> ValR<Json> {
        if !matches!((&self.0, &divisor.0), (Val::Num(_), Val::Num(_))) {
            return of_jaq(self.0 % divisor.0);
        }
        match (whole(&self.0), whole(&divisor.0)) {
            (_, Some(0)) => Err(divided_by_zero(&self, &divisor)),
            (Some(one), Some(other)) => Ok(Json::from(one.wrapping_rem(other))),
            _ => Ok(Json::from(f64::NAN)),
        }
    }
}

fn divided_by_zero(one: &Json, other: &Json) -> Error<Json> {
    Error::str(format_args!("{one} and {other} cannot be divided because the divisor is zero"))
}

impl Neg for Json {
    type Output = ValR<Json>;

    fn neg(self) -> ValR<Json> {
        of_jaq(-self.0)
    }
}

impl ValT for Json {
    fn from_num(number: &str) -> ValR<Json> {
        of_jaq(Val::from_num(number))
    }

    fn from_map<I: IntoIterator<Item = (Json, Json)>>(entries: I) -> ValR<Json> {
        let entry = |(key, value): (Json, Json)| match key.0 {
            Val::TStr(_) => Ok((key.0, value.0)),
            _ => Err(Error::str(format_args!("object keys must be strings, and {key} is none"))),
        };
        entries.into_iter().map(entry).collect::<Result<Map, _>>().map(Val::obj).map(Json)
    }

    fn key_values(self) -> BoxIter<'static, ValR<(Json, Json), Json>> {
        let pair = |(key, value)| (Json(key), Json(value));
        let error = |error: jaq_json::Error| Error::new(Json(error.into_val()));
        Box::new(self.0.key_values().map(move |entry| entry.map(pair).map_err(error)))
    }

    fn values(self) -> Box<dyn Iterator<Item = ValR<Json>>> {
        Box::new(self.0.values().map(of_jaq))
    }

    fn index(self, index: &Json) -> ValR<Json> {
        match (&self.0, &index.0) {
            (Val::Null, Val::Num(_) | Val::TStr(_) | Val::Obj(_)) => Ok(self),
            (Val::Arr(_) | Val::TStr(_), Val::Obj(fields)) => {
                let range = bounds_of_object(fields)?;
                self.range(range.start.as_ref()..range.end.as_ref())
            }
            (Val::Arr(values), number @ Val::Num(_)) => {
                let index = whole(number).filter(|_| is_whole(number));
                let found = index.and_then(|index| values.get(position(index, values.len())?));
                Ok(Json(found.cloned().unwrap_or_default()))
            }
            (Val::Obj(_), Val::TStr(_)) | (Val::Arr(_), Val::Arr(_)) => of_jaq(self.0.index(&index.0)),
            _ => Err(Error::index(self, index.clone())),
        }
    }

    fn range(self, range: Range<&Json>) -> ValR<Json> {
        if self.0 == Val::Null {
            return Ok(self);
        }
        let range = bounds(range)?;
        of_jaq(self.0.range(range.start.as_ref()..range.end.as_ref()))
    }

    fn map_values<'a, I: Iterator<Item = ValX<'a, Json>>>(
        self,
        opt: Opt,
        change: impl Fn(Json) -> I,
    ) -> ValX<'a, Json> {
        match self.0 {
            Val::Arr(values) => Rc::unwrap_or_clone(values).into_iter().map(Json).flat_map(change).collect(),
            Val::Obj(fields) => {
                let fields = Rc::unwrap_or_clone(fields).into_iter();
                let changed =
                    |(key, value)| Some(change(Json(value)).next()?.map(|Json(value)| (key, value)));
                fields.filter_map(changed).collect::<Result<Map, _>>().map(Val::obj).map(Json)
            }
            value => opt.fail(Json(value), |value| Error::typ(value, "array or object").into()),
        }
    }

    /// As jq's `setpath` and `delpaths`: null becomes what the index needs, and an array grows.
    fn map_index<'a, I: Iterator<Item = ValX<'a, Json>>>(
        self,
        index: &Json,
        opt: Opt,
        change: impl Fn(Json) -> I,
    ) -> ValX<'a, Json> {
        let changed = |value: Val| change(Json(value)).next().transpose();
        match (self.0, &index.0) {
            (Val::Null, Val::TStr(_)) => Ok(match changed(Val::Null)? {
                Some(Json(value)) => Json(Val::obj([(index.0.clone(), value)].into_iter().collect())),
                None => Json(Val::Null),
            }),
            (Val::Obj(mut fields), Val::TStr(_)) => {
                let entries = Rc::make_mut(&mut fields);
                let old = entries.get_mut(&index.0).map(std::mem::take).unwrap_or_default();
                match changed(old)? {
                    Some(Json(value)) => drop(entries.insert(index.0.clone(), value)),
                    None => drop(entries.shift_remove(&index.0)),
                }
                Ok(Json(Val::Obj(fields)))
            }
            (value @ (Val::Null | Val::Arr(_)), number @ Val::Num(_)) => {
                let mut values = match value {
                    Val::Arr(values) => values,
                    _ => Rc::new(Vec::new()),
                };
                let Some(place) = whole(number).and_then(|place| place_to_write(place, values.len())) else {
                    let words = format_args!("index {index} is out of bounds");
                    return opt.fail(Json(Val::Arr(values)), |_| Error::str(words).into());
                };
                let elements = Rc::make_mut(&mut values);
                let old = elements.get_mut(place).filter(|_| is_whole(number)).map(std::mem::take);
                match changed(old.unwrap_or_default())? {
                    Some(Json(value)) => {
                        elements.resize(elements.len().max(place + 1), Val::Null);
                        elements[place] = value;
                    }
                    None if place < elements.len() => drop(elements.remove(place)),
                    None => {}
                }
                Ok(Json(Val::Arr(values)))
            }
            (value @ (Val::Null | Val::Arr(_)), Val::Obj(fields)) => {
                let range = match bounds_of_object(fields) {
                    Ok(range) => range,
                    Err(error) => return opt.fail(Json(value), |_| error.into()),
                };
                Json(value).map_range(range.start.as_ref()..range.end.as_ref(), opt, change)
            }
            (value, _) => opt.fail(Json(value), |value| Error::index(value, index.clone()).into()),
        }
    }

    fn map_range<'a, I: Iterator<Item = ValX<'a, Json>>>(
        self,
        range: Range<&Json>,
        opt: Opt,
        change: impl Fn(Json) -> I,
    ) -> ValX<'a, Json> {
        let mut values = match self.0 {
            Val::Null => Rc::new(Vec::new()),
            Val::Arr(values) => values,
            value => return opt.fail(Json(value), |value| Error::typ(value, "array").into()),
        };
        let range = match bounds(range) {
            Ok(range) => range,
            Err(error) => return opt.fail(Json(Val::Arr(values)), |_| error.into()),
        };
        let bound = |bound: &Option<Val>, default: usize| match bound {
            Some(number) => number.as_isize().map_or(default, |index| clamp(index, values.len())),
            None => default,
        };
        let start = bound(&range.start, 0);
        let end = bound(&range.end, values.len()).max(start);
        let slice = values[start..end].iter().cloned().collect();
        let new = match change(Json(slice)).next().transpose()? {
            None => Rc::new(Vec::new()),
            Some(Json(Val::Arr(new))) => new,
            Some(other) => return Err(Error::typ(other, "array").into()),
        };
        Rc::make_mut(&mut values).splice(start..end, new.iter().cloned());
        Ok(Json(Val::Arr(values)))
    }

    fn as_bool(&self) -> bool {
        self.0.as_bool()
    }

    fn into_string(self) -> Json {
        Json(self.0.into_string())
    }
}

/// Where an index points in an array of this length, counted from its end if it is negative.
fn position(index: isize, length: usize) -> Option<usize> {
    if index < 0 { length.checked_sub(index.unsigned_abs()) } else { usize::try_from(index).ok() }
}

fn place_to_write(index: isize, length: usize) -> Option<usize> {
    position(index, length).filter(|place| *place < length.max(MAX_CREATED))
}

fn clamp(index: isize, length: usize) -> usize {
    if index < 0 { length.saturating_sub(index.unsigned_abs()) } else { index.unsigned_abs().min(length) }
}

impl jaq_std::ValT for Json {
    fn into_seq<S: FromIterator<Json>>(self) -> Result<S, Json> {
        match self.0 {
            Val::Arr(values) => Ok(Rc::unwrap_or_clone(values).into_iter().map(Json).collect()),
            value => Err(Json(value)),
        }
    }

    fn is_int(&self) -> bool {
        self.0.is_int()
    }

    fn as_isize(&self) -> Option<isize> {
        self.0.as_isize()
    }

    fn as_f64(&self) -> Option<f64> {
        self.0.as_f64()
    }

    fn is_utf8_str(&self) -> bool {
        self.0.is_utf8_str()
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        self.0.as_bytes()
    }

    fn as_sub_str(&self, part: &[u8]) -> Json {
        Json(self.0.as_sub_str(part))
    }

    fn from_utf8_bytes(bytes: impl AsRef<[u8]> + Send + 'static) -> Json {
        Json(Val::from_utf8_bytes(bytes))
    }
}
