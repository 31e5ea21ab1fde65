use super::*;
use crate::git::head_commit;
use plimsoll_domain::state::BaseRelation;
use std::time::Duration;

fn run_shell(folder: &Path, command_line: &str) {
    let outcome = crate::run_user_shell_command(command_line, folder, Duration::from_secs(20));
    assert!(outcome.succeeded(), "{command_line}: {}", String::from_utf8_lossy(&outcome.stderr));
}

fn create_repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    run_shell(folder.path(), "git init -q -b main && git config user.email a@b && git config user.name n");
    folder
}

fn file_rows(work: &WorkSummary) -> Vec<(String, String, String, bool)> {
    let format_lines = |file: &ChangedFile| {
        format_last_merged_ranges_keeping_edited(
            &file.hunks.iter().map(|hunk| (hunk.first_line, hunk.last_line)).collect::<Vec<_>>(),
            None,
        )
    };
    work.files
        .iter()
        .map(|file| (file.path.clone(), format_lines(file), file.change_kind.clone(), file.is_committed))
        .collect()
}

fn row(path: &str, lines: &str, change: &str, is_committed: bool) -> (String, String, String, bool) {
    (path.to_owned(), lines.to_owned(), change.to_owned(), is_committed)
}

#[test]
fn uncommitted_files_are_listed_with_their_lines_whoever_changed_them() {
    let folder = create_repository();
    run_shell(
        folder.path(),
        "seq 1 100 > a.txt && seq 1 10 > 'spaced name.txt' && git add -A && git commit -qm first",
    );
    run_shell(
        folder.path(),
        "sed -i '45,50s/$/x/; 90s/$/x/' a.txt && echo 11 >> 'spaced name.txt' && echo new > new.txt",
    );
    let work = summarize_work(folder.path(), WorkBase::Head, &[]).unwrap();
    assert_eq!((work.facts.branch.as_str(), work.facts.head_subject.as_str()), ("main", "first"));
    assert_eq!(
        file_rows(&work),
        [
            row("a.txt", "45-50, 90", "modified", false),
            row("spaced name.txt", "11", "modified", false),
            row("new.txt", "", "new, untracked", false)
        ]
    );
}

#[test]
fn committed_files_are_listed_with_the_lines_of_their_newest_commit() {
    let folder = create_repository();
    let project = folder.path().join("app");
    run_shell(
        folder.path(),
        "mkdir app && seq 1 100 > app/a.txt && seq 1 9 > app/b.txt && git add -A && git commit -qm first",
    );
    let start = head_commit(&project).unwrap();
    run_shell(
        &project,
        "sed -i '10,20s/$/x/' a.txt && git commit -qam one && sed -i '30s/$/x/' a.txt && git commit -qam 'wip: two' \
         && sed -i '5s/$/y/' b.txt && echo > ../outside.txt",
    );
    let work = summarize_work(&project, WorkBase::Commit(&start), &[]).unwrap();
    assert_eq!(
        file_rows(&work),
        [row("b.txt", "5", "modified", false), row("a.txt", "30", "modified", true)],
        "the lines of the last commit, not of all"
    );
    let subjects: Vec<(&str, bool)> = work
        .commits
        .iter()
        .map(|commit| (commit.subject.as_str(), commit.is_unfinished_work_commit()))
        .collect();
    assert_eq!(subjects, [("wip: two", true), ("one", false)]);
    let unknown = summarize_work(
        &project,
        WorkBase::Commit(&CommitId::parse("0000000000000000000000000000000000000000").unwrap()),
        &[],
    )
    .unwrap();
    assert_eq!(unknown.files.len(), 1, "an unknown commit is not asked about");
}

#[test]
fn a_file_committed_and_edited_again_has_the_lines_of_the_edit() {
    let folder = create_repository();
    run_shell(folder.path(), "git commit -q --allow-empty -m first");
    let start = head_commit(folder.path()).unwrap();
    run_shell(
        folder.path(),
        "seq 1 200 > a.ts && git add -A && git commit -qm create && sed -i '45,90s/$/x/' a.ts",
    );
    let work = summarize_work(folder.path(), WorkBase::Commit(&start), &[]).unwrap();
    assert_eq!(file_rows(&work), [row("a.ts", "45-90", "modified", false)]);
}

