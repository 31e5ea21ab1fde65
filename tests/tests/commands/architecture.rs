//! The rules of ARCHITECTURE.md: the hook programs link a short committed list of packages, crates depend on each other
//! in one direction only, and no program panics on purpose.

use crate::architecture_pages::MODULE_PAGES;
use crate::docs::OTHER_PAGES;
use plimsoll_testkit::world::World;
use plimsoll_testkit::{fixtures_dir, workspace_root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Returns the packages that a package's programs link, according to `cargo tree`.
fn linked_packages(package: &str) -> BTreeSet<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let arguments = [
        "tree",
        "-p",
        package,
        "-e",
        "normal,no-proc-macro",
        "--target",
        "x86_64-unknown-linux-musl",
        "--prefix",
        "none",
    ];
    let world = World::without_git().without_plimsoll_programs();
    let mut launch = world.command(cargo, &arguments).cwd(workspace_root());
    // Cargo needs the user's own home for its registry.
    for name in ["HOME", "CARGO_HOME", "RUSTUP_HOME", "PATH"] {
        if let Ok(value) = std::env::var(name) {
            launch = launch.env(name, value);
        }
    }
    let tree = launch.run().expect_success().stdout;
    tree.lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_hook_programs_link_exactly_the_committed_packages() {
    let path = fixtures_dir().parent().unwrap().join("dependencies.txt");
    let linked = linked_packages("plimsoll-hooks");
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        let text: String = linked.iter().map(|name| format!("{name}\n")).collect();
        std::fs::write(&path, text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    let committed: BTreeSet<String> = committed.lines().map(str::to_owned).collect();
    let new: Vec<_> = linked.difference(&committed).collect();
    let missing: Vec<_> = committed.difference(&linked).collect();
    assert!(
        new.is_empty() && missing.is_empty(),
        "new: {new:?}, gone: {missing:?}; is it wanted? then PLIMSOLL_UPDATE_GOLDEN=1"
    );
    for heavy in [
        "clap",
        "regex",
        "toml",
        "tokio",
        "rmcp",
        "ureq",
        "rustls",
        "plimsoll-network",
        "prost",
        "opentelemetry-proto",
        "tempfile",
        "indicatif",
        "plimsoll-scripted-model",
        "plimsoll-fleet",
        "postgres",
    ] {
        assert!(!linked.contains(heavy), "{heavy} has no place in a hook");
    }
}

#[test]
fn no_user_program_links_the_test_kit() {
    for package in [
        "plimsoll",
        "plimsoll-cli",
        "plimsoll-hooks",
        "plimsoll-mcp",
        "plimsoll-linear",
        "plimsoll-otel",
        "plimsoll-fleet",
    ] {
        let linked = linked_packages(package);
        assert!(linked.contains("plimsoll-flows") && linked.contains(package), "{linked:?}");
        assert!(!linked.contains("plimsoll-testkit"), "{package}");
    }
}

/// Covers the packages that open connections to other computers, and their dependencies.
#[test]
fn only_the_optional_programs_link_a_network_client() {
    const NETWORK: [&str; 6] = ["plimsoll-network", "ureq", "rustls", "rustls-native-certs", "ring", "http"];
    const OTLP: [&str; 2] = ["opentelemetry-proto", "prost"];
    for package in ["plimsoll-cli", "plimsoll-hooks", "plimsoll-mcp"] {
        let linked = linked_packages(package);
        assert!(linked.contains(package), "{linked:?}");
        let wrong: Vec<_> = NETWORK.iter().chain(&OTLP).filter(|name| linked.contains(**name)).collect();
        assert!(wrong.is_empty(), "{package} links {wrong:?}");
    }
    for (package, parts) in [("plimsoll-linear", &[][..]), ("plimsoll-otel", &OTLP)] {
        let linked = linked_packages(package);
        let missing: Vec<_> = NETWORK.iter().chain(parts).filter(|name| !linked.contains(**name)).collect();
        assert!(missing.is_empty(), "they have other names now: {missing:?}");
    }
    const DATABASE: [&str; 4] = ["plimsoll-fleet", "postgres", "tokio-postgres", "tokio-postgres-rustls"];
    for package in ["plimsoll-cli", "plimsoll-hooks", "plimsoll-mcp", "plimsoll-linear", "plimsoll-otel"] {
        let linked = linked_packages(package);
        let wrong: Vec<_> = DATABASE.iter().filter(|name| linked.contains(**name)).collect();
        assert!(wrong.is_empty(), "{package} links {wrong:?}");
    }
    let linked = linked_packages("plimsoll-fleet");
    let missing: Vec<_> = DATABASE.iter().filter(|name| !linked.contains(**name)).collect();
    assert!(missing.is_empty(), "they have other names now: {missing:?}");
    for others in ["plimsoll-network", "ureq", "openssl", "aws-lc-rs", "plimsoll-testkit"] {
        assert!(!linked.contains(others), "plimsoll-fleet links {others}");
    }
    // It sends one request after another in its own threads, so it needs neither gRPC nor an async runtime.
    let linked = linked_packages("plimsoll-otel");
    for heavy in ["tokio", "tonic", "hyper", "plimsoll-linear"] {
        assert!(!linked.contains(heavy), "plimsoll-otel links {heavy}");
    }
}

/// All programs belong to one package, so that one command installs them; cargo therefore cannot tell what each of them
/// links. The compiler leaves out a library that a program does not name.
#[test]
fn each_program_names_exactly_one_library_crate() {
    let folder = workspace_root().join("crates/plimsoll/src/bin");
    let named_libraries = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let words = code.split(|letter| !is_word(letter)).filter(|word| word.starts_with("plimsoll_"));
        words.map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let named: BTreeMap<String, String> = entries
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), named_libraries(&path)))
        .collect();
    let expected = [
        ("plimsoll", "plimsoll_cli"),
        ("plimsoll-fleet", "plimsoll_fleet"),
        ("plimsoll-hook", "plimsoll_hooks"),
        ("plimsoll-linear", "plimsoll_linear"),
        ("plimsoll-mcp", "plimsoll_mcp"),
        ("plimsoll-otel", "plimsoll_otel"),
    ];
    assert_eq!(named, expected.map(|(program, library)| (program.to_owned(), library.to_owned())).into());
}

