use super::*;
use std::time::Instant;

fn run_shell(folder: &Path, command_line: &str) {
    let outcome = crate::run_user_shell_command(command_line, folder, Duration::from_secs(20));
    assert!(outcome.succeeded(), "{command_line}: {}", String::from_utf8_lossy(&outcome.stderr));
}

const INIT: &str = "git init -q -b main && git config user.email a@b && git config user.name n";

/// Creates a repository with one commit of `a.txt`, `b.sh` and `.gitignore`.
fn create_repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    run_shell(folder.path(), INIT);
    run_shell(folder.path(), "seq 9 > a.txt; echo b > b.sh; echo '*.log' > .gitignore");
    run_shell(folder.path(), "git add -A && git commit -qm first");
    folder
}

fn is_own_file(path: &str) -> bool {
    path == "PROMPT.md" || path.starts_with(".claude/")
}

fn fingerprint(folder: &Path) -> WorktreeFingerprint {
    compute_fingerprint(folder, &is_own_file)
}

fn tree_digest(folder: &Path) -> String {
    fingerprint(folder).tree_digest.unwrap()
}

/// Returns the digest before and after a command. In projects with more than `max_hashed_files` files,
/// contents are not hashed.
fn digests_around(folder: &Path, command_line: &str, max_hashed_files: usize) -> (String, String) {
    let tree_digest =
        || compute_content_or_coarse_fingerprint(folder, &is_own_file, max_hashed_files).tree_digest.unwrap();
    let digest_before = tree_digest();
    run_shell(folder, command_line);
    (digest_before, tree_digest())
}

fn assert_unchanged_with_limit(max_hashed_files: usize, folder: &Path, command_line: &str) {
    let (before, after) = digests_around(folder, command_line, max_hashed_files);
    assert_eq!(before, after, "changed by {command_line}");
}

fn assert_changed_with_limit(max_hashed_files: usize, folder: &Path, command_line: &str) {
    let (before, after) = digests_around(folder, command_line, max_hashed_files);
    assert_ne!(before, after, "not changed by {command_line}");
}

fn assert_unchanged(folder: &Path, command_line: &str) {
    assert_unchanged_with_limit(MAX_HASHED_FILES, folder, command_line);
}

fn assert_changed(folder: &Path, command_line: &str) {
    assert_changed_with_limit(MAX_HASHED_FILES, folder, command_line);
}

#[test]
fn a_touch_changes_nothing_and_an_undone_edit_restores_the_fingerprint() {
    let folder = create_repository();
    let path = folder.path();
    let first = fingerprint(path);
    assert_eq!(first.head.as_ref().unwrap().len(), 40);
    assert_eq!(first.tree_digest.as_ref().unwrap().len(), 64);
    assert_unchanged(path, "sleep 0.01; touch a.txt b.sh");
    assert_changed(path, "echo 10 >> a.txt");
    assert_changed(path, "echo 11 >> a.txt");
    run_shell(path, "seq 9 > a.txt");
    assert_eq!(fingerprint(path), first);
    assert_changed(path, "rm a.txt");
    assert_changed(path, "git checkout -q -- a.txt; git mv a.txt c.txt");
    run_shell(path, "git reset -q --hard");
    assert_eq!(fingerprint(path), first);
}

#[test]
fn untracked_files_count_but_ignored_and_our_own_files_do_not() {
    let folder = create_repository();
    let path = folder.path();
    let first = tree_digest(path);
    assert_changed(path, "mkdir deep; echo one > deep/new");
    assert_changed(path, "echo two > deep/new");
    assert_changed(path, "mv deep/new deep/newer");
    assert_changed(path, "rm deep/newer");
    assert_eq!(tree_digest(path), first, "an empty folder is nothing");
    assert_unchanged(path, "echo x > a.log; mkdir .claude; echo x > .claude/state; echo x > PROMPT.md");
    assert_unchanged(path, "git add -f PROMPT.md .claude && git commit -qm ours");
    assert_unchanged(path, "echo y > PROMPT.md; rm .claude/state");
    run_shell(path, "git add -f a.log && git commit -qm log");
    assert_changed(path, "echo y > a.log");
}

