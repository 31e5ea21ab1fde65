//! The repository: its state off its files, its counts from one `git status` that is kept, bounded and never waited for
//! twice.

use super::{line, payload};
use plimsoll_testkit::world::World;
use serde_json::json;
use std::path::Path;

fn git_alone(world: &World) -> String {
    line(world, &json!({"lines": [["git"]]})).run().expect_success().stdout.trim().to_owned()
}

/// Takes away what was published, so that git is asked anew.
fn forget(world: &World) {
    let _ = std::fs::remove_dir_all(world.path(".claude/plimsoll/sessions"));
}

fn commit(world: &World, file: &str, text: &str) {
    world.write(file, text);
    world.git(&["add", file]);
    world.git(&["commit", "-qm", file]);
}

#[test]
fn branch_counts_and_what_goes_on_are_shown_as_git_has_them() {
    let world = World::new();
    world.write(".git/info/exclude", ".claude/\n");
    commit(&world, "a", "1\n");
    assert_eq!(git_alone(&world), "⎇ main");
    world.write("a", "2\n");
    world.write("new", "");
    forget(&world);
    assert_eq!(git_alone(&world), "⎇ main !1 ?1");
    world.git(&["add", "a"]);
    forget(&world);
    assert_eq!(git_alone(&world), "⎇ main +1 ?1");
    world.git(&["commit", "-qm", "a"]);
    std::fs::remove_file(world.path("new")).unwrap();

    world.git(&["branch", "up", "HEAD~1"]);
    world.git(&["checkout", "-q", "-b", "topic"]);
    world.git(&["branch", "-q", "--set-upstream-to", "up"]);
    forget(&world);
    assert_eq!(git_alone(&world), "⎇ topic ↑1");

    world.git(&["checkout", "-q", "--detach"]);
    forget(&world);
    let head = world.git(&["rev-parse", "HEAD"]).trim()[..7].to_owned();
    assert_eq!(git_alone(&world), format!("⎇ {head}"));
}

#[test]
fn a_merge_a_rebase_and_a_linked_worktree_are_named() {
    let world = World::new();
    world.write(".git/info/exclude", ".claude/\n");
    commit(&world, "a", "1\n");
    world.git(&["checkout", "-q", "-b", "other"]);
    commit(&world, "a", "2\n");
    world.git(&["checkout", "-q", "main"]);
    commit(&world, "a", "3\n");
    let fails = |arguments: &[&str]| {
        let command = world.command("git", arguments).cwd(world.project()).run();
        assert_ne!(command.code, Some(0), "{command:?}");
    };
    fails(&["merge", "other"]);
    assert_eq!(git_alone(&world), "⎇ main merge =1");
    world.git(&["merge", "--abort"]);
    fails(&["rebase", "other"]);
    forget(&world);
    assert_eq!(
        git_alone(&world),
        "⎇ main rebase 1/1 =1",
        "the branch that is rebased, though HEAD is detached"
    );
    world.git(&["rebase", "--abort"]);

    let tree = world.home().join("tree");
    world.git(&["worktree", "add", "-q", "-b", "side", &tree.to_string_lossy()]);
    let mut of_tree = payload(&world);
    of_tree["workspace"]["current_dir"] = json!(tree);
    let shown =
        world.hook("plimsoll-statusline", &of_tree).env("NO_COLOR", "1").run().expect_success().stdout;
    assert_eq!(shown.trim(), "⎇ side worktree tree");
}

/// A git that knows no filter, writes down each other call, and is as slow as the file `slow` says.
fn scripted_git(world: &World) -> String {
    let folder = world.home().join("programs");
    std::fs::create_dir_all(&folder).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *' config '*) exit 1;; esac\necho \"$*\" >> '{0}/calls'\n[ -e '{0}/slow' ] && exec sleep 30\necho '1 .M N... 100644 100644 100644 a b f'\n",
        folder.display()
    );
    executable(&folder.join("git"), &script);
    format!("{}:/usr/bin:/bin", folder.display())
}

