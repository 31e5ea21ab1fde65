//! The scripts run on a Mac, too: its bash is 3.2 of 2007, its tools are BSD's. Here is neither, so what only newer ones know is
//! searched for in the text; and a script that is for Linux says so before it does anything.

use crate::docs;
use crate::packaging::{script, shell};
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use std::collections::BTreeMap;

/// Programs that a Mac does not have, or had not when its oldest system that we serve (macOS 11) came out.
const FOREIGN_PROGRAMS: [&str; 19] = [
    "flock",
    "free",
    "ldd",
    "mapfile",
    "md5sum",
    "nproc",
    "numfmt",
    "readarray",
    "realpath",
    "setsid",
    "sha256sum",
    "shuf",
    "ss",
    "strace",
    "tac",
    "timeout",
    "truncate",
    "unshare",
    "xdg-open",
];

/// Options that only GNU's programs have, or that mean something else on a Mac: of which program, and how a word of its call is
/// known to be one. A short option is a letter, which may stand among others.
const FOREIGN_OPTIONS: [(&str, &str, &str); 22] = [
    ("base64", "w", "--wrap"),
    ("cp", "tT", "--"),
    ("cut", "", "--"),
    ("date", "dI", "--"),
    ("declare", "Agn", ""),
    ("df", "", "--"),
    ("du", "b", "--"),
    ("find", "", "-printf"),
    ("grep", "P", "--perl-regexp"),
    ("ln", "rTt", "--"),
    ("local", "An", ""),
    ("mktemp", "p", "--"),
    ("mv", "Tt", "--"),
    ("readlink", "efm", "--"),
    ("sed", "rsz", "--"),
    ("sort", "Vz", "--"),
    ("stat", "c", "--"),
    ("tar", "", "--sort"),
    ("touch", "d", "--"),
    ("typeset", "Agn", ""),
    ("wait", "n", ""),
    ("xargs", "dr", "--"),
];

/// What only a newer bash reads, or only Linux has.
const FOREIGN_TEXT: [&str; 16] = [
    "&>>", ";;&", ";&", ",,}", "^^}", "@Q}", "[-1]", "coproc ", "[[ -v ", "globstar", "lastpipe", "%(%",
    "$EPOCH", "$BASHPID", "exec {", "/proc/",
];

/// Words behind which another command begins.
const BEFORE_COMMANDS: [&str; 20] = [
    "(", ")", "{", "|", ";", "&", "&&", "||", "!", "then", "do", "else", "elif", "if", "while", "until",
    "exec", "time", "xargs", "env",
];

/// What a Mac would not understand in a script, each with its line.
fn foreign_to_a_mac(text: &str) -> Vec<String> {
    let may_be_empty: Vec<&str> =
        text.split("=()").filter_map(|before| before.rsplit(|c: char| !is_name(c)).next()).collect();
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with('#') {
            continue;
        }
        let mut note = |what: &str| found.push(format!("{number}: {what}"));
        FOREIGN_TEXT.iter().filter(|text| line.contains(**text)).for_each(|text| note(text));
        for array in may_be_empty.iter().filter(|name| !name.is_empty()) {
            let is_counted = line.contains(&format!("${{#{array}[@]}}"));
            // `${name[@]+"${name[@]}"}` is nothing where the array is empty.
            let rest = line.replace(&format!("${{{array}[@]+\"${{{array}[@]}}\"}}"), "");
            if !is_counted && ["@", "*"].iter().any(|all| rest.contains(&format!("${{{array}[{all}]}}"))) {
                note(&format!("{array}, which is unset in bash 3.2 while it is empty"));
            }
        }
        foreign_calls(line).iter().for_each(|call| note(call));
    }
    found
}

