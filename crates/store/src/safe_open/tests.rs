#![expect(clippy::disallowed_methods, reason = "the tests lay the traps")]

use super::*;
use crate::disk::{self, Durability};
use crate::test_links::symlink;
use std::fs;

/// Creates a project next to a folder with a secret.
fn project_beside_secret() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["project/.claude/plimsoll", "project/docs", "project/.git/hooks", "outside"] {
        fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("outside/secret"), "secret").unwrap();
    let project = folder.path().join("project");
    register_root_merging_covered_git_roots(&project, RootKind::Project);
    (folder, project)
}

#[cfg(unix)]
#[expect(clippy::disallowed_types, reason = "macOS has no call for it that rustix knows")]
fn make_pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Runs every operation on a file; returns their names and results.
fn try_file_operations(path: &Path) -> Vec<(&'static str, Result<(), StoreError>)> {
    vec![
        ("read", disk::read(path).map(drop)),
        ("replace", disk::replace(path, b"ours", Durability::Lazy)),
        ("append", disk::append(path, b"ours")),
        ("append_line", disk::append_line(path, "ours")),
        ("cut", disk::truncate_and_sync(path, 0)),
        ("open", disk::open(path).map(drop)),
        ("lock", crate::lock::acquire(path, std::time::Duration::ZERO).map(drop)),
    ]
}

fn assert_all_refused(path: &Path) {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    for (operation, result) in try_file_operations(path) {
        let error = result.expect_err(&format!("{operation} {}", path.display())).to_string();
        assert!(error.contains(&name), "{operation}: {error}");
    }
}

#[test]
fn no_file_is_written_through_a_hard_link() {
    let (folder, project) = project_beside_secret();
    let secret = folder.path().join("outside/secret");
    for name in [".claude/plimsoll/journal.jsonl", "docs/plan.md", ".git/hooks/log"] {
        let path = project.join(name);
        fs::hard_link(&secret, &path).unwrap();
        for (operation, result) in [
            ("append", disk::append(&path, b"ours")),
            ("append_line", disk::append_line(&path, "ours")),
            ("cut", disk::truncate_and_sync(&path, 0)),
            ("lock", crate::lock::acquire(&path, std::time::Duration::ZERO).map(drop)),
        ] {
            assert!(matches!(result, Err(StoreError::HardLinked { .. })), "{operation} {name}: {result:?}");
        }
        // A file that is replaced has only one name, and can be written from then on.
        disk::replace(&path, b"ours\n", Durability::Lazy).unwrap();
        disk::append_line(&path, "more").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"ours\nmore\n");
        assert_eq!(fs::read(&secret).unwrap(), b"secret");
    }
    // Outside of projects the user's own hard links are used.
    let second = folder.path().join("outside/second");
    fs::hard_link(&secret, &second).unwrap();
    disk::append(&second, b"!").unwrap();
    assert_eq!(fs::read(&secret).unwrap(), b"secret!");
}

#[test]
fn no_link_leads_out_of_a_project() {
    let (folder, project) = project_beside_secret();
    let outside = folder.path().join("outside");
    for (link, target) in [
        (".claude/plimsoll/journal.jsonl", outside.join("secret")),
        (".claude/plimsoll/missing.jsonl", outside.join("missing")),
        (".claude/plimsoll/relative.jsonl", "../../../outside/secret".into()),
        ("PROMPT.md", outside.join("secret")),
        ("docs/plan.md", "../../outside/missing".into()),
    ] {
        symlink(&target, project.join(link)).unwrap();
        assert_all_refused(&project.join(link));
        assert!(!disk::exists(&project.join(link)), "{link}");
    }
    symlink(&outside, project.join(".claude/handoffs")).unwrap();
    assert_all_refused(&project.join(".claude/handoffs/secret"));
    let new = project.join(".claude/handoffs/new");
    assert!(disk::create_new(&new, b"x").is_err() && disk::create_folder(&new).is_err());
    assert!(disk::remove_if_exists(&project.join(".claude/handoffs/secret")).is_err());
    assert!(disk::rename(&project.join(".claude/handoffs/secret"), &project.join("stolen")).is_err());
    assert!(disk::rename(&project.join("docs"), &project.join(".claude/handoffs/docs")).is_err());
    assert_eq!(disk::list_names(&project.join(".claude/handoffs")), [""; 0]);
    assert_eq!(disk::list_names(&outside), ["secret"], "nothing was made there");
    assert_eq!(fs::read(outside.join("secret")).unwrap(), b"secret");
}

