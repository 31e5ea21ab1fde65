//! Counts the instructions that a program executes on this processor, one by one. callgrind has neither instructions for SHA-256
//! nor all of the kernel's calls, so a program executes more under it.
//!
//! `steps [-i FILE] PROGRAM [ARGUMENTS]` prints the number; FILE is the program's standard input. It exits with 75 where the
//! system lets nobody count.

use std::ffi::{c_int, c_long, c_ulong};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

const TRACE_ME: c_int = 0;
const SINGLE_STEP: c_int = 9;
const NO_RANDOM_ADDRESSES: c_ulong = 0x0004_0000;

unsafe extern "C" {
    fn ptrace(request: c_int, pid: c_int, address: c_long, data: c_long) -> c_long;
    fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn personality(persona: c_ulong) -> c_int;
}

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut input = Stdio::null();
    if arguments.first().is_some_and(|argument| argument == "-i") {
        input = File::open(&arguments[1]).expect("the standard input").into();
        arguments.drain(..2);
    }
    let mut command = Command::new(&arguments[0]);
    command.args(&arguments[1..]).stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: between fork and exec only these two calls of the system are made.
    unsafe {
        command.pre_exec(|| {
            personality(NO_RANDOM_ADDRESSES);
            let traced = ptrace(TRACE_ME, 0, 0, 0);
            if traced < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
        });
    }
    let Ok(child) = command.spawn() else { return ExitCode::from(75) };
    count(child.id() as c_int).map_or(ExitCode::from(75), |steps| {
        println!("{steps}");
        ExitCode::SUCCESS
    })
}

/// From the start of the program to its end; none if it was stopped by something else than a step.
fn count(pid: c_int) -> Option<u64> {
    /// The status of a process that has stopped after a step, and of one that has exited with 0.
    const AT_STEP: c_int = 0x057f;
    const ENDED: c_int = 0;
    let (mut status, mut steps) = (0, 0);
    loop {
        // SAFETY: the child is ours, and the status lives until the call is over.
        let waited = unsafe { waitpid(pid, &raw mut status, 0) };
        match status {
            ENDED if waited == pid => return Some(steps),
            AT_STEP if waited == pid => {}
            _ => return None,
        }
        // SAFETY: as above; nothing of its memory is read or written.
        if unsafe { ptrace(SINGLE_STEP, pid, 1, 0) } < 0 {
            return None;
        }
        steps += 1;
    }
}
