use super::*;
use std::time::Instant;

fn sh(folder: &Path, line: &str) {
    let outcome = crate::shell(line, folder, Duration::from_secs(20));
    assert!(outcome.succeeded(), "{line}: {}", String::from_utf8_lossy(&outcome.stderr));
}

const INIT: &str = "git init -q -b main && git config user.email a@b && git config user.name n";

/// One commit with `a.txt`, `b.sh` and `.gitignore`.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    sh(folder.path(), INIT);
    sh(folder.path(), "seq 9 > a.txt; echo b > b.sh; echo '*.log' > .gitignore");
    sh(folder.path(), "git add -A && git commit -qm first");
    folder
}

fn is_ours(path: &str) -> bool {
    path == "PROMPT.md" || path.starts_with(".claude/")
}

fn of(folder: &Path) -> WorktreeFingerprint {
    footing(folder, &is_ours)
}

fn tree(folder: &Path) -> String {
    of(folder).tree.unwrap()
}

/// The digest before and after a command, of a folder whose files are looked into up to so many.
fn around(folder: &Path, line: &str, most: usize) -> (String, String) {
    let tree = || footing_within(folder, &is_ours, most).tree.unwrap();
    let before = tree();
    sh(folder, line);
    (before, tree())
}

fn stays_within(most: usize, folder: &Path, line: &str) {
    let (before, after) = around(folder, line, most);
    assert_eq!(before, after, "changed by {line}");
}

fn changes_within(most: usize, folder: &Path, line: &str) {
    let (before, after) = around(folder, line, most);
    assert_ne!(before, after, "not changed by {line}");
}

fn stays(folder: &Path, line: &str) {
    stays_within(MOST_FILES, folder, line);
}

fn changes(folder: &Path, line: &str) {
    changes_within(MOST_FILES, folder, line);
}

#[test]
fn a_touch_changes_nothing_an_edit_does_and_taking_it_back_is_as_before() {
    let folder = repository();
    let at = folder.path();
    let first = of(at);
    assert_eq!(first.head.as_ref().unwrap().len(), 40);
    assert_eq!(first.tree.as_ref().unwrap().len(), 64);
    stays(at, "sleep 0.01; touch a.txt b.sh");
    changes(at, "echo 10 >> a.txt");
    changes(at, "echo 11 >> a.txt");
    sh(at, "seq 9 > a.txt");
    assert_eq!(of(at), first);
    changes(at, "rm a.txt");
    changes(at, "git checkout -q -- a.txt; git mv a.txt c.txt");
    sh(at, "git reset -q --hard");
    assert_eq!(of(at), first);
}

#[test]
fn untracked_files_count_ignored_ones_and_ours_do_not() {
    let folder = repository();
    let at = folder.path();
    let first = tree(at);
    changes(at, "mkdir deep; echo one > deep/new");
    changes(at, "echo two > deep/new");
    changes(at, "mv deep/new deep/newer");
    changes(at, "rm deep/newer");
    assert_eq!(tree(at), first, "an empty folder is nothing");
    stays(at, "echo x > a.log; mkdir .claude; echo x > .claude/state; echo x > PROMPT.md");
    stays(at, "git add -f PROMPT.md .claude && git commit -qm ours");
    stays(at, "echo y > PROMPT.md; rm .claude/state");
    sh(at, "git add -f a.log && git commit -qm log");
    changes(at, "echo y > a.log");
}

#[test]
fn staging_changes_nothing_and_a_commit_moves_head_only() {
    let folder = repository();
    let at = folder.path();
    sh(at, "echo 10 >> a.txt; echo new > new; rm b.sh; ln -s a.txt link; printf 'x' > tool; chmod +x tool");
    let before = of(at);
    for line in ["git add -A", "git reset -q", "git add -N new", "git add new", "git rm -q --cached a.txt"] {
        stays(at, line);
    }
    sh(at, "git add -A && git commit -qm second");
    let after = of(at);
    assert_eq!(after.tree, before.tree);
    assert_ne!(after.head, before.head);
    stays(at, "git checkout -q --detach && git commit -q --allow-empty -m third");
    changes(at, "git checkout -q HEAD~2");
}

#[test]
fn line_endings_that_git_translates_are_no_change() {
    let folder = repository();
    let at = folder.path();
    sh(at, "echo '*.txt text' > .gitattributes; printf 'a\\r\\nb\\r\\n' > crlf.txt");
    stays(at, "git add -A 2>/dev/null && git commit -qm crlf");
    stays(at, "sleep 0.01; printf 'a\\nb\\n' > crlf.txt");
}

#[test]
fn nothing_is_written_into_the_repository() {
    let folder = repository();
    let at = folder.path();
    sh(at, "sleep 1.1; touch a.txt; echo new > new; echo x >> b.sh");
    let listing = || {
        let line = "find .git -type f | sort | xargs sha256sum; find .git | sort | xargs stat -c '%n %y'";
        crate::shell(line, at, Duration::from_secs(20)).stdout
    };
    let before = listing();
    tree(at);
    assert!(before == listing());
}

