use super::*;
use std::os::unix::fs::PermissionsExt;

pub(crate) fn run(folder: &Path, line: &str) -> String {
    let outcome = crate::shell(line, folder, Duration::from_secs(20));
    assert!(outcome.succeeded(), "{line}: {}", String::from_utf8_lossy(&outcome.stderr));
    String::from_utf8_lossy(&outcome.stdout).into_owned()
}

const INIT: &str = "git init -q -b main && git config user.email a@b && git config user.name n";

/// One commit with `a.txt`, `b.txt` and `.gitignore`.
pub(crate) fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), INIT);
    run(folder.path(), "seq 9 > a.txt; echo b > b.txt; echo '*.log' > .gitignore");
    run(folder.path(), "git add -A && git commit -qm first");
    folder
}

fn is_ours(path: &str) -> bool {
    path == "PROMPT.md" || path.starts_with(".claude/plimsoll")
}

pub(super) fn wip(folder: &Path) -> Wip {
    commit_wip(folder, "wip: a checkpoint", &is_ours, AllowedPrograms::TrustedDrivers)
}

/// The same with `--commit-hooks`.
fn wip_with_hooks(folder: &Path) -> Wip {
    commit_wip(folder, "wip: a checkpoint", &is_ours, AllowedPrograms::All)
}

/// How many files were committed, and what was left out.
pub(super) fn committed(folder: &Path) -> (usize, Vec<String>) {
    count(folder, wip(folder))
}

fn count(folder: &Path, made: Wip) -> (usize, Vec<String>) {
    match made {
        Wip::Committed { id, files, left_out, .. } => {
            assert_eq!(run(folder, "git rev-parse HEAD").trim(), id.as_str());
            (files, left_out)
        }
        other => panic!("{other:?}"),
    }
}

fn refused(folder: &Path) -> String {
    let before = run(folder, "git rev-parse -q --verify HEAD || true");
    match wip_with_hooks(folder) {
        Wip::Refused { why } => {
            assert_eq!(run(folder, "git rev-parse -q --verify HEAD || true"), before);
            assert!(why.chars().count() <= 200 && !why.contains('\n'), "{why}");
            why
        }
        other => panic!("{other:?}"),
    }
}

fn status(folder: &Path) -> String {
    run(folder, "git status --short --untracked-files=all")
}

/// What the last commit changed.
pub(super) fn last_commit(folder: &Path) -> String {
    run(folder, "git -c core.quotePath=true show --no-renames --name-status --format= HEAD")
}

fn hook(folder: &Path, name: &str, script: &str) {
    let path = folder.join(".git/hooks").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_is_dirty_staged_deleted_renamed_or_untracked_is_committed() {
    let folder = repository();
    let at = folder.path();
    run(at, "echo 10 >> a.txt; mkdir deep; echo new > deep/new; git mv b.txt c.txt; echo s > s; git add s");
    run(at, "echo x > a.log");
    assert_eq!(committed(at), (5, vec![]));
    assert_eq!(last_commit(at), "M\ta.txt\nD\tb.txt\nA\tc.txt\nA\tdeep/new\nA\ts\n");
    assert_eq!(run(at, "git log -1 --format=%B").trim(), "wip: a checkpoint");
    assert_eq!(run(at, "git symbolic-ref HEAD"), "refs/heads/main\n");
    assert_eq!(status(at), "");
    assert_eq!(wip(at), Wip::Nothing);
}

#[test]
fn outside_git_with_nothing_to_do_and_after_a_touch_there_is_nothing() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "echo x > x");
    assert_eq!(wip(folder.path()), Wip::Nothing);
    let folder = repository();
    assert_eq!(wip(folder.path()), Wip::Nothing);
    run(folder.path(), "sleep 0.01; touch a.txt; echo x > a.log; mkdir empty");
    assert_eq!(wip(folder.path()), Wip::Nothing);
    assert_eq!(wip(&folder.path().join(".git")), Wip::Nothing);
}

#[test]
fn a_detached_head_and_a_first_commit_are_fine() {
    let folder = repository();
    let at = folder.path();
    run(at, "git checkout -q --detach; echo 10 >> a.txt");
    assert_eq!(committed(at).0, 1);
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    run(at, INIT);
    assert_eq!(wip(at), Wip::Nothing);
    run(
        at,
        "echo a > a; echo b > b; echo gone > gone; echo x > .env; echo x > PROMPT.md; git add a gone; rm gone",
    );
    assert_eq!(committed(at), (2, vec![".env".to_owned()]));
    assert_eq!(status(at), "AD gone\n?? .env\n?? PROMPT.md\n");
}

