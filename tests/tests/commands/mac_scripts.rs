//! The scripts also run on a Mac, which has bash 3.2 and BSD tools. The test machines have neither, so these tests search the text
//! of the scripts for newer syntax and GNU options. A script for Linux alone says so before it does anything.

use crate::docs;
use crate::packaging::{run_bash_line, script_launch};
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use std::collections::BTreeMap;

/// Programs that a Mac does not have, or that macOS 11, the oldest supported version, did not have.
const PROGRAMS_MISSING_ON_MAC: [&str; 19] = [
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

/// Options that only GNU programs have, or that mean something else on a Mac: the program, the letters of the short options (which
/// may be grouped with others), and the prefix of the long options.
const OPTIONS_MISSING_ON_MAC: [(&str, &str, &str); 22] = [
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

/// Text that only a newer bash understands, or that only works on Linux.
const SYNTAX_MISSING_ON_MAC: [&str; 16] = [
    "&>>", ";;&", ";&", ",,}", "^^}", "@Q}", "[-1]", "coproc ", "[[ -v ", "globstar", "lastpipe", "%(%",
    "$EPOCH", "$BASHPID", "exec {", "/proc/",
];

/// Words after which another command begins.
const WORDS_BEFORE_COMMANDS: [&str; 20] = [
    "(", ")", "{", "|", ";", "&", "&&", "||", "!", "then", "do", "else", "elif", "if", "while", "until",
    "exec", "time", "xargs", "env",
];

/// Returns each part of a script that fails on a Mac, with its line number.
fn mac_incompatibilities(text: &str) -> Vec<String> {
    let array_names: Vec<&str> = text
        .split("=()")
        .filter_map(|before| before.rsplit(|c: char| !is_name_character(c)).next())
        .collect();
    let mut problems = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with('#') {
            continue;
        }
        let mut report = |problem: &str| problems.push(format!("{number}: {problem}"));
        SYNTAX_MISSING_ON_MAC.iter().filter(|text| line.contains(**text)).for_each(|text| report(text));
        for array in array_names.iter().filter(|name| !name.is_empty()) {
            let is_counted = line.contains(&format!("${{#{array}[@]}}"));
            // `${name[@]+"${name[@]}"}` expands to nothing if the array is empty.
            let rest = line.replace(&format!("${{{array}[@]+\"${{{array}[@]}}\"}}"), "");
            if !is_counted
                && ["@", "*"].iter().any(|subscript| rest.contains(&format!("${{{array}[{subscript}]}}")))
            {
                report(&format!("{array}, which is unset in bash 3.2 while it is empty"));
            }
        }
        incompatible_calls(line).iter().for_each(|call| report(call));
    }
    problems
}

fn is_name_character(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Returns the programs in a line that a Mac does not have, and the options that its programs do not have.
fn incompatible_calls(line: &str) -> Vec<String> {
    let mut spaced = line.to_owned();
    for mark in ["$(", "<(", "(", ")", "`", "|", ";", "&"] {
        let plain = mark.trim_start_matches(['$', '<']).replace('`', "(");
        spaced = spaced.replace(mark, &format!(" {plain} "));
    }
    let words: Vec<&str> = spaced.split_whitespace().map(|word| word.trim_matches('"')).collect();
    let begins_command = |index: usize| {
        index == 0 || WORDS_BEFORE_COMMANDS.contains(&words[index - 1]) || is_assignment(words[index - 1])
    };
    let mut problems = Vec::new();
    for index in (0..words.len()).filter(|at| begins_command(*at)) {
        let program = words[index];
        if PROGRAMS_MISSING_ON_MAC.contains(&program) {
            problems.push(program.to_owned());
        }
        let call = words[index + 1..].iter().take_while(|word| !["|", ";", "&", ")"].contains(word));
        for word in call {
            let is_incompatible = |(option_program, letters, long_option): &(&str, &str, &str)| {
                *option_program == program && matches_option(word, letters, long_option)
                    || program == "sed" && *word == "-i"
            };
            if OPTIONS_MISSING_ON_MAC.iter().any(is_incompatible) {
                problems.push(format!("{program} {word}"));
            }
        }
    }
    problems
}

/// Whether the word is `NAME=value`, which may precede a command.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && name.chars().all(is_name_character))
}

/// Whether a word is one of these options. A lone `--` is not one: it ends the options.
fn matches_option(word: &str, letters: &str, long_option: &str) -> bool {
    if !long_option.is_empty() && word != "--" && word.starts_with(long_option) {
        return true;
    }
    let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
    let cluster: String = cluster.chars().take_while(char::is_ascii_alphanumeric).collect();
    cluster.chars().any(|letter| letters.contains(letter))
}

#[test]
fn only_gnu_tools_and_new_bash_syntax_are_reported() {
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
        let problems = mac_incompatibilities(line);
        assert!(
            problems.len() == 1 && problems[0].ends_with(&format!(": {expected}")),
            "{line}: {problems:?}"
        );
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
        assert_eq!(mac_incompatibilities(line), Vec::<String>::new(), "{line}");
    }
}