#[test]
fn a_repository_without_commits_has_a_tree() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    sh(at, INIT);
    assert_eq!(of(at).head, None);
    changes(at, "echo a > a");
    stays(at, "git add a");
    changes(at, "echo b > a");
    stays(at, "git add a && git commit -qm first");
    assert!(of(at).head.is_some());
}

#[test]
fn outside_git_every_file_counts_but_caches() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let first = of(at);
    assert_eq!(first.head, None);
    changes(at, "mkdir deep; echo a > deep/a");
    stays(at, "touch deep/a");
    changes(at, "echo b > deep/a");
    changes(at, "chmod +x deep/a");
    changes(at, "ln -s deep link");
    changes(at, "ln -sfn nowhere link");
    stays(
        at,
        "mkdir -p node_modules/x target .venv __pycache__ .claude; echo x | tee node_modules/x/y target/z",
    );
    stays(at, "echo x > PROMPT.md");
    sh(at, "rm -r deep link");
    assert_eq!(of(at), first);
}

#[test]
fn of_a_project_below_the_root_only_what_lies_there_counts() {
    let folder = repository();
    let project = folder.path().join("app");
    sh(folder.path(), "mkdir app && echo x > app/x.txt && git add -A && git commit -qm app");
    stays(&project, "echo y > ../a.txt; echo new > ../new; git add ..");
    stays(&project, "echo mine > PROMPT.md; git add PROMPT.md");
    changes(&project, "echo y > x.txt");
    changes(&project, "echo new > new.txt");
    stays(&project, "git add -A . && git commit -qm second");
}

#[test]
fn a_project_in_a_folder_that_a_repository_ignores_counts_all_the_same() {
    let folder = repository();
    let project = folder.path().join("own.log");
    sh(folder.path(), "mkdir own.log");
    changes(&project, "echo a > a");
    changes(&project, "echo b > a");
}

#[test]
fn every_name_that_a_file_may_have_counts() {
    let folder = repository();
    let at = folder.path();
    let mut seen = vec![tree(at)];
    for name in
        ["'with space'", "'new\nline'", "\"$(printf 'not\\377utf')\"", "'\"quoted\\'", "'-dash'", "'ü'"]
    {
        sh(at, &format!("echo one > ./{name}"));
        seen.push(tree(at));
        sh(at, &format!("echo two > ./{name}"));
        seen.push(tree(at));
    }
    stays(at, "git add -A && git commit -qm names");
    sh(at, "for file in ./*; do echo three > \"$file\"; done");
    seen.push(tree(at));
    let number = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), number);
    stays(at, "git commit -qam again");
}

#[test]
fn a_link_counts_by_where_it_leads_and_the_executable_bit_counts() {
    let folder = repository();
    let at = folder.path();
    changes(at, "ln -s a.txt link");
    stays(at, "git add -A && git commit -qm link");
    changes(at, "ln -sf b.sh link");
    changes(at, "ln -sf nowhere link");
    changes(at, "ln -sf a.txt link");
    changes(at, "rm link && cp a.txt link");
    changes(at, "chmod +x b.sh");
    stays(at, "git add -A && git commit -qm bit");
    changes(at, "chmod -x b.sh");
}

#[test]
fn a_folder_in_a_files_place_and_a_file_in_a_folders_place_count() {
    let folder = repository();
    let at = folder.path();
    sh(at, "mkdir d; echo x > d/x; git add -A; git commit -qm d");
    changes(at, "rm a.txt; mkdir a.txt; echo in > a.txt/in");
    changes(at, "rm -r d; echo d > d");
    stays(at, "git add -A; git commit -qm swapped");
}

#[test]
fn a_repository_inside_counts_by_its_files() {
    let folder = repository();
    let at = folder.path();
    changes(
        at,
        "mkdir inner; cd inner; git init -q; git config user.email a@b; git config user.name n; echo x > x; git add x; git commit -qm inner",
    );
    stays(at, "git -c advice.addEmbeddedRepo=false add -A && git commit -qm outer");
    changes(at, "echo y > inner/x");
    changes(at, "echo z > inner/z");
    changes(at, "rm inner/x");
    stays(at, "cd inner; git add -A; git commit -qm second");
    stays(at, "git add -A && git commit -qm outer");
    let (before, after) =
        around(at, "mkdir broken; echo 'gitdir: /nowhere' > broken/.git; echo x > broken/x", MOST_FILES);
    assert!(!before.is_empty() && !after.is_empty());
}

#[test]
fn a_large_file_counts_by_size_and_time_and_is_not_read() {
    for folder in [repository(), tempfile::tempdir().unwrap()] {
        let at = folder.path();
        changes(at, "truncate -s 3G large; touch -d @1000 large");
        let started = Instant::now();
        stays(at, "true");
        assert!(started.elapsed() < Duration::from_secs(20));
        changes(at, "touch -d @2000 large");
        changes(at, "truncate -s 2G large; touch -d @2000 large");
    }
}

