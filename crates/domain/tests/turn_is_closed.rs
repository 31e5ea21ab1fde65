//! There is no way to a turn but its two constructors, and none to change one (ARC-001, ARC-002). Each file in `closed/` is
//! a way that must not compile, and begins with the compiler's reasons.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "the test starts the compiler on files; without them there is nothing to test"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a file can use of the libraries that this test was built with.
const CONTROL: &str = "fn main() { let _ = serde_json::from_str::<plimsoll_domain::SessionRecord>(\"{}\"); \
                       let _ = size_of::<plimsoll_domain::Turn>(); }";

/// The folder of this test and of the libraries it was linked with.
fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// The builds of a library, the newest first: one for each set of features that something in the workspace asks for, and
/// those of older sources, which cargo leaves where they are.
fn builds(name: &str) -> Vec<PathBuf> {
    let begins = format!("lib{name}-");
    let is_build = |path: &PathBuf| {
        let file = path.file_name().unwrap().to_string_lossy();
        file.starts_with(&begins) && file.ends_with(".rlib")
    };
    let entries = std::fs::read_dir(libraries()).unwrap();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(is_build).collect();
    found.sort_by_key(|path| std::cmp::Reverse(path.metadata().unwrap().modified().unwrap()));
    found
}

/// The errors of a program that uses these builds, as the compiler's messages begin.
fn errors(source: &Path, uses: &[(&str, &Path)], output: &Path) -> Vec<String> {
    let mut compiler = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    compiler.args(["--edition=2024", "--emit=metadata", "--crate-type=bin", "--crate-name=closed"]);
    compiler.args(["--color=never", "--cap-lints=allow"]).arg(source);
    compiler.arg("-o").arg(output.join("closed.rmeta"));
    compiler.arg("-L").arg(format!("dependency={}", libraries().display()));
    for (name, build) in uses {
        compiler.arg("--extern").arg(format!("{name}={}", build.display()));
    }
    let ended = compiler.stdin(Stdio::null()).output().expect("the compiler that has built this test");
    let text = String::from_utf8(ended.stderr).unwrap();
    let is_message = |line: &&str| line.starts_with("error") && !line.contains("aborting due to");
    let found: Vec<String> =
        text.lines().filter(is_message).map(|line| line.replace("plimsoll_domain::", "")).collect();
    assert_eq!(ended.status.success(), found.is_empty(), "{text}");
    found
}

#[test]
fn arc_002_a_turn_cannot_be_made_or_changed_by_the_back_door() {
    let folder = tempfile::tempdir().unwrap();
    let control = folder.path().join("control.rs");
    std::fs::write(&control, CONTROL).unwrap();
    // Two builds that belong together compile what is allowed: a file that fails with these fails for its own reasons.
    let (domain, json) = builds("plimsoll_domain")
        .into_iter()
        .flat_map(|domain| builds("serde_json").into_iter().map(move |json| (domain.clone(), json)))
        .find(|(domain, json)| {
            errors(&control, &[("plimsoll_domain", domain), ("serde_json", json)], folder.path()).is_empty()
        })
        .expect("the libraries that this test was built with");
    let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/closed")).unwrap();
    let mut count = 0;
    for path in files.map(|entry| entry.unwrap().path()) {
        let source = std::fs::read_to_string(&path).unwrap();
        let reasons: Vec<&str> = source.lines().map_while(|line| line.strip_prefix("// ")).collect();
        assert!(!reasons.is_empty(), "{} begins with no reason", path.display());
        let found = errors(&path, &[("plimsoll_domain", &domain), ("serde_json", &json)], folder.path());
        assert_eq!(found, reasons, "{}", path.display());
        count += 1;
    }
    assert_eq!(count, 8);
}
