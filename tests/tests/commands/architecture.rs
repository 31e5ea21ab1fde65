//! The walls of ARCHITECTURE.md: what the hook programs link is a short committed list, imports go one way, and
//! nothing ends a program by surprise.

use crate::architecture_pages::MODULE_PAGES;
use crate::docs::OTHER_PAGES;
use plimsoll_testkit::world::World;
use plimsoll_testkit::{fixtures, workspace_root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The packages that a package's programs link, as cargo sees them.
fn linked_by(package: &str) -> BTreeSet<String> {
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
    let world = World::without_git().without_plimsoll();
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
fn the_hook_programs_link_a_short_committed_list() {
    let path = fixtures().parent().unwrap().join("dependencies.txt");
    let linked = linked_by("plimsoll-hooks");
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        let text: String = linked.iter().map(|name| format!("{name}\n")).collect();
        std::fs::write(&path, text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    let committed: BTreeSet<String> = committed.lines().map(str::to_owned).collect();
    let new: Vec<_> = linked.difference(&committed).collect();
    let gone: Vec<_> = committed.difference(&linked).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "new: {new:?}, gone: {gone:?}; is it wanted? then PLIMSOLL_UPDATE_GOLDEN=1"
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
fn no_program_for_users_links_the_test_bench() {
    for package in [
        "plimsoll",
        "plimsoll-cli",
        "plimsoll-hooks",
        "plimsoll-mcp",
        "plimsoll-linear",
        "plimsoll-otel",
        "plimsoll-fleet",
    ] {
        let linked = linked_by(package);
        assert!(linked.contains("plimsoll-flows") && linked.contains(package), "{linked:?}");
        assert!(!linked.contains("plimsoll-testkit"), "{package}");
    }
}

/// What opens connections to other computers, and what that needs.
#[test]
fn only_the_optional_programs_link_a_network_client() {
    const NETWORK: [&str; 6] = ["plimsoll-network", "ureq", "rustls", "rustls-native-certs", "ring", "http"];
    const OTLP: [&str; 2] = ["opentelemetry-proto", "prost"];
    for package in ["plimsoll-cli", "plimsoll-hooks", "plimsoll-mcp"] {
        let linked = linked_by(package);
        assert!(linked.contains(package), "{linked:?}");
        let wrong: Vec<_> = NETWORK.iter().chain(&OTLP).filter(|name| linked.contains(**name)).collect();
        assert!(wrong.is_empty(), "{package} links {wrong:?}");
    }
    for (package, parts) in [("plimsoll-linear", &[][..]), ("plimsoll-otel", &OTLP)] {
        let linked = linked_by(package);
        let lost: Vec<_> = NETWORK.iter().chain(parts).filter(|name| !linked.contains(**name)).collect();
        assert!(lost.is_empty(), "they have other names now: {lost:?}");
    }
    const DATABASE: [&str; 4] = ["plimsoll-fleet", "postgres", "tokio-postgres", "tokio-postgres-rustls"];
    for package in ["plimsoll-cli", "plimsoll-hooks", "plimsoll-mcp", "plimsoll-linear", "plimsoll-otel"] {
        let linked = linked_by(package);
        let wrong: Vec<_> = DATABASE.iter().filter(|name| linked.contains(**name)).collect();
        assert!(wrong.is_empty(), "{package} links {wrong:?}");
    }
    let linked = linked_by("plimsoll-fleet");
    let lost: Vec<_> = DATABASE.iter().filter(|name| !linked.contains(**name)).collect();
    assert!(lost.is_empty(), "they have other names now: {lost:?}");
    for others in ["plimsoll-network", "ureq", "openssl", "aws-lc-rs", "plimsoll-testkit"] {
        assert!(!linked.contains(others), "plimsoll-fleet links {others}");
    }
    // One request after another, in threads of ours: neither gRPC nor a runtime.
    let linked = linked_by("plimsoll-otel");
    for heavy in ["tokio", "tonic", "hyper", "plimsoll-linear"] {
        assert!(!linked.contains(heavy), "plimsoll-otel links {heavy}");
    }
}

/// They are programs of one package, so that one command installs them: cargo cannot tell what each of them links. The compiler
/// leaves a library out that a program does not name.
#[test]
fn each_program_names_the_one_library_that_it_is() {
    let folder = workspace_root().join("crates/plimsoll/src/bin");
    let library = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let words = code.split(|letter| !is_word(letter)).filter(|word| word.starts_with("plimsoll_"));
        words.map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let named: BTreeMap<String, String> = entries
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), library(&path)))
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
fn research_uses_no_package_that_deny_does_not_check() {
    let used = locked_packages("research/Cargo.lock");
    assert!(used.len() > 30, "the lock file was not read: {used:?}");
    let unchecked: Vec<_> = used.difference(&locked_packages("Cargo.lock")).cloned().collect();
    assert_eq!(
        unchecked,
        Vec::<String>::new(),
        "cp Cargo.lock research/ && cargo update --workspace --manifest-path research/Cargo.toml"
    );
}

/// The crates of the workspace that a manifest names under one of these headings, by their folders.
fn ours(manifest: &str, headings: &[&str]) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = headings.contains(&line.trim());
        } else if inside
            && let Some(folder) =
                line.split(['.', ' ', '=']).next().and_then(|name| name.strip_prefix("plimsoll-"))
        {
            named.insert(folder.to_owned());
        }
    }
    named
}