#[test]
fn a_file_that_cannot_be_read_does_not_hide_the_rest() {
    let folder = repository();
    let at = folder.path();
    sh(at, "echo x > closed; chmod 000 closed");
    changes(at, "echo 10 >> a.txt");
}

#[test]
fn a_filter_that_is_not_installed_does_not_hide_the_rest() {
    let folder = repository();
    let at = folder.path();
    // Not so young that git would have to look into it.
    sh(at, "touch -d @1000000000 a.txt; git update-index -q --refresh");
    sh(at, "git config filter.lost.clean /no/such/program; git config filter.lost.required true");
    sh(at, "echo '*.txt filter=lost' > .gitattributes");
    changes(at, "echo 10 >> a.txt");
    changes(at, "echo new > new.txt");
}

#[test]
fn more_files_than_we_look_into_count_by_size_and_time() {
    const MOST: usize = 50;
    let of = |folder: &Path| footing_within(folder, &is_ours, MOST);
    let stays = |folder: &Path, line: &str| stays_within(MOST, folder, line);
    let changes = |folder: &Path, line: &str| changes_within(MOST, folder, line);
    let folder = repository();
    let at = folder.path();
    // Three files are there already.
    sh(at, "mkdir many; cd many; seq 47 | xargs touch; git add -A; git commit -qm many");
    assert!(!of(at).tree.unwrap().starts_with("by-time:"), "so many are looked into");
    sh(at, "touch many/48; git add -A; git commit -qm more");
    let first = of(at);
    assert!(first.head.is_some() && first.tree.as_ref().unwrap().starts_with("by-time:"), "{first:?}");
    stays(at, "sleep 0.01; touch a.txt many/7; echo x > PROMPT.md; echo x > a.log");
    changes(at, "echo 10 >> a.txt");
    changes(at, "echo 11 >> a.txt");
    stays(at, "git add a.txt");
    changes(at, "rm many/7; echo new > many/new");
    sh(at, "git reset -q --hard; rm many/new");
    assert_eq!(of(at), first);
    stays(at, "git add -f PROMPT.md; git commit -qm ours");
    sh(at, "rm -rf .git");
    assert!(of(at).tree.unwrap().starts_with("by-time:"));
    stays(at, "true");
    changes(at, "echo 12 >> a.txt");
}

#[test]
fn of_a_large_project_below_the_root_only_what_lies_there_counts() {
    let folder = repository();
    let project = folder.path().join("sub");
    sh(folder.path(), "mkdir sub; echo s > sub/s; git add -A; git commit -qm sub");
    let coarse = || coarse::tree(&project, &|_| false).unwrap();
    let first = coarse();
    sh(folder.path(), "echo 10 >> a.txt");
    assert_eq!(coarse(), first);
    sh(folder.path(), "echo t >> sub/s");
    assert_ne!(coarse(), first);
}

#[test]
fn a_file_under_a_filter_counts_as_it_lies_there_and_the_filter_is_not_run() {
    let folder = repository();
    let at = folder.path();
    sh(
        at,
        "git config filter.up.clean \"touch '$PWD/a.log'; tr a-z A-Z\"; echo '*.up filter=up' > .gitattributes",
    );
    sh(at, "echo one > a.up; git add -A; git commit -qm up");
    assert_eq!(crate::shell("git show HEAD:a.up", at, Duration::from_secs(20)).stdout, b"ONE\n");
    let ran = at.join("a.log");
    std::fs::remove_file(&ran).unwrap();
    stays(at, "touch -d 2020-01-01 a.up");
    changes(at, "echo two > a.up");
    assert!(!ran.exists(), "nobody has run it");
    stays(at, "git add -A; git commit -qm two");
}

#[test]
fn no_git_is_started_in_a_repository_inside() {
    let folder = repository();
    let at = folder.path();
    sh(
        at,
        "git init -q module; cd module; git config user.email a@b; git config user.name n; echo x > x; git add x; git commit -qm x",
    );
    sh(
        at,
        "git -c advice.addEmbeddedRepo=false add module; git commit -qm module; git init -q nested; echo x > nested/x; cd nested; git add x",
    );
    let ran = at.join("a.log");
    for inner in ["module", "nested"] {
        sh(at, &format!("git -C {inner} config core.fsmonitor \"touch '{}';\"", ran.display()));
        sh(
            at,
            &format!(
                "git -C {inner} config filter.f.clean \"touch '{}'; cat\"; echo '* filter=f' > {inner}/.git/info/attributes",
                ran.display()
            ),
        );
        sh(at, &format!("touch -d 2020-01-01 {inner}/x"));
    }
    sh(at, "git -C module status; test -e a.log; rm a.log");
    changes(at, "echo y > module/x");
    changes(
        at,
        "echo y > nested/y; git -C nested -c filter.f.clean= -c core.fsmonitor=false -c user.name=n -c user.email=e commit -qm x; rm -f a.log",
    );
    let first = coarse::tree(at, &|_| false).unwrap();
    sh(at, "echo longer > module/x");
    assert_ne!(coarse::tree(at, &|_| false).unwrap(), first);
    assert!(!ran.exists());
}
