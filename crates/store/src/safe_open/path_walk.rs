//! Resolves a path below a root, one part at a time.
//!
//! Each part is opened by its name in its parent folder, and links are followed by this code, never by the system.
//! So no link leads outside, not even one that is created during the walk.

use plimsoll_domain::file_names::is_same_name_ignoring_case;
use plimsoll_system::files::{
    FileIdentity, FileType, Folder, Metadata, split_relative_path, strip_folder, too_many_links_error,
};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// The limit of Linux (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;

/// Which links are followed. Links that lead out of the root are never followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SymlinkPolicy {
    /// Every link that stays inside the root.
    InsideRoot,
    /// Every link that stays inside the root, except links to files whose content is executed: those in `.git`, and
    /// files that the client runs.
    InsideExceptCommandFiles,
    /// Only the first part of the path may be a link, for example a linked `.claude`.
    FirstPartOnly,
    /// No link is followed.
    None,
}

/// The settings of a walk from a root.
#[derive(Debug)]
pub(crate) struct PathWalk<'a> {
    pub(crate) root_folder: &'a Folder,
    /// The paths of the root with which the target of an absolute link may begin.
    pub(crate) root_paths: &'a [&'a Path],
    pub(crate) symlink_policy: SymlinkPolicy,
    /// The mode with which missing parent folders are created; `None` if a missing folder is an error.
    pub(crate) create_mode: Option<u32>,
    /// False if a link in the last part is itself the destination.
    pub(crate) follow_last_link: bool,
}

/// Why a walk failed.
#[derive(Debug)]
pub(crate) enum WalkError {
    /// The path itself is not below the root.
    OutsideRoot,
    /// The path contains a link that is not followed.
    LinkNotFollowed {
        /// The name of the link.
        link: OsString,
        /// The target of the link.
        target: PathBuf,
        /// True if the target is outside the root.
        leads_outside_root: bool,
    },
    /// Nothing is at the path.
    Missing,
    /// A file is where a folder should be.
    NotAFolder,
    /// The system returned an error.
    System(io::Error),
}

impl From<io::Error> for WalkError {
    fn from(error: io::Error) -> WalkError {
        WalkError::System(error)
    }
}

/// A part of a path: borrowed from the input path, or owned if it is from a link's target.
pub(crate) type PathPart<'p> = Cow<'p, OsStr>;

/// The result of a walk.
#[derive(Debug)]
pub(crate) struct Destination<'p> {
    /// Handles of the opened folders from the root on; the last one contains the destination.
    folders: Vec<Folder>,
    /// The names of these folders, without the root.
    folder_names: Vec<PathPart<'p>>,
    /// The name of the destination in the last folder; `None` if the destination is that folder itself.
    pub(crate) name: Option<PathPart<'p>>,
    /// The metadata of the destination; `None` if nothing is there.
    pub(crate) metadata: Option<Metadata>,
}

impl<'p> Destination<'p> {
    pub(crate) fn containing_folder(&self) -> &Folder {
        &self.folders[self.folders.len() - 1]
    }

    /// Returns the handle of the destination folder. Returns an error if the destination is a file or
    /// missing.
    pub(crate) fn into_folder_unless_file_or_missing(mut self) -> Result<Folder, WalkError> {
        match self.name {
            None => self.folders.pop().ok_or(WalkError::Missing),
            Some(_) if self.metadata.is_some() => Err(WalkError::NotAFolder),
            Some(_) => Err(WalkError::Missing),
        }
    }

    /// Opens a subfolder, which becomes the containing folder.
    fn enter_folder(&mut self, name: PathPart<'p>) -> Result<(), WalkError> {
        // This refuses a link, by which the folder may have been replaced since it was checked.
        self.folders.push(self.containing_folder().open_subfolder(&name)?);
        self.folder_names.push(name);
        Ok(())
    }

    /// Returns the file type of the destination. Returns `None` if nothing is there, or if it is the last folder.
    pub(crate) fn file_type(&self) -> Option<FileType> {
        self.metadata.map(|metadata| metadata.file_type())
    }
}

