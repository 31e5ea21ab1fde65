//! The git segment: its state is read from git's files, its counts come from one `git status` whose result is kept.
//! That call has a time limit, and a slow one is not waited for twice.

use super::{full_payload, launch_with_project_settings};
use plimsoll_testkit::world::World;
use serde_json::json;
use std::path::Path;

fn git_segment_line(world: &World) -> String {
    launch_with_project_settings(world, &json!({"lines": [["git"]]}))
        .run()
        .expect_success()
        .stdout
        .trim()
        .to_owned()
}

/// Removes the published reading, so that git is run again.
fn remove_published_reading(world: &World) {
    let _ = std::fs::remove_dir_all(world.path(".claude/plimsoll/sessions"));
}

fn commit_file(world: &World, file: &str, text: &str) {
    world.write(file, text);
    world.git(&["add", file]);
    world.git(&["commit", "-qm", file]);
}

#[test]
fn branch_counts_upstream_and_detached_head_are_shown_as_git_reports() {
    let world = World::new();
    world.write(".git/info/exclude", ".claude/\n");
    commit_file(&world, "a", "1\n");
    assert_eq!(git_segment_line(&world), "⎇ main");
    world.write("a", "2\n");
    world.write("new", "");
    remove_published_reading(&world);
    assert_eq!(git_segment_line(&world), "⎇ main !1 ?1");
    world.git(&["add", "a"]);
    remove_published_reading(&world);
    assert_eq!(git_segment_line(&world), "⎇ main +1 ?1");
    world.git(&["commit", "-qm", "a"]);
    std::fs::remove_file(world.path("new")).unwrap();

    world.git(&["branch", "up", "HEAD~1"]);
    world.git(&["checkout", "-q", "-b", "topic"]);
    world.git(&["branch", "-q", "--set-upstream-to", "up"]);
    remove_published_reading(&world);
    assert_eq!(git_segment_line(&world), "⎇ topic ↑1");

    world.git(&["checkout", "-q", "--detach"]);
    remove_published_reading(&world);
    let head = world.git(&["rev-parse", "HEAD"]).trim()[..7].to_owned();
    assert_eq!(git_segment_line(&world), format!("⎇ {head}"));
}

#[test]
fn a_merge_a_rebase_and_a_linked_worktree_are_shown() {
    let world = World::new();
    world.write(".git/info/exclude", ".claude/\n");
    commit_file(&world, "a", "1\n");
    world.git(&["checkout", "-q", "-b", "other"]);
    commit_file(&world, "a", "2\n");
    world.git(&["checkout", "-q", "main"]);
    commit_file(&world, "a", "3\n");
    let assert_git_fails = |arguments: &[&str]| {
        let finished = world.command("git", arguments).cwd(world.project()).run();
        assert_ne!(finished.code, Some(0), "{finished:?}");
    };
    assert_git_fails(&["merge", "other"]);
    assert_eq!(git_segment_line(&world), "⎇ main merge =1");
    world.git(&["merge", "--abort"]);
    assert_git_fails(&["rebase", "other"]);
    remove_published_reading(&world);
    assert_eq!(
        git_segment_line(&world),
        "⎇ main rebase 1/1 =1",
        "the branch that is rebased, though HEAD is detached"
    );
    world.git(&["rebase", "--abort"]);

    let tree = world.home().join("tree");
    world.git(&["worktree", "add", "-q", "-b", "side", &tree.to_string_lossy()]);
    let mut worktree_payload = full_payload(&world);
    worktree_payload["workspace"]["current_dir"] = json!(tree);
    let shown = world
        .hook("plimsoll-statusline", &worktree_payload)
        .env("NO_COLOR", "1")
        .run()
        .expect_success()
        .stdout;
    assert_eq!(shown.trim(), "⎇ side worktree tree");
}

/// Installs a fake git that knows no filter, records every other call, and hangs while the file `slow` exists. Returns
/// the `PATH` with it.
fn install_fake_git(world: &World) -> String {
    let folder = world.home().join("programs");
    std::fs::create_dir_all(&folder).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *' config '*) exit 1;; esac\necho \"$*\" >> '{0}/calls'\n[ -e '{0}/slow' ] && exec sleep 30\necho '1 .M N... 100644 100644 100644 a b f'\n",
        folder.display()
    );
    write_executable(&folder.join("git"), &script);
    format!("{}:/usr/bin:/bin", folder.display())
}

