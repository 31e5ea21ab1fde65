use super::*;

pub(crate) fn run_shell(folder: &Path, command_line: &str) -> String {
    let outcome = crate::run_user_shell_command(command_line, folder, Duration::from_secs(20));
    assert!(outcome.succeeded(), "{command_line}: {}", String::from_utf8_lossy(&outcome.stderr));
    String::from_utf8_lossy(&outcome.stdout).into_owned()
}

const INIT: &str = "git init -q -b main && git config user.email a@b && git config user.name n";

/// Creates a repository with one commit of `a.txt`, `b.txt` and `.gitignore`.
pub(crate) fn create_repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    run_shell(folder.path(), INIT);
    run_shell(folder.path(), "seq 9 > a.txt; echo b > b.txt; echo '*.log' > .gitignore");
    run_shell(folder.path(), "git add -A && git commit -qm first");
    folder
}

fn is_own_file(path: &str) -> bool {
    path == "PROMPT.md" || path.starts_with(".claude/plimsoll")
}

pub(super) fn commit_checkpoint(folder: &Path) -> WipCommitOutcome {
    commit_wip(folder, "wip: a checkpoint", &is_own_file, AllowedPrograms::TrustedDrivers)
}

/// Commits with `--commit-hooks`.
fn commit_checkpoint_with_hooks(folder: &Path) -> WipCommitOutcome {
    commit_wip(folder, "wip: a checkpoint", &is_own_file, AllowedPrograms::AllPrograms)
}

/// Commits and returns the number of committed files and the excluded files.
pub(super) fn commit_and_count(folder: &Path) -> (usize, Vec<String>) {
    expect_committed(folder, commit_checkpoint(folder))
}

fn expect_committed(folder: &Path, outcome: WipCommitOutcome) -> (usize, Vec<String>) {
    match outcome {
        WipCommitOutcome::Committed { id, file_count: files, excluded_files: left_out, .. } => {
            assert_eq!(run_shell(folder, "git rev-parse HEAD").trim(), id.as_str());
            (files, left_out)
        }
        result => panic!("{result:?}"),
    }
}

fn expect_refusal_reason(folder: &Path) -> String {
    let head_before = run_shell(folder, "git rev-parse -q --verify HEAD || true");
    match commit_checkpoint_with_hooks(folder) {
        WipCommitOutcome::Refused { reason: why } => {
            assert_eq!(run_shell(folder, "git rev-parse -q --verify HEAD || true"), head_before);
            assert!(why.chars().count() <= 200 && !why.contains('\n'), "{why}");
            why
        }
        result => panic!("{result:?}"),
    }
}

fn status(folder: &Path) -> String {
    run_shell(folder, "git status --short --untracked-files=all")
}

/// Returns the files that the last commit changed.
pub(super) fn files_of_last_commit(folder: &Path) -> String {
    run_shell(folder, "git -c core.quotePath=true show --no-renames --name-status --format= HEAD")
}

fn write_hook(folder: &Path, name: &str, script: &str) {
    let path = folder.join(".git/hooks").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    // Git for Windows starts a hook by its first line.
    #[cfg(unix)]
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn changed_staged_deleted_renamed_and_untracked_files_are_committed() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(
        path,
        "echo 10 >> a.txt; mkdir deep; echo new > deep/new; git mv b.txt c.txt; echo s > s; git add s",
    );
    run_shell(path, "echo x > a.log");
    assert_eq!(commit_and_count(path), (5, vec![]));
    assert_eq!(files_of_last_commit(path), "M\ta.txt\nD\tb.txt\nA\tc.txt\nA\tdeep/new\nA\ts\n");
    assert_eq!(run_shell(path, "git log -1 --format=%B").trim(), "wip: a checkpoint");
    assert_eq!(run_shell(path, "git symbolic-ref HEAD"), "refs/heads/main\n");
    assert_eq!(status(path), "");
    assert_eq!(commit_checkpoint(path), WipCommitOutcome::NothingToCommit);
}