#[test]
fn only_what_lies_below_the_folder_is_committed_and_paths_count_from_there() {
    let folder = repository();
    let project = folder.path().join("app");
    run(
        folder.path(),
        "mkdir app; echo x > app/x; echo x > app/PROMPT.md; echo 10 >> a.txt; echo n > n; git add n",
    );
    assert_eq!(committed(&project), (1, vec![]));
    assert_eq!(last_commit(folder.path()), "A\tapp/x\n");
    assert_eq!(status(folder.path()), " M a.txt\nA  n\n?? app/PROMPT.md\n");
}

#[test]
fn ours_is_never_committed_even_if_the_user_tracks_it() {
    let folder = repository();
    let at = folder.path();
    run(at, "echo x > PROMPT.md; git add PROMPT.md; git commit -qm prompt; echo y > PROMPT.md");
    run(at, "mkdir -p .claude/plimsoll; echo x > .claude/plimsoll/x");
    assert_eq!(wip(at), Wip::Nothing);
    run(at, "git add PROMPT.md; echo 10 >> a.txt");
    assert_eq!(committed(at), (1, vec![]));
    assert_eq!(status(at), "M  PROMPT.md\n?? .claude/plimsoll/x\n");
}

#[test]
fn what_looks_like_a_secret_and_large_new_files_are_left_out_and_named() {
    let folder = repository();
    let at = folder.path();
    run(at, "echo old > tracked.pem; truncate -s 11M big.bin; git add -A; git commit -qm pem");
    run(
        at,
        "echo new > tracked.pem; echo x > .env; echo x > .env.example; mkdir d; echo x > d/id_rsa; ln -s x d/y.key",
    );
    run(at, "printf 'a = \"%s%s\"\\n' 'ghp' '_0123456789abcdefghij0123456789abcdef' > token.py");
    run(at, "truncate -s 11M new.bin; truncate -s 12M big.bin; git add .env");
    let (files, mut left_out) = committed(at);
    left_out.sort();
    assert_eq!(left_out, [".env", "d/id_rsa", "d/y.key", "new.bin", "token.py", "tracked.pem"]);
    assert_eq!(files, 2);
    assert_eq!(last_commit(at), "A\t.env.example\nM\tbig.bin\n");
    assert_eq!(wip(at), Wip::Nothing, "only left-out files are left");
    assert!(status(at).contains("A  .env\n"));
}

#[test]
fn what_nobody_can_commit_is_left_out() {
    let folder = repository();
    let at = folder.path();
    run(at, "git init -q inner; cd inner; git -c user.name=n -c user.email=e commit -q --allow-empty -m x");
    run(at, "rm b.txt; mkfifo b.txt; echo 10 >> a.txt");
    let (files, left_out) = committed(at);
    assert_eq!((files, left_out), (1, vec!["b.txt".to_owned(), "inner/".to_owned()]));
}

#[test]
fn a_file_taken_out_of_the_index_stays_out_of_it() {
    let folder = repository();
    let at = folder.path();
    run(at, "git rm -q --cached b.txt; echo 10 >> a.txt");
    assert_eq!(committed(at), (1, vec!["b.txt".to_owned()]));
    assert_eq!(status(at), "D  b.txt\n?? b.txt\n");
    run(at, "echo b.txt >> .gitignore");
    assert_eq!(committed(at), (1, vec!["b.txt".to_owned()]));
    assert_eq!(status(at), "D  b.txt\n");
}

#[test]
fn what_is_staged_beside_it_survives_as_staged() {
    let folder = repository();
    let at = folder.path();
    run(
        at,
        "echo x > .env; git add .env; echo y > .env; echo 10 >> a.txt; echo gone > gone; git add gone; rm gone",
    );
    assert_eq!(committed(at), (1, vec![".env".to_owned()]));
    assert_eq!(status(at), "AM .env\nAD gone\n");
    assert_eq!(run(at, "git show :.env"), "x\n");
    // Staged, and undone again in the working tree: nothing that a commit could hold.
    run(at, "echo 11 >> a.txt; git add a.txt; git show HEAD:a.txt > a.txt");
    assert_eq!(wip(at), Wip::Nothing);
    assert_eq!(status(at), "AM .env\nMM a.txt\nAD gone\n");
}