/// Returns the packages that a lock file takes from a registry, as `name version`.
fn locked_packages(lock_file: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(workspace_root().join(lock_file)).unwrap();
    let value = |package: &str, key: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
        Some(line.trim_matches('"').to_owned())
    };
    let packages = text.split("[[package]]").skip(1).filter(|package| value(package, "source").is_some());
    let named = packages.map(|package| Some([value(package, "name")?, value(package, "version")?].join(" ")));
    named.map(|package| package.expect("a name and a version")).collect()
}

/// `scripts/deny.sh` checks the licenses, sources and known vulnerabilities of this workspace's packages alone.
#[test]
fn research_uses_only_packages_that_deny_checks() {
    let used = locked_packages("research/Cargo.lock");
    assert!(used.len() > 30, "the lock file was not read: {used:?}");
    let unchecked: Vec<_> = used.difference(&locked_packages("Cargo.lock")).cloned().collect();
    assert_eq!(
        unchecked,
        Vec::<String>::new(),
        "cp Cargo.lock research/ && cargo update --workspace --manifest-path research/Cargo.toml"
    );
}

/// Returns the folders of the workspace crates that a manifest names under one of these headings.
fn workspace_dependencies(manifest: &str, headings: &[&str]) -> BTreeSet<String> {
    let mut dependencies = BTreeSet::new();
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = headings.contains(&line.trim());
        } else if inside
            && let Some(folder) =
                line.split(['.', ' ', '=']).next().and_then(|name| name.strip_prefix("plimsoll-"))
        {
            dependencies.insert(folder.to_owned());
        }
    }
    dependencies
}