#[test]
fn without_git_or_changes_and_after_a_touch_there_is_nothing_to_commit() {
    let folder = tempfile::tempdir().unwrap();
    run_shell(folder.path(), "echo x > x");
    assert_eq!(commit_checkpoint(folder.path()), WipCommitOutcome::NothingToCommit);
    let folder = create_repository();
    assert_eq!(commit_checkpoint(folder.path()), WipCommitOutcome::NothingToCommit);
    run_shell(folder.path(), "sleep 0.01; touch a.txt; echo x > a.log; mkdir empty");
    assert_eq!(commit_checkpoint(folder.path()), WipCommitOutcome::NothingToCommit);
    assert_eq!(commit_checkpoint(&folder.path().join(".git")), WipCommitOutcome::NothingToCommit);
}

#[test]
fn a_detached_head_and_a_first_commit_are_supported() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(path, "git checkout -q --detach; echo 10 >> a.txt");
    assert_eq!(commit_and_count(path).0, 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    run_shell(path, INIT);
    assert_eq!(commit_checkpoint(path), WipCommitOutcome::NothingToCommit);
    run_shell(
        path,
        "echo a > a; echo b > b; echo gone > gone; echo x > .env; echo x > PROMPT.md; git add a gone; rm gone",
    );
    assert_eq!(commit_and_count(path), (2, vec![".env".to_owned()]));
    assert_eq!(status(path), "AD gone\n?? .env\n?? PROMPT.md\n");
}

#[test]
fn only_files_below_the_folder_are_committed_with_relative_paths() {
    let folder = create_repository();
    let project = folder.path().join("app");
    run_shell(
        folder.path(),
        "mkdir app; echo x > app/x; echo x > app/PROMPT.md; echo 10 >> a.txt; echo n > n; git add n",
    );
    assert_eq!(commit_and_count(&project), (1, vec![]));
    assert_eq!(files_of_last_commit(folder.path()), "A\tapp/x\n");
    assert_eq!(status(folder.path()), " M a.txt\nA  n\n?? app/PROMPT.md\n");
}

#[test]
fn our_own_files_are_never_committed_even_if_the_user_tracks_them() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(path, "echo x > PROMPT.md; git add PROMPT.md; git commit -qm prompt; echo y > PROMPT.md");
    run_shell(path, "mkdir -p .claude/plimsoll; echo x > .claude/plimsoll/x");
    assert_eq!(commit_checkpoint(path), WipCommitOutcome::NothingToCommit);
    run_shell(path, "git add PROMPT.md; echo 10 >> a.txt");
    assert_eq!(commit_and_count(path), (1, vec![]));
    assert_eq!(status(path), "M  PROMPT.md\n?? .claude/plimsoll/x\n");
}

#[test]
fn likely_secrets_and_large_new_files_are_left_out_and_named() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(path, "echo old > tracked.pem; truncate -s 11M big.bin; git add -A; git commit -qm pem");
    run_shell(
        path,
        "echo new > tracked.pem; echo x > .env; echo x > .env.example; mkdir d; echo x > d/id_rsa; ln -s x d/y.key",
    );
    run_shell(path, "printf 'a = \"%s%s\"\\n' 'ghp' '_0123456789abcdefghij0123456789abcdef' > token.py");
    run_shell(path, "truncate -s 11M new.bin; truncate -s 12M big.bin; git add .env");
    let (files, mut left_out) = commit_and_count(path);
    left_out.sort();
    assert_eq!(left_out, [".env", "d/id_rsa", "d/y.key", "new.bin", "token.py", "tracked.pem"]);
    assert_eq!(files, 2);
    assert_eq!(files_of_last_commit(path), "A\t.env.example\nM\tbig.bin\n");
    assert_eq!(commit_checkpoint(path), WipCommitOutcome::NothingToCommit, "only left-out files are left");
    assert!(status(path).contains("A  .env\n"));
}