#[test]
fn staging_changes_nothing_and_a_commit_changes_only_head() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(
        path,
        "echo 10 >> a.txt; echo new > new; rm b.sh; ln -s a.txt link; printf 'x' > tool; chmod +x tool",
    );
    let before = fingerprint(path);
    for line in ["git add -A", "git reset -q", "git add -N new", "git add new", "git rm -q --cached a.txt"] {
        assert_unchanged(path, line);
    }
    run_shell(path, "git add -A && git commit -qm second");
    let after = fingerprint(path);
    assert_eq!(after.tree_digest, before.tree_digest);
    assert_ne!(after.head, before.head);
    assert_unchanged(path, "git checkout -q --detach && git commit -q --allow-empty -m third");
    assert_changed(path, "git checkout -q HEAD~2");
}

#[test]
fn line_endings_that_git_converts_are_no_change() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(path, "echo '*.txt text' > .gitattributes; printf 'a\\r\\nb\\r\\n' > crlf.txt");
    assert_unchanged(path, "git add -A 2>/dev/null && git commit -qm crlf");
    assert_unchanged(path, "sleep 0.01; printf 'a\\nb\\n' > crlf.txt");
}

#[test]
fn nothing_is_written_into_the_repository() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(path, "sleep 1.1; touch a.txt; echo new > new; echo x >> b.sh");
    let listing = || {
        let line = "find .git -type f | sort | xargs sha256sum; find .git | sort | xargs stat -c '%n %y'";
        crate::run_user_shell_command(line, path, Duration::from_secs(20)).stdout
    };
    let before = listing();
    tree_digest(path);
    assert!(before == listing());
}

#[test]
fn a_repository_without_commits_has_a_tree_digest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    run_shell(path, INIT);
    assert_eq!(fingerprint(path).head, None);
    assert_changed(path, "echo a > a");
    assert_unchanged(path, "git add a");
    assert_changed(path, "echo b > a");
    assert_unchanged(path, "git add a && git commit -qm first");
    assert!(fingerprint(path).head.is_some());
}

#[test]
fn outside_git_every_file_counts_except_caches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let first = fingerprint(path);
    assert_eq!(first.head, None);
    assert_changed(path, "mkdir deep; echo a > deep/a");
    assert_unchanged(path, "touch deep/a");
    assert_changed(path, "echo b > deep/a");
    assert_changed(path, "chmod +x deep/a");
    assert_changed(path, "ln -s deep link");
    assert_changed(path, "ln -sfn nowhere link");
    assert_unchanged(
        path,
        "mkdir -p node_modules/x target .venv __pycache__ .claude; echo x | tee node_modules/x/y target/z",
    );
    assert_unchanged(path, "echo x > PROMPT.md");
    run_shell(path, "rm -r deep link");
    assert_eq!(fingerprint(path), first);
}

#[test]
fn of_a_project_below_the_root_only_its_own_files_count() {
    let folder = create_repository();
    let project = folder.path().join("app");
    run_shell(folder.path(), "mkdir app && echo x > app/x.txt && git add -A && git commit -qm app");
    assert_unchanged(&project, "echo y > ../a.txt; echo new > ../new; git add ..");
    assert_unchanged(&project, "echo mine > PROMPT.md; git add PROMPT.md");
    assert_changed(&project, "echo y > x.txt");
    assert_changed(&project, "echo new > new.txt");
    assert_unchanged(&project, "git add -A . && git commit -qm second");
}

#[test]
fn a_project_in_an_ignored_folder_of_a_repository_counts() {
    let folder = create_repository();
    let project = folder.path().join("own.log");
    run_shell(folder.path(), "mkdir own.log");
    assert_changed(&project, "echo a > a");
    assert_changed(&project, "echo b > a");
}

#[test]
fn a_file_with_any_possible_name_counts() {
    let folder = create_repository();
    let path = folder.path();
    let mut digests = vec![tree_digest(path)];
    for name in
        ["'with space'", "'new\nline'", "\"$(printf 'not\\377utf')\"", "'\"quoted\\'", "'-dash'", "'ü'"]
    {
        run_shell(path, &format!("echo one > ./{name}"));
        digests.push(tree_digest(path));
        run_shell(path, &format!("echo two > ./{name}"));
        digests.push(tree_digest(path));
    }
    assert_unchanged(path, "git add -A && git commit -qm names");
    run_shell(path, "for file in ./*; do echo three > \"$file\"; done");
    digests.push(tree_digest(path));
    let digest_count = digests.len();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), digest_count);
    assert_unchanged(path, "git commit -qam again");
}

