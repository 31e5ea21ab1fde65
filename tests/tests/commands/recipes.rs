//! CONTRIBUTING.md states how many files change for a new journal event, status-line segment or ending of a run. These tests count
//! the files that must change: a function, list, type or page that names every existing variant must also name a new one. Code that
//! names only some of them does so by choice and is not counted.

use plimsoll_domain::RunStatus;
use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::statusline::SegmentKind;
use plimsoll_testkit::workspace_root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One recipe of CONTRIBUTING.md.
#[derive(Debug, PartialEq, Eq)]
struct Recipe {
    /// The number of files that the heading states.
    promised_file_count: usize,
    /// The files of each numbered step.
    steps: Vec<Vec<String>>,
    /// Files that a test checks or generates.
    checked_files: Vec<String>,
}

/// An enum to which contributors add variants.
struct ExtensionPoint {
    /// The title of its recipe.
    title: &'static str,
    /// The most files that may change for a new variant.
    max_files: usize,
    /// The number of files that depend on the variant: where it is written or decided.
    chosen_files: usize,
    /// The name of the enum.
    enum_name: &'static str,
    /// Each variant with its written name.
    variants: Vec<(String, String)>,
}

fn extension_points() -> [ExtensionPoint; 3] {
    let events = JournalEvent::NAMES.iter().filter(|name| **name != "unknown");
    let segments = SegmentKind::ALL.iter();
    let events_source = std::fs::read_to_string(workspace_root().join("crates/domain/src/journal/event.rs"))
        .expect("event.rs");
    let statuses = RunStatus::ALL.iter();
    [
        ExtensionPoint {
            title: "A new journal event",
            max_files: 4,
            chosen_files: 1,
            enum_name: "JournalEvent",
            variants: events
                .map(|name| (variant_written_as(name, &events_source), (*name).to_owned()))
                .collect(),
        },
        ExtensionPoint {
            title: "A new status-line segment",
            max_files: 2,
            chosen_files: 0,
            enum_name: "SegmentKind",
            variants: segments.map(|kind| (format!("{kind:?}"), kind.name().to_owned())).collect(),
        },
        ExtensionPoint {
            title: "A new ending of a run",
            max_files: 3,
            chosen_files: 1,
            enum_name: "RunStatus",
            // Only a status of an ended run is an ending.
            variants: statuses
                .filter(|status| status.has_ended())
                .map(|status| (format!("{status:?}"), status.as_str().to_owned()))
                .collect(),
        },
    ]
}

/// The variant that is written under this name: the one with the attribute that says so, or the name in camel case.
fn variant_written_as(name: &str, source: &str) -> String {
    let renamed = source.split_once(&format!("#[strum(serialize = \"{name}\")]\n"));
    let variant =
        renamed.map(|(_, rest)| rest.trim_start().split(|letter: char| !letter.is_alphanumeric()).next());
    variant.flatten().map_or_else(|| camel_case(name), str::to_owned)
}

fn camel_case(name: &str) -> String {
    let part = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(part).collect()
}

/// Parses the recipe with the heading `**A new …: 3 files**`: its numbered steps, and the files named after `Golden`.
fn parse_recipe(page: &str, title: &str) -> Recipe {
    let (_, after_title) = page.split_once(&format!("**{title}: ")).unwrap_or_else(|| panic!("no {title}"));
    let (promised, _) = after_title.split_once(" files").expect("how many");
    let section =
        after_title.split("\n**A new ").next().unwrap_or_default().split("\n## ").next().unwrap_or_default();
    let mut steps: Vec<Vec<String>> = Vec::new();
    let mut is_in_step = false;
    // The first line is the rest of the heading.
    for line in section.lines().skip(1) {
        let is_numbered = line.starts_with(|letter: char| letter.is_ascii_digit());
        if is_numbered {
            steps.push(Vec::new());
        }
        is_in_step = is_numbered || is_in_step && line.starts_with(' ');
        if let Some(step) = steps.last_mut().filter(|_| is_in_step) {
            step.extend(files_named_in(line));
        }
    }
    let goldens =
        section.split_once("\nGolden").or_else(|| section.split_once(" Golden")).map_or("", |(_, rest)| rest);
    let checked = files_named_in(goldens.split("\n\n").next().unwrap_or_default());
    Recipe { promised_file_count: promised.parse().expect(title), steps, checked_files: checked }
}

/// Returns the existing files that a text names in backticks.
fn files_named_in(text: &str) -> Vec<String> {
    let is_file = |text: &&str| text.contains('/') && workspace_root().join(text).is_file();
    text.split('`').filter(is_file).map(str::to_owned).collect()
}

/// Collects the files that people edit: sources, documentation, settings and scripts, without tests.
fn collect_written_files(folder: &Path, files: &mut Vec<PathBuf>) {
    const TESTS: [&str; 5] = ["tests", "tests.rs", "testkit", "fixtures", "target"];
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if TESTS.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            collect_written_files(&path, files);
        } else if path.extension().is_some_and(|end| {
            ["rs", "md", "json", "sh", "sql", "toml", "txt", "mjs"].iter().any(|known| end == *known)
        }) {
            files.push(path);
        }
    }
}

/// Whether the text contains the word as a whole word.
fn contains_word(text: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(word).any(|(start, _)| {
        !text[..start].ends_with(is_part) && !text[start + word.len()..].starts_with(is_part)
    })
}