#[test]
fn special_files_and_nested_repositories_are_left_out() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(
        path,
        "git init -q inner; cd inner; git -c user.name=n -c user.email=e commit -q --allow-empty -m x",
    );
    run_shell(path, "rm b.txt; mkfifo b.txt; echo 10 >> a.txt");
    let (files, left_out) = commit_and_count(path);
    assert_eq!((files, left_out), (1, vec!["b.txt".to_owned(), "inner/".to_owned()]));
}

#[test]
fn a_file_removed_from_the_index_stays_out_of_it() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(path, "git rm -q --cached b.txt; echo 10 >> a.txt");
    assert_eq!(commit_and_count(path), (1, vec!["b.txt".to_owned()]));
    assert_eq!(status(path), "D  b.txt\n?? b.txt\n");
    run_shell(path, "echo b.txt >> .gitignore");
    assert_eq!(commit_and_count(path), (1, vec!["b.txt".to_owned()]));
    assert_eq!(status(path), "D  b.txt\n");
}

#[test]
fn other_staged_changes_stay_staged() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(
        path,
        "echo x > .env; git add .env; echo y > .env; echo 10 >> a.txt; echo gone > gone; git add gone; rm gone",
    );
    assert_eq!(commit_and_count(path), (1, vec![".env".to_owned()]));
    assert_eq!(status(path), "AM .env\nAD gone\n");
    assert_eq!(run_shell(path, "git show :.env"), "x\n");
    // Staged, and undone again in the working tree: a commit could contain nothing of it.
    run_shell(path, "echo 11 >> a.txt; git add a.txt; git show HEAD:a.txt > a.txt");
    assert_eq!(commit_checkpoint(path), WipCommitOutcome::NothingToCommit);
    assert_eq!(status(path), "AM .env\nMM a.txt\nAD gone\n");
}

#[test]
fn nothing_is_committed_during_a_merge_rebase_or_the_like() {
    let conflict = "git checkout -q -b other; echo o > b.txt; git commit -qam other; git checkout -q main; \
                    echo m > b.txt; git commit -qam main; ";
    let operations = [
        ("git merge other", "a merge"),
        ("git rebase other", "a rebase"),
        ("git cherry-pick other", "a cherry-pick"),
        ("git revert HEAD~1", "a revert"),
        ("git format-patch -q --stdout main..other > ../p.log; git am ../p.log", "git am"),
        ("git bisect start", "a bisect"),
        ("git stash push -q; git checkout -q other; git stash pop", "conflicts"),
    ];
    for (line, operation) in operations {
        let outer = tempfile::tempdir().unwrap();
        let path = &outer.path().join("p");
        std::fs::create_dir(path).unwrap();
        run_shell(path, INIT);
        run_shell(path, "echo b > b.txt; git add -A; git commit -qm first; git commit -q --allow-empty -m x");
        run_shell(path, conflict);
        run_shell(path, if operation == "a revert" { "echo n > b.txt; git commit -qam n" } else { "true" });
        run_shell(path, if operation == "conflicts" { "echo z > b.txt" } else { "true" });
        run_shell(path, &format!("({line}) || true; echo new > new"));
        let status_before = status(path);
        let reason = expect_refusal_reason(path);
        assert!(reason.contains(operation), "{line}: {reason}");
        assert_eq!(status(path), status_before, "{line}");
    }
}

#[test]
fn every_possible_file_name_is_committed_and_matches_only_itself() {
    let folder = create_repository();
    let path = folder.path();
    let names =
        ["'with space'", "'new\nline'", "\"$(printf 'not\\377utf')\"", "'-dash'", "'ü'", "'*'", "'[ab].txt'"];
    for name in names.iter().chain(&["':(glob)**'", "':!a.txt'", "'\"quoted\\'"]) {
        run_shell(path, &format!("echo one > ./{name}"));
    }
    run_shell(path, "mkdir x; echo x > x/.env");
    assert_eq!(commit_and_count(path), (10, vec!["x/.env".to_owned()]));
    assert_eq!(status(path), "?? x/.env\n");
    run_shell(path, "rm ./'*' ./-dash; echo two > \"$(printf 'not\\377utf')\"; echo two > ./':(glob)**'");
    run_shell(path, "git mv 'with space' '[renamed]'");
    assert_eq!(commit_and_count(path).0, 6);
    assert_eq!(status(path), "?? x/.env\n");
}

