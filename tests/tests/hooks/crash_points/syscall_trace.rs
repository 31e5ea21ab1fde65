//! Which system calls a program makes, and making one of them the last, or a failing one.

use crate::crash_points::prepared_world::{Play, Stage};
use plimsoll_testkit::world::Finished;

/// Everything that changes what is on a disk or who holds a lock; a name that this processor lacks is passed over.
const CHANGING: &str = "trace=?write,?pwrite64,?writev,?fsync,?fdatasync,?rename,?renameat,?renameat2,?flock,?unlink,?unlinkat,?ftruncate,?mkdir,?mkdirat,?link,?linkat,?symlinkat";
/// Those that may be refused; files are opened, too.
const REFUSABLE: &str = "trace=?write,?pwrite64,?fsync,?fdatasync,?rename,?renameat,?renameat2,?flock,?unlink,?unlinkat,?ftruncate,?mkdir,?mkdirat,?link,?linkat,?open,?openat";

/// The call of that name which is the so-manieth.
#[derive(Clone, Debug)]
pub struct Point {
    pub call: String,
    pub number: usize,
    /// The line of the trace: which file it is about.
    pub line: String,
}

impl std::fmt::Display for Point {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}: {}", self.call, self.number, self.line)
    }
}

impl Point {
    /// What the system may say here: another word at each place, always the same at the same place.
    pub fn refusal(&self) -> &'static str {
        let words: &[&str] = match self.call.as_str() {
            "write" | "pwrite64" => &["ENOSPC", "EDQUOT", "EIO"],
            "fsync" | "fdatasync" | "ftruncate" => &["EIO"],
            "rename" | "renameat" | "renameat2" => &["EIO", "EROFS", "EXDEV"],
            "flock" => &["ENOLCK"],
            "link" | "linkat" => &["EPERM", "ENOSPC"],
            "unlink" | "unlinkat" => &["EROFS"],
            "mkdir" | "mkdirat" => &["ENOSPC", "EROFS"],
            _ if self.line.contains("O_WRONLY") || self.line.contains("O_RDWR") => {
                &["EROFS", "ENOSPC", "EDQUOT"]
            }
            _ => &["EIO"],
        };
        words[self.number % words.len()]
    }
}

/// Before each of which the program can be killed.
pub fn kill_points(stage: &Stage, play: &Play) -> (Finished, Vec<Point>) {
    points(stage, play, CHANGING)
}

/// Which the system can refuse; what a program reads of itself and its libraries is not about our files.
pub fn error_points(stage: &Stage, play: &Play) -> Vec<Point> {
    let world = format!("\"{}", stage.world.home().parent().expect("a world").display());
    let written = world.replace('"', "<");
    // What is told to somebody, or to another thread, is not kept anywhere.
    let is_ours = |point: &Point| {
        let at_home = point.line.split_once(&written).is_some_and(|(before, _)| !before.contains("AT_FDCWD"));
        let opens = point.call.starts_with("open");
        // To read is no change; which thread opens what is chance, and threads wake each other by writing.
        let is_chance = play.has_threads && (opens || point.call == "write");
        let is_change = !is_chance && (!opens || !point.line.contains("O_RDONLY"));
        is_change && (point.line.contains(&world) || at_home && !opens)
    };
    points(stage, play, REFUSABLE).1.into_iter().filter(is_ours).collect()
}

fn points(stage: &Stage, play: &Play, calls: &str) -> (Finished, Vec<Point>) {
    let trace = stage.trace().display().to_string();
    let finished = stage.traced(play, &["-s", "24", "-e", "signal=none", "-o", &trace, "-e", calls]);
    let text = std::fs::read(stage.trace()).expect("a trace");
    let text = String::from_utf8_lossy(&text);
    let mut points: Vec<Point> = Vec::new();
    // Where there are threads each line begins with one's number, and each thread counts by itself.
    let mut counts = std::collections::BTreeMap::new();
    for line in text.lines() {
        let thread: String = line.chars().take_while(char::is_ascii_digit).collect();
        let line = line[thread.len()..].trim_start();
        let Some((call, _)) = line.split_once('(').filter(|(call, _)| is_name(call)) else { continue };
        let number = counts.entry((thread, call)).or_insert(0);
        *number += 1;
        points.push(Point { call: call.to_owned(), number: *number, line: line.to_owned() });
    }
    assert!(!points.is_empty(), "a program that changes nothing: {finished:?}\n{text}");
    (finished, points)
}

fn is_name(call: &str) -> bool {
    !call.is_empty() && call.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Runs it and kills it before that call.
pub fn killed(stage: &Stage, play: &Play, point: &Point) -> Finished {
    let inject = format!("inject={}:signal=KILL:when={}", point.call, point.number);
    stage.traced(play, &["-o", "/dev/null", "-e", &format!("trace={}", point.call), "-e", &inject])
}

/// Runs it and refuses that call, or that and all later ones of its name.
pub fn refused(stage: &Stage, play: &Play, point: &Point, for_good: bool) -> Finished {
    let on = if for_good { "+" } else { "" };
    let inject = format!("inject={}:error={}:when={}{on}", point.call, point.refusal(), point.number);
    stage.traced(play, &["-o", "/dev/null", "-e", &format!("trace={}", point.call), "-e", &inject])
}