#[test]
fn nothing_is_committed_in_the_middle_of_something() {
    let conflict = "git checkout -q -b other; echo o > b.txt; git commit -qam other; git checkout -q main; \
                    echo m > b.txt; git commit -qam main; ";
    let busy = [
        ("git merge other", "a merge"),
        ("git rebase other", "a rebase"),
        ("git cherry-pick other", "a cherry-pick"),
        ("git revert HEAD~1", "a revert"),
        ("git format-patch -q --stdout main..other > ../p.log; git am ../p.log", "git am"),
        ("git bisect start", "a bisect"),
        ("git stash push -q; git checkout -q other; git stash pop", "conflicts"),
    ];
    for (line, what) in busy {
        let outer = tempfile::tempdir().unwrap();
        let at = &outer.path().join("p");
        std::fs::create_dir(at).unwrap();
        run(at, INIT);
        run(at, "echo b > b.txt; git add -A; git commit -qm first; git commit -q --allow-empty -m x");
        run(at, conflict);
        run(at, if what == "a revert" { "echo n > b.txt; git commit -qam n" } else { "true" });
        run(at, if what == "conflicts" { "echo z > b.txt" } else { "true" });
        run(at, &format!("({line}) || true; echo new > new"));
        let before = status(at);
        let why = refused(at);
        assert!(why.contains(what), "{line}: {why}");
        assert_eq!(status(at), before, "{line}");
    }
}

#[test]
fn every_name_that_a_file_may_have_is_committed_and_means_only_itself() {
    let folder = repository();
    let at = folder.path();
    let names =
        ["'with space'", "'new\nline'", "\"$(printf 'not\\377utf')\"", "'-dash'", "'ü'", "'*'", "'[ab].txt'"];
    for name in names.iter().chain(&["':(glob)**'", "':!a.txt'", "'\"quoted\\'"]) {
        run(at, &format!("echo one > ./{name}"));
    }
    run(at, "mkdir x; echo x > x/.env");
    assert_eq!(committed(at), (10, vec!["x/.env".to_owned()]));
    assert_eq!(status(at), "?? x/.env\n");
    run(at, "rm ./'*' ./-dash; echo two > \"$(printf 'not\\377utf')\"; echo two > ./':(glob)**'");
    run(at, "git mv 'with space' '[renamed]'");
    assert_eq!(committed(at).0, 6);
    assert_eq!(status(at), "?? x/.env\n");
}

#[test]
fn files_and_folders_that_took_each_others_place_are_committed() {
    let folder = repository();
    let at = folder.path();
    run(at, "mkdir d; echo x > d/x; git add -A; git commit -qm d; ln -s a.txt link");
    run(at, "rm b.txt; mkdir b.txt; echo in > b.txt/in; rm -r d; echo d > d");
    committed(at);
    assert_eq!(status(at), "");
    assert_eq!(last_commit(at), "D\tb.txt\nA\tb.txt/in\nA\td\nD\td/x\nA\tlink\n");
}

#[test]
fn hooks_run_if_the_user_allows_them() {
    let folder = repository();
    let at = folder.path();
    hook(at, "pre-commit", "git diff --cached --name-only -- '*.js' > seen.log; cat >> seen.log");
    hook(at, "post-commit", "exit 1");
    run(at, "echo x > x.js; echo x > x.css");
    assert_eq!(count(at, wip_with_hooks(at)).0, 2);
    assert_eq!(run(at, "cat seen.log"), "x.js\n");
    // A hook that changes what is committed.
    hook(at, "pre-commit", "echo tidied > x.js; git add x.js");
    run(at, "echo y > x.js");
    assert_eq!(count(at, wip_with_hooks(at)).0, 1);
    assert_eq!(run(at, "git show HEAD:x.js"), "tidied\n");
}