#[test]
fn files_and_folders_that_replaced_each_other_are_committed() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(path, "mkdir d; echo x > d/x; git add -A; git commit -qm d; ln -s a.txt link");
    run_shell(path, "rm b.txt; mkdir b.txt; echo in > b.txt/in; rm -r d; echo d > d");
    commit_and_count(path);
    assert_eq!(status(path), "");
    assert_eq!(files_of_last_commit(path), "D\tb.txt\nA\tb.txt/in\nA\td\nD\td/x\nA\tlink\n");
}

#[test]
fn hooks_run_if_the_user_allows_them() {
    let folder = create_repository();
    let path = folder.path();
    write_hook(path, "pre-commit", "git diff --cached --name-only -- '*.js' > seen.log; cat >> seen.log");
    write_hook(path, "post-commit", "exit 1");
    run_shell(path, "echo x > x.js; echo x > x.css");
    assert_eq!(expect_committed(path, commit_checkpoint_with_hooks(path)).0, 2);
    assert_eq!(run_shell(path, "cat seen.log"), "x.js\n");
    // A hook that changes the files of the commit.
    write_hook(path, "pre-commit", "echo tidied > x.js; git add x.js");
    run_shell(path, "echo y > x.js");
    assert_eq!(expect_committed(path, commit_checkpoint_with_hooks(path)).0, 1);
    assert_eq!(run_shell(path, "git show HEAD:x.js"), "tidied\n");
}

#[test]
fn a_refusing_hook_changes_nothing_and_its_last_line_is_reported() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(
        path,
        "echo s > s; git add s; echo S > s; echo 10 >> a.txt; echo new > new; rm b.txt; mkdir b.txt; echo x > b.txt/in",
    );
    let state_before = (status(path), run_shell(path, "git ls-files --stage"));
    write_hook(
        path,
        "pre-commit",
        "echo first; printf '\\033[31mlint:\\033[0m no %s\\n' \"$(seq -s, 200)\" >&2; exit 1",
    );
    let reason = expect_refusal_reason(path);
    assert!(reason.starts_with("lint: no 1,2,3"), "{reason}");
    assert_eq!((status(path), run_shell(path, "git ls-files --stage")), state_before);
    assert_eq!(run_shell(path, "cat new"), "new\n");
    // If another program writes the index meanwhile, its part stays.
    let script = "cp .git/index .git/i; GIT_INDEX_FILE=.git/i git add -f x.log; mv .git/i .git/index; exit 1";
    run_shell(path, "echo x > x.log");
    write_hook(path, "pre-commit", script);
    let _ = expect_refusal_reason(path);
    assert!(status(path).contains("?? new\n") && status(path).contains("A  x.log\n"), "{}", status(path));
}

#[test]
fn without_an_identity_or_with_a_locked_index_nothing_changes() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(path, "echo 10 >> a.txt; echo new > new");
    let state_before = (status(path), run_shell(path, "git ls-files --stage"));
    run_shell(path, "git config user.name ''");
    let reason = expect_refusal_reason(path);
    assert!(reason.contains("empty ident name"), "{reason}");
    assert_eq!((status(path), run_shell(path, "git ls-files --stage")), state_before);
    run_shell(path, "git config user.name n; git config user.email a@b; touch .git/index.lock");
    assert!(expect_refusal_reason(path).contains("index.lock"));
    run_shell(path, "test -f .git/index.lock && rm .git/index.lock");
    assert_eq!((status(path), run_shell(path, "git ls-files --stage")), state_before);
    assert_eq!(commit_and_count(path).0, 2);
}