impl PathWalk<'_> {
    /// Resolves a path to its last folder and the name in it. Creates missing parent folders if `create_mode` is set.
    pub(crate) fn resolve<'p>(&self, path: &'p Path) -> Result<Destination<'p>, WalkError> {
        let mut pending_parts: VecDeque<PathPart<'p>> =
            self.split_path_unless_absolute_outside_root(path).ok_or(WalkError::OutsideRoot)?;
        if pending_parts.iter().any(|part| **part == *"..") {
            return Err(WalkError::OutsideRoot);
        }
        let root = self.root_folder.try_clone()?;
        let mut destination =
            Destination { folders: vec![root], folder_names: Vec::new(), name: None, metadata: None };
        let mut last_link: Option<(OsString, PathBuf)> = None;
        let mut link_count = 0;
        let mut visited_part_count = 0;
        while let Some(part) = pending_parts.pop_front() {
            visited_part_count += 1;
            if *part == *".." {
                // Only the target of a link can contain `..`; it must not lead above the root.
                destination.folders.pop();
                if destination.folder_names.pop().is_none() {
                    return Err(link_outside_root_error(last_link));
                }
                continue;
            }
            let is_last = pending_parts.is_empty();
            let metadata = link_metadata_if_exists(&destination, &part)?;
            match metadata.map(|metadata| metadata.file_type()) {
                None if !is_last => {
                    self.create_missing_folder_if_allowed(&destination, &part, last_link.as_ref())?;
                    pending_parts.push_front(part);
                }
                Some(FileType::Link) if !is_last || self.follow_last_link => {
                    link_count += 1;
                    if link_count > MAX_LINKS {
                        return Err(too_many_links_error().into());
                    }
                    let target = destination.containing_folder().read_link(&part)?;
                    let (is_absolute, target_parts) = (
                        target.is_absolute(),
                        self.split_path_unless_absolute_outside_root(&target).map(into_owned_parts),
                    );
                    last_link = Some((part.into_owned(), target));
                    let target_parts =
                        target_parts.ok_or_else(|| link_outside_root_error(last_link.clone()))?;
                    if !self.may_follow_link(visited_part_count == 1 && !is_last) {
                        return Err(link_not_followed_error(last_link));
                    }
                    if is_absolute {
                        destination.folders.truncate(1);
                        destination.folder_names.clear();
                    }
                    target_parts.into_iter().rev().for_each(|part| pending_parts.push_front(part));
                }
                Some(FileType::Folder) => {
                    self.refuse_command_file_behind_link(&destination, &part, last_link.as_ref())?;
                    destination.enter_folder(part)?;
                }
                Some(_) if !is_last => return Err(WalkError::NotAFolder),
                _ => {
                    self.refuse_command_file_behind_link(&destination, &part, last_link.as_ref())?;
                    destination.name = Some(part);
                    destination.metadata = metadata;
                }
            }
        }
        Ok(destination)
    }

    /// Creates a missing parent folder. Returns [`WalkError::Missing`] if this walk must not create folders.
    fn create_missing_folder_if_allowed(
        &self,
        destination: &Destination<'_>,
        part: &OsStr,
        last_link: Option<&(OsString, PathBuf)>,
    ) -> Result<(), WalkError> {
        let mode = self.create_mode.ok_or(WalkError::Missing)?;
        self.refuse_command_file_behind_link(destination, part, last_link)?;
        match destination.containing_folder().create_subfolder(part, mode) {
            // Another program may have created it in the meantime.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Returns true if the policy allows following a link. `is_first_part` is true for a link in the first part of
    /// the path.
    fn may_follow_link(&self, is_first_part: bool) -> bool {
        match self.symlink_policy {
            SymlinkPolicy::InsideRoot | SymlinkPolicy::InsideExceptCommandFiles => true,
            SymlinkPolicy::FirstPartOnly => is_first_part,
            SymlinkPolicy::None => false,
        }
    }

    /// Splits a path into its parts below the root. Returns `None` if it is an absolute path outside the root.
    fn split_path_unless_absolute_outside_root<'p>(&self, path: &'p Path) -> Option<VecDeque<PathPart<'p>>> {
        let relative_path = if path.is_absolute() {
            self.root_paths.iter().find_map(|root| strip_folder(root, path))?
        } else {
            path
        };
        let mut path_parts = VecDeque::with_capacity(8);
        path_parts.extend(split_relative_path(relative_path)?.map(Cow::Borrowed));
        Some(path_parts)
    }

    /// Returns an error if a link has been followed, the policy is restricted, and this part is a command file.
    fn refuse_command_file_behind_link(
        &self,
        destination: &Destination<'_>,
        part: &OsStr,
        last_link: Option<&(OsString, PathBuf)>,
    ) -> Result<(), WalkError> {
        let is_restricted_and_behind_link = matches!(
            self.symlink_policy,
            SymlinkPolicy::InsideExceptCommandFiles | SymlinkPolicy::FirstPartOnly
        ) && last_link.is_some();
        if is_restricted_and_behind_link && is_command_file(destination, part) {
            Err(link_not_followed_error(last_link.cloned()))
        } else {
            Ok(())
        }
    }
}