#[test]
fn renamed_and_deleted_files_are_listed_under_their_present_name() {
    let folder = create_repository();
    run_shell(
        folder.path(),
        "seq 1 50 > old.txt && seq 1 9 > gone.txt && git add -A && git commit -qm first",
    );
    let start = head_commit(folder.path()).unwrap();
    run_shell(
        folder.path(),
        "sed -i '3s/$/x/' old.txt && git commit -qam edit && git mv old.txt new.txt && git commit -qm move \
         && git rm -q gone.txt && git commit -qm remove",
    );
    let work = summarize_work(folder.path(), WorkBase::Commit(&start), &[]).unwrap();
    assert_eq!(
        file_rows(&work),
        [row("gone.txt", "1", "deleted", true), row("new.txt", "", "renamed from old.txt", true)]
    );
    assert!(work.files[0].is_deleted && !work.files[1].is_deleted);
}

#[test]
fn a_hunk_has_the_heading_of_its_function() {
    let folder = create_repository();
    let text = "fn one() {\\n    1;\\n    2;\\n}\\n\\nfn two() {\\n    3;\\n}\\n";
    run_shell(folder.path(), &format!("printf '{text}' > a.rs && git add -A && git commit -qm first"));
    run_shell(folder.path(), "sed -i '2s/1/9/' a.rs && printf 'fn three() {\\n    5;\\n}\\n' >> a.rs");
    let work = summarize_work(folder.path(), WorkBase::Head, &[]).unwrap();
    let headings: Vec<&str> = work.files[0].hunks.iter().map(|hunk| hunk.heading.as_str()).collect();
    assert_eq!(headings, ["fn one()", "fn three()"]);
}

#[test]
fn the_commits_of_one_file_have_their_added_and_removed_lines() {
    let folder = create_repository();
    run_shell(
        folder.path(),
        "printf -- '- [ ] one\\n- [ ] two\\n' > plan.md && git add -A && git commit -qm first",
    );
    let start = head_commit(folder.path()).unwrap();
    run_shell(
        folder.path(),
        "sed -i '1s/ \\]/x]/' plan.md && echo a > a && git add -A && git commit -qm one && echo b > b && git add -A && git commit -qm b",
    );
    let commits = commits_of_file_with_changed_line_texts(
        folder.path(),
        WorkBase::Commit(&start),
        &RepoPath::parse("plan.md").unwrap(),
    );
    assert_eq!(commits.len(), 1);
    assert_eq!(
        (commits[0].added_lines.as_slice(), commits[0].removed_lines.as_slice()),
        (&["- [x] one".to_owned()][..], &["- [ ] one".to_owned()][..])
    );
    assert!(
        commits_of_file_with_changed_line_texts(
            folder.path(),
            WorkBase::Head,
            &RepoPath::parse("plan.md").unwrap()
        )
        .is_empty()
    );
}

#[test]
fn changed_lines_may_look_like_the_headers_of_a_patch() {
    let folder = create_repository();
    run_shell(folder.path(), "printf -- '-- one\n' > a.sql && git add -A && git commit -qm first");
    let start = head_commit(folder.path()).unwrap();
    run_shell(folder.path(), "printf -- '++ two\n' > a.sql && git add -A && git commit -qm second");
    let commits = commits_of_file_with_changed_line_texts(
        folder.path(),
        WorkBase::Commit(&start),
        &RepoPath::parse("a.sql").unwrap(),
    );
    assert_eq!(
        (commits[0].added_lines.as_slice(), commits[0].removed_lines.as_slice()),
        (&["++ two".to_owned()][..], &["-- one".to_owned()][..])
    );
}

#[test]
fn a_repository_without_commits_and_no_repository_are_no_errors() {
    let folder = create_repository();
    run_shell(folder.path(), "echo x > a");
    let work = summarize_work(folder.path(), WorkBase::BeforeFirstCommit, &[]).unwrap();
    assert_eq!((work.facts.head_commit.clone(), work.files.len()), (None, 1));
    run_shell(folder.path(), "git add -A && git commit -qm one");
    let work = summarize_work(folder.path(), WorkBase::BeforeFirstCommit, &[]).unwrap();
    assert_eq!(file_rows(&work), [row("a", "1", "new", true)]);
    assert!(summarize_work(tempfile::tempdir().unwrap().path(), WorkBase::Head, &[]).is_none());
}