#[test]
fn a_symbolic_link_counts_by_its_target_and_the_executable_bit_counts() {
    let folder = create_repository();
    let path = folder.path();
    assert_changed(path, "ln -s a.txt link");
    assert_unchanged(path, "git add -A && git commit -qm link");
    assert_changed(path, "ln -sf b.sh link");
    assert_changed(path, "ln -sf nowhere link");
    assert_changed(path, "ln -sf a.txt link");
    assert_changed(path, "rm link && cp a.txt link");
    assert_changed(path, "chmod +x b.sh");
    assert_unchanged(path, "git add -A && git commit -qm bit");
    assert_changed(path, "chmod -x b.sh");
}

#[test]
fn a_file_replaced_by_a_folder_and_the_reverse_count() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(path, "mkdir d; echo x > d/x; git add -A; git commit -qm d");
    assert_changed(path, "rm a.txt; mkdir a.txt; echo in > a.txt/in");
    assert_changed(path, "rm -r d; echo d > d");
    assert_unchanged(path, "git add -A; git commit -qm swapped");
}

#[test]
fn a_nested_repository_counts_by_its_files() {
    let folder = create_repository();
    let path = folder.path();
    assert_changed(
        path,
        "mkdir inner; cd inner; git init -q; git config user.email a@b; git config user.name n; echo x > x; git add x; git commit -qm inner",
    );
    assert_unchanged(path, "git -c advice.addEmbeddedRepo=false add -A && git commit -qm outer");
    assert_changed(path, "echo y > inner/x");
    assert_changed(path, "echo z > inner/z");
    assert_changed(path, "rm inner/x");
    assert_unchanged(path, "cd inner; git add -A; git commit -qm second");
    assert_unchanged(path, "git add -A && git commit -qm outer");
    let (before, after) = digests_around(
        path,
        "mkdir broken; echo 'gitdir: /nowhere' > broken/.git; echo x > broken/x",
        MAX_HASHED_FILES,
    );
    assert!(!before.is_empty() && !after.is_empty());
}

#[test]
fn a_large_file_counts_by_size_and_time_and_is_not_read() {
    for folder in [create_repository(), tempfile::tempdir().unwrap()] {
        let path = folder.path();
        assert_changed(path, "truncate -s 3G large; touch -d @1000 large");
        let started_at = Instant::now();
        assert_unchanged(path, "true");
        assert!(started_at.elapsed() < Duration::from_secs(20));
        assert_changed(path, "touch -d @2000 large");
        assert_changed(path, "truncate -s 2G large; touch -d @2000 large");
    }
}

#[test]
fn an_unreadable_file_does_not_hide_other_changes() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(path, "echo x > closed; chmod 000 closed");
    assert_changed(path, "echo 10 >> a.txt");
}

#[test]
fn a_missing_filter_program_does_not_hide_other_changes() {
    let folder = create_repository();
    let path = folder.path();
    // Old enough that git does not have to compare its content.
    run_shell(path, "touch -d @1000000000 a.txt; git update-index -q --refresh");
    run_shell(path, "git config filter.lost.clean /no/such/program; git config filter.lost.required true");
    run_shell(path, "echo '*.txt filter=lost' > .gitattributes");
    assert_changed(path, "echo 10 >> a.txt");
    assert_changed(path, "echo new > new.txt");
}