#[test]
fn a_first_commit_that_fails_leaves_no_index_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    run_shell(path, INIT);
    run_shell(path, "echo a > a");
    write_hook(path, "pre-commit", "exit 1");
    let _ = expect_refusal_reason(path);
    assert_eq!(status(path), "?? a\n");
    assert!(!path.join(".git/index").exists() && !path.join(".git/index.lock").exists());
}

#[test]
fn a_hanging_hook_is_ended_at_the_timeout_and_may_clean_up() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(path, "echo 10 >> a.txt; echo new > new");
    let state_before = (status(path), run_shell(path, "git ls-files --stage"));
    write_hook(path, "pre-commit", "trap 'sleep 0.3; echo tidy > tidy.log; exit 1' TERM; sleep 60 & wait");
    let started_at = Instant::now();
    let outcome = commit_wip_with_timeout(
        path,
        "wip",
        &is_own_file,
        AllowedPrograms::AllPrograms,
        Duration::from_millis(500),
    );
    assert_eq!(outcome, WipCommitOutcome::Refused { reason: "the commit took longer than 0 seconds".into() });
    assert!(started_at.elapsed() < Duration::from_secs(15));
    assert_eq!(run_shell(path, "cat tidy.log"), "tidy\n");
    assert_eq!((status(path), run_shell(path, "git ls-files --stage")), state_before);
    assert!(!path.join(".git/index.lock").exists());
    // A commit that exists counts, whatever its hooks do afterwards.
    write_hook(path, "pre-commit", "exit 0");
    write_hook(path, "post-commit", "sleep 60");
    let outcome = commit_wip_with_timeout(
        path,
        "wip",
        &is_own_file,
        AllowedPrograms::AllPrograms,
        Duration::from_secs(2),
    );
    assert!(matches!(outcome, WipCommitOutcome::Committed { file_count: 2, .. }), "{outcome:?}");
    assert_eq!(status(path), "");
}

#[test]
fn the_commit_message_is_used_unchanged() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(path, "echo 10 >> a.txt");
    let message = "-wip \"$HOME\"\n\nsecond line";
    assert!(matches!(
        commit_wip(path, message, &is_own_file, AllowedPrograms::TrustedDrivers),
        WipCommitOutcome::Committed { .. }
    ));
    assert_eq!(run_shell(path, "git log -1 --format=%B").trim(), message);
}

#[test]
fn of_a_submodule_only_its_commit_is_committed() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(
        path,
        "git init -q sub; cd sub; git config user.email a@b; git config user.name n; echo x > x; git add x; git commit -qm x",
    );
    run_shell(
        path,
        "git -c advice.addEmbeddedRepo=false add sub; git commit -qm sub; echo y > sub/x; echo z > sub/z",
    );
    assert_eq!(commit_checkpoint(path), WipCommitOutcome::NothingToCommit);
    run_shell(path, "cd sub; git commit -qam y");
    assert_eq!(commit_and_count(path), (1, vec![]));
    assert_eq!(files_of_last_commit(path), "M\tsub\n");
}

/// A filter that stores upper case.
const CONFIGURE_UPPERCASE_FILTER: &str = "git config filter.up.clean 'tr a-z A-Z'; ";

#[test]
fn a_file_is_committed_through_its_filter() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(
        path,
        &format!(
            "{CONFIGURE_UPPERCASE_FILTER} echo '*.up filter=up' > .gitattributes; echo one > new.up; echo two > a.txt"
        ),
    );
    assert_eq!(commit_and_count(path), (3, vec![]));
    assert_eq!(run_shell(path, "git show HEAD:new.up; git show HEAD:a.txt"), "ONE\ntwo\n");
    run_shell(path, "sleep 0.01; touch new.up");
    assert_eq!(
        commit_checkpoint(path),
        WipCommitOutcome::NothingToCommit,
        "its filter says that nothing has changed"
    );
}