fn write_executable(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn count_git_calls(world: &World) -> usize {
    std::fs::read_to_string(world.home().join("programs/calls")).unwrap_or_default().lines().count()
}

/// Moves the time of the published reading this far into the past.
fn age_published_reading(world: &World, seconds: i64) {
    let folder = world.path(".claude/plimsoll/sessions");
    let entry = std::fs::read_dir(&folder)
        .unwrap()
        .flatten()
        .find(|file| file.path().to_string_lossy().ends_with(".status.json"));
    let path = entry.expect("a published reading").path();
    let mut record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let asked_at = record["git"]["asked_at"].as_i64().expect("a time");
    record["git"]["asked_at"] = json!(asked_at - seconds * 1_000);
    std::fs::write(path, record.to_string()).unwrap();
}

#[test]
fn git_runs_again_only_after_head_moved_or_time_passed() {
    let world = World::new();
    let path = install_fake_git(&world);
    let settings = json!({"lines": [["git"]], "segments": {"git": {"timeout_ms": 5000}}});
    let shown = || {
        launch_with_project_settings(&world, &settings)
            .env("PATH", &path)
            .run()
            .expect_success()
            .stdout
            .trim()
            .to_owned()
    };
    assert_eq!((shown(), count_git_calls(&world)), ("⎇ main !1".to_owned(), 1));
    age_published_reading(&world, -3_600);
    shown();
    assert_eq!(count_git_calls(&world), 2, "a time that lies ahead is none: the clock was set back");
    world.write(".git/HEAD", "ref: refs/heads/topic\n");
    assert_eq!((shown(), count_git_calls(&world)), ("⎇ topic !1".to_owned(), 3), "HEAD has moved");
    age_published_reading(&world, 6);
    shown();
    assert_eq!(count_git_calls(&world), 4, "time has passed");
    // Without counts in the format, git is not run.
    let settings = json!({"lines": [["git"]], "segments": {"git": {"format": "{branch}"}}});
    age_published_reading(&world, 6);
    let without_counts =
        launch_with_project_settings(&world, &settings).env("PATH", &path).run().expect_success().stdout;
    assert_eq!((without_counts.trim(), count_git_calls(&world)), ("topic", 4));
}

#[test]
fn a_slow_repository_keeps_its_old_counts_and_is_not_retried_at_once() {
    let world = World::new();
    let path = install_fake_git(&world);
    let slow = world.home().join("programs/slow");
    std::fs::write(&slow, "").unwrap();
    let settings = json!({"lines": [["git", "model"]], "segments": {"git": {"timeout_ms": 100}}});
    let shown = || {
        launch_with_project_settings(&world, &settings)
            .env("PATH", &path)
            .run()
            .expect_success()
            .stdout
            .trim()
            .to_owned()
    };
    assert_eq!(shown(), "⎇ main … │ Haiku 4.5", "nothing is known yet, and the rest is there");
    assert_eq!(
        (shown(), count_git_calls(&world)),
        ("⎇ main … │ Haiku 4.5".to_owned(), 1),
        "nobody waits for it again at once"
    );
    std::fs::remove_file(&slow).unwrap();
    age_published_reading(&world, 61);
    let settings = json!({"lines": [["git", "model"]], "segments": {"git": {"timeout_ms": 5000}}});
    let shown_with_long_timeout = || {
        launch_with_project_settings(&world, &settings)
            .env("PATH", &path)
            .run()
            .expect_success()
            .stdout
            .trim()
            .to_owned()
    };
    assert_eq!(shown_with_long_timeout(), "⎇ main !1 │ Haiku 4.5");
    std::fs::write(&slow, "").unwrap();
    age_published_reading(&world, 6);
    assert_eq!(shown(), "⎇ main !1 ~ │ Haiku 4.5", "older counts, and marked so");
}

#[test]
fn environment_variables_that_name_another_repository_are_ignored() {
    let world = World::new();
    world.write(".git/info/exclude", ".claude/\n");
    let other_repository = world.home().join("other");
    world
        .command("git", &["init", "-q", "-b", "theirs", &other_repository.display().to_string()])
        .run()
        .expect_success();
    std::fs::write(other_repository.join("new"), "").unwrap();
    let shown = launch_with_project_settings(
        &world,
        &json!({"lines": [["git"]], "segments": {"git": {"timeout_ms": 5000}}}),
    )
    .env("GIT_DIR", other_repository.join(".git").display().to_string())
    .env("GIT_WORK_TREE", other_repository.display().to_string());
    assert_eq!(shown.run().expect_success().stdout.trim(), "⎇ main");
}

#[test]
fn a_branch_that_is_in_no_file_is_read_from_git_itself() {
    let world = World::new();
    let path = install_fake_git(&world);
    let git_program = world.home().join("programs/git");
    let script = std::fs::read_to_string(&git_program).unwrap() + "echo '# branch.head topic'\n";
    write_executable(&git_program, &script);
    // The content that `git init --ref-format=reftable` writes.
    world.write(".git/HEAD", "ref: refs/heads/.invalid\n");
    let settings =
        json!({"lines": [["git"]], "segments": {"git": {"format": "{branch}", "timeout_ms": 5000}}});
    let shown = || {
        launch_with_project_settings(&world, &settings)
            .env("PATH", &path)
            .run()
            .expect_success()
            .stdout
            .trim()
            .to_owned()
    };
    assert_eq!((shown(), shown(), count_git_calls(&world)), ("topic".to_owned(), "topic".to_owned(), 1));
}

#[test]
fn a_pipe_in_place_of_a_git_file_does_not_block_the_line() {
    let world = World::new();
    world.command("mkfifo", &[&world.path("pipe").display().to_string()]).run().expect_success();
    std::fs::rename(world.path("pipe"), world.path(".git/HEAD")).unwrap();
    assert_eq!(
        launch_with_project_settings(&world, &json!({"lines": [["git", "model"]]}))
            .run()
            .expect_success()
            .stdout
            .trim(),
        "Haiku 4.5"
    );
}
