//! CONTRIBUTING.md promises how many files a new event, segment or ending costs. Here they are counted by what must change: a
//! function, list, type or page that names every one that there is would have to name a new one, too. What names only some does so
//! by choice.

use plimsoll_domain::RunStatus;
use plimsoll_domain::journal::JournalEvent;
use plimsoll_domain::statusline::SegmentKind;
use plimsoll_testkit::workspace_root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One recipe, as the page has it.
#[derive(Debug, PartialEq, Eq)]
struct Recipe {
    /// How many files it promises.
    promised: usize,
    /// The files of each numbered step.
    steps: Vec<Vec<String>>,
    /// Files that a test checks or writes.
    checked: Vec<String>,
}

/// What there is many of.
struct Kinds {
    /// As the page calls it.
    title: &'static str,
    /// The most files that one may cost.
    most: usize,
    /// How many of them are chosen for each one: where it is written, or decided.
    chosen: usize,
    /// The enum.
    owner: &'static str,
    /// Each variant with its word.
    variants: Vec<(String, String)>,
}

fn all_kinds() -> [Kinds; 3] {
    let events = JournalEvent::NAMES.iter().filter(|name| **name != "unknown");
    let segments = SegmentKind::ALL.iter();
    let statuses = RunStatus::ALL.iter();
    [
        Kinds {
            title: "A new journal event",
            most: 4,
            chosen: 1,
            owner: "JournalEvent",
            variants: events.map(|name| (camel_case(name), (*name).to_owned())).collect(),
        },
        Kinds {
            title: "A new status-line segment",
            most: 2,
            chosen: 0,
            owner: "SegmentKind",
            variants: segments.map(|kind| (format!("{kind:?}"), kind.name().to_owned())).collect(),
        },
        Kinds {
            title: "A new ending of a run",
            most: 3,
            chosen: 1,
            owner: "Status",
            // One that is not over is no ending.
            variants: statuses
                .filter(|status| status.has_ended())
                .map(|status| (format!("{status:?}"), status.as_str().to_owned()))
                .collect(),
        },
    ]
}

fn camel_case(name: &str) -> String {
    let part = |part: &str| part[..1].to_uppercase() + &part[1..];
    name.split('_').map(part).collect()
}

/// The recipe behind the heading `**A new …: 3 files**`: its numbered steps, and the files behind `Golden`.
fn recipe(page: &str, title: &str) -> Recipe {
    let (_, behind) = page.split_once(&format!("**{title}: ")).unwrap_or_else(|| panic!("no {title}"));
    let (promised, _) = behind.split_once(" files").expect("how many");
    let own = behind.split("\n**A new ").next().unwrap_or_default().split("\n## ").next().unwrap_or_default();
    let mut steps: Vec<Vec<String>> = Vec::new();
    let mut is_in_step = false;
    // Behind the rest of the heading.
    for line in own.lines().skip(1) {
        let is_numbered = line.starts_with(|letter: char| letter.is_ascii_digit());
        if is_numbered {
            steps.push(Vec::new());
        }
        is_in_step = is_numbered || is_in_step && line.starts_with(' ');
        if let Some(step) = steps.last_mut().filter(|_| is_in_step) {
            step.extend(files_in(line));
        }
    }
    let goldens =
        own.split_once("\nGolden").or_else(|| own.split_once(" Golden")).map_or("", |(_, rest)| rest);
    let checked = files_in(goldens.split("\n\n").next().unwrap_or_default());
    Recipe { promised: promised.parse().expect(title), steps, checked }
}

/// The files that a text names in backticks.
fn files_in(text: &str) -> Vec<String> {
    let is_file = |text: &&str| text.contains('/') && workspace_root().join(text).is_file();
    text.split('`').filter(is_file).map(str::to_owned).collect()
}

/// Files that people write: sources of what is built, pages, settings and scripts; without tests.
fn written_files(folder: &Path, found: &mut Vec<PathBuf>) {
    const TESTS: [&str; 5] = ["tests", "tests.rs", "testkit", "fixtures", "target"];
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if TESTS.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            written_files(&path, found);
        } else if path.extension().is_some_and(|end| {
            ["rs", "md", "json", "sh", "sql", "toml", "txt", "mjs"].iter().any(|known| end == *known)
        }) {
            found.push(path);
        }
    }
}