fn is_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Of one line: programs that a Mac has not, and options that its programs have not.
fn foreign_calls(line: &str) -> Vec<String> {
    let mut spaced = line.to_owned();
    for mark in ["$(", "<(", "(", ")", "`", "|", ";", "&"] {
        let plain = mark.trim_start_matches(['$', '<']).replace('`', "(");
        spaced = spaced.replace(mark, &format!(" {plain} "));
    }
    let words: Vec<&str> = spaced.split_whitespace().map(|word| word.trim_matches('"')).collect();
    let begins =
        |at: usize| at == 0 || BEFORE_COMMANDS.contains(&words[at - 1]) || is_assignment(words[at - 1]);
    let mut found = Vec::new();
    for at in (0..words.len()).filter(|at| begins(*at)) {
        let program = words[at];
        if FOREIGN_PROGRAMS.contains(&program) {
            found.push(program.to_owned());
        }
        let call = words[at + 1..].iter().take_while(|word| !["|", ";", "&", ")"].contains(word));
        for word in call {
            let is_foreign = |(of, letters, long): &(&str, &str, &str)| {
                *of == program && is_option(word, letters, long) || program == "sed" && *word == "-i"
            };
            if FOREIGN_OPTIONS.iter().any(is_foreign) {
                found.push(format!("{program} {word}"));
            }
        }
    }
    found
}

/// `NAME=value`, behind which a command may stand.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && name.chars().all(is_name))
}

/// Whether a word is one of these options. `--` alone only ends them.
fn is_option(word: &str, letters: &str, long: &str) -> bool {
    if !long.is_empty() && word != "--" && word.starts_with(long) {
        return true;
    }
    let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
    let cluster: String = cluster.chars().take_while(char::is_ascii_alphanumeric).collect();
    cluster.chars().any(|letter| letters.contains(letter))
}

#[test]
fn what_only_gnu_and_a_newer_bash_have_is_found_and_nothing_else() {
    for (line, expected) in [
        ("place=$(realpath \"$1\")", "realpath"),
        ("sort a | tac", "tac"),
        ("LC_ALL=C timeout 5 git fetch", "timeout"),
        ("sed -i 's/a/b/' file", "sed -i"),
        ("sed -n -r 's/(a)/b/p' file", "sed -r"),
        ("grep -oP 'a(?=b)' file", "grep -oP"),
        ("date -d yesterday", "date -d"),
        ("date -u --date=now", "date --date=now"),
        ("size=$(stat -c %s file)", "stat -c"),
        ("readlink -f \"$0\"", "readlink -f"),
        ("printf x | sort -CV", "sort -CV"),
        ("xargs -0r rm <list", "xargs -0r"),
        ("local -A names", "local -A"),
        ("wait -n", "wait -n"),
        ("cp --preserve=links a b", "cp --preserve=links"),
        ("command >log &>>all", "&>>"),
        ("echo \"${word,,}\"", ",,}"),
        ("echo \"${words[-1]}\"", "[-1]"),
        ("cat /proc/uptime", "/proc/"),
        ("all=()\nrun \"${all[@]}\"", "all, which is unset in bash 3.2 while it is empty"),
    ] {
        let found = foreign_to_a_mac(line);
        assert!(found.len() == 1 && found[0].ends_with(&format!(": {expected}")), "{line}: {found:?}");
    }
    for line in [
        "plimsoll run --idle-timeout 5m --tool-timeout 2h",
        "# realpath is not there: no sed -i, no timeout",
        "if command -v sha256sum >/dev/null 2>&1; then sha256=sha256sum",
        "sed -i.bak 's/a/b/' file && rm file.bak",
        "sed -n -e 's/-i/-r/p' file | sort -u",
        "grep -qxF -- \"$path\" \"$2\"",
        "date -u +%Y-%m-%dT%H:%M:%SZ",
        "xargs -0 rm <list",
        "tar -xzf archive --strip-components 1",
        "rm -rf -- \"$draft\"; mv -f -- a b",
        "all=()\nrun ${all[@]+\"${all[@]}\"}; [ ${#all[@]} = 0 ] || run \"${all[@]}\"",
    ] {
        assert_eq!(foreign_to_a_mac(line), Vec::<String>::new(), "{line}");
    }
}