/// Returns the text of every script below `scripts/`, by its path relative to that folder.
fn read_scripts() -> BTreeMap<String, String> {
    let root = workspace_root().join("scripts");
    let (mut folders, mut scripts) = (vec![root.clone()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "sh") {
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                scripts.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    scripts
}

/// Whether one of the first 12 lines of code exits with a message if the system is not Linux.
fn has_linux_guard(text: &str) -> bool {
    let mut first_lines =
        text.lines().filter(|line| !line.trim_start().starts_with('#') && !line.is_empty()).take(12);
    first_lines.any(|line| line.contains("[ \"$(uname -s)\" = Linux ] ||") && line.contains("is for Linux"))
}

/// Returns the scripts that run only on Linux: they have a guard, or only guarded scripts source them.
fn linux_only_scripts(scripts: &BTreeMap<String, String>) -> Vec<&str> {
    let mut linux_only: Vec<&str> = Vec::new();
    loop {
        let is_sourced_by_linux_only = |name: &str| {
            let source_line = format!("\n. scripts/{name}\n");
            let mut readers = scripts.iter().filter(|(_, text)| text.contains(&source_line)).peekable();
            readers.peek().is_some() && readers.all(|(reader, _)| linux_only.contains(&reader.as_str()))
        };
        // `bench/hook.sh` is a hook in another language that scripts/bench.sh compares with ours.
        let is_linux_only = |(name, text): &(&String, &String)| {
            has_linux_guard(text) || is_sourced_by_linux_only(name) || *name == "bench/hook.sh"
        };
        let updated: Vec<&str> =
            scripts.iter().filter(is_linux_only).map(|(name, _)| name.as_str()).collect();
        if updated == linux_only {
            return updated;
        }
        linux_only = updated;
    }
}

#[test]
fn every_script_runs_on_a_mac_or_exits_as_linux_only() {
    let scripts = read_scripts();
    let linux_only = linux_only_scripts(&scripts);
    let mut problems = Vec::new();
    for (name, text) in scripts.iter().filter(|(name, _)| !linux_only.contains(&name.as_str())) {
        problems.extend(
            mac_incompatibilities(text).into_iter().map(|problem| format!("scripts/{name}:{problem}")),
        );
    }
    assert_eq!(
        problems,
        Vec::<String>::new(),
        "not on a Mac: write it otherwise, or let the script say that it is for Linux"
    );
    // The scripts that the documentation tells Mac users to run.
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
        assert!(scripts.contains_key(name) && !linux_only.contains(&name), "{name}");
    }
    assert!(linux_only.contains(&"bench/page.sh") && linux_only.contains(&"stage.sh"), "{linux_only:?}");
}

#[test]
fn linux_only_scripts_exit_on_a_mac_before_doing_anything() {
    let world = World::without_git();
    world.write_program("bin/uname", "#!/bin/sh\ncase $1 in -s) echo Darwin ;; *) echo arm64 ;; esac\n");
    let path = format!("{}:/usr/bin:/bin", world.path("bin").display());
    let mut script_count = 0;
    for (name, _) in read_scripts().iter().filter(|(_, text)| has_linux_guard(text)) {
        let refused = script_launch(&world, name, &["something"]).env("PATH", path.as_str()).run();
        assert!(!matches!(refused.code, Some(0) | None), "{name}: {refused:?}");
        let file_name = name.rsplit('/').next().unwrap_or(name);
        assert!(
            refused.stderr.contains(file_name) && refused.stderr.contains("is for Linux"),
            "{name}: {refused:?}"
        );
        assert_eq!(refused.stdout, "", "{name}");
        script_count += 1;
    }
    assert!(script_count > 8, "{script_count}");
    assert_eq!(run_bash_line(&world, "ls").stdout, "bin\n", "nothing is begun");
}

#[test]
fn shell_blocks_of_the_docs_run_on_a_mac() {
    let mut pages: Vec<String> = std::fs::read_dir(workspace_root().join("docs"))
        .unwrap()
        .map(|entry| format!("docs/{}", entry.unwrap().file_name().display()))
        .filter(|name| name.ends_with(".md"))
        .collect();
    pages.push("README.md".to_owned());
    let (mut problems, mut block_count) = (Vec::new(), 0);
    for block in pages
        .iter()
        .flat_map(|page| docs::code_blocks(page))
        .filter(|block| block.info_string.starts_with("sh"))
    {
        problems.extend(
            mac_incompatibilities(&block.text)
                .into_iter()
                .map(|problem| format!("{}, {problem}", block.location)),
        );
        block_count += 1;
    }
    assert_eq!(problems, Vec::<String>::new());
    assert!(block_count > 30, "{block_count}");
}

/// The agent of `plimsoll demo` runs its commands in the user's own shell.
#[test]
fn demo_agent_edits_files_in_a_way_that_works_on_a_mac() {
    for file in ["crates/cli/src/commands/demo.rs", "crates/scripted-model/src/scripted_agent.rs"] {
        let text = std::fs::read_to_string(workspace_root().join(file)).unwrap();
        assert!(text.contains("sed -i.bak") && !text.contains("sed -i '"), "{file}");
    }
}