#[test]
fn crates_depend_only_on_their_allowed_crates() {
    let allowed: [(&str, &[&str]); 19] = [
        ("system", &[]),
        ("protocol", &[]),
        ("domain", &["protocol"]),
        ("policy", &["protocol", "domain"]),
        ("store", &["protocol", "domain", "system"]),
        // It takes a text and returns findings.
        ("secrets", &[]),
        ("launcher", &["protocol", "domain", "store", "secrets", "system"]),
        // It depends on no other crate of ours: callers pass in what it sends. Nothing that a hook links may depend on
        // it.
        ("network", &[]),
        ("flows", &["protocol", "domain", "policy", "store", "secrets", "launcher", "system"]),
        ("hooks", &["protocol", "domain", "policy", "store", "launcher", "flows", "system"]),
        // The code for the user interface that the programs below share.
        ("terminal", &["protocol", "domain", "policy", "store", "launcher", "flows", "system"]),
        (
            "cli",
            &[
                "protocol",
                "domain",
                "policy",
                "store",
                "secrets",
                "launcher",
                "flows",
                "terminal",
                "scripted-model",
                "system",
            ],
        ),
        ("mcp", &["domain", "store", "launcher", "flows", "system"]),
        // The optional programs, which use the network.
        ("linear", &["domain", "policy", "store", "secrets", "network", "flows", "terminal"]),
        ("otel", &["domain", "policy", "store", "secrets", "network", "flows", "terminal"]),
        ("fleet", &["domain", "policy", "store", "secrets", "launcher", "flows", "terminal"]),
        // The program binaries, each one call into its library.
        ("plimsoll", &["cli", "fleet", "hooks", "linear", "mcp", "otel"]),
        // It takes a script and returns model responses.
        ("scripted-model", &[]),
        ("testkit", &["scripted-model"]),
    ];
    let crates = workspace_root().join("crates");
    let folders: BTreeSet<String> = std::fs::read_dir(&crates)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let known: BTreeSet<String> = allowed.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(folders, known, "a new crate needs a new rule, here too");
    let mut dependency_count = 0;
    for (name, permitted) in allowed {
        let manifest = std::fs::read_to_string(crates.join(name).join("Cargo.toml")).unwrap();
        let named = workspace_dependencies(&manifest, &["[dependencies]", "[build-dependencies]"]);
        dependency_count += named.len();
        let wrong: Vec<_> = named.iter().filter(|name| !permitted.contains(&name.as_str())).collect();
        assert!(wrong.is_empty(), "{name} may not depend on {wrong:?}");
    }
    assert!(dependency_count >= 30, "the scan has lost the manifests: {dependency_count} imports");
}

/// Collects the Rust files below a folder. Folders of built, recorded and installed files are passed over.
pub(crate) fn collect_rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && !["target", "fixtures", "node_modules"].contains(&&*name.to_string_lossy()) {
            collect_rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Collects the source files below a folder, except `tests.rs` files and those of modules in a folder `tests`.
fn collect_source_files(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut rust_files = Vec::new();
    collect_rust_files(folder, &mut rust_files);
    let is_of_tests = |path: &PathBuf| {
        path.ends_with("tests.rs") || path.parent().is_some_and(|folder| folder.ends_with("tests"))
    };
    files.extend(rust_files.into_iter().filter(|path| !is_of_tests(path)));
}

#[test]
fn no_source_file_panics_on_purpose_or_silences_a_lint() {
    // Assembled from parts, so that this file itself does not contain them.
    let forbidden = [".unwrap", "#[allow", "#![allow", "todo", "unimplemented", "#[ignore", "dbg"]
        .into_iter()
        .zip(["()", "(", "(", "!(", "!(", "", "!("])
        .map(|(start, end)| format!("{start}{end}"));
    let forbidden: Vec<String> = forbidden.collect();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(workspace_root().join("crates")).unwrap().flatten() {
        // The test kit is test code.
        if entry.file_name() != "testkit" {
            collect_source_files(&entry.path().join("src"), &mut files);
        }
    }
    assert!(files.len() > 50, "{}", files.len());
    let mut violations = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in
            code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
        {
            violations.extend(
                forbidden
                    .iter()
                    .filter(|word| line.contains(word.as_str()))
                    .map(|word| format!("{}:{}: {word}", path.display(), number + 1)),
            );
        }
    }
    assert_eq!(violations, Vec::<String>::new());
}

