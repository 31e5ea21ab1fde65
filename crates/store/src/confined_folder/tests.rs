#![expect(clippy::disallowed_methods, reason = "the tests lay the traps")]

use super::*;
use crate::test_links::symlink;
use plimsoll_system::files::canonicalize;
use std::fs;
use std::sync::atomic::Ordering;

/// Creates a project next to a folder with a secret.
fn project_beside_secret() -> (tempfile::TempDir, ConfinedFolder) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["project/src", "outside"] {
        fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("outside/secret"), "secret").unwrap();
    fs::write(folder.path().join("project/src/a.rs"), "fn a() {}").unwrap();
    let confined = ConfinedFolder::open(&folder.path().join("project")).unwrap();
    (folder, confined)
}

#[test]
fn files_inside_are_read_written_and_listed() {
    let (folder, confined) = project_beside_secret();
    let root = canonicalize(&folder.path().join("project")).unwrap();
    assert_eq!(confined.read_start_and_file_size("./src//a.rs", 4).unwrap(), (b"fn a".to_vec(), 9));
    assert_eq!(
        confined.read_start_and_file_size(&root.join("src/a.rs").display().to_string(), 99).unwrap().1,
        9
    );
    assert!(confined.create_or_replace("deep/er/b.txt", b"b").unwrap());
    set_mode(&File::open(root.join("deep/er/b.txt")).unwrap(), 0o755).unwrap();
    assert!(!confined.create_or_replace("deep/er/b.txt", b"bb").unwrap());
    let metadata = plimsoll_system::files::metadata(&root.join("deep/er/b.txt")).unwrap();
    assert_eq!(metadata.size(), 2);
    assert!(cfg!(windows) || metadata.mode() == 0o755, "{:o}", metadata.mode());
    symlink("a.rs", root.join("src/link")).unwrap();
    symlink("../src", root.join("deep/up")).unwrap();
    symlink(root.join("src"), root.join("whole")).unwrap();
    for path in ["src/link", "deep/up/a.rs", "whole/a.rs"] {
        assert_eq!(confined.read_start_and_file_size(path, 99).unwrap().1, 9, "{path}");
    }
    assert!(!confined.create_or_replace("src/link", b"new").unwrap());
    assert!(fs::symlink_metadata(root.join("src/link")).unwrap().is_symlink());
    assert_eq!(fs::read(root.join("src/a.rs")).unwrap(), b"new");
    let names = |path| -> Vec<String> {
        confined
            .list_sorted_by_name(path)
            .unwrap()
            .iter()
            .map(|entry| format!("{}{}", entry.name, entry.type_suffix))
            .collect()
    };
    assert_eq!(names(""), ["deep/", "src/", "whole@"]);
    assert_eq!(names("deep/up"), ["a.rs", "link@"]);
}

#[test]
fn no_path_leads_outside() {
    let (folder, confined) = project_beside_secret();
    let project = folder.path().join("project");
    symlink("../outside", project.join("relative")).unwrap();
    symlink(folder.path().join("outside"), project.join("absolute")).unwrap();
    symlink("../../outside/secret", project.join("src/file")).unwrap();
    symlink("src/../../outside", project.join("winding")).unwrap();
    symlink("/proc/self/root", project.join("magic")).unwrap();
    symlink("round", project.join("round")).unwrap();
    symlink("../outside/new", project.join("dangling")).unwrap();
    let outside = folder.path().join("outside/secret").display().to_string();
    for path in [
        "../outside/secret",
        "src/../../outside/secret",
        "src/../src/a.rs",
        &outside,
        "/etc/passwd",
        "relative/secret",
        "absolute/secret",
        "src/file",
        "winding/secret",
        "magic/etc/passwd",
        "round",
        "dangling",
        "a\0b",
    ] {
        let read_error = confined.read_start_and_file_size(path, 99).unwrap_err();
        assert!(!matches!(read_error, ConfinedError::Missing(_)), "{path}: {read_error}");
        assert!(confined.create_or_replace(path, b"x").is_err(), "{path}");
        assert!(confined.list_sorted_by_name(path).is_err(), "{path}");
    }
    assert!(confined.list_sorted_by_name("relative").is_err() && confined.list_sorted_by_name("..").is_err());
    assert!(confined.create_or_replace("relative/new/file", b"x").is_err());
    assert_eq!(fs::read(folder.path().join("outside/secret")).unwrap(), b"secret");
    assert_eq!(crate::disk::list_names(&folder.path().join("outside")), ["secret"]);
}

#[cfg(unix)]
#[test]
#[expect(clippy::disallowed_types, reason = "macOS has no call that makes a pipe and that rustix knows")]
fn no_pipe_or_socket_is_opened() {
    let (folder, confined) = project_beside_secret();
    let project = folder.path().join("project");
    let made = std::process::Command::new("mkfifo").arg(project.join("pipe")).status();
    assert!(made.unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(project.join("socket")).unwrap();
    for path in ["pipe", "socket"] {
        assert_is_not_a_file(&confined, path);
    }
}

fn assert_is_not_a_file(confined: &ConfinedFolder, path: &str) {
    assert!(matches!(confined.read_start_and_file_size(path, 9), Err(ConfinedError::NotAFile(..))), "{path}");
    assert!(matches!(confined.create_or_replace(path, b"x"), Err(ConfinedError::NotAFile(..))), "{path}");
}

#[test]
fn only_plain_files_are_opened() {
    let (_folder, confined) = project_beside_secret();
    for path in ["src", ""] {
        assert_is_not_a_file(&confined, path);
    }
    assert!(matches!(confined.read_start_and_file_size("src/a.rs/b", 9), Err(ConfinedError::NotAFolder(_))));
    assert!(matches!(confined.list_sorted_by_name("src/a.rs"), Err(ConfinedError::NotAFolder(_))));
    assert!(matches!(confined.read_start_and_file_size("no", 9), Err(ConfinedError::Missing(_))));
    assert!(matches!(confined.list_sorted_by_name("no/no"), Err(ConfinedError::Missing(_))));
}

#[test]
fn a_link_that_appears_and_disappears_never_leads_outside() {
    let (folder, confined) = project_beside_secret();
    let project = folder.path().join("project");
    fs::create_dir(project.join("real")).unwrap();
    fs::write(project.join("real/secret"), "inside").unwrap();
    let linked_folder = project.join("gate");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = fs::rename(project.join("real"), project.join("door"));
                let _ = fs::rename(project.join("door"), project.join("real"));
                let _ = symlink("../outside", project.join("door"));
                let _ = fs::remove_file(project.join("door"));
                let _ = symlink("../outside", &linked_folder);
                let _ = fs::remove_file(&linked_folder);
                let _ = fs::create_dir(&linked_folder);
                let _ = fs::remove_dir_all(&linked_folder);
            }
        });
        let mut reads_inside = 0;
        // On a busy machine the other thread may not have started after ten thousand attempts of this one.
        let started_at = std::time::Instant::now();
        let mut attempts = 0;
        while attempts < 10_000 || reads_inside == 0 && started_at.elapsed().as_secs() < 20 {
            attempts += 1;
            if let Ok((bytes, _)) = confined.read_start_and_file_size("door/secret", 99) {
                assert_eq!(bytes, b"inside");
                reads_inside += 1;
            }
            let _ = confined.create_or_replace("gate/written", b"x");
        }
        stop.store(true, Ordering::Relaxed);
        assert!(reads_inside > 0, "the door was never open");
    });
    assert_eq!(crate::disk::list_names(&folder.path().join("outside")), ["secret"]);
}
