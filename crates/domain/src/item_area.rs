//! The paths that an item declares to touch: `- [ ] Parse the dates (medium, area: src/dates, area: docs)`. Two
//! items are not worked on at the same time if a path of one contains a path of the other. Nothing prevents
//! an item from touching other files.

use crate::item_check;
use crate::item_property::property_values;

const AREA_PREFIX: &str = "area:";

/// Returns the paths that an item declares, normalized: without white space around them, `.` components and
/// trailing slashes. Paths that lead out of the project are ignored.
pub fn parse_item_areas(item: &str) -> Vec<String> {
    property_values(item_check::text_before_verify_command(item), AREA_PREFIX)
        .filter_map(normalize_path_inside_project)
        .collect()
}

fn normalize_path_inside_project(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let leaves_project = path.starts_with('/') || parts.contains(&"..");
    (!leaves_project && !path.is_empty()).then(|| parts.join("/"))
}

/// Returns true if a path of one list equals or contains a path of the other. The empty path is the project
/// itself.
pub fn areas_overlap(left_areas: &[String], right_areas: &[String]) -> bool {
    let contains = |outer: &str, inner: &str| {
        outer.is_empty()
            || inner.strip_prefix(outer).is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('/'))
    };
    left_areas
        .iter()
        .any(|left| right_areas.iter().any(|right| contains(left, right) || contains(right, left)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_states_paths_in_parentheses() {
        for (item, expected) in [
            ("Parse dates", &[][..]),
            ("Parse dates (area: src/dates)", &["src/dates"]),
            ("Parse dates (medium, after: 2, Area: ./src//dates/, area:docs)", &["src/dates", "docs"]),
            ("Everything (area: .)", &[""]),
            ("Clean the area: src", &[]),
            ("Out (area: ../x, area: /etc, area: )", &[]),
            ("Check (area: src, verify: echo (area: docs))", &["src"]),
        ] {
            assert_eq!(parse_item_areas(item), expected, "{item}");
        }
    }

    #[test]
    fn a_folder_overlaps_only_with_its_own_contents() {
        for (left, right, expected) in [
            ("src", "src", true),
            ("src", "src/dates", true),
            ("src/dates", "src", true),
            ("src/dates", "src/dates.rs", false),
            ("src", "docs", false),
            ("", "docs", true),
        ] {
            assert_eq!(areas_overlap(&[left.to_owned()], &[right.to_owned()]), expected, "{left} {right}");
        }
        assert!(!areas_overlap(&[], &["src".to_owned()]), "who states nothing is not held back");
    }
}
