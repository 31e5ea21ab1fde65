//! The oldest supported git has every option that we use, according to git's release notes.

use plimsoll_testkit::workspace_root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The oldest supported version of git, named in docs/platforms.md (Debian 11 has it).
const OLDEST_SUPPORTED_GIT: (u32, u32) = (2, 30);

/// Options that git has had since before 2.0.
const OPTIONS_BEFORE_GIT_2: &str = "--abort --allow-empty --amend --bare --batch --branch --cached --cleanup --contains --count --debug --detach --diff-filter \
    --dry-run --exclude-from --exclude-standard --ff-only --file --find-renames --fixed-strings --force --force-remove --format --get-regexp \
    --git-path --ignore-submodules --ignored --intent-to-add --inter-hunk-context --is-ancestor --is-inside-work-tree --list --local \
    --message --name-only --no-color --no-commit-id --no-ext-diff --no-filters --no-follow-tags --no-pager --no-recurse-submodules \
    --no-renames --no-show-signature --no-tags --no-textconv --no-track --no-verify --null --numstat --only --onto --orphan \
    --others --patch --porcelain --prune --push --quiet --refresh --exclude-per-directory --no-deref --raw --relative --replace-all --reset --root --show-cdup --show-prefix \
    --show-toplevel --since --src-prefix --dst-prefix --stage --stat --stdin --stdin-paths --submodule --template \
    --unified --unmerged --untracked-files --verify --version --window --no-autosquash --no-hardlinks --force-with-lease --get-all \
    --full-history --ignore-skip-worktree-bits --missing-ok --reverse --topo-order";

/// Later options, with the version in which the command that we use them with got them.
const LATER_OPTIONS: [(&str, (u32, u32)); 16] = [
    ("--absolute-git-dir", (2, 13)),
    // `git switch`.
    ("--create", (2, 23)),
    ("--dissociate", (2, 3)),
    // `git rev-parse`.
    ("--end-of-options", (2, 30)),
    ("--is-shallow-repository", (2, 15)),
    // `git merge`; `git rebase` has had it since 2.9.
    ("--no-autostash", (2, 27)),
    ("--no-guess", (2, 23)),
    ("--no-overwrite-ignore", (2, 23)),
    ("--no-relative", (2, 28)),
    ("--no-signed", (2, 4)),
    ("--no-write-fetch-head", (2, 29)),
    ("--pathspec-file-nul", (2, 25)),
    ("--pathspec-from-file", (2, 25)),
    ("--show-origin", (2, 8)),
    ("--show-scope", (2, 26)),
    ("--no-recurse-submodules", (2, 0)),
];

/// Options of other programs, from a table of untrusted commands in the same source files.
const OPTIONS_OF_OTHER_PROGRAMS: [&str; 3] = ["--eval", "--import", "--require"];

fn collect_rust_sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => collect_rust_sources(&path, files),
            path if path.extension().is_some_and(|extension| extension == "rs")
                && !path.ends_with("tests.rs") =>
            {
                files.push(path);
            }
            _ => {}
        }
    }
}

/// Returns the options at the start of string literals in the code that starts git.
fn git_options_in_our_code() -> BTreeSet<String> {
    let mut files = Vec::new();
    collect_rust_sources(&workspace_root().join("crates/launcher/src"), &mut files);
    let mut options = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for part in code.split("\"--").skip(1) {
            let name: String =
                part.chars().take_while(|letter| letter.is_ascii_lowercase() || *letter == '-').collect();
            // A lone `--` separates options from paths.
            if name.starts_with(|letter: char| letter.is_ascii_lowercase()) {
                options.insert(format!("--{name}"));
            }
        }
    }
    options
}

#[test]
fn oldest_supported_git_has_every_option_that_we_use() {
    let old_options: BTreeSet<&str> = OPTIONS_BEFORE_GIT_2.split_whitespace().collect();
    let used = git_options_in_our_code();
    assert!(used.len() > 50, "{used:?}");
    let unknown: Vec<&String> = used
        .iter()
        .filter(|option| {
            let option = option.as_str();
            let is_in_time = LATER_OPTIONS
                .iter()
                .any(|(later, version)| *later == option && *version <= OLDEST_SUPPORTED_GIT);
            !(is_in_time || old_options.contains(option) || OPTIONS_OF_OTHER_PROGRAMS.contains(&option))
        })
        .collect();
    assert!(unknown.is_empty(), "look up since when git has them: {unknown:?}");
    let page = std::fs::read_to_string(workspace_root().join("docs/platforms.md")).unwrap();
    let statement = format!("git {}.{} or newer", OLDEST_SUPPORTED_GIT.0, OLDEST_SUPPORTED_GIT.1);
    assert!(page.contains(&statement), "docs/platforms.md does not say `{statement}`");
}