#[test]
fn a_refusing_hook_leaves_everything_as_it_was_and_its_last_words_are_told() {
    let folder = repository();
    let at = folder.path();
    run(
        at,
        "echo s > s; git add s; echo S > s; echo 10 >> a.txt; echo new > new; rm b.txt; mkdir b.txt; echo x > b.txt/in",
    );
    let before = (status(at), run(at, "git ls-files --stage"));
    hook(
        at,
        "pre-commit",
        "echo first; printf '\\033[31mlint:\\033[0m no %s\\n' \"$(seq -s, 200)\" >&2; exit 1",
    );
    let why = refused(at);
    assert!(why.starts_with("lint: no 1,2,3"), "{why}");
    assert_eq!((status(at), run(at, "git ls-files --stage")), before);
    assert_eq!(run(at, "cat new"), "new\n");
    // Also when somebody else writes the index meanwhile: then his part stays.
    let script = "cp .git/index .git/i; GIT_INDEX_FILE=.git/i git add -f x.log; mv .git/i .git/index; exit 1";
    run(at, "echo x > x.log");
    hook(at, "pre-commit", script);
    let _ = refused(at);
    assert!(status(at).contains("?? new\n") && status(at).contains("A  x.log\n"), "{}", status(at));
}

#[test]
fn without_a_name_or_with_a_locked_index_it_is_refused_and_everything_is_as_it_was() {
    let folder = repository();
    let at = folder.path();
    run(at, "echo 10 >> a.txt; echo new > new");
    let before = (status(at), run(at, "git ls-files --stage"));
    run(at, "git config user.name ''");
    let why = refused(at);
    assert!(why.contains("empty ident name"), "{why}");
    assert_eq!((status(at), run(at, "git ls-files --stage")), before);
    run(at, "git config user.name n; git config user.email a@b; touch .git/index.lock");
    assert!(refused(at).contains("index.lock"));
    run(at, "test -f .git/index.lock && rm .git/index.lock");
    assert_eq!((status(at), run(at, "git ls-files --stage")), before);
    assert_eq!(committed(at).0, 2);
}

#[test]
fn a_first_commit_that_fails_leaves_no_index_behind() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    run(at, INIT);
    run(at, "echo a > a");
    hook(at, "pre-commit", "exit 1");
    let _ = refused(at);
    assert_eq!(status(at), "?? a\n");
    assert!(!at.join(".git/index").exists() && !at.join(".git/index.lock").exists());
}

#[test]
fn a_hook_that_hangs_is_ended_at_the_deadline_and_may_tidy_up() {
    let folder = repository();
    let at = folder.path();
    run(at, "echo 10 >> a.txt; echo new > new");
    let before = (status(at), run(at, "git ls-files --stage"));
    hook(at, "pre-commit", "trap 'sleep 0.3; echo tidy > tidy.log; exit 1' TERM; sleep 60 & wait");
    let started = Instant::now();
    let outcome = commit_within(at, "wip", &is_ours, AllowedPrograms::All, Duration::from_millis(500));
    assert_eq!(outcome, Wip::Refused { why: "the commit took longer than 0 seconds".into() });
    assert!(started.elapsed() < Duration::from_secs(15));
    assert_eq!(run(at, "cat tidy.log"), "tidy\n");
    assert_eq!((status(at), run(at, "git ls-files --stage")), before);
    assert!(!at.join(".git/index.lock").exists());
    // A commit that stands is one, whatever comes after it.
    hook(at, "pre-commit", "exit 0");
    hook(at, "post-commit", "sleep 60");
    let outcome = commit_within(at, "wip", &is_ours, AllowedPrograms::All, Duration::from_secs(2));
    assert!(matches!(outcome, Wip::Committed { files: 2, .. }), "{outcome:?}");
    assert_eq!(status(at), "");
}

#[test]
fn a_message_is_taken_as_it_is() {
    let folder = repository();
    let at = folder.path();
    run(at, "echo 10 >> a.txt");
    let message = "-wip \"$HOME\"\n\nsecond line";
    assert!(matches!(
        commit_wip(at, message, &is_ours, AllowedPrograms::TrustedDrivers),
        Wip::Committed { .. }
    ));
    assert_eq!(run(at, "git log -1 --format=%B").trim(), message);
}

#[test]
fn a_submodule_is_committed_by_its_commit_only() {
    let folder = repository();
    let at = folder.path();
    run(
        at,
        "git init -q sub; cd sub; git config user.email a@b; git config user.name n; echo x > x; git add x; git commit -qm x",
    );
    run(
        at,
        "git -c advice.addEmbeddedRepo=false add sub; git commit -qm sub; echo y > sub/x; echo z > sub/z",
    );
    assert_eq!(wip(at), Wip::Nothing);
    run(at, "cd sub; git commit -qam y");
    assert_eq!(committed(at), (1, vec![]));
    assert_eq!(last_commit(at), "M\tsub\n");
}

/// Writes in capitals.
const UPPER: &str = "git config filter.up.clean 'tr a-z A-Z'; ";