fn executable(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn calls(world: &World) -> usize {
    std::fs::read_to_string(world.home().join("programs/calls")).unwrap_or_default().lines().count()
}

/// As if what was published lay so far in the past.
fn let_time_pass(world: &World, seconds: i64) {
    let folder = world.path(".claude/plimsoll/sessions");
    let name = std::fs::read_dir(&folder)
        .unwrap()
        .flatten()
        .find(|it| it.path().to_string_lossy().ends_with(".status.json"));
    let path = name.expect("a published reading").path();
    let mut record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let asked = record["git"]["asked_at"].as_i64().expect("a time");
    record["git"]["asked_at"] = json!(asked - seconds * 1_000);
    std::fs::write(path, record.to_string()).unwrap();
}

#[test]
fn git_is_asked_once_and_then_when_something_has_moved_or_time_has_passed() {
    let world = World::new();
    let path = scripted_git(&world);
    let look = json!({"lines": [["git"]], "segments": {"git": {"timeout_ms": 5000}}});
    let shown = || line(&world, &look).env("PATH", &path).run().expect_success().stdout.trim().to_owned();
    assert_eq!((shown(), calls(&world)), ("⎇ main !1".to_owned(), 1));
    let_time_pass(&world, -3_600);
    shown();
    assert_eq!(calls(&world), 2, "a time that lies ahead is none: the clock was set back");
    world.write(".git/HEAD", "ref: refs/heads/topic\n");
    assert_eq!((shown(), calls(&world)), ("⎇ topic !1".to_owned(), 3), "HEAD has moved");
    let_time_pass(&world, 6);
    shown();
    assert_eq!(calls(&world), 4, "time has passed");
    // Without counts in the format nobody is asked.
    let look = json!({"lines": [["git"]], "segments": {"git": {"format": "{branch}"}}});
    let_time_pass(&world, 6);
    let alone = line(&world, &look).env("PATH", &path).run().expect_success().stdout;
    assert_eq!((alone.trim(), calls(&world)), ("topic", 4));
}

#[test]
fn a_repository_that_is_slow_keeps_its_old_counts_and_is_left_in_peace() {
    let world = World::new();
    let path = scripted_git(&world);
    let slow = world.home().join("programs/slow");
    std::fs::write(&slow, "").unwrap();
    let look = json!({"lines": [["git", "model"]], "segments": {"git": {"timeout_ms": 100}}});
    let shown = || line(&world, &look).env("PATH", &path).run().expect_success().stdout.trim().to_owned();
    assert_eq!(shown(), "⎇ main … │ Haiku 4.5", "nothing is known yet, and the rest is there");
    assert_eq!(
        (shown(), calls(&world)),
        ("⎇ main … │ Haiku 4.5".to_owned(), 1),
        "nobody waits for it again at once"
    );
    std::fs::remove_file(&slow).unwrap();
    let_time_pass(&world, 61);
    let look = json!({"lines": [["git", "model"]], "segments": {"git": {"timeout_ms": 5000}}});
    let patient = || line(&world, &look).env("PATH", &path).run().expect_success().stdout.trim().to_owned();
    assert_eq!(patient(), "⎇ main !1 │ Haiku 4.5");
    std::fs::write(&slow, "").unwrap();
    let_time_pass(&world, 6);
    assert_eq!(shown(), "⎇ main !1 ~ │ Haiku 4.5", "older counts, and marked so");
}

#[test]
fn another_repository_in_the_environment_is_not_mixed_with_this_one() {
    let world = World::new();
    world.write(".git/info/exclude", ".claude/\n");
    let other = world.home().join("other");
    world
        .command("git", &["init", "-q", "-b", "theirs", &other.display().to_string()])
        .run()
        .expect_success();
    std::fs::write(other.join("new"), "").unwrap();
    let shown = line(&world, &json!({"lines": [["git"]], "segments": {"git": {"timeout_ms": 5000}}}))
        .env("GIT_DIR", other.join(".git").display().to_string())
        .env("GIT_WORK_TREE", other.display().to_string());
    assert_eq!(shown.run().expect_success().stdout.trim(), "⎇ main");
}

#[test]
fn a_branch_that_stands_in_no_file_is_told_by_git() {
    let world = World::new();
    let path = scripted_git(&world);
    let answers = world.home().join("programs/git");
    let script = std::fs::read_to_string(&answers).unwrap() + "echo '# branch.head topic'\n";
    executable(&answers, &script);
    // As `git init --ref-format=reftable` writes it.
    world.write(".git/HEAD", "ref: refs/heads/.invalid\n");
    let look = json!({"lines": [["git"]], "segments": {"git": {"format": "{branch}", "timeout_ms": 5000}}});
    let shown = || line(&world, &look).env("PATH", &path).run().expect_success().stdout.trim().to_owned();
    assert_eq!((shown(), shown(), calls(&world)), ("topic".to_owned(), "topic".to_owned(), 1));
}

#[test]
fn a_pipe_in_the_place_of_a_file_of_gits_keeps_nobody_waiting() {
    let world = World::new();
    world.command("mkfifo", &[&world.path("pipe").display().to_string()]).run().expect_success();
    std::fs::rename(world.path("pipe"), world.path(".git/HEAD")).unwrap();
    assert_eq!(
        line(&world, &json!({"lines": [["git", "model"]]})).run().expect_success().stdout.trim(),
        "Haiku 4.5"
    );
}
