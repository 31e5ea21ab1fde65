//! ARCHITECTURE.md and the module pages stay short, and the tests, modules, types and sizes that they name are right.

use plimsoll_testkit::workspace_root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const MAX_ARCHITECTURE_WORDS: usize = 1_500;
const MAX_PAGE_WORDS: usize = 1_200;
const CONTRIBUTING: &str = "CONTRIBUTING.md";

/// Pages beside the code of a part, each with the folder whose modules it lists.
const PAGES: [(&str, &str); 4] = [
    ("crates/flows/README.md", "crates/flows/src"),
    ("crates/flows/src/run/README.md", "crates/flows/src/run"),
    ("crates/flows/src/workers/README.md", "crates/flows/src/workers"),
    ("crates/fleet/README.md", "crates/fleet/src"),
];

/// The module pages, relative to the workspace.
pub(crate) const MODULE_PAGES: [&str; 4] = [PAGES[0].0, PAGES[1].0, PAGES[2].0, PAGES[3].0];

fn read_page(name: &str) -> String {
    std::fs::read_to_string(workspace_root().join(name)).expect(name)
}

/// Returns the path to which a link on a page leads.
fn resolve_link(page: &str, target: &str) -> PathBuf {
    workspace_root().join(page).parent().expect("a folder").join(target)
}

/// Returns the targets of the links in a text.
fn link_targets(text: &str) -> Vec<&str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect()
}

#[test]
fn contributor_pages_keep_to_their_word_limits() {
    let pages = MODULE_PAGES.map(|page| (page, MAX_PAGE_WORDS));
    let architecture = [(ARCHITECTURE, MAX_ARCHITECTURE_WORDS), (CONTRIBUTING, MAX_PAGE_WORDS)];
    for (name, limit) in architecture.into_iter().chain(pages) {
        let count = read_page(name).split_whitespace().count();
        assert!(count <= limit, "{name} has {count} words, and at most {limit} are allowed");
    }
}

/// Each decision is in the list of decisions and states its reasons and alternatives.
#[test]
fn each_decision_is_listed_and_names_its_alternatives() {
    let list = read_page("docs/decisions/README.md");
    let targets = link_targets(&list);
    let folder = std::fs::read_dir(workspace_root().join("docs/decisions")).expect("docs/decisions");
    let names: Vec<String> = folder.flatten().map(|entry| entry.file_name().display().to_string()).collect();
    let decisions: Vec<&String> = names.iter().filter(|name| *name != "README.md").collect();
    for name in &decisions {
        assert!(targets.contains(&name.as_str()), "{name} is not in docs/decisions/README.md");
        let text = read_page(&format!("docs/decisions/{name}"));
        assert!(text.starts_with("# Decision: "), "{name}");
        for heading in ["## Why", "## Alternatives"] {
            assert!(text.lines().any(|line| line == heading), "{name} has no \"{heading}\"");
        }
    }
    assert_eq!(targets.len(), decisions.len(), "{targets:?}");
}

#[test]
fn the_architecture_links_each_module_page() {
    let text = read_page(ARCHITECTURE);
    let targets = link_targets(&text);
    for name in MODULE_PAGES {
        assert!(targets.contains(&name), "{ARCHITECTURE} does not link {name}");
    }
}

/// Returns true for a file that contains tests.
fn is_test_file(target: &str) -> bool {
    let is_in_tests_folder =
        target.starts_with("tests/tests/") || target.starts_with("crates/") && target.contains("/tests/");
    (is_in_tests_folder || target.ends_with("/tests.rs")) && target.ends_with(".rs")
}

/// Returns the invariants of a page: each paragraph that begins with `**Architecture invariant:**`.
fn invariants(text: &str) -> Vec<&str> {
    text.split("\n\n").filter(|paragraph| paragraph.starts_with("**Architecture invariant:**")).collect()
}

/// Returns what is wrong with the tests that an invariant links; empty if nothing is.
fn invariant_errors(invariant: &str) -> Vec<String> {
    let targets = link_targets(invariant);
    let is_wrong = |target: &&&str| !is_test_file(target) || !resolve_link(ARCHITECTURE, target).is_file();
    let wrong_targets =
        targets.iter().filter(is_wrong).map(|target| format!("{target} is no test: {invariant}"));
    let no_test = targets.is_empty().then(|| format!("no test: {invariant}"));
    no_test.into_iter().chain(wrong_targets).collect()
}

#[test]
fn each_architecture_invariant_links_tests_that_exist() {
    let planted = "**Architecture invariant:** one ([gone.rs](tests/tests/runs/gone.rs), [run.rs](crates/flows/src/run.rs)).";
    assert_eq!(invariant_errors(planted).len(), 2);
    assert_eq!(invariant_errors("**Architecture invariant:** two.").len(), 1);

    let text = read_page(ARCHITECTURE);
    let invariants = invariants(&text);
    assert!(invariants.len() >= 10, "{ARCHITECTURE} has {} invariants", invariants.len());
    let errors: Vec<String> = invariants.into_iter().flat_map(invariant_errors).collect();
    assert_eq!(errors, Vec::<String>::new());
}

/// Returns the modules below a folder, relative to it, without tests and without modules that have a page of their own.
fn source_modules(folder: &Path) -> BTreeSet<String> {
    let pages = PAGES.map(|(_, folder)| workspace_root().join(folder));
    let mut module_files = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() && !pages.contains(&path) {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
                module_files.insert(path.strip_prefix(folder).expect("below").display().to_string());
            }
        }
    }
    // Modules with a page of their own are listed there.
    let has_page = |name: &String| pages.contains(&folder.join(name).with_extension(""));
    module_files.retain(|name| !has_page(name));
    module_files
}

