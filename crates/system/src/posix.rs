//! Process information that every Unix system provides.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

pub(super) fn is_pid_in_use(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}
