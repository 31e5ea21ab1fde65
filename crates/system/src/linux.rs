//! Linux: `/proc`, which shows everything of a user's own processes.
#![expect(clippy::disallowed_methods, reason = "no file of anybody's is read here: the kernel answers")]

use super::Look;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

pub(super) fn look(pid: u32) -> Look {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return Look::Nothing };
    of_stat(&stat).unwrap_or(Look::Nothing)
}

fn of_stat(stat: &str) -> Option<Look> {
    // The name may hold spaces and brackets: fields are counted behind its last bracket.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    // The state, field 3 of proc(5)'s `stat`, is the first here: a zombie, or dead.
    if matches!(fields.next()?, "Z" | "X") {
        return Some(Look::Ended);
    }
    // Field 22.
    Some(Look::Began(fields.nth(18)?.parse().ok()?))
}

pub(super) fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

pub(super) fn arguments(pid: u32) -> Vec<Vec<u8>> {
    entries(pid, "cmdline")
}

pub(super) fn environment(pid: u32) -> Vec<Vec<u8>> {
    entries(pid, "environ")
}

fn entries(pid: u32, file: &str) -> Vec<Vec<u8>> {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

pub(super) fn output_of(pid: u32) -> Option<PathBuf> {
    Some(format!("/proc/{pid}/fd/1").into())
}

/// The folders in which processes of this name work. Those of another user show none.
pub(super) fn at_work(program: &str) -> Option<Vec<PathBuf>> {
    let is_it = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == program)
    };
    let folder = |pid: u32| fs::read_link(format!("/proc/{pid}/cwd")).ok();
    Some(processes().into_iter().filter(is_it).filter_map(folder).collect())
}

pub(super) fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

pub(super) fn lock_holder(inode: u64) -> Option<u32> {
    let table = fs::read_to_string("/proc/locks").ok()?;
    table.lines().find_map(|line| held_by(line, inode))
}

/// A line such as `1: FLOCK  ADVISORY  WRITE 714 fe:00:4227 0 EOF`; a waiting process has an arrow before the kind.
fn held_by(line: &str, inode: u64) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    let kind = words.next()?;
    let mut words = words.skip(2);
    let (pid, file) = (words.next()?, words.next()?);
    let same = kind == "FLOCK" && file.rsplit(':').next()?.parse() == Ok(inode);
    if same { pid.parse().ok() } else { None }
}

/// Since Linux 5.3.
pub(super) fn end_of_child(child: Pid) -> Option<OwnedFd> {
    pidfd_open(child, PidfdFlags::empty()).ok()
}

/// In one read: what the kernel answers is a line of 36 letters.
pub(super) fn boot() -> Option<String> {
    let file =
        rustix::fs::open("/proc/sys/kernel/random/boot_id", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let mut line = [0; 64];
    let length = rustix::io::read(file.ok()?, &mut line).ok()?;
    let name = std::str::from_utf8(&line[..length]).ok()?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_found_behind_any_name_and_an_ended_process_is_seen() {
        let of = |name: &str, state: &str| {
            format!("714 ({name}) {state} 1 714 714 0 -1 4194560 99 0 0 0 1 2 0 0 20 0 1 0 4711 1000 88 0")
        };
        for name in ["sleep", "a) S 9 (b", "two words"] {
            assert_eq!(of_stat(&of(name, "S")), Some(Look::Began(4_711)), "{name}");
            assert_eq!(of_stat(&of(name, "Z")), Some(Look::Ended), "{name}");
        }
        assert_eq!(of_stat("714 (sleep) S 1"), None);
    }

    #[test]
    fn the_kernel_tells_who_holds_a_lock() {
        let line = "13: FLOCK  ADVISORY  WRITE 714 fe:00:4227 0 EOF";
        assert_eq!((held_by(line, 4_227), held_by(line, 227)), (Some(714), None));
        let waiting = "13: -> FLOCK  ADVISORY  WRITE 715 fe:00:4227 0 EOF";
        assert_eq!(held_by(waiting, 4_227), None);
        assert_eq!(held_by("13: POSIX  ADVISORY  WRITE 714 fe:00:4227 0 EOF", 4_227), None);
    }

    #[test]
    fn a_start_of_the_system_has_a_name_that_stays() {
        let boot = boot().unwrap();
        assert_eq!((boot.len(), super::boot()), (36, Some(boot)));
    }
}