/// The maximum length of a function in lines, from its signature to its last line.
const MAX_FUNCTION_LINES: usize = 80;

/// Returns the names and lengths of the functions of a source file, outside its tests, that are longer than the limit.
/// Relies on rustfmt, which puts the closing brace of a function below the start of its first line.
fn long_functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> =
        text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().lines().collect();
    let mut functions = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let Some(name) = function_name_in_line(line.trim_start()) else { continue };
        let end = lines[index..].iter().position(|line| line.strip_prefix(indent) == Some("}"));
        // A function without a body, or on one line, ends with its signature.
        let signature_end = lines[index..].iter().find(|line| line.ends_with([';', '{', '}']));
        let is_short = signature_end.is_some_and(|line| line.ends_with([';', '}']));
        if let Some(length) =
            end.map(|end| end + 1).filter(|length| !is_short && *length > MAX_FUNCTION_LINES)
        {
            functions.push((name.to_owned(), length));
        }
    }
    functions
}

/// Returns the function's name in a line such as `pub(super) const fn name<…`.
pub(crate) fn function_name_in_line(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_qualifier =
        |word: &str| word.starts_with("pub") || ["const", "async", "unsafe", "extern"].contains(&word);
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let name = &after[..after.find(|letter| !is_name(letter))?];
    (before.split_whitespace().all(is_qualifier) && !name.is_empty()).then_some(name)
}

#[test]
fn no_function_is_longer_than_the_limit() {
    let body = |lines: usize| "        let _ = 0;\n".repeat(lines);
    let planted = format!(
        "trait Ship {{\n    fn named(&self);\n    fn wide(\n        &self,\n    ) -> u8;\n{}}}\n\nimpl Hull {{\n    pub(super) const fn long(&self) {{\n{}    }}\n\n    fn short() {{\n{}    }}\n}}\n",
        "    // More of it.\n".repeat(MAX_FUNCTION_LINES),
        body(MAX_FUNCTION_LINES - 1),
        body(MAX_FUNCTION_LINES - 2)
    );
    assert_eq!(long_functions(&planted), [("long".to_owned(), MAX_FUNCTION_LINES + 1)]);

    let crates = workspace_root().join("crates");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&crates).unwrap().flatten() {
        collect_source_files(&entry.path().join("src"), &mut files);
    }
    let mut violations = BTreeSet::new();
    for path in files {
        let name = path.strip_prefix(&crates).unwrap().display().to_string();
        let long = long_functions(&std::fs::read_to_string(&path).unwrap());
        violations.extend(long.into_iter().map(|(function, _)| format!("{name}: {function}")));
    }
    assert_eq!(violations, BTreeSet::new(), "give the parts of a long function names");
}

/// Returns the paths that a source file imports from its own crate, each from the crate's root on, with `super` and
/// `self` resolved.
fn crate_imports(module: &[String], text: &str) -> Vec<Vec<String>> {
    let mut import_paths = Vec::new();
    let code = text.split("#[cfg(test)]\n").next().unwrap_or_default();
    for statement in code.split(";\n") {
        let is_use = |line: &str| line.starts_with("use ");
        let Some(start) = statement.lines().position(is_use) else { continue };
        let tree: String = statement.lines().skip(start).map(str::trim).collect();
        for path in expand_use_tree(tree.trim_start_matches("use ")) {
            let mut parts: Vec<String> = path.split("::").map(str::to_owned).collect();
            let above = parts.iter().take_while(|part| *part == "super").count();
            let base = match parts[0].as_str() {
                "crate" => &[][..],
                "self" => module,
                "super" => &module[..module.len().saturating_sub(above)],
                _ => continue,
            };
            parts.drain(..above.max(1));
            import_paths.push(base.iter().cloned().chain(parts).collect());
        }
    }
    import_paths
}