#[test]
fn imports_go_one_way() {
    let allowed: [(&str, &[&str]); 19] = [
        ("system", &[]),
        ("protocol", &[]),
        ("domain", &["protocol"]),
        ("policy", &["protocol", "domain"]),
        ("store", &["protocol", "domain", "system"]),
        // Text in, findings out.
        ("secrets", &[]),
        ("launcher", &["protocol", "domain", "store", "secrets", "system"]),
        // It knows nothing of ours: what it carries is given to it. Nothing that a hook links may lean on it.
        ("network", &[]),
        ("flows", &["protocol", "domain", "policy", "store", "secrets", "launcher"]),
        ("hooks", &["protocol", "domain", "policy", "store", "launcher", "flows"]),
        // What the programs below have in common where they meet people.
        ("terminal", &["protocol", "domain", "policy", "store", "launcher", "flows"]),
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
            ],
        ),
        ("mcp", &["domain", "store", "launcher", "flows"]),
        // The optional programs, which use the network.
        ("linear", &["domain", "policy", "store", "secrets", "network", "flows", "terminal"]),
        ("otel", &["domain", "policy", "store", "secrets", "network", "flows", "terminal"]),
        ("fleet", &["domain", "policy", "store", "secrets", "launcher", "flows", "terminal"]),
        // The programs, each one call.
        ("plimsoll", &["cli", "fleet", "hooks", "linear", "mcp", "otel"]),
        // Script in, answers out.
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
    let mut seen = 0;
    for (name, may) in allowed {
        let manifest = std::fs::read_to_string(crates.join(name).join("Cargo.toml")).unwrap();
        let named = ours(&manifest, &["[dependencies]", "[build-dependencies]"]);
        seen += named.len();
        let wrong: Vec<_> = named.iter().filter(|name| !may.contains(&name.as_str())).collect();
        assert!(wrong.is_empty(), "{name} may not depend on {wrong:?}");
    }
    assert!(seen >= 30, "the scan has lost the manifests: {seen} imports");
}

/// Source files below a folder, without the tests of a module.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && path.file_name().is_some_and(|name| name != "tests.rs")
        {
            found.push(path);
        }
    }
}

#[test]
fn no_source_file_panics_on_purpose_or_silences_a_lint() {
    // Put together here, so that this file may be looked at too.
    let forbidden = [".unwrap", "#[allow", "#![allow", "todo", "unimplemented", "#[ignore", "dbg"]
        .into_iter()
        .zip(["()", "(", "(", "!(", "!(", "", "!("])
        .map(|(start, end)| format!("{start}{end}"));
    let forbidden: Vec<String> = forbidden.collect();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(workspace_root().join("crates")).unwrap().flatten() {
        // The test bench is made of tests.
        if entry.file_name() != "testkit" {
            sources(&entry.path().join("src"), &mut files);
        }
    }
    assert!(files.len() > 50, "{}", files.len());
    let mut found = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let ours = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in
            ours.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
        {
            found.extend(
                forbidden
                    .iter()
                    .filter(|word| line.contains(word.as_str()))
                    .map(|word| format!("{}:{}: {word}", path.display(), number + 1)),
            );
        }
    }
    assert_eq!(found, Vec::<String>::new());
}