#[test]
fn a_link_of_the_user_is_kept_and_its_target_is_written() {
    let (_folder, project) = project_beside_secret();
    fs::write(project.join("docs/task.md"), "task").unwrap();
    symlink("docs/task.md", project.join("PROMPT.md")).unwrap();
    symlink(project.join("docs/task.md"), project.join("absolute.md")).unwrap();
    symlink("docs", project.join("linked")).unwrap();
    for path in ["PROMPT.md", "absolute.md", "linked/task.md"] {
        assert_eq!(disk::read(&project.join(path)).unwrap().unwrap(), b"task", "{path}");
        disk::replace(&project.join(path), path.as_bytes(), Durability::Lazy).unwrap();
        assert_eq!(fs::read(project.join("docs/task.md")).unwrap(), path.as_bytes());
        fs::write(project.join("docs/task.md"), "task").unwrap();
    }
    assert!(disk::is_link(&project.join("PROMPT.md")));
    disk::append(&project.join("PROMPT.md"), b"!").unwrap();
    assert_eq!(fs::read(project.join("docs/task.md")).unwrap(), b"task!");
    assert_eq!(disk::file_size(&project.join("PROMPT.md")), Some(5));
    disk::replace(&project.join("linked/deep/new.md"), b"new", Durability::Lazy).unwrap();
    assert_eq!(fs::read(project.join("docs/deep/new.md")).unwrap(), b"new");
}

#[test]
fn no_link_leads_our_text_to_a_file_that_is_executed() {
    let (_folder, project) = project_beside_secret();
    let hook = project.join(".git/hooks/pre-commit");
    fs::write(&hook, "#!/bin/sh\n").unwrap();
    fs::write(project.join(".claude/settings.json"), "{}").unwrap();
    fs::write(project.join("Makefile"), "all:\n").unwrap();
    symlink(".git/hooks/pre-commit", project.join("PROMPT.md")).unwrap();
    symlink(".claude/settings.json", project.join("progress.txt")).unwrap();
    symlink("../../Makefile", project.join(".claude/plimsoll/journal.jsonl")).unwrap();
    fs::create_dir(project.join(".git/plimsoll")).unwrap();
    symlink("../hooks/pre-commit", project.join(".git/plimsoll/todo.md")).unwrap();
    for path in ["PROMPT.md", "progress.txt", ".claude/plimsoll/journal.jsonl", ".git/plimsoll/todo.md"] {
        let path = project.join(path);
        disk::replace(&path, b"ours", Durability::Lazy).unwrap_err();
        let error = disk::append(&path, b"ours").unwrap_err();
        assert!(matches!(error, StoreError::LinkNotFollowed { .. }), "{error}");
    }
    assert_eq!(fs::read(&hook).unwrap(), b"#!/bin/sh\n");
}

#[test]
fn no_spelling_of_a_file_that_is_executed_is_linked() {
    let (_folder, project) = project_beside_secret();
    fs::write(project.join(".git/hooks/pre-commit"), "#!/bin/sh\n").unwrap();
    fs::write(project.join(".claude/settings.json"), "{}").unwrap();
    // On Linux these are hard links and folders of their own; a volume that ignores case already has most of them.
    fs::hard_link(project.join(".claude/settings.json"), project.join(".claude/notes.md")).unwrap();
    fs::hard_link(project.join(".claude/settings.json"), project.join("docs/notes.md")).unwrap();
    for folder in [".GIT/hooks", ".Claude/Skills", ".g\u{200c}it"] {
        fs::create_dir_all(project.join(folder)).unwrap();
    }
    let plan = project.join("plan.md");
    for (target, is_refused) in [
        (".GIT/config", true),
        (".GIT/hooks/pre-commit", true),
        ("docs/.Git", true),
        (".g\u{200c}it/config", true),
        (".Claude/Settings.json", true),
        (".claude/SETTINGS.LOCAL.JSON", true),
        (".Claude/Skills/a.md", true),
        (".claude/\u{17f}ettings.json", true),
        (".claude/s\u{212a}ills", true),
        (".claude/pläne.md", true),
        (".claude/notes.md", true),
        (".Claude/plan.md", false),
        (".claude/ideas.md", false),
        ("docs/pläne.md", false),
        ("docs/notes.md", false),
        ("docs/settings.json", false),
        ("docs/.gitignore", false),
    ] {
        symlink(target, &plan).unwrap();
        let result = disk::replace(&plan, b"ours", Durability::Lazy);
        let is_expected = match &result {
            Ok(()) => !is_refused,
            Err(error) => is_refused && matches!(error, StoreError::LinkNotFollowed { .. }),
        };
        assert!(is_expected, "{target}: {result:?}");
        fs::remove_file(&plan).unwrap();
    }
    assert_eq!(fs::read(project.join(".claude/settings.json")).unwrap(), b"{}");
}