/// Expands `a::{b, c::{d, e}}` to `a::b`, `a::c::d`, `a::c::e`.
fn expand_use_tree(tree: &str) -> Vec<String> {
    let Some((stem, rest)) = tree.split_once('{') else { return vec![tree.to_owned()] };
    let inside = rest.strip_suffix('}').unwrap_or(rest);
    let mut depth = 0;
    let pieces = inside.split(|letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && depth == 0
    });
    let pieces = pieces.map(str::trim).filter(|piece| !piece.is_empty());
    pieces.flat_map(expand_use_tree).map(|branch| format!("{stem}{branch}")).collect()
}

/// Returns the modules of a crate that import each other in a cycle. The map has the text of each file by its module
/// path. A module counts together with everything below it, so that a cycle from a file to its child and back is found;
/// the children of each module are compared with each other.
fn import_cycles(files: &BTreeMap<Vec<String>, String>) -> BTreeSet<String> {
    let nearest_module = |path: Vec<String>| {
        (0..=path.len()).rev().map(|end| path[..end].to_vec()).find(|module| files.contains_key(module))
    };
    // The edge is between the ancestors at which the two module paths diverge.
    let mut edges: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for (module, text) in files {
        for other in crate_imports(module, text).into_iter().filter_map(nearest_module) {
            let common = module.iter().zip(&other).take_while(|(one, other)| one == other).count();
            if common < module.len() && common < other.len() {
                let from = module[..=common].to_vec();
                edges.entry(from).or_default().insert(other[..=common].to_vec());
            }
        }
    }
    let is_in_cycle = |from: &&Vec<String>| {
        let mut visited: BTreeSet<&Vec<String>> = BTreeSet::new();
        let mut pending: Vec<&Vec<String>> = edges[*from].iter().collect();
        while let Some(next) = pending.pop() {
            if visited.insert(next) {
                pending.extend(edges.get(next).into_iter().flatten());
            }
        }
        visited.contains(from)
    };
    edges.keys().filter(is_in_cycle).map(|module| module.join("::")).collect()
}

/// Returns the module path of a source file.
fn module_path(source: &Path, path: &Path) -> Vec<String> {
    let path = path.strip_prefix(source).unwrap().with_extension("");
    let parts = path.iter().map(|part| part.to_string_lossy().into_owned());
    parts.filter(|part| !["lib", "main", "mod"].contains(&part.as_str())).collect()
}

