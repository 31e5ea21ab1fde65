//! Properties in an item's parentheses: `(simple, model: haiku, area: src)`.

/// Returns the values of a property. Its prefix must be the first word in the parentheses or follow a comma.
/// Each value ends at the next comma or at the closing parenthesis.
pub(crate) fn property_values<'a>(item: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    // ASCII lowercasing keeps byte offsets, so the offsets are valid in `item`.
    let lowercase_item = item.to_ascii_lowercase();
    let prefix_starts: Vec<usize> = lowercase_item.match_indices(prefix).map(|(start, _)| start).collect();
    prefix_starts.into_iter().filter_map(move |start| {
        let text_before = lowercase_item[..start].trim_end();
        let is_property =
            text_before.rfind('(') > text_before.rfind(')') && text_before.ends_with(['(', ',']);
        let text_after_prefix = &item[start + prefix.len()..];
        let end = text_after_prefix.find([',', ')'])?;
        is_property.then(|| text_after_prefix[..end].trim())
    })
}