/// Whether a word stands in the text by itself.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

/// Whether a file has something that names each of them: a source one item that has the enum's variants, or their words in quotes;
/// any other file their words.
fn names_all(path: &Path, text: &str, kinds: &Kinds) -> bool {
    if path.extension().is_none_or(|end| end != "rs") {
        return kinds.variants.iter().all(|(_, word)| has_word(text, word));
    }
    // What stands behind the tests of a file is none of it.
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let is_about_it = has_word(code, kinds.owner);
    // The items of a file end at the margin.
    code.split("\n}").flat_map(|items| items.split("\n]")).any(|item| {
        let names = |(variant, word): &(String, String)| {
            is_about_it && has_word(item, variant) || item.contains(&format!("\"{word}\""))
        };
        kinds.variants.iter().all(names)
    })
}

/// The files of which this is true, by their path in the repository.
fn files_with(is_one: impl Fn(&Path, &str) -> bool) -> BTreeSet<String> {
    let mut files = Vec::new();
    for folder in ["crates", "docs", "hooks-config", "scripts"] {
        written_files(&workspace_root().join(folder), &mut files);
    }
    assert!(files.len() > 500, "{}", files.len());
    let is_one = |path: &PathBuf| std::fs::read_to_string(path).is_ok_and(|text| is_one(path, &text));
    let name =
        |path: PathBuf| path.strip_prefix(workspace_root()).expect("a file of ours").display().to_string();
    files.into_iter().filter(is_one).map(name).collect()
}

#[test]
fn a_new_event_segment_or_ending_costs_the_files_that_its_recipe_promises() {
    let page = std::fs::read_to_string(workspace_root().join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
    for kinds in all_kinds() {
        let Kinds { title, most, chosen, .. } = kinds;
        let recipe = recipe(&page, title);
        let mut must = files_with(|path, text| names_all(path, text, &kinds));
        must.retain(|file| !recipe.checked.contains(file));
        let named: BTreeSet<String> = recipe.steps.iter().flatten().cloned().collect();
        let untold: Vec<&String> = must.iter().filter(|file| !named.contains(*file)).collect();
        assert!(untold.is_empty(), "{title} costs {untold:?}, too: it names each one that there is");
        assert_eq!(recipe.promised, recipe.steps.len(), "{title}: {recipe:?}");
        assert_eq!(recipe.promised, must.len() + chosen, "{title}: {must:?}");
        assert!(recipe.promised <= most, "{title} costs {} files", recipe.promised);
    }
}

#[test]
fn an_event_that_is_only_written_and_shown_is_in_three_files_and_a_trouble_in_four() {
    for (event, expected) in [("PromptMended", 3), ("LinearDelivered", 3), ("LeftBehind", 4)] {
        let is_named = |path: &Path, text: &str| {
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            path.extension().is_some_and(|end| end == "rs")
                && ["JournalEvent::", "E::"].iter().any(|owner| has_word(code, &format!("{owner}{event}")))
        };
        let files = files_with(is_named);
        assert_eq!(files.len(), expected, "{event}: {files:?}");
    }
}

#[test]
fn a_recipe_is_read_with_its_steps_and_a_file_with_a_missing_name_is_not_one_to_change() {
    let page = "**A new flag: 2 files**, or more.\n\n1. `crates/domain/src/status.rs`: the flag, with\n   `docs/reference.md` at once.\n2. The file that hoists it.\n\n`docs/settings.md` may be of interest. Golden: `docs/json.md`.\n\n**A new sail: 1 files**\n\n1. `docs/nothing.md`\n";
    let found = recipe(page, "A new flag");
    let files = |files: &[&str]| files.iter().map(|file| (*file).to_owned()).collect::<Vec<_>>();
    assert_eq!(found.steps, [files(&["crates/domain/src/status.rs", "docs/reference.md"]), Vec::new()]);
    assert_eq!((found.promised, found.checked), (2, files(&["docs/json.md"])));
    let kinds = Kinds {
        title: "A new flag",
        most: 2,
        chosen: 1,
        owner: "Flag",
        variants: [("Red", "red"), ("HalfBlue", "half_blue")]
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .into(),
    };
    let names_all = |name: &str, text: &str| names_all(Path::new(name), text, &kinds);
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