#[test]
fn ranges_that_touch_are_merged_and_long_lists_are_shortened() {
    assert_eq!(format_last_merged_ranges_keeping_edited(&[(1, 2), (4, 9), (20, 20)], None), "1-9, 20");
    let many_ranges: Vec<(u64, u64)> = (0..20).map(|n| (n * 10 + 1, n * 10 + 1)).collect();
    let last_ranges = "81, 91, 101, 111, 121, 131, 141, 151, 161, 171, 181, 191";
    assert_eq!(format_last_merged_ranges_keeping_edited(&many_ranges, None), format!("…, {last_ranges}"));
    assert_eq!(
        format_last_merged_ranges_keeping_edited(&many_ranges, Some((141, 141))),
        format!("…, {last_ranges}")
    );
    assert_eq!(
        format_last_merged_ranges_keeping_edited(&many_ranges, Some((21, 21))),
        format!("…, 21, …, {last_ranges}")
    );
    assert_eq!(
        format_last_merged_ranges_keeping_edited(&many_ranges, Some((71, 71))),
        format!("…, 71, {last_ranges}")
    );
}

fn line_count_rows(work: &WorkSummary) -> Vec<(&str, Option<(u64, u64)>)> {
    let added_and_removed =
        |file: &ChangedFile| file.line_counts.map(|counts| (counts.added, counts.removed));
    let mut rows: Vec<_> =
        work.files.iter().map(|file| (file.path.as_str(), added_and_removed(file))).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn line_counts_cover_the_whole_work_and_not_only_the_newest_change() {
    let folder = create_repository();
    run_shell(
        folder.path(),
        "seq 10 > a; seq 10 > b; seq 10 > gone; seq 10 > reverted; seq 100 > old; printf '\\0' > image; git add -A; git commit -qm first",
    );
    let start = head_commit(folder.path()).unwrap();
    run_shell(
        folder.path(),
        "sed -i 1,3d a; echo x >> reverted; git mv old 'new name'; echo 1 >> 'new name'; printf '\\0\\1' > image; git add -A; git commit -qm one; \
         seq 3 >> a; sed -i '$d' reverted; seq 5 > made; git add -A; git commit -qm two; \
         sed -i 1d a; echo 1 >> b; rm gone; echo 1 >> made; seq 4 > untracked",
    );
    let work = summarize_work(folder.path(), WorkBase::Commit(&start), &[]).unwrap();
    let expected = [
        ("a", Some((3, 4))),
        ("b", Some((1, 0))),
        ("gone", Some((0, 10))),
        ("image", None),
        ("made", Some((6, 0))),
        ("new name", Some((1, 0))),
        ("reverted", Some((0, 0))),
        // The caller counts the lines of an untracked file itself.
        ("untracked", None),
    ];
    assert_eq!(line_count_rows(&work), expected);
}

#[test]
fn after_a_rewritten_base_only_the_differences_from_it_are_work() {
    for (rewrite, expected) in [
        ("echo 1 >> a; git commit -qa --amend -m again", vec![("a", Some((1, 0)))]),
        (
            "echo 1 >> a; git commit -qam work; git rebase -q --onto HEAD~2 HEAD~1 2>/dev/null",
            vec![("a", Some((1, 0))), ("b", Some((0, 4)))],
        ),
        ("git reset -q --hard HEAD~1; echo 1 >> a", vec![("a", Some((1, 0))), ("b", Some((0, 4)))]),
    ] {
        let folder = create_repository();
        run_shell(
            folder.path(),
            "seq 10 > a; seq 3 > b; git add -A; git commit -qm first; seq 7 > b; git commit -qam base",
        );
        let base = head_commit(folder.path()).unwrap();
        run_shell(folder.path(), rewrite);
        assert_eq!(
            crate::git::classify_base_ancestor_rewritten_or_missing(folder.path(), &base),
            BaseRelation::Rewritten,
            "{rewrite}"
        );
        let work = summarize_work(folder.path(), WorkBase::RewrittenCommit(&base), &[]).unwrap();
        assert_eq!(line_count_rows(&work), expected, "{rewrite}");
    }
}

#[test]
fn a_base_is_an_ancestor_rewritten_or_missing() {
    let folder = create_repository();
    run_shell(folder.path(), "echo 1 > a; git add -A; git commit -qm first");
    let first = head_commit(folder.path()).unwrap();
    assert_eq!(
        crate::git::classify_base_ancestor_rewritten_or_missing(folder.path(), &first),
        BaseRelation::Ancestor
    );
    run_shell(folder.path(), "echo 2 > a; git commit -qam second");
    assert_eq!(
        crate::git::classify_base_ancestor_rewritten_or_missing(folder.path(), &first),
        BaseRelation::Ancestor
    );
    run_shell(
        folder.path(),
        "git commit -q --amend -m other; git checkout -q --orphan new; git commit -qm new",
    );
    assert_eq!(
        crate::git::classify_base_ancestor_rewritten_or_missing(folder.path(), &first),
        BaseRelation::Rewritten
    );
    let unknown = CommitId::parse("0000000000000000000000000000000000000001").unwrap();
    assert_eq!(
        crate::git::classify_base_ancestor_rewritten_or_missing(folder.path(), &unknown),
        BaseRelation::Missing
    );
}

#[test]
fn work_since_before_the_first_commit_and_excluded_commits_are_counted() {
    let folder = create_repository();
    run_shell(folder.path(), "seq 4 > a; git add -A; git commit -qm one; echo 5 >> a");
    let whole_work = summarize_work(folder.path(), WorkBase::BeforeFirstCommit, &[]).unwrap();
    assert_eq!(line_count_rows(&whole_work), [("a", Some((5, 0)))]);
    let start = head_commit(folder.path()).unwrap();
    run_shell(
        folder.path(),
        "git commit -qam own; echo 6 >> a; echo 1 > theirs; git add -A; git commit -qm others",
    );
    let excluded_commit = head_commit(folder.path()).unwrap().to_string();
    let own_work = summarize_work(folder.path(), WorkBase::Commit(&start), &[excluded_commit]).unwrap();
    assert_eq!(line_count_rows(&own_work), [("a", Some((2, 0)))]);
    assert!(own_work.files[0].has_excluded_commits);
}

#[test]
fn a_submodule_has_no_lines_and_a_filtered_file_has_no_wrong_count() {
    let folder = create_repository();
    run_shell(
        folder.path(),
        "git init -q -b main sub && cd sub && git config user.email a@b && git config user.name n && echo 1 > x && git add x && \
         git commit -qm x && cd .. && git -c advice.addEmbeddedRepo=false add sub && git commit -qm first && cd sub && git commit -q --allow-empty -m y",
    );
    let start = head_commit(folder.path()).unwrap();
    let uncommitted = summarize_work(folder.path(), WorkBase::Head, &[]).unwrap();
    run_shell(folder.path(), "git commit -qam second");
    let committed = summarize_work(folder.path(), WorkBase::Commit(&start), &[]).unwrap();
    for work in [uncommitted, committed] {
        assert_eq!(line_count_rows(&work), [("sub", None)]);
        assert!(work.files[0].hunks.is_empty() && work.files[0].change_kind == SUBMODULE, "{work:?}");
    }
    let folder = create_repository();
    run_shell(
        folder.path(),
        "git config filter.up.clean 'tr a-z A-Z'; git config filter.up.smudge 'tr A-Z a-z'; echo '*.up filter=up' > .gitattributes; \
         printf 'a\\nb\\n' > x.up; git add -A; git commit -qm first",
    );
    let start = head_commit(folder.path()).unwrap();
    run_shell(
        folder.path(),
        "echo c >> x.up; git commit -qam second; echo 1 > plain; git add plain; git commit -qm third; echo d >> x.up",
    );
    let work = summarize_work(folder.path(), WorkBase::Commit(&start), &[]).unwrap();
    assert_eq!(line_count_rows(&work), [("plain", Some((1, 0))), ("x.up", None)]);
}