/// Every script below `scripts/`, by its path from there.
fn scripts() -> BTreeMap<String, String> {
    let root = workspace_root().join("scripts");
    let (mut folders, mut found) = (vec![root.clone()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "sh") {
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// The line by which a script for Linux ends elsewhere.
fn says_that_it_is_for_linux(text: &str) -> bool {
    let mut code =
        text.lines().filter(|line| !line.trim_start().starts_with('#') && !line.is_empty()).take(12);
    code.any(|line| line.contains("[ \"$(uname -s)\" = Linux ] ||") && line.contains("is for Linux"))
}

/// Those that run on Linux alone: they say so, or are only read by such.
fn for_linux(scripts: &BTreeMap<String, String>) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    loop {
        let is_read_there = |name: &str| {
            let read = format!("\n. scripts/{name}\n");
            let mut readers = scripts.iter().filter(|(_, text)| text.contains(&read)).peekable();
            readers.peek().is_some() && readers.all(|(reader, _)| found.contains(&reader.as_str()))
        };
        // This one is a hook in another language, which scripts/bench.sh holds beside ours.
        let is_one = |(name, text): &(&String, &String)| {
            says_that_it_is_for_linux(text) || is_read_there(name) || *name == "bench/hook.sh"
        };
        let now: Vec<&str> = scripts.iter().filter(is_one).map(|(name, _)| name.as_str()).collect();
        if now == found {
            return now;
        }
        found = now;
    }
}

#[test]
fn every_script_runs_on_a_mac_or_is_for_linux_and_says_so() {
    let scripts = scripts();
    let for_linux = for_linux(&scripts);
    let mut found = Vec::new();
    for (name, text) in scripts.iter().filter(|(name, _)| !for_linux.contains(&name.as_str())) {
        found.extend(foreign_to_a_mac(text).into_iter().map(|what| format!("scripts/{name}:{what}")));
    }
    assert_eq!(
        found,
        Vec::<String>::new(),
        "not on a Mac: write it otherwise, or let the script say that it is for Linux"
    );
    // What a user of a Mac is told to run.
    for name in [
        "install.sh",
        "build.sh",
        "demo.sh",
        "test.sh",
        "client.sh",
        "nextest.sh",
        "ralph-loop.sh",
        "real-night.sh",
    ] {
        assert!(scripts.contains_key(name) && !for_linux.contains(&name), "{name}");
    }
    assert!(for_linux.contains(&"bench/page.sh") && for_linux.contains(&"stage.sh"), "{for_linux:?}");
}

#[test]
fn a_script_for_linux_does_nothing_on_a_mac() {
    let world = World::without_git();
    world.write_program("bin/uname", "#!/bin/sh\ncase $1 in -s) echo Darwin ;; *) echo arm64 ;; esac\n");
    let path = format!("{}:/usr/bin:/bin", world.path("bin").display());
    let mut seen = 0;
    for (name, _) in scripts().iter().filter(|(_, text)| says_that_it_is_for_linux(text)) {
        let refused = script(&world, name, &["something"]).env("PATH", path.as_str()).run();
        assert!(!matches!(refused.code, Some(0) | None), "{name}: {refused:?}");
        let own = name.rsplit('/').next().unwrap_or(name);
        assert!(
            refused.stderr.contains(own) && refused.stderr.contains("is for Linux"),
            "{name}: {refused:?}"
        );
        assert_eq!(refused.stdout, "", "{name}");
        seen += 1;
    }
    assert!(seen > 8, "{seen}");
    assert_eq!(shell(&world, "ls").stdout, "bin\n", "nothing is begun");
}

#[test]
fn the_shell_lines_of_the_guide_run_on_a_mac() {
    let mut pages: Vec<String> = std::fs::read_dir(workspace_root().join("docs"))
        .unwrap()
        .map(|entry| format!("docs/{}", entry.unwrap().file_name().display()))
        .filter(|name| name.ends_with(".md"))
        .collect();
    pages.push("README.md".to_owned());
    let (mut found, mut seen) = (Vec::new(), 0);
    for block in pages.iter().flat_map(|page| docs::blocks(page)).filter(|block| block.how.starts_with("sh"))
    {
        found
            .extend(foreign_to_a_mac(&block.text).into_iter().map(|what| format!("{}, {what}", block.place)));
        seen += 1;
    }
    assert_eq!(found, Vec::<String>::new());
    assert!(seen > 30, "{seen}");
}

/// `plimsoll demo` plays an agent whose commands run in the shell of whoever looks.
#[test]
fn the_agent_of_the_demo_edits_files_as_on_a_mac() {
    for file in ["crates/cli/src/commands/demo.rs", "crates/scripted-model/src/story.rs"] {
        let text = std::fs::read_to_string(workspace_root().join(file)).unwrap();
        assert!(text.contains("sed -i.bak") && !text.contains("sed -i '"), "{file}");
    }
}
