//! A property in an item's bracket: `(simple, model: haiku, area: src)`.

/// The values behind a mark, in an open bracket, as its first word or behind a comma; each up to the next comma or the bracket's
/// end.
pub(crate) fn values<'a>(item: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    // Bytes of the same places: only ASCII letters change.
    let lower = item.to_ascii_lowercase();
    let places: Vec<usize> = lower.match_indices(mark).map(|(place, _)| place).collect();
    places.into_iter().filter_map(move |place| {
        let before = lower[..place].trim_end();
        let is_inside = before.rfind('(') > before.rfind(')') && before.ends_with(['(', ',']);
        let rest = &item[place + mark.len()..];
        let end = rest.find([',', ')'])?;
        is_inside.then(|| rest[..end].trim())
    })
}
