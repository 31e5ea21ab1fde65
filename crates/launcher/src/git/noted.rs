//! Without filters a file under one seems changed wherever git looks into it: what is on the disk is not what is
//! stored. It does so after a checkout within the same second. Where size and time are those that git has noted, nobody
//! has written the file since.

use super::question::{self, filters_of};
use super::text;
use crate::time_limit::TimeLimit;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// More names than this do not go into one question; then all of them count as changed.
const MOST_ASKED: usize = 500;

/// Those of these paths, named from the root of the working tree on, that are under a filter and as git has noted them.
pub(super) fn unwritten(folder: &Path, changed: &[String], limit: TimeLimit) -> BTreeSet<String> {
    find(folder, changed, limit).unwrap_or_default()
}

fn find(folder: &Path, changed: &[String], limit: TimeLimit) -> Option<BTreeSet<String>> {
    if changed.is_empty() {
        return None;
    }
    let command = super::asking(folder, &["rev-parse", "--show-toplevel"], limit).ok()?;
    let root = PathBuf::from(text(&crate::run(command, limit.left())));
    let under = filters_of(&root, &mut changed.iter().map(String::as_bytes), limit).ok()?;
    if under.is_empty() || under.len() > MOST_ASKED {
        return None;
    }
    let names: Vec<String> =
        under.iter().map(|(path, _)| format!(":(literal){}", String::from_utf8_lossy(path))).collect();
    let mut question = vec!["ls-files", "-z", "--debug", "--"];
    question.extend(names.iter().map(String::as_str));
    let list = question::answer(&root, &question, None, limit).ok()?;
    Some(
        entries(&list)
            .filter(|(path, noted)| is_as(&root.join(OsStr::from_bytes(path)), *noted))
            .map(name)
            .collect(),
    )
}

fn name((path, _): (&[u8], Noted)) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// What git knows of a file without looking into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Noted {
    seconds: i64,
    nanoseconds: i64,
    size: u64,
}

/// Git keeps four bytes of the size, and no nanoseconds where it was built without.
fn is_as(path: &Path, noted: Noted) -> bool {
    path.symlink_metadata().is_ok_and(|found| {
        found.mtime() == noted.seconds
            && (noted.nanoseconds == 0 || found.mtime_nsec() == noted.nanoseconds)
            && found.len() & 0xffff_ffff == noted.size
    })
}

/// Each path and a zero byte, then lines: `  mtime: 1700000000:123`, `  size: 8<tab>flags: 0`. The next path follows the
/// last line.
fn entries(list: &[u8]) -> impl Iterator<Item = (&[u8], Noted)> {
    // `--debug` prints ctime, mtime, dev and ino, uid and gid, size and flags.
    const LINES: usize = 5;
    let mut rest = list;
    std::iter::from_fn(move || {
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (path, after) = (&rest[..end], &rest[end + 1..]);
        let length = after.split_inclusive(|byte| *byte == b'\n').take(LINES).map(<[u8]>::len).sum();
        let lines = String::from_utf8_lossy(after.get(..length)?);
        rest = after.get(length..)?;
        let value = |name: &str| lines.lines().find_map(|line| line.trim_start().strip_prefix(name));
        let (seconds, nanoseconds) = value("mtime: ")?.split_once(':')?;
        let size = value("size: ")?.split('\t').next()?;
        let noted = Noted {
            seconds: seconds.parse().ok()?,
            nanoseconds: nanoseconds.parse().ok()?,
            size: size.parse().ok()?,
        };
        Some((path, noted))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_has_noted_of_each_file_is_read() {
        let of = |path: &str, size: u64| {
            format!(
                "{path}\0  ctime: 1:2\n  mtime: 1700000000:7\n  dev: 1\tino: 2\n  uid: 0\tgid: 0\n  size: {size}\tflags: 0\n"
            )
        };
        let list = of("a", 8) + &of("b c", 9);
        let found: Vec<_> = entries(list.as_bytes()).collect();
        let noted = |size| Noted { seconds: 1_700_000_000, nanoseconds: 7, size };
        assert_eq!(found, [(&b"a"[..], noted(8)), (b"b c", noted(9))]);
    }

    #[test]
    fn a_file_under_a_filter_that_nobody_has_written_is_not_counted_as_changed() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let sh = |line: &str| {
            let outcome = crate::shell(line, at, std::time::Duration::from_secs(20));
            assert!(outcome.succeeded(), "{line}: {}", String::from_utf8_lossy(&outcome.stderr));
        };
        sh("git init -q -b main; git config user.email a@b; git config user.name n");
        sh(
            "git config filter.up.clean 'tr a-z A-Z'; echo '*.up filter=up' > .gitattributes; mkdir d; echo one > d/a.up; echo b > b",
        );
        sh("git add -A; git commit -qm up");
        // As if the index had been written in the same second: git looks into each file.
        sh("touch -d 2030-01-01 d/a.up b; git update-index -q --refresh; touch -d 2020-01-01 .git/index");
        let count = || match crate::git::count(at, std::time::Duration::from_secs(20)) {
            crate::git::Counted::As(counts, _) => counts.modified,
            other => panic!("{other:?}"),
        };
        let files = || -> Vec<String> {
            let work = crate::git::work(&at.join("d"), crate::git::Since::Head, &[]).unwrap();
            work.files.into_iter().map(|file| file.path).collect()
        };
        assert_eq!((count(), files()), (0, vec![]));
        sh("echo two > b; echo two, and longer > d/a.up");
        assert_eq!((count(), files()), (2, vec!["a.up".to_owned()]));
    }
}