/// Returns the modules that the map of a page lists: the first words of the lines below its heading.
fn listed_modules(page: &str) -> BTreeSet<String> {
    let map =
        page.split("## Module map\n").nth(1).unwrap_or_default().split("\n## ").next().unwrap_or_default();
    let first_words = map.lines().filter_map(|line| line.split(' ').next());
    first_words.filter(|word| word.ends_with(".rs")).map(str::to_owned).collect()
}

#[test]
fn each_module_page_lists_every_module_of_its_part() {
    assert_eq!(
        listed_modules("## Module map\n\na.rs  one\nb/c.rs two\n\n## Next\nd.rs"),
        ["a.rs", "b/c.rs"].map(str::to_owned).into()
    );
    for (name, folder) in PAGES {
        let (listed, existing) =
            (listed_modules(&read_page(name)), source_modules(&workspace_root().join(folder)));
        assert!(existing.len() > 30, "{folder} has {} modules", existing.len());
        let missing: Vec<_> = existing.difference(&listed).collect();
        let stale: Vec<_> = listed.difference(&existing).collect();
        assert!(
            missing.is_empty() && stale.is_empty(),
            "{name} lacks {missing:?} and lists {stale:?}, which is not there"
        );
    }
}

/// A file whose size a page gives, and the types that the page names for it.
#[derive(Debug, PartialEq, Eq)]
struct SizedFile {
    target: String,
    lines: usize,
    types: Vec<String>,
}

/// Returns the files in entries such as `` **`Runner`** ([run.rs](../run.rs), about 600 lines) ``.
fn sized_files(page: &str) -> Vec<SizedFile> {
    let mut sized = Vec::new();
    for entry in page.split("\n- ").skip(1) {
        let entry = entry.split_whitespace().collect::<Vec<_>>().join(" ");
        let parts: Vec<&str> = entry.split("), about ").collect();
        for (before, after) in parts.iter().zip(parts.iter().skip(1)) {
            let target = before.rsplit("](").next().unwrap_or_default();
            let lines = after.split(' ').next().and_then(|number| number.parse().ok());
            let quoted = before.split('`').skip(1).step_by(2);
            let types = quoted.filter(|word| word.starts_with(|letter: char| letter.is_ascii_uppercase()));
            sized.push(SizedFile {
                target: target.to_owned(),
                lines: lines.unwrap_or_else(|| panic!("no number: {entry}")),
                types: types.map(str::to_owned).collect(),
            });
        }
    }
    sized
}

/// Returns true if a source file declares a type, trait or constant of this name.
fn declares_item(source: &str, name: &str) -> bool {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let is_declared = |kind: &str| {
        let declaration = format!("{kind} {name}");
        source.split(&declaration).skip(1).any(|rest| !rest.starts_with(is_name))
    };
    ["struct", "enum", "trait", "const"].into_iter().any(is_declared)
}

#[test]
fn module_pages_name_existing_types_and_roughly_right_sizes() {
    let planted = "# P\n\n- **`One`** ([a.rs](src/a.rs), about 20 lines): `two`. `Three` ([b.rs](../b.rs), about 5 lines).\n";
    let file = |target: &str, lines, name: &str| SizedFile {
        target: target.into(),
        lines,
        types: vec![name.into()],
    };
    assert_eq!(sized_files(planted), [file("src/a.rs", 20, "One"), file("../b.rs", 5, "Three")]);
    assert!(declares_item("pub struct One<'a> {", "One") && !declares_item("struct OneMore;", "One"));

    for name in MODULE_PAGES {
        let sized = sized_files(&read_page(name));
        assert!(sized.len() >= 8, "{name} gives the sizes of {} files", sized.len());
        for SizedFile { target, lines, types } in sized {
            let source = std::fs::read_to_string(resolve_link(name, &target)).expect(&target);
            let count = source.lines().count();
            assert!(
                (lines / 2..=lines * 3 / 2).contains(&count),
                "{name}: {target} has {count} lines, not about {lines}"
            );
            assert!(!types.is_empty(), "{name}: no type is named before {target}");
            for type_name in types {
                assert!(declares_item(&source, &type_name), "{name}: {type_name} is not in {target}");
            }
        }
    }
}

/// Returns the folders and files named in the page's section about tests that do not exist. A file is looked up in the
/// folder named before it.
fn missing_tests(page: &str) -> Vec<String> {
    let section = page.split("\n## Tests\n").nth(1).unwrap_or_default();
    let (mut folder, mut missing) = (workspace_root(), Vec::new());
    let names: Vec<&str> = section.split('`').skip(1).step_by(2).filter(|name| !name.contains(' ')).collect();
    assert!(names.len() >= 4, "the tests of a page: {names:?}");
    for name in names {
        let path = workspace_root().join(name);
        if path.is_dir() && name.contains("tests/") {
            folder = path;
        } else if !path.exists() && !folder.join(name).exists() {
            missing.push(name.to_owned());
        }
    }
    missing
}

#[test]
fn tests_named_in_the_module_pages_exist() {
    let planted = "x\n## Tests\n\nIn `tests/tests/runs/`: `breaker.rs`, `gone.rs`, `resume/`, `model_gone/`.";
    assert_eq!(missing_tests(planted), ["gone.rs", "model_gone/"]);
    for name in MODULE_PAGES {
        assert_eq!(missing_tests(&read_page(name)), Vec::<String>::new(), "{name}");
    }
}