#[test]
fn no_modules_of_a_crate_import_each_other_in_a_cycle() {
    let files = |files: &[(&str, &str)]| -> BTreeMap<Vec<String>, String> {
        let path = |name: &str| name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        files.iter().map(|(name, text)| (path(name), (*text).to_owned())).collect()
    };
    let planted = files(&[
        ("", "mod a;\nmod b;\nmod c;\n"),
        ("a", "mod inner;\n\nuse crate::{\n    b::{B, other},\n    c::C,\n};\n"),
        ("a::inner", "use super::A;\nuse super::super::c::C;\n"),
        ("b", "use std::io;\nuse crate::a::A;\n"),
        ("c", "pub struct C;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n"),
    ]);
    assert_eq!(import_cycles(&planted), ["a", "b"].map(str::to_owned).into());
    // No single file here reaches itself: the cycle goes from `b` to its child.
    let planted = files(&[
        ("", "mod a;\nmod b;\n"),
        ("a", "use crate::b::B;\n"),
        ("b", "mod inner;\n\npub struct B;\n"),
        ("b::inner", "use crate::a::A;\n"),
    ]);
    assert_eq!(import_cycles(&planted), ["a", "b"].map(str::to_owned).into());
    // No single file here reaches itself either: the cycle is among the children of a module.
    let planted = files(&[
        ("a", "mod one;\nmod two;\n"),
        ("a::one", "mod deep;\n"),
        ("a::one::deep", "use super::super::two::Two;\n"),
        ("a::two", "use super::one::One;\n"),
    ]);
    assert_eq!(import_cycles(&planted), ["a::one", "a::two"].map(str::to_owned).into());

    let crates = workspace_root().join("crates");
    let mut cycles = BTreeSet::new();
    for entry in std::fs::read_dir(&crates).unwrap().flatten() {
        let source = entry.path().join("src");
        let mut paths = Vec::new();
        collect_source_files(&source, &mut paths);
        let files = paths
            .iter()
            .map(|path| (module_path(&source, path), std::fs::read_to_string(path).unwrap()))
            .collect();
        let name = entry.file_name().to_string_lossy().into_owned();
        cycles.extend(import_cycles(&files).into_iter().map(|module| format!("{name}: {module}")));
    }
    assert_eq!(cycles, BTreeSet::new(), "move what they share below both");
}

/// Code that two commands share is beside `commands`, so that each command can be read without the others.
/// `commands.rs` has the table of commands.
#[test]
fn no_command_imports_another() {
    // Assembled from parts, so that this file itself does not contain it.
    let commands = format!("crate::{}::", "commands");
    let imported_commands = |own_command: &str, module: &[String], text: &str| -> BTreeSet<String> {
        let code = text.split("#[cfg(test)]\n").next().unwrap_or_default();
        let named = code.split(&commands).skip(1);
        let named = named
            .filter_map(|rest| rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next());
        let paths =
            crate_imports(module, text).into_iter().filter(|path| path[0] == "commands" && path.len() > 2);
        let names = named.map(str::to_owned).chain(paths.map(|path| path[1].clone()));
        // The command table, which `generate` describes, is a type and does not count.
        names
            .filter(|other| {
                other != own_command && other.starts_with(|letter: char| letter.is_ascii_lowercase())
            })
            .collect()
    };
    let module = ["commands", "one", "inner"].map(str::to_owned);
    let planted = "use super::super::other::Thing;\nuse super::sibling::Part;\nuse std::io;\n";
    assert_eq!(imported_commands("one", &module, planted), ["other".to_owned()].into());
    let planted = format!("fn called() {{ {commands}other::call({commands}one::inner::value()) }}");
    assert_eq!(imported_commands("one", &module, &planted), ["other".to_owned()].into());

    let source = workspace_root().join("crates/cli/src");
    let mut paths = Vec::new();
    collect_source_files(&source.join("commands"), &mut paths);
    assert!(paths.len() > 80, "{}", paths.len());
    let mut violations = BTreeSet::new();
    for path in paths {
        let module = module_path(&source, &path);
        let others = imported_commands(&module[1], &module, &std::fs::read_to_string(&path).unwrap());
        violations.extend(others.into_iter().map(|other| format!("{}: {other}", module[1..].join("::"))));
    }
    assert_eq!(violations, BTreeSet::new(), "move what they share beside `commands`");
}

/// Returns the source files of the programs, outside tests, that contain one of these texts.
fn source_files_containing(texts: &[&str]) -> BTreeSet<String> {
    let crates = workspace_root().join("crates");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&crates).unwrap().flatten() {
        if entry.file_name() != "testkit" {
            collect_source_files(&entry.path().join("src"), &mut files);
        }
    }
    let mut matching_files = BTreeSet::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        if texts.iter().any(|word| code.contains(word)) {
            matching_files.insert(path.strip_prefix(&crates).unwrap().display().to_string());
        }
    }
    matching_files
}

