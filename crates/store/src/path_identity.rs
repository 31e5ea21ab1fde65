//! Compares paths by what they lead to, because one file or folder can have several paths: through links, `..`, a
//! bind mount, or in another spelling on a volume that ignores case. Unlike a resolved path, this also works for paths
//! that do not exist yet.
//!
//! All functions compare the text of the paths first, and make system calls only if that is not enough.
#![expect(clippy::disallowed_methods, reason = "part of the door to the disk")]

use plimsoll_domain::file_names::{is_same_name_ignoring_case, may_be_same_name};
use plimsoll_system::files::{
    FileIdentity, canonicalize, is_absolute_and_normalized, link_metadata, metadata,
};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The limit of Linux (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;

/// Returns true if two paths lead to the same file or folder, or would if it existed. The missing parts of the paths
/// are compared ignoring case.
pub fn is_same_path(left: &Path, right: &Path) -> bool {
    if left == right {
        return true;
    }
    if let (Ok(left), Ok(right)) = (metadata(left), metadata(right)) {
        return left.identity() == right.identity();
    }
    let (left, right) = (ResolvedPath::resolve(left), ResolvedPath::resolve(right));
    let is_same_missing_name = |(left, right): (&OsString, &OsString)| {
        left == right || is_same_name_ignoring_case(&left.to_string_lossy(), &right.to_string_lossy())
    };
    left.existing_part == right.existing_part
        && left.missing_names.len() == right.missing_names.len()
        && left.missing_names.iter().zip(&right.missing_names).all(is_same_missing_name)
}

/// Returns true if a path is `folder`, is below it, or passes through it on the way to its destination. A session that
/// may write the folder decides where such a path leads. Neither needs to exist.
pub fn is_inside(folder: &Path, path: &Path) -> bool {
    is_inside_by_text(folder, path)
        || ResolvedPath::resolve(path).passes_through(&ResolvedPath::resolve(folder))
}

fn is_inside_by_text(folder: &Path, path: &Path) -> bool {
    folder.is_absolute() && is_absolute_and_normalized(path) && path.starts_with(folder)
}

/// Several folders, which are resolved only once to look for many paths in them.
#[derive(Debug, Clone)]
pub struct ResolvedFolders {
    folders: Vec<(PathBuf, ResolvedPath)>,
}

impl ResolvedFolders {
    /// Resolves the folders. If one is replaced later, it is still recognized by its text.
    pub fn resolve(folders: impl IntoIterator<Item = PathBuf>) -> ResolvedFolders {
        let with_resolved_path = |folder: PathBuf| {
            let resolved_path = ResolvedPath::resolve(&folder);
            (folder, resolved_path)
        };
        ResolvedFolders { folders: folders.into_iter().map(with_resolved_path).collect() }
    }

    /// Returns true if a path [is inside](is_inside) one of the folders.
    pub fn contain(&self, path: &Path) -> bool {
        if self.folders.iter().any(|(folder, _)| is_inside_by_text(folder, path)) {
            return true;
        }
        let resolved_path = ResolvedPath::resolve(path);
        self.folders.iter().any(|(_, folder)| resolved_path.passes_through(folder))
    }
}

/// Returns the relative path with the names that the folders list, if `relative_path` leads to the same file in another
/// spelling. Returns `None` if nothing is at the path.
fn on_disk_spelling(root: &Path, relative_path: &Path) -> Option<PathBuf> {
    let mut spelled_path = PathBuf::new();
    for component in relative_path.components() {
        let folder = root.join(&spelled_path);
        let name = match component {
            Component::Normal(name) => name,
            Component::CurDir => continue,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                spelled_path.push(component);
                continue;
            }
        };
        let identity = identity_of_entry(&folder.join(name))?;
        let names: Vec<OsString> =
            fs::read_dir(&folder).ok()?.flatten().map(|entry| entry.file_name()).collect();
        let is_same_entry =
            |other_name: &OsStr| identity_of_entry(&folder.join(other_name)) == Some(identity);
        spelled_path.push(listed_spelling_of_name(&names, name, is_same_entry).unwrap_or(name));
    }
    Some(spelled_path)
}