#[test]
fn above_the_file_limit_files_count_by_size_and_time() {
    const MAX_HASHED_FILES: usize = 50;
    let fingerprint =
        |folder: &Path| compute_content_or_coarse_fingerprint(folder, &is_own_file, MAX_HASHED_FILES);
    let assert_unchanged = |folder: &Path, command_line: &str| {
        assert_unchanged_with_limit(MAX_HASHED_FILES, folder, command_line);
    };
    let assert_changed =
        |folder: &Path, command_line: &str| assert_changed_with_limit(MAX_HASHED_FILES, folder, command_line);
    let folder = create_repository();
    let path = folder.path();
    // Three files already exist.
    run_shell(path, "mkdir many; cd many; seq 47 | xargs touch; git add -A; git commit -qm many");
    assert!(!fingerprint(path).tree_digest.unwrap().starts_with("by-time:"), "so many are looked into");
    run_shell(path, "touch many/48; git add -A; git commit -qm more");
    let first = fingerprint(path);
    assert!(first.head.is_some() && first.tree_digest.as_ref().unwrap().starts_with("by-time:"), "{first:?}");
    assert_unchanged(path, "sleep 0.01; touch a.txt many/7; echo x > PROMPT.md; echo x > a.log");
    assert_changed(path, "echo 10 >> a.txt");
    assert_changed(path, "echo 11 >> a.txt");
    assert_unchanged(path, "git add a.txt");
    assert_changed(path, "rm many/7; echo new > many/new");
    run_shell(path, "git reset -q --hard; rm many/new");
    assert_eq!(fingerprint(path), first);
    assert_unchanged(path, "git add -f PROMPT.md; git commit -qm ours");
    run_shell(path, "rm -rf .git");
    assert!(fingerprint(path).tree_digest.unwrap().starts_with("by-time:"));
    assert_unchanged(path, "true");
    assert_changed(path, "echo 12 >> a.txt");
}

#[test]
fn of_a_large_project_below_the_root_only_its_own_files_count() {
    let folder = create_repository();
    let project = folder.path().join("sub");
    run_shell(folder.path(), "mkdir sub; echo s > sub/s; git add -A; git commit -qm sub");
    let coarse_digest = || coarse_digest::tree_digest_by_size_and_time(&project, &|_| false).unwrap();
    let first = coarse_digest();
    run_shell(folder.path(), "echo 10 >> a.txt");
    assert_eq!(coarse_digest(), first);
    run_shell(folder.path(), "echo t >> sub/s");
    assert_ne!(coarse_digest(), first);
}

#[test]
fn a_file_under_a_filter_counts_as_on_disk_and_the_filter_does_not_run() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(
        path,
        "git config filter.up.clean \"touch '$PWD/a.log'; tr a-z A-Z\"; echo '*.up filter=up' > .gitattributes",
    );
    run_shell(path, "echo one > a.up; git add -A; git commit -qm up");
    assert_eq!(
        crate::run_user_shell_command("git show HEAD:a.up", path, Duration::from_secs(20)).stdout,
        b"ONE\n"
    );
    let marker_file = path.join("a.log");
    std::fs::remove_file(&marker_file).unwrap();
    assert_unchanged(path, "touch -d 2020-01-01 a.up");
    assert_changed(path, "echo two > a.up");
    assert!(!marker_file.exists(), "nobody has run it");
    assert_unchanged(path, "git add -A; git commit -qm two");
}

#[test]
fn no_git_is_started_in_a_nested_repository() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(
        path,
        "git init -q module; cd module; git config user.email a@b; git config user.name n; echo x > x; git add x; git commit -qm x",
    );
    run_shell(
        path,
        "git -c advice.addEmbeddedRepo=false add module; git commit -qm module; git init -q nested; echo x > nested/x; cd nested; git add x",
    );
    let marker_file = path.join("a.log");
    for nested_repository in ["module", "nested"] {
        run_shell(
            path,
            &format!(
                "git -C {nested_repository} config core.fsmonitor \"touch '{}';\"",
                marker_file.display()
            ),
        );
        run_shell(
            path,
            &format!(
                "git -C {nested_repository} config filter.f.clean \"touch '{}'; cat\"; echo '* filter=f' > {nested_repository}/.git/info/attributes",
                marker_file.display()
            ),
        );
        run_shell(path, &format!("touch -d 2020-01-01 {nested_repository}/x"));
    }
    run_shell(path, "git -C module status; test -e a.log; rm a.log");
    assert_changed(path, "echo y > module/x");
    assert_changed(
        path,
        "echo y > nested/y; git -C nested -c filter.f.clean= -c core.fsmonitor=false -c user.name=n -c user.email=e commit -qm x; rm -f a.log",
    );
    let first = coarse_digest::tree_digest_by_size_and_time(path, &|_| false).unwrap();
    run_shell(path, "echo longer > module/x");
    assert_ne!(coarse_digest::tree_digest_by_size_and_time(path, &|_| false).unwrap(), first);
    assert!(!marker_file.exists());
}