#[test]
fn no_link_leads_into_the_target_of_a_linked_client_folder() {
    let (_folder, project) = project_beside_secret();
    fs::rename(project.join(".claude"), project.join("docs/claude")).unwrap();
    fs::rename(project.join(".git"), project.join("docs/git")).unwrap();
    symlink("docs/claude", project.join(".claude")).unwrap();
    symlink("docs/git", project.join(".git")).unwrap();
    for (target, is_refused) in [
        ("docs/claude/settings.json", true),
        ("docs/claude/hooks/new", true),
        ("docs/git/config", true),
        ("docs/claude/plan.md", false),
        ("docs/plan.md", false),
    ] {
        symlink(target, project.join("plan.md")).unwrap();
        let result = disk::replace(&project.join("plan.md"), b"ours", Durability::Lazy);
        assert_eq!(result.is_err(), is_refused, "{target}: {result:?}");
        fs::remove_file(project.join("plan.md")).unwrap();
    }
}

#[test]
fn a_linked_client_folder_inside_the_project_is_used() {
    let (_folder, project) = project_beside_secret();
    fs::rename(project.join(".claude"), project.join("docs/claude")).unwrap();
    symlink("docs/claude", project.join(".claude")).unwrap();
    let journal = project.join(".claude/plimsoll/journal.jsonl");
    disk::append_line(&journal, "one").unwrap();
    assert_eq!(disk::read(&journal).unwrap().unwrap(), b"one\n");
    assert!(disk::is_folder(&project.join(".claude/plimsoll")));
}

#[cfg(unix)]
#[test]
fn no_pipe_or_device_is_opened_and_opening_never_blocks() {
    let (folder, project) = project_beside_secret();
    for path in [project.join(".claude/plimsoll/pipe"), folder.path().join("outside/pipe")] {
        make_pipe(&path);
        assert_all_refused(&path);
    }
    // A device to which nothing is written: root could replace another one.
    assert!(matches!(disk::read(Path::new("/dev/zero")), Err(StoreError::NotAFile { .. })));
    symlink("/dev/zero", project.join("zero.md")).unwrap();
    assert!(disk::read(&project.join("zero.md")).is_err() && disk::open(&project.join("zero.md")).is_err());
}

#[test]
fn a_folder_is_not_opened_as_a_file() {
    let (folder, project) = project_beside_secret();
    for path in [project.join(".claude/plimsoll/folder"), folder.path().join("outside/folder")] {
        fs::create_dir(&path).unwrap();
        assert_all_refused(&path);
    }
}

#[test]
fn a_file_larger_than_the_limit_is_named_and_not_read() {
    let (_folder, project) = project_beside_secret();
    let path = project.join("PROMPT.md");
    File::create(&path).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
    let error = disk::read(&path).unwrap_err();
    assert!(
        matches!(error, StoreError::TooLarge { .. }) && error.to_string().contains("PROMPT.md"),
        "{error}"
    );
}

#[test]
fn the_walk_behaves_the_same_without_openat2() {
    files::set_openat2_enabled(false);
    no_link_leads_out_of_a_project();
    a_link_of_the_user_is_kept_and_its_target_is_written();
    no_link_leads_our_text_to_a_file_that_is_executed();
    a_linked_client_folder_inside_the_project_is_used();
    #[cfg(unix)]
    no_pipe_or_device_is_opened_and_opening_never_blocks();
    a_folder_is_not_opened_as_a_file();
    a_file_larger_than_the_limit_is_named_and_not_read();
    files::set_openat2_enabled(true);
}

#[test]
fn a_draft_has_a_name_that_cannot_be_guessed() {
    let (folder, project) = project_beside_secret();
    let entry = FolderEntry::for_path(&project.join("PROMPT.md"), FinalLink::Follow, true).unwrap();
    let names: Vec<_> = (0..3).map(|_| entry.new_temporary_name()).collect();
    assert!(names[0] != names[1] && names[1] != names[2], "{names:?}");
    let guessable_draft =
        project.join(format!(".PROMPT.md.{}.0{}", std::process::id(), disk::TEMPORARY_FILE_SUFFIX));
    symlink(folder.path().join("outside/secret"), guessable_draft).unwrap();
    disk::replace(&project.join("PROMPT.md"), b"ours", Durability::Lazy).unwrap();
    assert_eq!(fs::read(folder.path().join("outside/secret")).unwrap(), b"secret");
}