#[test]
fn a_file_whose_filter_fails_is_missing_or_was_removed_is_left_out() {
    for (line, left_out) in [
        ("git config filter.f.clean false", &["b.f", "c.f"][..]),
        ("git config filter.f.clean 'grep -v b'", &["b.f", "c.f"]),
        ("git config filter.f.process false; git config filter.f.required true", &["b.f", "c.f"]),
        ("true", &["b.f", "c.f"]),
        ("git config filter.f.smudge cat", &["b.f", "c.f"]),
        ("git config filter.f.clean ''", &["b.f", "c.f"]),
        ("git config filter.f.clean cat", &[]),
    ] {
        let folder = create_repository();
        let path = folder.path();
        run_shell(path, "echo '*.f filter=f' > .gitattributes; echo b > b.f; git add -A; git commit -qm b");
        run_shell(path, line);
        // The same length: git has to compare the contents.
        run_shell(
            path,
            "echo x > a.txt; echo b > new; echo c > c.f; printf 'b' > b.f; echo >> b.f; touch -d 2020-01-01 b.f; echo bb > b.f",
        );
        let (files, mut left_out_files) = commit_and_count(path);
        left_out_files.sort();
        assert_eq!(
            (files, left_out_files.iter().map(String::as_str).collect::<Vec<_>>()),
            (4 - left_out.len(), left_out.to_vec()),
            "{line}"
        );
        let tree = run_shell(path, "git ls-tree -r --name-only HEAD");
        assert_eq!(tree.contains("c.f"), left_out.is_empty(), "{line}: {tree}");
    }
    let folder = create_repository();
    let path = folder.path();
    run_shell(
        path,
        &format!(
            "{CONFIGURE_UPPERCASE_FILTER} echo '*.up filter=up' > .gitattributes; echo a > a.up; git add -A; git commit -qm up"
        ),
    );
    for change in [
        "echo > .gitattributes",
        "rm .gitattributes",
        "ln -sf /dev/null .gitattributes",
        "echo >> .gitattributes; echo '*.up -filter' > .git/info/attributes",
    ] {
        run_shell(path, &format!("{change}; echo in the clear > a.up; echo new > new.up"));
        let (files, mut left_out) = commit_and_count(path);
        left_out.sort();
        assert_eq!((files, left_out), (1, vec!["a.up".to_owned(), "new.up".to_owned()]), "{change}");
        run_shell(path, "git reset -q --hard HEAD~1");
    }
}

#[test]
fn files_are_left_out_if_the_attributes_of_head_cannot_be_read() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(
        path,
        &format!(
            "{CONFIGURE_UPPERCASE_FILTER} mkdir -p in/side; echo '*.up filter=up' > in/.gitattributes; echo a > in/side/a.up; git add -A; git commit -qm up"
        ),
    );
    run_shell(
        path,
        "id=$(git rev-parse HEAD:in/.gitattributes); rm -f .git/objects/$(echo $id | sed 's,^..,&/,')",
    );
    run_shell(path, "rm in/.gitattributes; echo in the clear > in/side/a.up");
    let (_, left_out) = commit_and_count(path);
    assert_eq!(left_out, ["in/side/a.up"]);
    assert_eq!(run_shell(path, "git show HEAD:in/side/a.up"), "A\n");
    assert_eq!(run_shell(path, "ls .git | grep -c plimsoll || true"), "0\n", "no index of ours stays");
}

#[test]
fn a_failing_filter_does_not_prevent_the_commit_of_other_files() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(
        path,
        "git config filter.f.clean cat; echo '*.f filter=f' > .gitattributes; echo b > b.f; git add -A; git commit -qm b",
    );
    run_shell(path, "git config filter.f.clean false; git config filter.f.required true");
    run_shell(path, "echo c > b.f; touch -d 2020-01-01 b.f; echo 10 >> a.txt");
    assert_eq!(commit_and_count(path), (1, vec!["b.f".to_owned()]));
    assert_eq!(run_shell(path, "git show HEAD:b.f"), "b\n");
}

