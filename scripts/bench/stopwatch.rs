//! Times programs in turn, round after round, so that what else the computer does falls on all of them alike.
//!
//! `stopwatch ROUNDS [OPTIONS] PROGRAM [ARGUMENTS] [-- [OPTIONS] PROGRAM [ARGUMENTS]]…` prints for each program the median
//! time and that of the quickest tenth in microseconds, its peak memory in KB, and how many page faults it had at least. Before a
//! program:
//!   -i FILE        its standard input          -o FILE         where its standard output is added (else nowhere)
//!   -e NAME=VALUE  a variable                  -n COUNT        so many at once, timed from the first start to the last end
//!   -r FROM TO     before each start TO is made what FROM is: a file, or a folder with all in it
//!   -d             and everything is on the disk before the clock starts, so that only the program's own syncs are timed

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What `wait4` tells of a child that has ended: Linux's `struct rusage`.
#[repr(C)]
#[derive(Default)]
struct Usage {
    times: [i64; 4],
    peak_kb: i64,
    unused: [i64; 3],
    faults: i64,
    rest: [i64; 9],
}

unsafe extern "C" {
    fn wait4(pid: c_int, status: *mut c_int, options: c_int, usage: *mut Usage) -> c_int;
}

/// Waits for a child and answers its peak memory and its page faults, which the standard library cannot tell. The former is never
/// less than this program's own, which is why that is linked statically and small.
fn wait(pid: u32) -> (i64, i64) {
    let mut usage = Usage::default();
    let pid = pid as c_int;
    // SAFETY: both point to what lives until the call is over; the child is ours and is waited for once.
    let ended = unsafe { wait4(pid, std::ptr::null_mut(), 0, &raw mut usage) };
    assert_eq!(ended, pid, "the child is ours");
    (usage.peak_kb, usage.faults)
}

#[derive(Default)]
struct Contestant {
    program: Vec<String>,
    input: Option<String>,
    output: Option<String>,
    variables: Vec<(String, String)>,
    at_once: usize,
    restored: Vec<(String, String)>,
    synced: bool,
    times: Vec<f64>,
    peak_kb: i64,
    faults: i64,
}

impl Contestant {
    fn from_arguments(arguments: &[String]) -> Contestant {
        let mut contestant = Contestant { at_once: 1, faults: i64::MAX, ..Contestant::default() };
        let mut arguments = arguments.iter().cloned();
        while let Some(argument) = arguments.next() {
            let mut next = || arguments.next().expect("an option's value");
            match argument.as_str() {
                "-i" => contestant.input = Some(next()),
                "-o" => contestant.output = Some(next()),
                "-n" => contestant.at_once = next().parse().expect("a number"),
                "-r" => contestant.restored.push((next(), next())),
                "-d" => contestant.synced = true,
                "-e" => {
                    let variable = next();
                    let (name, value) = variable.split_once('=').expect("NAME=VALUE");
                    contestant.variables.push((name.to_owned(), value.to_owned()));
                }
                _ => {
                    contestant.program = std::iter::once(argument).chain(arguments).collect();
                    break;
                }
            }
        }
        contestant
    }

    fn prepare(&self) {
        for (from, to) in &self.restored {
            run("rm", &["-rf", to]);
            run("cp", &["-a", from, to]);
        }
        if self.synced {
            run("sync", &[]);
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]).envs(self.variables.iter().cloned()).stderr(Stdio::null());
        command
            .stdin(self.input.as_ref().map_or_else(Stdio::null, |path| File::open(path).expect(path).into()));
        command.stdout(self.output.as_ref().map_or_else(Stdio::null, |path| added_to(path).into()));
        command
    }

    /// One round.
    fn go(&mut self) {
        self.prepare();
        let mut commands: Vec<Command> = (0..self.at_once).map(|_| self.command()).collect();
        let start = Instant::now();
        let started = commands.iter_mut().map(|command| command.spawn().expect(&self.program[0]).id());
        let children: Vec<u32> = started.collect();
        let usages: Vec<(i64, i64)> = children.into_iter().map(wait).collect();
        self.times.push(start.elapsed().as_secs_f64() * 1e6);
        for (peak_kb, faults) in usages {
            (self.peak_kb, self.faults) = (self.peak_kb.max(peak_kb), self.faults.min(faults));
        }
    }
}

fn added_to(path: &str) -> File {
    OpenOptions::new().create(true).append(true).open(path).expect(path)
}

fn run(program: &str, arguments: &[&str]) {
    assert!(
        Command::new(program).args(arguments).status().expect(program).success(),
        "{program} {arguments:?}"
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds: usize = arguments[0].parse().expect("how many rounds");
    let mut contestants: Vec<Contestant> =
        arguments[1..].split(|argument| argument == "--").map(Contestant::from_arguments).collect();
    for round in 0..=rounds {
        for contestant in &mut contestants {
            contestant.go();
        }
        // The first round only warms up.
        if round == 0 {
            contestants.iter_mut().for_each(|contestant| contestant.times.clear());
        }
    }
    for contestant in &mut contestants {
        let times = &mut contestant.times;
        times.sort_by(f64::total_cmp);
        let (median, tenth) = (times[times.len() / 2], times[times.len() / 10]);
        println!("{median:.0} {tenth:.0} {} {}", contestant.peak_kb, contestant.faults);
    }
}