#[test]
fn only_allowed_source_files_open_files() {
    const FILE_OPENING_CALLS: [&str; 14] = [
        "File::open(",
        "File::create(",
        "OpenOptions",
        "fs::read(",
        "fs::read_to_string(",
        "fs::write(",
        "fs::copy(",
        "fs::rename(",
        "fs::hard_link(",
        "openat(",
        "openat2(",
        "fs::open(",
        " Folder::open",
        "files::open_file(",
    ];
    // The module that opens files, with its parts; those that only choose how it opens them; the MCP server's own file
    // access, which uses the same walk; protected files, which are read without following any link; the calls of each
    // system; `/proc`; git's index, which only its lock guards.
    const ALLOWED_FILES: [&str; 13] = [
        "store/src/safe_open.rs",
        "store/src/safe_open/registered_roots.rs",
        "store/src/safe_open/folder_entry.rs",
        "store/src/disk.rs",
        "store/src/lock.rs",
        "store/src/memory/response_counter.rs",
        "store/src/confined_folder.rs",
        "store/src/protected_files.rs",
        "system/src/files.rs",
        "system/src/files/linux.rs",
        "system/src/files/unix.rs",
        "system/src/files/windows.rs",
        "system/src/linux.rs",
    ];
    const INDEX_FILE: &str = "launcher/src/wip.rs";
    let found = source_files_containing(&FILE_OPENING_CALLS);
    let allowed: BTreeSet<String> =
        ALLOWED_FILES.iter().chain([&INDEX_FILE]).map(|path| (*path).to_owned()).collect();
    assert_eq!(found, allowed);
}

#[test]
fn only_listed_files_print_to_the_terminal() {
    const PRINTING_CALLS: [&str; 9] = [
        " io::stdout(",
        "std::io::stdout(",
        "std::io::stderr(",
        "print!(",
        "println!(",
        "try_init(",
        "rustix::io::write",
        "write_stdout(",
        "/dev/tty",
    ];
    // The console and the full-screen view; a hook's response to the client, and the functions that write it in one
    // call; the MCP server's output.
    const ALLOWED_FILES: [&str; 6] = [
        "cli/src/full_screen.rs",
        "hooks/src/hook.rs",
        "mcp/src/lib.rs",
        "system/src/files/unix.rs",
        "system/src/files/windows.rs",
        "terminal/src/console.rs",
    ];
    let found = source_files_containing(&PRINTING_CALLS);
    let allowed: BTreeSet<String> = ALLOWED_FILES.iter().map(|path| (*path).to_owned()).collect();
    assert_eq!(found, allowed);
}

/// `domain::exit_status` defines the meaning of each code.
#[test]
fn no_program_exits_with_a_literal_exit_code() {
    let numbers = (0..=9).map(|digit| format!("ExitCode::from({digit}")).collect::<Vec<_>>();
    let patterns: Vec<&str> =
        numbers.iter().map(String::as_str).chain(["u8 = 130", "i32 = 130", "u8 = 70"]).collect();
    assert_eq!(source_files_containing(&patterns), BTreeSet::new());
}

/// A template escapes its input unless the input is marked as HTML.
#[test]
fn only_web_page_adds_unescaped_html() {
    let allowed = BTreeSet::from(["cli/src/render/web_page.rs".to_owned()]);
    assert_eq!(source_files_containing(&["PreEscaped"]), allowed);
}

/// Each error has a type of its own: callers match on it, and its message is in one place.
#[test]
fn no_function_returns_a_string_as_its_error() {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(workspace_root().join("crates")).unwrap().flatten() {
        // The errors of a test harness go directly to the reader of the test's output.
        if entry.file_name() != "testkit" && entry.file_name() != "scripted-model" {
            collect_source_files(&entry.path().join("src"), &mut files);
        }
    }
    let bare: Vec<_> = files
        .iter()
        .filter(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            code.lines().any(|line| line.contains("Result<") && line.contains(", String>"))
        })
        .collect();
    assert!(bare.is_empty(), "{bare:?}");
}