#[test]
fn nothing_runs_in_a_repository_that_was_created_during_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let run_shell = |line: &str| {
        let outcome = crate::run_user_shell_command(line, &path, Duration::from_secs(20));
        assert!(outcome.succeeded(), "{line}: {}", String::from_utf8_lossy(&outcome.stderr));
    };
    run_shell(
        "git init -q -b main; git config user.email a@b; git config user.name n; echo a > a; git add -A; git commit -qm First",
    );
    let marker_name = format!("sprung-{}", path.file_name().unwrap().to_string_lossy());
    let program = path.join(".git/trap.sh");
    run_shell(&format!(
        "printf '#!/bin/sh\\ntouch {}/{marker_name}\\ncat\\n' > {}; chmod +x {}",
        path.parent().unwrap().display(),
        program.display(),
        program.display()
    ));
    for hook in [
        "pre-commit",
        "commit-msg",
        "post-commit",
        "prepare-commit-msg",
        "post-index-change",
        "reference-transaction",
    ] {
        run_shell(&format!("cp .git/trap.sh .git/hooks/{hook}"));
    }
    run_shell(
        "for key in filter.evil.clean filter.evil.process core.fsmonitor gpg.program core.editor diff.external; do git -c core.hooksPath= config $key $PWD/.git/trap.sh; done; git config commit.gpgSign true; git config filter.evil.required true",
    );
    run_shell("echo '*.x filter=evil' > .gitattributes; echo x > b.x; echo new > c; echo more >> a");
    let marker_file = path.parent().unwrap().join(&marker_name);
    let _ = std::fs::remove_file(&marker_file);
    let outcome = commit_wip(&path, "wip", &|_| false, AllowedPrograms::NoPrograms);
    assert!(!marker_file.exists(), "{outcome:?}");
    let WipCommitOutcome::Committed { file_count: files, excluded_files: left_out, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!((files, left_out.len()), (3, 1), "{left_out:?}");
    assert!(left_out[0].contains("b.x"), "{left_out:?}");
    // The same traps work if the user allows all programs.
    let outcome = commit_wip(&path, "wip", &|_| false, AllowedPrograms::AllPrograms);
    assert!(marker_file.exists(), "{outcome:?}");
    let _ = std::fs::remove_file(&marker_file);
}

/// Attacks: files that a session in the sandbox can write, and what would start them at a commit. `LOG` is a
/// file outside of the project.
const ATTACKS: [(&str, &str); 12] = [
    (
        "a folder of hooks in the tree",
        "git config core.hooksPath .husky; mkdir .husky; TRAP .husky/pre-commit",
    ),
    (
        "a hook that calls a script of the tree",
        "mkdir tools; TRAP tools/lint; HOOK pre-commit 'sh tools/lint'",
    ),
    ("a hook after the commit", "mkdir tools; TRAP tools/lint; HOOK post-commit 'sh tools/lint'"),
    ("a hook for references", "mkdir tools; TRAP tools/lint; HOOK reference-transaction 'sh tools/lint'"),
    ("a hook for the index", "mkdir tools; TRAP tools/lint; HOOK post-index-change 'sh tools/lint'"),
    ("lefthook", "TRAP lefthook.sh; HOOK pre-commit 'sh ./lefthook.sh run pre-commit'"),
    (
        "pre-commit",
        "TRAP local-hook; HOOK prepare-commit-msg 'sh ./local-hook'; printf 'repos: []' > .pre-commit-config.yaml",
    ),
    (
        "a filter that is a script of the tree",
        "mkdir tools; TRAP tools/clean.sh; git config filter.x.clean 'sh tools/clean.sh'",
    ),
    (
        "a filter process",
        "TRAP clean.sh; git config filter.x.process ./clean.sh; git config filter.x.required true",
    ),
    ("a monitor of files", "TRAP monitor; git config core.fsmonitor $PWD/monitor"),
    (
        "settings of the worktree",
        "git config extensions.worktreeConfig true; TRAP clean.sh; git config --worktree filter.x.clean 'cat; sh -c \"touch LOG\"'",
    ),
    ("a signing program", "TRAP sign; git config gpg.program ./sign; git config commit.gpgSign true"),
];