/// Returns the relative path in [the spelling on disk](on_disk_spelling), or unchanged if nothing is there or the names
/// are not UTF-8.
pub fn on_disk_spelling_or_keep(root: &Path, relative_path: &str) -> String {
    on_disk_spelling(root, Path::new(relative_path))
        .and_then(|path| path.into_os_string().into_string().ok())
        .unwrap_or_else(|| relative_path.to_owned())
}

/// Returns the listed name of an entry that exists under `name`. A listed `name` is always taken, and names that
/// differ in more than case and normalization never are, because they may be other hard links of the file.
fn listed_spelling_of_name<'n>(
    listed_names: &'n [OsString],
    name: &OsStr,
    is_same_entry: impl Fn(&OsStr) -> bool,
) -> Option<&'n OsStr> {
    let text = name.to_string_lossy();
    let find = |is_candidate: &dyn Fn(&OsStr) -> bool| {
        listed_names.iter().map(OsString::as_os_str).find(|other_name| is_candidate(other_name))
    };
    find(&|other_name| other_name == name)
        .or_else(|| {
            find(&|other_name| {
                is_same_name_ignoring_case(&other_name.to_string_lossy(), &text) && is_same_entry(other_name)
            })
        })
        .or_else(|| {
            find(&|other_name| {
                may_be_same_name(&other_name.to_string_lossy(), &text) && is_same_entry(other_name)
            })
        })
}

/// Returns the identity of what is at a path, without following a link.
fn identity_of_entry(path: &Path) -> Option<FileIdentity> {
    link_metadata(path).ok().map(|metadata| metadata.identity())
}

/// A path whose links and `..` are resolved as far as it exists.
#[derive(Debug, Clone)]
struct ResolvedPath {
    /// All folders in which the path looks up a name.
    traversed_folders: Vec<FileIdentity>,
    /// The identity of the last existing part of the path. `None` only if the root folder cannot be inspected.
    existing_part: Option<FileIdentity>,
    /// The names after the last existing part.
    missing_names: Vec<OsString>,
}

impl ResolvedPath {
    fn resolve(path: &Path) -> ResolvedPath {
        let absolute_path = if path.is_relative()
            && let Ok(current_folder) = canonicalize(Path::new("."))
        {
            Cow::Owned(current_folder.join(path))
        } else {
            Cow::Borrowed(path)
        };
        let mut pending_names = VecDeque::from(names_and_dot_dots(&absolute_path));
        let mut existing_path = root_of(&absolute_path);
        let mut resolved = ResolvedPath {
            traversed_folders: Vec::new(),
            existing_part: identity_of_entry(&existing_path),
            missing_names: Vec::new(),
        };
        let mut link_count = 0;
        while let Some(name) = pending_names.pop_front() {
            if name == ".." {
                if resolved.missing_names.pop().is_none() && existing_path.pop() {
                    resolved.existing_part = identity_of_entry(&existing_path);
                }
                continue;
            }
            if !resolved.missing_names.is_empty() {
                resolved.missing_names.push(name);
                continue;
            }
            resolved.traversed_folders.extend(resolved.existing_part);
            let entry_path = existing_path.join(&name);
            match link_metadata(&entry_path) {
                Err(_) => resolved.missing_names.push(name),
                Ok(metadata) if metadata.is_link() => {
                    link_count += 1;
                    match fs::read_link(&entry_path) {
                        Ok(target) if link_count <= MAX_LINKS => {
                            if target.has_root() {
                                existing_path = root_of(&existing_path.join(&target));
                                resolved.existing_part = identity_of_entry(&existing_path);
                            }
                            let target_names = names_and_dot_dots(&target);
                            target_names.into_iter().rev().for_each(|name| pending_names.push_front(name));
                        }
                        _ => resolved.missing_names.push(name),
                    }
                }
                Ok(metadata) => {
                    resolved.existing_part = Some(metadata.identity());
                    existing_path = entry_path;
                }
            }
        }
        resolved
    }

