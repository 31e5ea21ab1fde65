use super::*;
use crate::git::head;
use plimsoll_domain::state::BaseRelation;
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

fn counted(work: &Work) -> Vec<(&str, Option<(u64, u64)>)> {
    let counts = |file: &ChangedFile| file.counts.map(|counts| (counts.added, counts.removed));
    let mut rows: Vec<_> = work.files.iter().map(|file| (file.path.as_str(), counts(file))).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn a_file_is_counted_over_all_of_the_work_and_not_over_its_newest_change() {
    let folder = repository();
    sh(
        folder.path(),
        "seq 10 > a; seq 10 > b; seq 10 > gone; seq 10 > reverted; seq 100 > old; printf '\\0' > image; git add -A; git commit -qm first",
    );
    let start = head(folder.path()).unwrap();
    sh(
        folder.path(),
        "sed -i 1,3d a; echo x >> reverted; git mv old 'new name'; echo 1 >> 'new name'; printf '\\0\\1' > image; git add -A; git commit -qm one; \
         seq 3 >> a; sed -i '$d' reverted; seq 5 > made; git add -A; git commit -qm two; \
         sed -i 1d a; echo 1 >> b; rm gone; echo 1 >> made; seq 4 > untracked",
    );
    let work = work(folder.path(), Since::Commit(&start), &[]).unwrap();
    let expected = [
        ("a", Some((3, 4))),
        ("b", Some((1, 0))),
        ("gone", Some((0, 10))),
        ("image", None),
        ("made", Some((6, 0))),
        ("new name", Some((1, 0))),
        ("reverted", Some((0, 0))),
        // Whoever asks counts the lines of the file itself.
        ("untracked", None),
    ];
    assert_eq!(counted(&work), expected);
}

#[test]
fn after_an_amended_or_rebased_base_only_what_differs_from_it_is_work() {
    for (rewrite, expected) in [
        ("echo 1 >> a; git commit -qa --amend -m again", vec![("a", Some((1, 0)))]),
        (
            "echo 1 >> a; git commit -qam work; git rebase -q --onto HEAD~2 HEAD~1 2>/dev/null",
            vec![("a", Some((1, 0))), ("b", Some((0, 4)))],
        ),
        ("git reset -q --hard HEAD~1; echo 1 >> a", vec![("a", Some((1, 0))), ("b", Some((0, 4)))]),
    ] {
        let folder = repository();
        sh(
            folder.path(),
            "seq 10 > a; seq 3 > b; git add -A; git commit -qm first; seq 7 > b; git commit -qam base",
        );
        let base = head(folder.path()).unwrap();
        sh(folder.path(), rewrite);
        assert_eq!(crate::git::base_relation(folder.path(), &base), BaseRelation::Rewritten, "{rewrite}");
        let work = work(folder.path(), Since::Rewritten(&base), &[]).unwrap();
        assert_eq!(counted(&work), expected, "{rewrite}");
    }
}

#[test]
fn a_base_is_an_ancestor_rewritten_or_missing() {
    let folder = repository();
    sh(folder.path(), "echo 1 > a; git add -A; git commit -qm first");
    let first = head(folder.path()).unwrap();
    assert_eq!(crate::git::base_relation(folder.path(), &first), BaseRelation::Ancestor);
    sh(folder.path(), "echo 2 > a; git commit -qam second");
    assert_eq!(crate::git::base_relation(folder.path(), &first), BaseRelation::Ancestor);
    sh(folder.path(), "git commit -q --amend -m other; git checkout -q --orphan new; git commit -qm new");
    assert_eq!(crate::git::base_relation(folder.path(), &first), BaseRelation::Rewritten);
    let unknown = CommitId::parse("0000000000000000000000000000000000000001").unwrap();
    assert_eq!(crate::git::base_relation(folder.path(), &unknown), BaseRelation::Missing);
}

#[test]
fn work_since_before_the_first_commit_is_counted_too_and_commits_by_others_are_marked() {
    let folder = repository();
    sh(folder.path(), "seq 4 > a; git add -A; git commit -qm one; echo 5 >> a");
    let all = work(folder.path(), Since::Beginning, &[]).unwrap();
    assert_eq!(counted(&all), [("a", Some((5, 0)))]);
    let start = head(folder.path()).unwrap();
    sh(folder.path(), "git commit -qam own; echo 6 >> a; echo 1 > theirs; git add -A; git commit -qm others");
    let others = head(folder.path()).unwrap().to_string();
    let own = work(folder.path(), Since::Commit(&start), &[others]).unwrap();
    assert_eq!(counted(&own), [("a", Some((2, 0)))]);
    assert!(own.files[0].is_also_by_others);
}

#[test]
fn a_submodule_has_no_lines_and_a_filtered_file_no_count_that_would_be_wrong() {
    let folder = repository();
    sh(
        folder.path(),
        "git init -q -b main sub && cd sub && git config user.email a@b && git config user.name n && echo 1 > x && git add x && \
         git commit -qm x && cd .. && git -c advice.addEmbeddedRepo=false add sub && git commit -qm first && cd sub && git commit -q --allow-empty -m y",
    );
    let start = head(folder.path()).unwrap();
    let uncommitted = work(folder.path(), Since::Head, &[]).unwrap();
    sh(folder.path(), "git commit -qam second");
    let committed = work(folder.path(), Since::Commit(&start), &[]).unwrap();
    for found in [uncommitted, committed] {
        assert_eq!(counted(&found), [("sub", None)]);
        assert!(found.files[0].hunks.is_empty() && found.files[0].change == SUBMODULE, "{found:?}");
    }
    let folder = repository();
    sh(
        folder.path(),
        "git config filter.up.clean 'tr a-z A-Z'; git config filter.up.smudge 'tr A-Z a-z'; echo '*.up filter=up' > .gitattributes; \
         printf 'a\\nb\\n' > x.up; git add -A; git commit -qm first",
    );
    let start = head(folder.path()).unwrap();
    sh(
        folder.path(),
        "echo c >> x.up; git commit -qam second; echo 1 > plain; git add plain; git commit -qm third; echo d >> x.up",
    );
    let found = work(folder.path(), Since::Commit(&start), &[]).unwrap();
    assert_eq!(counted(&found), [("plain", Some((1, 0))), ("x.up", None)]);
}