/// No function is longer, from its signature to its last line.
const LONGEST_FUNCTION: usize = 60;

/// The functions of a source file, without its tests, that are longer: their names and lengths. Rustfmt puts the brace that
/// ends a function below its first line.
fn long_functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> =
        text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().lines().collect();
    let mut found = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let Some(name) = function_named(line.trim_start()) else { continue };
        let end = lines[place..].iter().position(|line| line.strip_prefix(indent) == Some("}"));
        // One without a body, or on one line, has its end before.
        let signature_end = lines[place..].iter().find(|line| line.ends_with([';', '{', '}']));
        let is_short = signature_end.is_some_and(|line| line.ends_with([';', '}']));
        if let Some(length) = end.map(|end| end + 1).filter(|length| !is_short && *length > LONGEST_FUNCTION)
        {
            found.push((name.to_owned(), length));
        }
    }
    found
}

/// The name in `pub(super) const fn name<…`.
fn function_named(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_qualifier =
        |word: &str| word.starts_with("pub") || ["const", "async", "unsafe", "extern"].contains(&word);
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let name = &after[..after.find(|letter| !is_name(letter))?];
    (before.split_whitespace().all(is_qualifier) && !name.is_empty()).then_some(name)
}

#[test]
fn no_function_is_longer_than_a_screen() {
    let body = |lines: usize| "        let _ = 0;\n".repeat(lines);
    let planted = format!(
        "trait Ship {{\n    fn named(&self);\n    fn wide(\n        &self,\n    ) -> u8;\n{}}}\n\nimpl Hull {{\n    pub(super) const fn long(&self) {{\n{}    }}\n\n    fn short() {{\n{}    }}\n}}\n",
        "    // More of it.\n".repeat(LONGEST_FUNCTION),
        body(LONGEST_FUNCTION - 1),
        body(LONGEST_FUNCTION - 2)
    );
    assert_eq!(long_functions(&planted), [("long".to_owned(), LONGEST_FUNCTION + 1)]);

    let crates = workspace_root().join("crates");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&crates).unwrap().flatten() {
        sources(&entry.path().join("src"), &mut files);
    }
    let mut found = BTreeSet::new();
    for path in files {
        let name = path.strip_prefix(&crates).unwrap().display().to_string();
        let long = long_functions(&std::fs::read_to_string(&path).unwrap());
        found.extend(long.into_iter().map(|(function, _)| format!("{name}: {function}")));
    }
    assert_eq!(found, BTreeSet::new(), "give the parts of a long function names");
}

/// The paths that a source file imports from its own crate, with `super` and `self` resolved: each from the crate's root on.
fn imports(module: &[String], text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let own = text.split("#[cfg(test)]\n").next().unwrap_or_default();
    for statement in own.split(";\n") {
        let is_use = |line: &str| line.starts_with("use ");
        let Some(start) = statement.lines().position(is_use) else { continue };
        let tree: String = statement.lines().skip(start).map(str::trim).collect();
        for path in branches(tree.trim_start_matches("use ")) {
            let mut parts: Vec<String> = path.split("::").map(str::to_owned).collect();
            let above = parts.iter().take_while(|part| *part == "super").count();
            let base = match parts[0].as_str() {
                "crate" => &[][..],
                "self" => module,
                "super" => &module[..module.len().saturating_sub(above)],
                _ => continue,
            };
            parts.drain(..above.max(1));
            found.push(base.iter().cloned().chain(parts).collect());
        }
    }
    found
}

