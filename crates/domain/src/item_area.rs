//! The places that an item says it touches: `- [ ] Parse the dates (medium, area: src/dates, area: docs)`. Two items that state
//! places of which one contains the other are not worked on at the same time. Nothing holds an item to what it says.

use crate::item_check;
use crate::item_property::values;

const MARK: &str = "area:";

/// The paths that an item states, each as its parts: without blanks, `.` and a slash at the end. A path that leads out of
/// the project is none.
pub fn stated(item: &str) -> Vec<String> {
    values(item_check::words(item), MARK).filter_map(normal).collect()
}

fn normal(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let leads_out = path.starts_with('/') || parts.contains(&"..");
    (!leads_out && !path.is_empty()).then(|| parts.join("/"))
}

/// True if one of these paths is another, or contains it. The project itself is the empty path.
pub fn overlap(some: &[String], others: &[String]) -> bool {
    let contains = |outer: &str, inner: &str| {
        outer.is_empty()
            || inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    some.iter().any(|one| others.iter().any(|other| contains(one, other) || contains(other, one)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_states_paths_in_its_bracket() {
        for (item, expected) in [
            ("Parse dates", &[][..]),
            ("Parse dates (area: src/dates)", &["src/dates"]),
            ("Parse dates (medium, after: 2, Area: ./src//dates/, area:docs)", &["src/dates", "docs"]),
            ("Everything (area: .)", &[""]),
            ("Clean the area: src", &[]),
            ("Out (area: ../x, area: /etc, area: )", &[]),
            ("Check (area: src, verify: echo (area: docs))", &["src"]),
        ] {
            assert_eq!(stated(item), expected, "{item}");
        }
    }

    #[test]
    fn a_folder_overlaps_with_what_is_in_it_and_with_nothing_else() {
        for (one, other, expected) in [
            ("src", "src", true),
            ("src", "src/dates", true),
            ("src/dates", "src", true),
            ("src/dates", "src/dates.rs", false),
            ("src", "docs", false),
            ("", "docs", true),
        ] {
            assert_eq!(overlap(&[one.to_owned()], &[other.to_owned()]), expected, "{one} {other}");
        }
        assert!(!overlap(&[], &["src".to_owned()]), "who states nothing is not held back");
    }
}