#[test]
fn git_commands_are_built_in_one_file() {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(workspace_root().join("crates")).unwrap().flatten() {
        // The test kit creates the repositories of tests.
        if entry.file_name() != "testkit" {
            collect_source_files(&entry.path().join("src"), &mut files);
        }
    }
    let builds_git_command = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        // Code after the tests of a file does not count.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        ["Command::new(\"git\")", "\"git\".into()", "\"git\".to_owned()", "find_program(\"git\")"]
            .iter()
            .any(|made| code.contains(made))
    };
    let found: Vec<_> = files.into_iter().filter(builds_git_command).collect();
    assert_eq!(found, [workspace_root().join("crates/launcher/src/git/command.rs")]);
}

/// A path in backticks, such as `flows::run::close`, names a crate's folder and a module in it, perhaps one of its items.
#[test]
fn modules_named_in_the_documents_exist() {
    let is_path = |text: &&str| {
        let is_plain = |letter: char| letter.is_ascii_lowercase() || letter == '_' || letter == ':';
        text.contains("::") && text.chars().all(is_plain)
    };
    let mut module_count = 0;
    for document in OTHER_PAGES.into_iter().chain(MODULE_PAGES) {
        let text = std::fs::read_to_string(workspace_root().join(document)).unwrap();
        for path in text.split('`').filter(is_path) {
            let (folder, names) = path.split_once("::").unwrap();
            let sources = workspace_root().join("crates").join(folder.replace('_', "-")).join("src");
            let (parents, last) = names.rsplit_once("::").unwrap_or(("", names));
            let folder = sources.join(parents.replace("::", "/"));
            let is_module = ["rs", "/mod.rs"].map(|end| format!("{last}.{end}").replace("./", "/"));
            let is_module = is_module.iter().any(|file| folder.join(file).is_file());
            let parent_file =
                if parents.is_empty() { sources.join("lib.rs") } else { folder.with_extension("rs") };
            let is_item = || {
                let source = std::fs::read_to_string(parent_file).unwrap_or_default();
                source.contains(&format!("fn {last}("))
            };
            assert!(is_module || is_item(), "{document} names {path}, which is not there");
            module_count += 1;
        }
    }
    assert!(module_count > 60, "the documents name {module_count} modules");
}

/// A file in backticks, such as `crates/flows/src/run.rs`, must exist. For a placeholder of a future file, such as
/// `crates/flows/src/hooks/NAME.rs`, its folder must exist.
#[test]
fn files_named_in_the_documents_exist() {
    const TOP_FOLDERS: [&str; 8] =
        [".github/", "crates/", "docs/", "fuzz/", "hooks-config/", "research/", "scripts/", "tests/"];
    let is_named = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
    let mut named_files = BTreeSet::new();
    for document in OTHER_PAGES.into_iter().chain(MODULE_PAGES) {
        let text = std::fs::read_to_string(workspace_root().join(document)).unwrap();
        let words = text.split('`').filter_map(|quoted| quoted.split(' ').next());
        for path in words.filter(|word| TOP_FOLDERS.iter().any(|top| word.starts_with(top))) {
            // Skips patterns such as `tests/tests/*/`.
            if !path.chars().all(is_named) {
                continue;
            }
            let last = path.rsplit('/').next().unwrap_or_default();
            let is_placeholder =
                last.split('.').next().is_some_and(|name| name.len() > 1 && name.to_uppercase() == name);
            let existing_path = if is_placeholder { path.trim_end_matches(last) } else { path };
            assert!(
                workspace_root().join(existing_path).exists(),
                "{document} names {path}, which is not there"
            );
            named_files.insert(path.to_owned());
        }
    }
    assert!(named_files.len() > 30, "the documents name {} files", named_files.len());
}
