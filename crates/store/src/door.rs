//! How a path becomes a file: the one way in which anything of a project is opened.
//!
//! What it promises: below a registered root ([`register`]) no link leads out, also none that is made while we look;
//! only plain files are opened, no device, pipe or socket, and nothing waits for one; what is written goes through a
//! draft that nobody could have put there, or into a file that has no second name (hard link): that name may lie outside. A path
//! below no root is the user's own: its links are followed, plain files alone are opened there, too. What it does not promise: a
//! second name of a file outside is read like any other file. It is also replaced like one, which leaves the file outside alone.
//!
//! On Linux one call (`openat2`) does the walk where no link is on the way; where one is, or there is no such call, we walk by
//! ourselves ([`walk`]).
#![expect(clippy::disallowed_types, reason = "what the system has opened is read and written as a file")]

mod roots;
mod spot;
pub(crate) mod walk;

pub(crate) use roots::{RootKind, look_anew, register};
pub(crate) use spot::{Last, Spot};

use crate::{StoreError, io};
use plimsoll_system::files::{LOOK, open_beneath};
use roots::Below;
pub(crate) use roots::open_anew;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use walk::{Destination, Lost, Walk};

/// Files that are read whole: states, records, settings, prompts, plans. The largest honest one is a fraction of it.
pub(crate) const LARGEST: u64 = 16 * 1024 * 1024;
/// Logs, and what is next to them: only commands read one whole.
pub(crate) const LARGEST_LOG: u64 = 512 * 1024 * 1024;

/// How much of a file is read whole, by its name and its place.
pub(crate) fn largest(path: &Path, is_below_a_root: bool) -> u64 {
    let is_log = |name: &str| {
        let is_piece = || name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        name.ends_with(".jsonl") || name.ends_with(".log") || is_piece()
    };
    let name = path.as_os_str().as_bytes().rsplit(|byte| *byte == b'/').next();
    let name = name.and_then(|name| std::str::from_utf8(name).ok());
    let name = name.map(|name| name.strip_suffix(".zst").unwrap_or(name));
    if !is_below_a_root || name.is_some_and(is_log) { LARGEST_LOG } else { LARGEST }
}

/// True for what is below a project's or git's folder.
pub(crate) fn is_below_a_root(path: &Path) -> bool {
    roots::find(path).is_some()
}

/// No line of a log is longer: what is large is next to it. In a transcript pictures are in the lines.
pub(crate) fn longest_line(path: &Path) -> u64 {
    if is_below_a_root(path) { LARGEST } else { 8 * LARGEST }
}

/// Why a path was not opened; the caller knows its path.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The walk did not come there.
    Lost(Lost),
    /// No plain file is there.
    NotAFile,
    /// The file has other names, perhaps outside, and was to be written in place.
    HardLinked,
}

impl From<Lost> for Refused {
    fn from(lost: Lost) -> Refused {
        Refused::Lost(lost)
    }
}

impl From<Errno> for Refused {
    fn from(error: Errno) -> Refused {
        Refused::Lost(Lost::System(error))
    }
}

impl Refused {
    /// True if nothing is at the path.
    pub(crate) fn is_missing(&self) -> bool {
        let missing = |error: &Errno| matches!(*error, Errno::NOENT | Errno::NOTDIR);
        match self {
            Refused::Lost(Lost::Missing | Lost::NotAFolder) => true,
            Refused::Lost(Lost::System(error)) => missing(error),
            _ => false,
        }
    }

    /// The same for a caller that makes what is missing: a file where a folder should be is in its way.
    pub(crate) fn is_folder_missing(&self) -> bool {
        matches!(self, Refused::Lost(Lost::Missing | Lost::System(Errno::NOENT)))
    }

    /// In words.
    pub(crate) fn of(self, doing: &'static str, path: &Path) -> StoreError {
        let system = |error: Errno| io(doing, path)(error.into());
        match self {
            Refused::NotAFile => StoreError::NotAFile { path: path.to_owned() },
            Refused::HardLinked => StoreError::HardLinked { path: path.to_owned() },
            Refused::Lost(Lost::System(error)) => system(error),
            Refused::Lost(Lost::Missing) => system(Errno::NOENT),
            Refused::Lost(Lost::NotAFolder) => system(Errno::NOTDIR),
            Refused::Lost(Lost::Outside) => {
                StoreError::LeadsOut { path: path.to_owned(), link: String::new(), target: PathBuf::new() }
            }
            Refused::Lost(Lost::Link { link, target, leads_out }) => {
                let (path, link) = (path.to_owned(), link.to_string_lossy().into_owned());
                if leads_out {
                    StoreError::LeadsOut { path, link, target }
                } else {
                    StoreError::Linked { path, link, target }
                }
            }
        }
    }
}

