//! Process information on Linux, from `/proc`.
#![expect(clippy::disallowed_methods, reason = "no file of anybody's is read here: the kernel answers")]

pub(super) use super::posix::is_pid_in_use;
use super::{ProcessLookup, ProcessWithFolder};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

pub(super) fn look_up_process(pid: u32) -> ProcessLookup {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return ProcessLookup::NotShown };
    parse_start_time_or_zombie(&stat).unwrap_or(ProcessLookup::NotShown)
}

fn parse_start_time_or_zombie(stat: &str) -> Option<ProcessLookup> {
    // The process name may contain spaces and parentheses, so fields are counted after the last parenthesis.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    // The first one here is field 3 of `stat` in proc(5), the state: `Z` is a zombie, `X` is dead.
    if matches!(fields.next()?, "Z" | "X") {
        return Some(ProcessLookup::Zombie);
    }
    // Field 22 is the start time.
    Some(ProcessLookup::Started(fields.nth(18)?.parse().ok()?))
}

pub(super) fn kernel_release() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/osrelease").ok()
}

pub(super) fn all_process_ids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

pub(super) fn process_and_parent_ids() -> Vec<(u32, u32)> {
    let parent_id = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        parse_parent_id(&stat)
    };
    all_process_ids().into_iter().filter_map(|pid| Some((pid, parent_id(pid)?))).collect()
}

fn parse_parent_id(stat: &str) -> Option<u32> {
    // Field 4 of `stat` in proc(5), the second after the name.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

pub(super) fn process_arguments(pid: u32) -> Vec<Vec<u8>> {
    read_nul_separated(pid, "cmdline")
}

pub(super) fn process_environment(pid: u32) -> Vec<Vec<u8>> {
    read_nul_separated(pid, "environ")
}

fn read_nul_separated(pid: u32, file: &str) -> Vec<Vec<u8>> {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

pub(super) fn standard_output_path(pid: u32) -> Option<PathBuf> {
    Some(format!("/proc/{pid}/fd/1").into())
}

pub(super) fn processes_with_working_folder() -> Vec<ProcessWithFolder> {
    let processes = all_process_ids().into_iter().filter_map(|pid| {
        let program = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned();
        let working_folder = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
        Some(ProcessWithFolder { pid, program, working_folder })
    });
    processes.collect()
}

pub(super) fn ignored_signal_mask() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

pub(super) fn flock_holder_pid(inode: u64) -> Option<u32> {
    let lock_table = fs::read_to_string("/proc/locks").ok()?;
    lock_table.lines().find_map(|line| parse_pid_holding_flock_on_inode(line, inode))
}

/// Parses a line such as `1: FLOCK  ADVISORY  WRITE 714 fe:00:4227 0 EOF`. Returns `None` for a waiting process, which has
/// an arrow before the kind.
fn parse_pid_holding_flock_on_inode(line: &str, inode: u64) -> Option<u32> {
    let mut fields = line.split_whitespace().skip(1);
    let lock_kind = fields.next()?;
    let mut fields = fields.skip(2);
    let (pid, file_id) = (fields.next()?, fields.next()?);
    let is_flock_on_inode = lock_kind == "FLOCK" && file_id.rsplit(':').next()?.parse() == Ok(inode);
    if is_flock_on_inode { pid.parse().ok() } else { None }
}

/// Returns a descriptor that becomes readable once a child process has ended, or `None` before Linux 5.3.
pub(super) fn child_exit_descriptor(child: Pid) -> Option<OwnedFd> {
    pidfd_open(child, PidfdFlags::empty()).ok()
}

/// Reads the id in one call, because the kernel returns a line of 36 characters.
pub(super) fn boot_id() -> Option<String> {
    let file =
        rustix::fs::open("/proc/sys/kernel/random/boot_id", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let mut line = [0; 64];
    let length = rustix::io::read(file.ok()?, &mut line).ok()?;
    let id = std::str::from_utf8(&line[..length]).ok()?.trim();
    (!id.is_empty()).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_parsed_after_any_process_name() {
        let stat_line = |name: &str, state: &str| {
            format!("714 ({name}) {state} 1 714 714 0 -1 4194560 99 0 0 0 1 2 0 0 20 0 1 0 4711 1000 88 0")
        };
        for name in ["sleep", "a) S 9 (b", "two words"] {
            assert_eq!(
                parse_start_time_or_zombie(&stat_line(name, "S")),
                Some(ProcessLookup::Started(4_711)),
                "{name}"
            );
            assert_eq!(
                parse_start_time_or_zombie(&stat_line(name, "Z")),
                Some(ProcessLookup::Zombie),
                "{name}"
            );
            assert_eq!(parse_parent_id(&stat_line(name, "S")), Some(1), "{name}");
        }
        assert_eq!(parse_start_time_or_zombie("714 (sleep) S 1"), None);
    }

    #[test]
    fn a_lock_line_names_the_process_that_holds_the_lock() {
        let line = "13: FLOCK  ADVISORY  WRITE 714 fe:00:4227 0 EOF";
        assert_eq!(
            (parse_pid_holding_flock_on_inode(line, 4_227), parse_pid_holding_flock_on_inode(line, 227)),
            (Some(714), None)
        );
        let waiting = "13: -> FLOCK  ADVISORY  WRITE 715 fe:00:4227 0 EOF";
        assert_eq!(parse_pid_holding_flock_on_inode(waiting, 4_227), None);
        assert_eq!(
            parse_pid_holding_flock_on_inode("13: POSIX  ADVISORY  WRITE 714 fe:00:4227 0 EOF", 4_227),
            None
        );
    }
}
