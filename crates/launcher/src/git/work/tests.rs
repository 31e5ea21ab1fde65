use super::*;
use crate::git::head;
use std::time::Duration;

fn sh(folder: &Path, line: &str) {
    let outcome = crate::shell(line, folder, Duration::from_secs(20));
    assert!(outcome.succeeded(), "{line}: {}", String::from_utf8_lossy(&outcome.stderr));
}

fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    sh(folder.path(), "git init -q -b main && git config user.email a@b && git config user.name n");
    folder
}

fn named(work: &Work) -> Vec<(String, String, String, bool)> {
    let lines = |file: &ChangedFile| {
        join(&file.hunks.iter().map(|hunk| (hunk.first, hunk.last)).collect::<Vec<_>>(), None)
    };
    work.files
        .iter()
        .map(|file| (file.path.clone(), lines(file), file.change.clone(), file.is_committed))
        .collect()
}

fn row(path: &str, lines: &str, change: &str, is_committed: bool) -> (String, String, String, bool) {
    (path.to_owned(), lines.to_owned(), change.to_owned(), is_committed)
}

#[test]
fn uncommitted_files_are_named_with_their_lines_whoever_changed_them() {
    let folder = repository();
    sh(
        folder.path(),
        "seq 1 100 > a.txt && seq 1 10 > 'spaced name.txt' && git add -A && git commit -qm first",
    );
    sh(
        folder.path(),
        "sed -i '45,50s/$/x/; 90s/$/x/' a.txt && echo 11 >> 'spaced name.txt' && echo new > new.txt",
    );
    let work = work(folder.path(), Since::Head, &[]).unwrap();
    assert_eq!((work.facts.branch.as_str(), work.facts.subject.as_str()), ("main", "first"));
    assert_eq!(
        named(&work),
        [
            row("a.txt", "45-50, 90", "modified", false),
            row("spaced name.txt", "11", "modified", false),
            row("new.txt", "", "new, untracked", false)
        ]
    );
}

#[test]
fn what_was_committed_is_named_too_by_its_newest_commit_also_below_the_root() {
    let folder = repository();
    let project = folder.path().join("app");
    sh(
        folder.path(),
        "mkdir app && seq 1 100 > app/a.txt && seq 1 9 > app/b.txt && git add -A && git commit -qm first",
    );
    let start = head(&project).unwrap();
    sh(
        &project,
        "sed -i '10,20s/$/x/' a.txt && git commit -qam one && sed -i '30s/$/x/' a.txt && git commit -qam 'wip: two' \
         && sed -i '5s/$/y/' b.txt && echo > ../outside.txt",
    );
    let found = work(&project, Since::Commit(&start), &[]).unwrap();
    assert_eq!(
        named(&found),
        [row("b.txt", "5", "modified", false), row("a.txt", "30", "modified", true)],
        "the lines of the last commit, not of all"
    );
    let subjects: Vec<(&str, bool)> =
        found.commits.iter().map(|one| (one.subject.as_str(), one.is_work_in_progress())).collect();
    assert_eq!(subjects, [("wip: two", true), ("one", false)]);
    let unknown = work(
        &project,
        Since::Commit(&CommitId::parse("0000000000000000000000000000000000000000").unwrap()),
        &[],
    )
    .unwrap();
    assert_eq!(unknown.files.len(), 1, "an unknown commit is not asked about");
}

#[test]
fn a_file_that_was_committed_and_edited_again_has_the_lines_of_the_edit() {
    let folder = repository();
    sh(folder.path(), "git commit -q --allow-empty -m first");
    let start = head(folder.path()).unwrap();
    sh(folder.path(), "seq 1 200 > a.ts && git add -A && git commit -qm create && sed -i '45,90s/$/x/' a.ts");
    let work = work(folder.path(), Since::Commit(&start), &[]).unwrap();
    assert_eq!(named(&work), [row("a.ts", "45-90", "modified", false)]);
}