/// A plain file that has been opened, and what it was then.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    /// None for one that we have just made: it is empty.
    pub(crate) stat: Option<Stat>,
    /// True for what is below a project's or git's folder.
    pub(crate) is_below_a_root: bool,
}

impl Opened {
    /// How large it was.
    pub(crate) fn size(&self) -> u64 {
        self.stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
    }
}

/// Opens a plain file. With [`OFlags::CREATE`] a missing one is made, for the owner alone; its folder must be there.
pub(crate) fn open(path: &Path, how: OFlags) -> Result<Opened, Refused> {
    // Nothing waits: neither for a pipe's other end nor for a terminal.
    let flags = how | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // `openat2` refuses a mode where no file is to be made; `openat` ignores it.
    let mode = if how.contains(OFlags::CREATE) { Mode::from_raw_mode(0o600) } else { Mode::empty() };
    let below = roots::find(path);
    let opened = match &below {
        Some(below) => open_below(below, flags, mode)?,
        None => rustix::fs::openat(CWD, path, flags, mode).map_err(not_a_file)?,
    };
    let is_new = how.contains(OFlags::CREATE | OFlags::EXCL);
    let stat = if is_new { None } else { Some(stat_of_file(&opened)?) };
    // Locks, too: whoever holds one on a file outside holds up its owner.
    if below.is_some() && writes(how) && stat.is_some_and(|stat| stat.st_nlink > 1) {
        return Err(Refused::HardLinked);
    }
    Ok(Opened { file: File::from(opened), stat, is_below_a_root: below.is_some() })
}

/// Asked of what is open: its name may belong to something else by now.
fn stat_of_file(opened: &OwnedFd) -> Result<Stat, Refused> {
    let stat = rustix::fs::fstat(opened)?;
    if FileType::from_raw_mode(stat.st_mode).is_file() { Ok(stat) } else { Err(Refused::NotAFile) }
}

/// What the system says of a pipe without a reader, of a socket, and of a folder that is to be written.
fn not_a_file(error: Errno) -> Refused {
    match error {
        Errno::NXIO => Refused::NotAFile,
        Errno::ISDIR => Refused::NotAFile,
        error => error.into(),
    }
}

fn open_below(below: &Below<'_>, flags: OFlags, mode: Mode) -> Result<OwnedFd, Refused> {
    if let Some(opened) = in_one_call(below, flags, mode) {
        return opened.map_err(not_a_file);
    }
    let place = below.walk(writes(flags), None, true)?;
    let Some(name) = &place.name else { return Err(Refused::NotAFile) };
    match place.kind() {
        None | Some(FileType::RegularFile) => {}
        Some(_) => return Err(Refused::NotAFile),
    }
    // `NOFOLLOW`: a link that was put there after the walk is refused.
    rustix::fs::openat(place.folder(), &**name, flags | OFlags::NOFOLLOW, mode).map_err(not_a_file)
}

fn writes(flags: OFlags) -> bool {
    flags.intersects(OFlags::WRONLY | OFlags::RDWR)
}

/// The walk in one call; none if a link is on the way, or there is no such call, or whoever watches over it refuses it.
fn in_one_call(below: &Below<'_>, flags: OFlags, mode: Mode) -> Option<Result<OwnedFd, Errno>> {
    open_beneath(below.root.folder().ok()?, below.path, flags, mode)
}

impl Below<'_> {
    /// The same by ourselves.
    fn walk(
        &self,
        writes: bool,
        makes: Option<RawMode>,
        follows_last: bool,
    ) -> Result<Destination<'_>, Refused> {
        let folder = self.root.folder()?;
        let links = self.root.links(self.path, writes);
        let given = self.root.path();
        let step = |roots: &[&Path]| Walk { folder, roots, links, makes, follows_last }.to(self.path);
        match step(&[given]) {
            // An absolute link may name the root by another way than we do.
            Err(Lost::Link { leads_out: true, target, .. }) if target.is_absolute() => {
                Ok(step(&[given, &crate::plain::canonical(given)])?)
            }
            walked => Ok(walked?),
        }
    }
}