/// `a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`.
fn branches(tree: &str) -> Vec<String> {
    let Some((stem, rest)) = tree.split_once('{') else { return vec![tree.to_owned()] };
    let inside = rest.strip_suffix('}').unwrap_or(rest);
    let mut depth = 0;
    let pieces = inside.split(|letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && depth == 0
    });
    let pieces = pieces.map(str::trim).filter(|piece| !piece.is_empty());
    pieces.flat_map(branches).map(|branch| format!("{stem}{branch}")).collect()
}

/// The modules of a crate that import each other in a circle. A module is one with all that is below it, so that a circle is
/// found which passes from a file to its child or back; the children of each module are compared with each other. Each file by
/// its module path, with its text.
fn circles(files: &BTreeMap<Vec<String>, String>) -> BTreeSet<String> {
    let file_of = |path: Vec<String>| {
        (0..=path.len()).rev().map(|end| path[..end].to_vec()).find(|module| files.contains_key(module))
    };
    // Two modules meet where their paths part: there the one's side imports the other's.
    let mut edges: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for (module, text) in files {
        for other in imports(module, text).into_iter().filter_map(file_of) {
            let common = module.iter().zip(&other).take_while(|(one, other)| one == other).count();
            if common < module.len() && common < other.len() {
                let from = module[..=common].to_vec();
                edges.entry(from).or_default().insert(other[..=common].to_vec());
            }
        }
    }
    let reaches_itself = |from: &&Vec<String>| {
        let mut seen: BTreeSet<&Vec<String>> = BTreeSet::new();
        let mut ahead: Vec<&Vec<String>> = edges[*from].iter().collect();
        while let Some(next) = ahead.pop() {
            if seen.insert(next) {
                ahead.extend(edges.get(next).into_iter().flatten());
            }
        }
        seen.contains(from)
    };
    edges.keys().filter(reaches_itself).map(|module| module.join("::")).collect()
}

/// The path of a module by its file.
fn module_of(source: &Path, path: &Path) -> Vec<String> {
    let path = path.strip_prefix(source).unwrap().with_extension("");
    let parts = path.iter().map(|part| part.to_string_lossy().into_owned());
    parts.filter(|part| !["lib", "main", "mod"].contains(&part.as_str())).collect()
}

#[test]
fn no_two_ideas_of_a_crate_import_each_other() {
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
    assert_eq!(circles(&planted), ["a", "b"].map(str::to_owned).into());
    // No file of these reaches itself: the circle passes from `b` to what is below it.
    let planted = files(&[
        ("", "mod a;\nmod b;\n"),
        ("a", "use crate::b::B;\n"),
        ("b", "mod inner;\n\npub struct B;\n"),
        ("b::inner", "use crate::a::A;\n"),
    ]);
    assert_eq!(circles(&planted), ["a", "b"].map(str::to_owned).into());
    // Nor of these, whose circle is among the children of a module.
    let planted = files(&[
        ("a", "mod one;\nmod two;\n"),
        ("a::one", "mod deep;\n"),
        ("a::one::deep", "use super::super::two::Two;\n"),
        ("a::two", "use super::one::One;\n"),
    ]);
    assert_eq!(circles(&planted), ["a::one", "a::two"].map(str::to_owned).into());

    let crates = workspace_root().join("crates");
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(&crates).unwrap().flatten() {
        let source = entry.path().join("src");
        let mut paths = Vec::new();
        sources(&source, &mut paths);
        let files = paths
            .iter()
            .map(|path| (module_of(&source, path), std::fs::read_to_string(path).unwrap()))
            .collect();
        let name = entry.file_name().to_string_lossy().into_owned();
        found.extend(circles(&files).into_iter().map(|module| format!("{name}: {module}")));
    }
    assert_eq!(found, BTreeSet::new(), "move what they share below both");
}