#[test]
fn a_file_is_committed_through_its_filter() {
    let folder = repository();
    let at = folder.path();
    run(at, &format!("{UPPER} echo '*.up filter=up' > .gitattributes; echo one > new.up; echo two > a.txt"));
    assert_eq!(committed(at), (3, vec![]));
    assert_eq!(run(at, "git show HEAD:new.up; git show HEAD:a.txt"), "ONE\ntwo\n");
    run(at, "sleep 0.01; touch new.up");
    assert_eq!(wip(at), Wip::Nothing, "its filter says that nothing has changed");
}

#[test]
fn a_file_whose_filter_fails_or_is_missing_or_was_taken_away_is_left_out() {
    for (line, left_out) in [
        ("git config filter.f.clean false", &["b.f", "c.f"][..]),
        ("git config filter.f.clean 'grep -v b'", &["b.f", "c.f"]),
        ("git config filter.f.process false; git config filter.f.required true", &["b.f", "c.f"]),
        ("true", &["b.f", "c.f"]),
        ("git config filter.f.smudge cat", &["b.f", "c.f"]),
        ("git config filter.f.clean ''", &["b.f", "c.f"]),
        ("git config filter.f.clean cat", &[]),
    ] {
        let folder = repository();
        let at = folder.path();
        run(at, "echo '*.f filter=f' > .gitattributes; echo b > b.f; git add -A; git commit -qm b");
        run(at, line);
        // Of the same length: git has to look into it.
        run(
            at,
            "echo x > a.txt; echo b > new; echo c > c.f; printf 'b' > b.f; echo >> b.f; touch -d 2020-01-01 b.f; echo bb > b.f",
        );
        let (files, mut found) = committed(at);
        found.sort();
        assert_eq!(
            (files, found.iter().map(String::as_str).collect::<Vec<_>>()),
            (4 - left_out.len(), left_out.to_vec()),
            "{line}"
        );
        let tree = run(at, "git ls-tree -r --name-only HEAD");
        assert_eq!(tree.contains("c.f"), left_out.is_empty(), "{line}: {tree}");
    }
    let folder = repository();
    let at = folder.path();
    run(
        at,
        &format!(
            "{UPPER} echo '*.up filter=up' > .gitattributes; echo a > a.up; git add -A; git commit -qm up"
        ),
    );
    for change in [
        "echo > .gitattributes",
        "rm .gitattributes",
        "ln -sf /dev/null .gitattributes",
        "echo >> .gitattributes; echo '*.up -filter' > .git/info/attributes",
    ] {
        run(at, &format!("{change}; echo in the clear > a.up; echo new > new.up"));
        let (files, mut left_out) = committed(at);
        left_out.sort();
        assert_eq!((files, left_out), (1, vec!["a.up".to_owned(), "new.up".to_owned()]), "{change}");
        run(at, "git reset -q --hard HEAD~1");
    }
}

#[test]
fn files_are_left_out_if_the_attributes_of_head_cannot_be_read() {
    let folder = repository();
    let at = folder.path();
    run(
        at,
        &format!(
            "{UPPER} mkdir -p in/side; echo '*.up filter=up' > in/.gitattributes; echo a > in/side/a.up; git add -A; git commit -qm up"
        ),
    );
    run(at, "id=$(git rev-parse HEAD:in/.gitattributes); rm -f .git/objects/$(echo $id | sed 's,^..,&/,')");
    run(at, "rm in/.gitattributes; echo in the clear > in/side/a.up");
    let (_, left_out) = committed(at);
    assert_eq!(left_out, ["in/side/a.up"]);
    assert_eq!(run(at, "git show HEAD:in/side/a.up"), "A\n");
    assert_eq!(run(at, "ls .git | grep -c plimsoll || true"), "0\n", "no index of ours stays");
}

#[test]
fn a_filter_that_fails_does_not_keep_the_rest_from_being_committed() {
    let folder = repository();
    let at = folder.path();
    run(
        at,
        "git config filter.f.clean cat; echo '*.f filter=f' > .gitattributes; echo b > b.f; git add -A; git commit -qm b",
    );
    run(at, "git config filter.f.clean false; git config filter.f.required true");
    run(at, "echo c > b.f; touch -d 2020-01-01 b.f; echo 10 >> a.txt");
    assert_eq!(committed(at), (1, vec!["b.f".to_owned()]));
    assert_eq!(run(at, "git show HEAD:b.f"), "b\n");
}