/// Whether a file names all variants. In Rust code one item must have all of the enum's variants or their quoted names; in any
/// other file all names must occur.
fn names_all_variants(path: &Path, text: &str, extension_point: &ExtensionPoint) -> bool {
    if path.extension().is_none_or(|end| end != "rs") {
        return extension_point.variants.iter().all(|(_, word)| contains_word(text, word));
    }
    // The rest of the file is test code.
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let names_the_enum = contains_word(code, extension_point.enum_name);
    // An item ends with a brace or bracket at the start of a line.
    code.split("\n}").flat_map(|items| items.split("\n]")).any(|item| {
        let names_variant = |(variant, word): &(String, String)| {
            names_the_enum && contains_word(item, variant) || item.contains(&format!("\"{word}\""))
        };
        extension_point.variants.iter().all(names_variant)
    })
}

/// Returns the paths in the repository of the files that match.
fn files_matching(is_match: impl Fn(&Path, &str) -> bool) -> BTreeSet<String> {
    let mut files = Vec::new();
    for folder in ["crates", "docs", "hooks-config", "scripts"] {
        collect_written_files(&workspace_root().join(folder), &mut files);
    }
    assert!(files.len() > 500, "{}", files.len());
    let file_matches = |path: &PathBuf| std::fs::read_to_string(path).is_ok_and(|text| is_match(path, &text));
    let relative_name =
        |path: PathBuf| path.strip_prefix(workspace_root()).expect("a file of ours").display().to_string();
    files.into_iter().filter(file_matches).map(relative_name).collect()
}

#[test]
fn new_variant_changes_exactly_the_files_that_contributing_md_lists() {
    let page = std::fs::read_to_string(workspace_root().join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
    for extension_point in extension_points() {
        let ExtensionPoint { title, max_files: most, chosen_files: chosen, .. } = extension_point;
        let recipe = parse_recipe(&page, title);
        let mut required_files =
            files_matching(|path, text| names_all_variants(path, text, &extension_point));
        required_files.retain(|file| !recipe.checked_files.contains(file));
        let named_files: BTreeSet<String> = recipe.steps.iter().flatten().cloned().collect();
        let unnamed_files: Vec<&String> =
            required_files.iter().filter(|file| !named_files.contains(*file)).collect();
        assert!(
            unnamed_files.is_empty(),
            "{title} costs {unnamed_files:?}, too: it names each one that there is"
        );
        assert_eq!(recipe.promised_file_count, recipe.steps.len(), "{title}: {recipe:?}");
        assert_eq!(recipe.promised_file_count, required_files.len() + chosen, "{title}: {required_files:?}");
        assert!(recipe.promised_file_count <= most, "{title} costs {} files", recipe.promised_file_count);
    }
}

#[test]
fn simple_journal_event_is_named_in_three_files_and_a_fault_in_four() {
    for (event, expected) in [("PromptRestored", 3), ("LinearDelivered", 3), ("ProcessesLeftBehind", 4)] {
        let is_named = |path: &Path, text: &str| {
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            path.extension().is_some_and(|end| end == "rs")
                && ["JournalEvent::", "E::"]
                    .iter()
                    .any(|owner| contains_word(code, &format!("{owner}{event}")))
        };
        let files = files_matching(is_named);
        assert_eq!(files.len(), expected, "{event}: {files:?}");
    }
}

#[test]
fn recipe_steps_are_parsed_and_partial_variant_lists_are_not_counted() {
    let page = "**A new flag: 2 files**, or more.\n\n1. `crates/domain/src/status.rs`: the flag, with\n   `docs/reference.md` at once.\n2. The file that hoists it.\n\n`docs/settings.md` may be of interest. Golden: `docs/json.md`.\n\n**A new sail: 1 files**\n\n1. `docs/nothing.md`\n";
    let recipe = parse_recipe(page, "A new flag");
    let files = |files: &[&str]| files.iter().map(|file| (*file).to_owned()).collect::<Vec<_>>();
    assert_eq!(recipe.steps, [files(&["crates/domain/src/status.rs", "docs/reference.md"]), Vec::new()]);
    assert_eq!((recipe.promised_file_count, recipe.checked_files), (2, files(&["docs/json.md"])));
    let extension_point = ExtensionPoint {
        title: "A new flag",
        max_files: 2,
        chosen_files: 1,
        enum_name: "Flag",
        variants: [("Red", "red"), ("HalfBlue", "half_blue")]
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .into(),
    };
    let names_all = |name: &str, text: &str| names_all_variants(Path::new(name), text, &extension_point);
    assert!(names_all("a.rs", "match flag { Flag::Red => 1, Flag::HalfBlue => 2 }"));
    assert!(names_all("a.rs", "[\"red\", \"half_blue\"]"));
    assert!(!names_all("a.rs", "match flag { Flag::Red => 1, _ => 2 }"), "one by choice");
    assert!(
        !names_all("a.rs", "fn a() {\n    Flag::Red\n}\nfn b() {\n    Flag::HalfBlue\n}\n"),
        "nowhere all"
    );
    assert!(!names_all("a.rs", "match sail { Sail::Red => 1, Sail::HalfBlue => 2 }"), "of another enum");
    assert!(!names_all("a.rs", "Flag::Red\n#[cfg(test)]\nFlag::HalfBlue"), "in a test");
    assert!(names_all("a.md", "| red, half_blue |") && !names_all("a.md", "| red, half_blues |"));
}
