//! A turn can only be created by its two constructors, and cannot be changed (ARC-001, ARC-002). Each file in `closed/` tries
//! another way and must not compile. It begins with the expected compiler errors.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "the test starts the compiler on files; without them there is nothing to test"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program that must compile with the libraries of this test.
const CONTROL: &str = "fn main() { let _ = serde_json::from_str::<plimsoll_domain::SessionRecord>(\"{}\"); \
                       let _ = size_of::<plimsoll_domain::Turn>(); }";

/// Returns the folder of this test and of the libraries it was linked with.
fn library_folder() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// Returns the builds of a library, newest first. There is one for each set of features that the workspace uses, and cargo keeps
/// those of older sources as well.
fn builds_newest_first(name: &str) -> Vec<PathBuf> {
    let file_prefix = format!("lib{name}-");
    let is_build = |path: &PathBuf| {
        let file = path.file_name().unwrap().to_string_lossy();
        file.starts_with(&file_prefix) && file.ends_with(".rlib")
    };
    let entries = std::fs::read_dir(library_folder()).unwrap();
    let mut libraries: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(is_build).collect();
    libraries.sort_by_key(|path| std::cmp::Reverse(path.metadata().unwrap().modified().unwrap()));
    libraries
}

/// Compiles a program with these builds, and returns the first line of each compiler error.
fn compiler_errors(source: &Path, extern_libraries: &[(&str, &Path)], output: &Path) -> Vec<String> {
    let mut compiler = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    compiler.args(["--edition=2024", "--emit=metadata", "--crate-type=bin", "--crate-name=closed"]);
    compiler.args(["--color=never", "--cap-lints=allow"]).arg(source);
    compiler.arg("-o").arg(output.join("closed.rmeta"));
    compiler.arg("-L").arg(format!("dependency={}", library_folder().display()));
    for (name, build) in extern_libraries {
        compiler.arg("--extern").arg(format!("{name}={}", build.display()));
    }
    let compiler_output =
        compiler.stdin(Stdio::null()).output().expect("the compiler that has built this test");
    let text = String::from_utf8(compiler_output.stderr).unwrap();
    let is_message = |line: &&str| line.starts_with("error") && !line.contains("aborting due to");
    let messages: Vec<String> =
        text.lines().filter(is_message).map(|line| line.replace("plimsoll_domain::", "")).collect();
    assert_eq!(compiler_output.status.success(), messages.is_empty(), "{text}");
    messages
}

#[test]
fn arc_002_a_turn_cannot_be_created_or_changed_in_any_other_way() {
    let folder = tempfile::tempdir().unwrap();
    let control = folder.path().join("control.rs");
    std::fs::write(&control, CONTROL).unwrap();
    // Two builds that match compile the control program, so with them any other file fails only for its own reasons.
    let (domain, json) = builds_newest_first("plimsoll_domain")
        .into_iter()
        .flat_map(|domain| {
            builds_newest_first("serde_json").into_iter().map(move |json| (domain.clone(), json))
        })
        .find(|(domain, json)| {
            compiler_errors(&control, &[("plimsoll_domain", domain), ("serde_json", json)], folder.path())
                .is_empty()
        })
        .expect("the libraries that this test was built with");
    let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/closed")).unwrap();
    let mut count = 0;
    for path in files.map(|entry| entry.unwrap().path()) {
        let source = std::fs::read_to_string(&path).unwrap();
        let reasons: Vec<&str> = source.lines().map_while(|line| line.strip_prefix("// ")).collect();
        assert!(!reasons.is_empty(), "{} begins with no reason", path.display());
        let messages =
            compiler_errors(&path, &[("plimsoll_domain", &domain), ("serde_json", &json)], folder.path());
        assert_eq!(messages, reasons, "{}", path.display());
        count += 1;
    }
    assert_eq!(count, 8);
}