/// What two commands share is beside `commands`, so that each can be read without the others. `commands.rs` has their table.
#[test]
fn no_command_imports_another() {
    // Put together here, so that this file may be looked at too.
    let commands = format!("crate::{}::", "commands");
    let imported = |own: &str, module: &[String], text: &str| -> BTreeSet<String> {
        let code = text.split("#[cfg(test)]\n").next().unwrap_or_default();
        let named = code.split(&commands).skip(1);
        let named = named
            .filter_map(|rest| rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next());
        let paths = imports(module, text).into_iter().filter(|path| path[0] == "commands" && path.len() > 2);
        let all = named.map(str::to_owned).chain(paths.map(|path| path[1].clone()));
        // The table itself, which `generate` describes, is a type.
        all.filter(|other| other != own && other.starts_with(|letter: char| letter.is_ascii_lowercase()))
            .collect()
    };
    let module = ["commands", "one", "inner"].map(str::to_owned);
    let planted = "use super::super::other::Thing;\nuse super::sibling::Part;\nuse std::io;\n";
    assert_eq!(imported("one", &module, planted), ["other".to_owned()].into());
    let planted = format!("fn called() {{ {commands}other::call({commands}one::inner::value()) }}");
    assert_eq!(imported("one", &module, &planted), ["other".to_owned()].into());

    let source = workspace_root().join("crates/cli/src");
    let mut paths = Vec::new();
    sources(&source.join("commands"), &mut paths);
    assert!(paths.len() > 80, "{}", paths.len());
    let mut found = BTreeSet::new();
    for path in paths {
        let module = module_of(&source, &path);
        let others = imported(&module[1], &module, &std::fs::read_to_string(&path).unwrap());
        found.extend(others.into_iter().map(|other| format!("{}: {other}", module[1..].join("::"))));
    }
    assert_eq!(found, BTreeSet::new(), "move what they share beside `commands`");
}

/// The files of the programs, without their tests, in which one of these words stands.
fn files_with(words: &[&str]) -> BTreeSet<String> {
    let crates = workspace_root().join("crates");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&crates).unwrap().flatten() {
        if entry.file_name() != "testkit" {
            sources(&entry.path().join("src"), &mut files);
        }
    }
    let mut found = BTreeSet::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let ours = text.split("#[cfg(test)]").next().unwrap_or_default();
        if words.iter().any(|word| ours.contains(word)) {
            found.insert(path.strip_prefix(&crates).unwrap().display().to_string());
        }
    }
    found
}

#[test]
fn only_the_door_opens_files() {
    const OPENING: [&str; 12] = [
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
    ];
    // The door itself, and the call that walks for it; the MCP server's own, which uses the same walk; protected files, which are read
    // behind no link at all; `/proc`; git's index, which only its lock guards.
    const MAY: [&str; 8] = [
        "store/src/door.rs",
        "store/src/door/roots.rs",
        "store/src/door/spot.rs",
        "store/src/door/walk.rs",
        "store/src/confined.rs",
        "store/src/protected.rs",
        "system/src/files/linux.rs",
        "system/src/linux.rs",
    ];
    const INDEX: &str = "launcher/src/wip.rs";
    let found = files_with(&OPENING);
    let may: BTreeSet<String> = MAY.iter().chain([&INDEX]).map(|path| (*path).to_owned()).collect();
    assert_eq!(found, may);
}