/// What is at a path, behind links that are followed; none if nothing does, or a link leads out. Where no link is at
/// the path's end this is one call, and a linked folder on the way is not seen: nothing is opened by it.
pub(crate) fn stat(path: &Path) -> Option<Stat> {
    let Some(below) = roots::find(path) else { return rustix::fs::stat(path).ok() };
    let found = rustix::fs::statat(below.root.folder().ok()?, below.path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if !FileType::from_raw_mode(found.st_mode).is_symlink() {
        return Some(found);
    }
    let place = below.walk(false, None, true).ok()?;
    let is_the_folder = place.found.is_none() && place.name.is_none();
    if is_the_folder { rustix::fs::fstat(place.folder()).ok() } else { place.found }
}

/// What is at a path, seen by a walk: no folder on the way is one that leads out.
pub(crate) fn reach(path: &Path) -> Option<Stat> {
    let Some(below) = roots::find(path) else { return rustix::fs::stat(path).ok() };
    match in_one_call(&below, LOOK, Mode::empty()) {
        Some(opened) => rustix::fs::fstat(opened.ok()?).ok(),
        None if below.walk(false, None, true).is_ok() => stat(path),
        None => None,
    }
}

/// True if something is at a path, seen by the same walk.
pub(crate) fn is_there(path: &Path) -> bool {
    let Some(below) = roots::find(path) else { return rustix::fs::stat(path).is_ok() };
    let opened = in_one_call(&below, LOOK, Mode::empty());
    opened.map_or_else(|| reach(path).is_some(), |opened| opened.is_ok())
}

/// A folder that can be listed or put on the disk.
pub(crate) fn folder(path: &Path) -> Result<OwnedFd, Refused> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Some(below) = roots::find(path) else {
        return Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?);
    };
    if let Some(opened) = in_one_call(&below, flags, Mode::empty()) {
        return Ok(opened?);
    }
    let folder = below.walk(false, None, true)?.into_folder()?;
    Ok(rustix::fs::openat(folder, ".", flags, Mode::empty())?)
}

/// Makes a folder and those above it, for the owner alone.
pub(crate) fn make_folder(path: &Path) -> Result<(), Refused> {
    const OWN: RawMode = 0o700;
    let Some(below) = roots::find(path) else {
        return crate::plain::make_plain_folder(path, OWN).map_err(|error| errno(&error).into());
    };
    match below.walk_to_be(OWN)? {
        None => Ok(()),
        // The walk creates the folders before its end.
        Some((place, name)) => match rustix::fs::mkdirat(place.folder(), &name, Mode::from_raw_mode(OWN)) {
            Ok(()) => Ok(()),
            // Another program has made it meanwhile: fine, unless it is a link that leads out.
            Err(Errno::EXIST) => below.walk(true, None, true).map(drop),
            Err(error) => Err(error.into()),
        },
    }
}

impl Below<'_> {
    /// Where a folder is to be made; none if it is there.
    fn walk_to_be(&self, mode: RawMode) -> Result<Option<(Destination<'_>, OsString)>, Refused> {
        let mut place = match self.walk(true, Some(mode), true) {
            // A project's folder itself that is not there: whoever asked for it to be made named it.
            Err(refused)
                if refused.is_folder_missing()
                    && crate::plain::make_plain_folder(self.root.path(), mode).is_ok() =>
            {
                self.walk(true, Some(mode), true)?
            }
            walked => walked?,
        };
        match (place.name.take(), place.kind()) {
            (None, _) => Ok(None),
            (Some(name), None) => Ok(Some((place, name.into_owned()))),
            (Some(_), Some(_)) => Err(Lost::NotAFolder.into()),
        }
    }
}

/// All of a file, unless there is more than that.
pub(crate) fn read_all(opened: Opened, most: u64) -> std::io::Result<Option<Vec<u8>>> {
    let size = opened.size();
    if size > most {
        return Ok(None);
    }
    // Asked for one byte more than there should be: that it does not come is the file's end, and nobody need ask again.
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(0) + 1];
    let mut file = opened.file;
    let read = match file.read(&mut bytes) {
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => 0,
        read => read?,
    };
    bytes.truncate(read);
    if read as u64 != size {
        // One byte too many shows that the file has grown beyond the limit since it was opened.
        file.take((most + 1).saturating_sub(read as u64)).read_to_end(&mut bytes)?;
    }
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

pub(crate) fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests;