/// The client's settings, hooks, commands, agents and skills in `.claude`.
const CLIENT_COMMAND_FILES: [&str; 7] =
    ["settings.json", "settings.local.json", "plimsoll.json", "hooks", "commands", "agents", "skills"];

/// Returns true for `.git`, and for the client's command files in `.claude`: a program executes their content. Compares
/// names ignoring case, because some volumes find these files under every spelling, and what the names lead to.
fn is_command_file(destination: &Destination<'_>, name: &OsStr) -> bool {
    let is_in_client_folder = is_client_folder(destination);
    has_command_file_name(is_in_client_folder, name)
        || is_same_entry_as_command_file(destination, is_in_client_folder, name)
}

/// A name outside ASCII may have more spellings than those that are compared, so none is allowed in `.claude`.
fn has_command_file_name(is_in_client_folder: bool, name: &OsStr) -> bool {
    let is_spelling_of = |known_name: &&str| is_same_name_ignoring_case(&name.to_string_lossy(), known_name);
    is_spelling_of(&".git")
        || is_in_client_folder && (!name.is_ascii() || CLIENT_COMMAND_FILES.iter().any(is_spelling_of))
}

/// Returns true if the destination's folder is a `.claude`, or the one to which the root's `.claude` leads.
fn is_client_folder(destination: &Destination<'_>) -> bool {
    let has_client_folder_name = destination
        .folder_names
        .last()
        .is_some_and(|folder| is_same_name_ignoring_case(&folder.to_string_lossy(), ".claude"));
    has_client_folder_name || {
        let identity = destination.containing_folder().metadata().ok().map(|metadata| metadata.identity());
        identity.is_some() && identity == identity_of_target(&destination.folders[0], ".claude")
    }
}

/// Returns true if a name leads to the same file or folder as the name of a command file beside it, or as the root's
/// `.git`. This finds spellings that only the volume knows, and other hard links.
fn is_same_entry_as_command_file(
    destination: &Destination<'_>,
    is_in_client_folder: bool,
    name: &OsStr,
) -> bool {
    let identity_of_name = |name: &OsStr| {
        destination.containing_folder().link_metadata_of(name).ok().map(|metadata| metadata.identity())
    };
    let Some(identity) = identity_of_name(name) else { return false };
    let is_same_entry_here = |known_name: &&str| identity_of_name(OsStr::new(known_name)) == Some(identity);
    is_same_entry_here(&".git")
        || identity_of_target(&destination.folders[0], ".git") == Some(identity)
        || is_in_client_folder && CLIENT_COMMAND_FILES.iter().any(is_same_entry_here)
}

/// Returns the identity of what a name in a folder leads to; `None` if nothing is there.
fn identity_of_target(folder: &Folder, name: &str) -> Option<FileIdentity> {
    folder.metadata_of(name).ok().map(|metadata| metadata.identity())
}

fn into_owned_parts(parts: VecDeque<PathPart<'_>>) -> VecDeque<PathPart<'static>> {
    parts.into_iter().map(|part| Cow::Owned(part.into_owned())).collect()
}

fn link_outside_root_error(last_link: Option<(OsString, PathBuf)>) -> WalkError {
    last_link.map_or(WalkError::OutsideRoot, |(link, target)| WalkError::LinkNotFollowed {
        link,
        target,
        leads_outside_root: true,
    })
}

fn link_not_followed_error(last_link: Option<(OsString, PathBuf)>) -> WalkError {
    last_link.map_or(WalkError::OutsideRoot, |(link, target)| WalkError::LinkNotFollowed {
        link,
        target,
        leads_outside_root: false,
    })
}

/// Returns the metadata of a name in the destination's folder without following a link. Returns `None` if it does
/// not exist.
fn link_metadata_if_exists(destination: &Destination<'_>, name: &OsStr) -> io::Result<Option<Metadata>> {
    match destination.containing_folder().link_metadata_of(name) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