#[test]
fn only_the_console_prints() {
    const PRINTING: [&str; 9] = [
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
    // The console and the whole screen; a hook's answer to the client, and how it is written at once; what the server says.
    const MAY: [&str; 5] = [
        "cli/src/full_screen.rs",
        "hooks/src/hook.rs",
        "mcp/src/lib.rs",
        "store/src/disk.rs",
        "terminal/src/console.rs",
    ];
    let found = files_with(&PRINTING);
    let may: BTreeSet<String> = MAY.iter().map(|path| (*path).to_owned()).collect();
    assert_eq!(found, may);
}

/// `domain::exit_status` says what each code means.
#[test]
fn no_program_ends_with_a_bare_number() {
    let numbers = (0..=9).map(|digit| format!("ExitCode::from({digit}")).collect::<Vec<_>>();
    let words: Vec<&str> =
        numbers.iter().map(String::as_str).chain(["u8 = 130", "i32 = 130", "u8 = 70"]).collect();
    assert_eq!(files_with(&words), BTreeSet::new());
}

/// What a template is given it escapes, unless it is told that it is HTML already.
#[test]
fn only_the_frame_of_a_page_adds_html_that_is_not_escaped() {
    let may = BTreeSet::from(["cli/src/render/web_page.rs".to_owned()]);
    assert_eq!(files_with(&["PreEscaped"]), may);
}

/// An error has a type that says what went wrong: a caller matches on it, and its words are in one place.
#[test]
fn no_error_is_a_bare_text() {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(workspace_root().join("crates")).unwrap().flatten() {
        // What a test harness says of a fault goes to whoever reads the test's output.
        if entry.file_name() != "testkit" && entry.file_name() != "scripted-model" {
            sources(&entry.path().join("src"), &mut files);
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
fn every_git_is_made_in_one_place() {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(workspace_root().join("crates")).unwrap().flatten() {
        // The test bench makes the repositories.
        if entry.file_name() != "testkit" {
            sources(&entry.path().join("src"), &mut files);
        }
    }
    let makes_one = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        // What stands behind the tests of a file is none of it.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        ["Command::new(\"git\")", "\"git\".into()", "\"git\".to_owned()", "find_program(\"git\")"]
            .iter()
            .any(|made| code.contains(made))
    };
    let found: Vec<_> = files.into_iter().filter(makes_one).collect();
    assert_eq!(found, [workspace_root().join("crates/launcher/src/git/command.rs")]);
}

/// A path in backticks, such as `flows::run::close`, names a crate's folder and a module in it, perhaps one of its items.
#[test]
fn the_modules_that_the_documents_name_are_there() {
    let is_path = |text: &&str| {
        let is_plain = |letter: char| letter.is_ascii_lowercase() || letter == '_' || letter == ':';
        text.contains("::") && text.chars().all(is_plain)
    };
    let mut seen = 0;
    for document in OTHER_PAGES.into_iter().chain(MODULE_PAGES) {
        let text = std::fs::read_to_string(workspace_root().join(document)).unwrap();
        for path in text.split('`').filter(is_path) {
            let (folder, names) = path.split_once("::").unwrap();
            let sources = workspace_root().join("crates").join(folder.replace('_', "-")).join("src");
            let (above, last) = names.rsplit_once("::").unwrap_or(("", names));
            let folder = sources.join(above.replace("::", "/"));
            let is_module = ["rs", "/mod.rs"].map(|end| format!("{last}.{end}").replace("./", "/"));
            let is_module = is_module.iter().any(|file| folder.join(file).is_file());
            let holder = if above.is_empty() { sources.join("lib.rs") } else { folder.with_extension("rs") };
            let is_item = || {
                let source = std::fs::read_to_string(holder).unwrap_or_default();
                source.contains(&format!("fn {last}("))
            };
            assert!(is_module || is_item(), "{document} names {path}, which is not there");
            seen += 1;
        }
    }
    assert!(seen > 60, "the documents name {seen} modules");
}

/// A file in backticks, such as `crates/flows/src/run.rs`; in one that is still to be written, such as
/// `crates/flows/src/hooks/NAME.rs`, the folder.
#[test]
fn the_files_that_the_documents_name_are_there() {
    const TOPS: [&str; 8] =
        [".github/", "crates/", "docs/", "fuzz/", "hooks-config/", "research/", "scripts/", "tests/"];
    let is_named = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
    let mut seen = BTreeSet::new();
    for document in OTHER_PAGES.into_iter().chain(MODULE_PAGES) {
        let text = std::fs::read_to_string(workspace_root().join(document)).unwrap();
        let words = text.split('`').filter_map(|quoted| quoted.split(' ').next());
        for path in words.filter(|word| TOPS.iter().any(|top| word.starts_with(top))) {
            // `tests/tests/*/` and the like.
            if !path.chars().all(is_named) {
                continue;
            }
            let last = path.rsplit('/').next().unwrap_or_default();
            let is_to_come =
                last.split('.').next().is_some_and(|name| name.len() > 1 && name.to_uppercase() == name);
            let there = if is_to_come { path.trim_end_matches(last) } else { path };
            assert!(workspace_root().join(there).exists(), "{document} names {path}, which is not there");
            seen.insert(path.to_owned());
        }
    }
    assert!(seen.len() > 30, "the documents name {} files", seen.len());
}
