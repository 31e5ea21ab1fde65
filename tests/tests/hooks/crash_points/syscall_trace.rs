//! Traces the system calls of a program with `strace`, and kills the program before one of them or makes it fail.

use crate::crash_points::prepared_world::{Invocation, PreparedWorld};
use plimsoll_testkit::world::FinishedProgram;

/// System calls that change what is on disk or who holds a lock. `?` skips a call that the processor lacks.
const CHANGING_SYSCALLS: &str = "trace=?write,?pwrite64,?writev,?fsync,?fdatasync,?rename,?renameat,?renameat2,?flock,?unlink,?unlinkat,?ftruncate,?mkdir,?mkdirat,?link,?linkat,?symlinkat";
/// System calls that the tests make fail; opening a file is one of them.
const REFUSABLE_SYSCALLS: &str = "trace=?write,?pwrite64,?fsync,?fdatasync,?rename,?renameat,?renameat2,?flock,?unlink,?unlinkat,?ftruncate,?mkdir,?mkdirat,?link,?linkat,?open,?openat";

/// One occurrence of a system call in a trace.
#[derive(Clone, Debug)]
pub struct SyscallPoint {
    pub syscall: String,
    pub occurrence: usize,
    /// The line of the trace, which names the file.
    pub trace_line: String,
}

impl std::fmt::Display for SyscallPoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}: {}", self.syscall, self.occurrence, self.trace_line)
    }
}

impl SyscallPoint {
    /// Returns the error that the system reports here. It varies between the points, but is always the same at one
    /// point.
    pub fn injected_errno(&self) -> &'static str {
        let errnos: &[&str] = match self.syscall.as_str() {
            "write" | "pwrite64" => &["ENOSPC", "EDQUOT", "EIO"],
            "fsync" | "fdatasync" | "ftruncate" => &["EIO"],
            "rename" | "renameat" | "renameat2" => &["EIO", "EROFS", "EXDEV"],
            "flock" => &["ENOLCK"],
            "link" | "linkat" => &["EPERM", "ENOSPC"],
            "unlink" | "unlinkat" => &["EROFS"],
            "mkdir" | "mkdirat" => &["ENOSPC", "EROFS"],
            _ if self.trace_line.contains("O_WRONLY") || self.trace_line.contains("O_RDWR") => {
                &["EROFS", "ENOSPC", "EDQUOT"]
            }
            _ => &["EIO"],
        };
        errnos[self.occurrence % errnos.len()]
    }
}

/// Runs the program and returns each point before which it can be killed.
pub fn trace_kill_points(
    prepared: &PreparedWorld,
    invocation: &Invocation,
) -> (FinishedProgram, Vec<SyscallPoint>) {
    trace_points(prepared, invocation, CHANGING_SYSCALLS)
}

/// Returns the points at which the system can refuse a call. Reads of the program itself and of its libraries do not
/// count.
pub fn trace_refusable_points(prepared: &PreparedWorld, invocation: &Invocation) -> Vec<SyscallPoint> {
    let quoted_world_path = format!("\"{}", prepared.world.home().parent().expect("a world").display());
    let descriptor_world_path = quoted_world_path.replace('"', "<");
    // Output for a reader and messages to another thread are not stored anywhere.
    let is_ours = |point: &SyscallPoint| {
        let is_descriptor_in_world = point
            .trace_line
            .split_once(&descriptor_world_path)
            .is_some_and(|(before, _)| !before.contains("AT_FDCWD"));
        let opens = point.syscall.starts_with("open");
        // Reading changes nothing. Which thread opens a file is chance, and threads wake each other by writing.
        let is_nondeterministic = invocation.has_threads && (opens || point.syscall == "write");
        let is_change = !is_nondeterministic && (!opens || !point.trace_line.contains("O_RDONLY"));
        is_change && (point.trace_line.contains(&quoted_world_path) || is_descriptor_in_world && !opens)
    };
    trace_points(prepared, invocation, REFUSABLE_SYSCALLS).1.into_iter().filter(is_ours).collect()
}

fn trace_points(
    prepared: &PreparedWorld,
    invocation: &Invocation,
    syscalls: &str,
) -> (FinishedProgram, Vec<SyscallPoint>) {
    let trace_path = prepared.trace_path().display().to_string();
    let finished = prepared
        .run_under_strace(invocation, &["-s", "24", "-e", "signal=none", "-o", &trace_path, "-e", syscalls]);
    let text = std::fs::read(prepared.trace_path()).expect("a trace");
    let text = String::from_utf8_lossy(&text);
    let mut points: Vec<SyscallPoint> = Vec::new();
    // With threads, each line begins with the thread's number, and each thread counts its own calls.
    let mut counts = std::collections::BTreeMap::new();
    for line in text.lines() {
        let thread: String = line.chars().take_while(char::is_ascii_digit).collect();
        let line = line[thread.len()..].trim_start();
        let Some((call, _)) = line.split_once('(').filter(|(call, _)| is_syscall_name(call)) else {
            continue;
        };
        let number = counts.entry((thread, call)).or_insert(0);
        *number += 1;
        points.push(SyscallPoint {
            syscall: call.to_owned(),
            occurrence: *number,
            trace_line: line.to_owned(),
        });
    }
    assert!(!points.is_empty(), "a program that changes nothing: {finished:?}\n{text}");
    (finished, points)
}

fn is_syscall_name(call: &str) -> bool {
    !call.is_empty() && call.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Runs the program and kills it before this call.
pub fn run_killed_before(
    prepared: &PreparedWorld,
    invocation: &Invocation,
    point: &SyscallPoint,
) -> FinishedProgram {
    let inject = format!("inject={}:signal=KILL:when={}", point.syscall, point.occurrence);
    prepared.run_under_strace(
        invocation,
        &["-o", "/dev/null", "-e", &format!("trace={}", point.syscall), "-e", &inject],
    )
}

/// Runs the program and makes this call fail, or this and all later calls of its name.
pub fn run_with_refused_syscall(
    prepared: &PreparedWorld,
    invocation: &Invocation,
    point: &SyscallPoint,
    includes_later_calls: bool,
) -> FinishedProgram {
    let suffix = if includes_later_calls { "+" } else { "" };
    let inject = format!(
        "inject={}:error={}:when={}{suffix}",
        point.syscall,
        point.injected_errno(),
        point.occurrence
    );
    prepared.run_under_strace(
        invocation,
        &["-o", "/dev/null", "-e", &format!("trace={}", point.syscall), "-e", &inject],
    )
}