#[test]
fn a_commit_runs_nothing_that_a_session_can_have_written() {
    for (name, attack) in ATTACKS {
        let outside = tempfile::tempdir().unwrap();
        let log = outside.path().join("ran");
        let folder = create_repository();
        let path = folder.path();
        let script = "printf '#!/bin/sh\\ntouch LOG\\ncat\\n'";
        let mut lines = String::new();
        for line in attack.split("; ") {
            let line = match line.split_once(' ') {
                Some(("TRAP", file)) => format!("{script} > {file} && chmod +x {file}"),
                Some(("HOOK", rest)) => {
                    let (hook, command) = rest.split_once(' ').unwrap();
                    let command = command.trim_matches('\'');
                    format!(
                        "printf '#!/bin/sh\\n{command} </dev/null\\n' > .git/hooks/{hook} && chmod +x .git/hooks/{hook}"
                    )
                }
                _ => line.to_owned(),
            };
            lines += &format!("{line}\n");
        }
        run_shell(path, &lines.replace("LOG", &log.to_string_lossy()));
        run_shell(path, "echo '*.x filter=x' > .git/info/attributes; echo secret > b.x; echo more >> a.txt");
        let _ = std::fs::remove_file(&log);
        let outcome = commit_checkpoint(path);
        assert!(!log.exists(), "{name}: it ran");
        let WipCommitOutcome::Committed { excluded_files: left_out, forbidden_filters, .. } = outcome else {
            panic!("{name}: {outcome:?}")
        };
        // Nothing is committed unfiltered.
        assert_eq!(left_out, ["b.x"], "{name}");
        let is_configured = attack.contains("filter.x");
        assert_eq!(forbidden_filters, if is_configured { vec!["x"] } else { Vec::new() }, "{name}");
        // The trap works: it is triggered by git itself or with the user's permission.
        run_shell(path, "echo again >> a.txt");
        let _ = commit_checkpoint_with_hooks(path);
        let _ = crate::run_user_shell_command(
            "git add -A; git commit -qm all; git status",
            path,
            Duration::from_secs(20),
        );
        assert!(log.exists(), "{name}: the trap is none");
    }
}

#[test]
fn a_commit_takes_no_file_from_outside_the_working_tree() {
    let outside = tempfile::tempdir().unwrap();
    run_shell(outside.path(), "echo private > a.txt; echo private > c.txt");
    let folder = create_repository();
    let path = folder.path();
    run_shell(path, "git config extensions.worktreeConfig true; echo more >> a.txt");
    run_shell(path, &format!("git config --worktree core.worktree '{}'", outside.path().display()));
    assert_eq!(commit_and_count(path), (1, vec![]));
    run_shell(path, "git config --worktree --unset core.worktree");
    assert!(
        !run_shell(path, "git show HEAD:a.txt; git ls-tree HEAD").contains("private"),
        "{}",
        files_of_last_commit(path)
    );
    assert_eq!(files_of_last_commit(path), "M\ta.txt\n");
}

#[test]
fn replaced_objects_and_grafts_do_not_change_what_is_committed() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(
        path,
        "git replace $(git rev-parse HEAD:b.txt) $(echo evil | git hash-object -w --stdin); echo more >> a.txt",
    );
    assert_eq!(commit_and_count(path), (1, vec![]));
    assert_eq!(run_shell(path, "GIT_NO_REPLACE_OBJECTS=1 git show HEAD:b.txt"), "b\n");
}