#[test]
fn renamed_and_deleted_files_are_known_under_the_name_they_have_now() {
    let folder = repository();
    sh(folder.path(), "seq 1 50 > old.txt && seq 1 9 > gone.txt && git add -A && git commit -qm first");
    let start = head(folder.path()).unwrap();
    sh(
        folder.path(),
        "sed -i '3s/$/x/' old.txt && git commit -qam edit && git mv old.txt new.txt && git commit -qm move \
         && git rm -q gone.txt && git commit -qm remove",
    );
    let work = work(folder.path(), Since::Commit(&start), &[]).unwrap();
    assert_eq!(
        named(&work),
        [row("gone.txt", "1", "deleted", true), row("new.txt", "", "renamed from old.txt", true)]
    );
    assert!(work.files[0].is_gone && !work.files[1].is_gone);
}

#[test]
fn a_hunk_says_which_function_it_belongs_to() {
    let folder = repository();
    let text = "fn one() {\\n    1;\\n    2;\\n}\\n\\nfn two() {\\n    3;\\n}\\n";
    sh(folder.path(), &format!("printf '{text}' > a.rs && git add -A && git commit -qm first"));
    sh(folder.path(), "sed -i '2s/1/9/' a.rs && printf 'fn three() {\\n    5;\\n}\\n' >> a.rs");
    let work = work(folder.path(), Since::Head, &[]).unwrap();
    let headings: Vec<&str> = work.files[0].hunks.iter().map(|hunk| hunk.heading.as_str()).collect();
    assert_eq!(headings, ["fn one()", "fn three()"]);
}

#[test]
fn the_history_of_one_file_has_the_lines_of_each_commit() {
    let folder = repository();
    sh(folder.path(), "printf -- '- [ ] one\\n- [ ] two\\n' > plan.md && git add -A && git commit -qm first");
    let start = head(folder.path()).unwrap();
    sh(
        folder.path(),
        "sed -i '1s/ \\]/x]/' plan.md && echo a > a && git add -A && git commit -qm one && echo b > b && git add -A && git commit -qm b",
    );
    let history = history_of(folder.path(), Since::Commit(&start), &RepoPath::parse("plan.md").unwrap());
    assert_eq!(history.len(), 1);
    assert_eq!(
        (history[0].added.as_slice(), history[0].removed.as_slice()),
        (&["- [x] one".to_owned()][..], &["- [ ] one".to_owned()][..])
    );
    assert!(history_of(folder.path(), Since::Head, &RepoPath::parse("plan.md").unwrap()).is_empty());
}

#[test]
fn a_repository_without_commits_and_no_repository_at_all_are_no_errors() {
    let folder = repository();
    sh(folder.path(), "echo x > a");
    let found = work(folder.path(), Since::Beginning, &[]).unwrap();
    assert_eq!((found.facts.head.clone(), found.files.len()), (None, 1));
    sh(folder.path(), "git add -A && git commit -qm one");
    let found = work(folder.path(), Since::Beginning, &[]).unwrap();
    assert_eq!(named(&found), [row("a", "1", "new", true)]);
    assert!(work(tempfile::tempdir().unwrap().path(), Since::Head, &[]).is_none());
}

#[test]
fn ranges_that_touch_are_one_and_many_are_shortened() {
    assert_eq!(join(&[(1, 2), (4, 9), (20, 20)], None), "1-9, 20");
    let many: Vec<(u64, u64)> = (0..20).map(|n| (n * 10 + 1, n * 10 + 1)).collect();
    let last = "81, 91, 101, 111, 121, 131, 141, 151, 161, 171, 181, 191";
    assert_eq!(join(&many, None), format!("…, {last}"));
    assert_eq!(join(&many, Some((141, 141))), format!("…, {last}"));
    assert_eq!(join(&many, Some((21, 21))), format!("…, 21, …, {last}"));
    assert_eq!(join(&many, Some((71, 71))), format!("…, 71, {last}"));
}