    fn passes_through(&self, folder: &ResolvedPath) -> bool {
        let Some(existing_part_of_folder) = folder.existing_part else { return false };
        let ends_in_same_part = self.existing_part == Some(existing_part_of_folder);
        if folder.missing_names.is_empty() {
            return ends_in_same_part || self.traversed_folders.contains(&existing_part_of_folder);
        }
        ends_in_same_part
            && self.missing_names.len() >= folder.missing_names.len()
            && self.missing_names.iter().zip(&folder.missing_names).all(|(name, folder_name)| {
                name == folder_name
                    || may_be_same_name(&name.to_string_lossy(), &folder_name.to_string_lossy())
            })
    }
}

/// Returns the root folder of a path: `/`, or `C:\\` on Windows.
fn root_of(path: &Path) -> PathBuf {
    let is_root = |component: &Component<'_>| matches!(component, Component::Prefix(_) | Component::RootDir);
    let root: PathBuf = path.components().take_while(is_root).collect();
    if root.has_root() { root } else { PathBuf::from("/") }
}

/// Returns the names of a path and its `..`, without the root and `.`.
fn names_and_dot_dots(path: &Path) -> Vec<OsString> {
    let is_kept =
        |component: &Component<'_>| matches!(component, Component::Normal(_) | Component::ParentDir);
    path.components().filter(is_kept).map(|component| component.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_links::symlink;

    /// Creates `real/project/src/a.txt` and links that spell the same folders differently: `alias` leads to
    /// `real`, and `soon` to the missing `real/later`. Adds `src/out`, a link to `other`.
    fn create_folders() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = canonicalize(folder.path()).unwrap();
        fs::create_dir_all(root.join("real/project/src")).unwrap();
        fs::create_dir_all(root.join("other/deep")).unwrap();
        fs::write(root.join("real/project/src/a.txt"), "a").unwrap();
        fs::write(root.join("other/a.txt"), "a").unwrap();
        symlink("real", root.join("alias")).unwrap();
        symlink(root.join("real/later"), root.join("soon")).unwrap();
        symlink("../../../other", root.join("real/project/src/out")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        (folder, root)
    }

    /// Returns true if `A` leads to `a` in this folder.
    fn ignores_case(folder: &Path) -> bool {
        fs::write(folder.join("case-probe"), "").unwrap();
        let identity_of = |name: &str| identity_of_entry(&folder.join(name));
        identity_of("Case-Probe") == identity_of("case-probe")
    }

    #[test]
    fn a_path_is_the_same_under_every_spelling() {
        let (_folder, root) = create_folders();
        let on_such_a_volume = ignores_case(&root);
        for (left, right, expected) in [
            ("real/project", "real/project", true),
            ("real/project", "alias/project", true),
            ("real/project", "real/project/src/..", true),
            ("real/project", "alias/../real/./project/", true),
            ("real/project/src/out/a.txt", "other/a.txt", true),
            ("real/project", "real", false),
            ("real/project/src/a.txt", "other/a.txt", false),
            // Neither exists.
            ("real/new/x", "alias/new/x", true),
            ("real/new/x", "alias/new/../new/x", true),
            ("real/later/x", "soon/x", true),
            ("real/new/x", "alias/NEW/x", true),
            ("real/new/x", "real/new", false),
            ("real/new/x", "other/new/x", false),
            ("loop", "loop/x", false),
            // Only one exists, so they are different on a volume that distinguishes case.
            ("real/project", "real/PROJECT", on_such_a_volume),
            ("real/project/src/a.txt", "REAL/Project/src/A.TXT", on_such_a_volume),
        ] {
            for (left, right) in [(left, right), (right, left)] {
                assert_eq!(is_same_path(&root.join(left), &root.join(right)), expected, "{left} {right}");
            }
        }
    }

    #[test]
    fn a_path_is_inside_a_folder_under_every_spelling_of_both() {
        let (_folder, root) = create_folders();
        let on_such_a_volume = ignores_case(&root);
        for (folder, path, expected) in [
            ("real/project", "real/project", true),
            ("real/project", "real/project/src/a.txt", true),
            ("real/project", "alias/project/src", true),
            ("alias/project", "real/project/new/file", true),
            ("real/project", "other/../alias/project/new/file", true),
            ("real/project", "real/project/../project/x", true),
            ("real/project", "real/project/..", false),
            ("real/project", "real/project/../other", false),
            // A session can replace `src` by a link.
            ("real/project", "real/project/src/../../other", true),
            ("real/project/src/out", "other/deep", true),
            // The path ends outside, but a session in the project can change the link.
            ("real/project", "alias/project/src/out/deep", true),
            ("real/project", "real/project-2/x", false),
            ("real/project", "other/deep", false),
            ("real/project", "real", false),
            ("real/project/src", "real/project/new/src", false),
            // The folder does not exist yet.
            ("real/later", "soon", true),
            ("soon", "alias/later/runs", true),
            ("soon/deep", "real/later/deep/runs", true),
            ("real/later", "alias/Later/runs", true),
            ("other/../alias/later", "real/later/runs", true),
            ("real/later/deep", "real/later", false),
            ("real/later", "real/other/runs", false),
            ("real/later", "other/later/runs", false),
            ("loop", "loop/x", true),
            ("real/project", "loop/x", false),
            ("real/project", "real/Project/src", on_such_a_volume),
            ("REAL/Project", "real/project/src/new", on_such_a_volume),
        ] {
            assert_eq!(is_inside(&root.join(folder), &root.join(path)), expected, "{folder} {path}");
            let folders = ResolvedFolders::resolve([root.join("missing"), root.join(folder)]);
            assert_eq!(folders.contain(&root.join(path)), expected, "{folder} {path}");
        }
        assert!(is_inside(Path::new("/"), &root), "the root contains everything");
        assert!(is_inside(&root, &root.join("x")) && !is_inside(&root, Path::new("x")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_path_through_the_current_folder_of_the_process_is_recognized() {
        let current_folder = canonicalize(Path::new(".")).unwrap();
        assert!(is_inside(&current_folder, Path::new("/proc/self/cwd/new/file")));
        assert!(is_inside(&current_folder, Path::new("new/file")));
        assert!(!is_inside(&current_folder, Path::new("../file")));
    }

    #[test]
    fn a_name_gets_the_spelling_that_its_folder_lists() {
        let listed =
            ["fix_plan.md", "Other.md", "gro\u{308}ße", "STRASSE", "Fix_Plan.md.bak"].map(OsString::from);
        // The names that are the same file as the one that is looked up.
        for (name, same_entries, expected) in [
            ("fix_plan.md", &[][..], Some("fix_plan.md")),
            ("FIX_PLAN.md", &["fix_plan.md"], Some("fix_plan.md")),
            // Other hard links of the file, or other files of a volume that distinguishes case.
            ("FIX_PLAN.md", &["Other.md"], None),
            ("FIX_PLAN.md", &[], None),
            ("größe", &["gro\u{308}ße"], Some("gro\u{308}ße")),
            ("straße", &["gro\u{308}ße", "STRASSE"], Some("STRASSE")),
        ] {
            let is_same_entry = |other_name: &OsStr| same_entries.iter().any(|entry| other_name == *entry);
            let spelling = listed_spelling_of_name(&listed, OsStr::new(name), is_same_entry);
            assert_eq!(spelling, expected.map(OsStr::new), "{name}");
        }
    }

    #[test]
    fn a_path_gets_the_spelling_on_disk() {
        let (_folder, root) = create_folders();
        fs::hard_link(root.join("other/a.txt"), root.join("other/A.TXT.copy")).unwrap();
        let mut rows = vec![
            ("real/project/src/a.txt", Some("real/project/src/a.txt")),
            ("./alias/project", Some("alias/project")),
            ("real/../other/A.TXT.copy", Some("real/../other/A.TXT.copy")),
            ("real/missing", None),
        ];
        if ignores_case(&root) {
            rows.extend([
                ("REAL/project/SRC/A.txt", Some("real/project/src/a.txt")),
                ("Other/a.txt.COPY", Some("other/A.TXT.copy")),
            ]);
        }
        for (path, expected) in rows {
            let spelling = on_disk_spelling(&root, Path::new(path));
            assert_eq!(spelling.as_deref(), expected.map(Path::new), "{path}");
        }
    }
}
