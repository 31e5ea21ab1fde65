//! Properties in an item's parentheses: `(simple, model: haiku, area: src)`.

/// Returns the values of a property. Its prefix must be the first word in the parentheses or follow a comma.
/// Each value ends at the next comma or at the closing parenthesis.
pub(crate) fn property_values<'a>(item: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    // Lowering ASCII letters keeps byte offsets, so they are valid in `item`.
    let lower = item.to_ascii_lowercase();
    let prefix_starts: Vec<usize> = lower.match_indices(prefix).map(|(start, _)| start).collect();
    prefix_starts.into_iter().filter_map(move |start| {
        let before = lower[..start].trim_end();
        let is_property = before.rfind('(') > before.rfind(')') && before.ends_with(['(', ',']);
        let rest = &item[start + prefix.len()..];
        let end = rest.find([',', ')'])?;
        is_property.then(|| rest[..end].trim())
    })
}