#[test]
fn in_a_repository_made_since_nothing_that_it_names_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().canonicalize().unwrap();
    let sh = |line: &str| {
        let outcome = crate::shell(line, &at, Duration::from_secs(20));
        assert!(outcome.succeeded(), "{line}: {}", String::from_utf8_lossy(&outcome.stderr));
    };
    sh(
        "git init -q -b main; git config user.email a@b; git config user.name n; echo a > a; git add -A; git commit -qm First",
    );
    let name = format!("sprung-{}", at.file_name().unwrap().to_string_lossy());
    let program = at.join(".git/trap.sh");
    sh(&format!(
        "printf '#!/bin/sh\\ntouch {}/{name}\\ncat\\n' > {}; chmod +x {}",
        at.parent().unwrap().display(),
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
        sh(&format!("cp .git/trap.sh .git/hooks/{hook}"));
    }
    sh(
        "for key in filter.evil.clean filter.evil.process core.fsmonitor gpg.program core.editor diff.external; do git -c core.hooksPath= config $key $PWD/.git/trap.sh; done; git config commit.gpgSign true; git config filter.evil.required true",
    );
    sh("echo '*.x filter=evil' > .gitattributes; echo x > b.x; echo new > c; echo more >> a");
    let sprung = at.parent().unwrap().join(&name);
    let _ = std::fs::remove_file(&sprung);
    let done = commit_wip(&at, "wip", &|_| false, AllowedPrograms::Nothing);
    assert!(!sprung.exists(), "{done:?}");
    let Wip::Committed { files, left_out, .. } = done else { panic!("{done:?}") };
    assert_eq!((files, left_out.len()), (3, 1), "{left_out:?}");
    assert!(left_out[0].contains("b.x"), "{left_out:?}");
    // The same traps are live if the user allows everything.
    let done = commit_wip(&at, "wip", &|_| false, AllowedPrograms::All);
    assert!(sprung.exists(), "{done:?}");
    let _ = std::fs::remove_file(&sprung);
}

/// What a session in the sandbox can write, and what would start it when we commit. `LOG` is a file outside of the project.
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
        let folder = repository();
        let at = folder.path();
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
        run(at, &lines.replace("LOG", &log.to_string_lossy()));
        run(at, "echo '*.x filter=x' > .git/info/attributes; echo secret > b.x; echo more >> a.txt");
        let _ = std::fs::remove_file(&log);
        let made = wip(at);
        assert!(!log.exists(), "{name}: it ran");
        let Wip::Committed { left_out, forbidden_filters, .. } = made else { panic!("{name}: {made:?}") };
        // Nothing is committed unfiltered.
        assert_eq!(left_out, ["b.x"], "{name}");
        let is_configured = attack.contains("filter.x");
        assert_eq!(forbidden_filters, if is_configured { vec!["x"] } else { Vec::new() }, "{name}");
        // The trap is a real one: git itself, or the user's word, springs it.
        run(at, "echo again >> a.txt");
        let _ = wip_with_hooks(at);
        let _ = crate::shell("git add -A; git commit -qm all; git status", at, Duration::from_secs(20));
        assert!(log.exists(), "{name}: the trap is none");
    }
}

#[test]
fn a_commit_takes_no_file_from_outside_the_working_tree() {
    let outside = tempfile::tempdir().unwrap();
    run(outside.path(), "echo private > a.txt; echo private > c.txt");
    let folder = repository();
    let at = folder.path();
    run(at, "git config extensions.worktreeConfig true; echo more >> a.txt");
    run(at, &format!("git config --worktree core.worktree '{}'", outside.path().display()));
    assert_eq!(committed(at), (1, vec![]));
    run(at, "git config --worktree --unset core.worktree");
    assert!(!run(at, "git show HEAD:a.txt; git ls-tree HEAD").contains("private"), "{}", last_commit(at));
    assert_eq!(last_commit(at), "M\ta.txt\n");
}

#[test]
fn replaced_objects_and_grafts_do_not_change_what_is_committed() {
    let folder = repository();
    let at = folder.path();
    run(
        at,
        "git replace $(git rev-parse HEAD:b.txt) $(echo evil | git hash-object -w --stdin); echo more >> a.txt",
    );
    assert_eq!(committed(at), (1, vec![]));
    assert_eq!(run(at, "GIT_NO_REPLACE_OBJECTS=1 git show HEAD:b.txt"), "b\n");
}
