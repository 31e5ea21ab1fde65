//! A world that is prepared once and put back, byte for byte and at the same paths, before each try.

use plimsoll_testkit::bin_dir;
use plimsoll_testkit::world::{Finished, Launch, World};
use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};

/// A program with everything it is given.
#[derive(Clone)]
pub struct Play {
    pub program: &'static str,
    pub arguments: Vec<String>,
    pub stdin: String,
    pub env: Vec<(String, String)>,
    /// It does its work in several threads (and starts no other program).
    pub has_threads: bool,
}

impl Play {
    pub fn command(arguments: &[&str]) -> Play {
        Play::of("plimsoll", arguments)
    }

    pub fn of(program: &'static str, arguments: &[&str]) -> Play {
        let arguments = arguments.iter().map(|one| (*one).to_owned()).collect();
        let has_threads = program == "plimsoll-mcp";
        Play { program, arguments, stdin: String::new(), env: Vec::new(), has_threads }
    }

    pub fn stdin(self, text: impl ToString) -> Play {
        Play { stdin: text.to_string(), ..self }
    }

    pub fn env(mut self, name: &str, value: impl ToString) -> Play {
        self.env.push((name.to_owned(), value.to_string()));
        self
    }
}

pub struct Stage {
    pub world: World,
    root: PathBuf,
}

impl Stage {
    pub fn new(world: World) -> Stage {
        let root = world.project().parent().expect("a project lies in a world").to_owned();
        Stage { world, root }
    }

    /// The prepared world, kept beside itself.
    pub fn keep(&self) {
        for part in ["home", "project"] {
            copy(&self.root.join(part), &self.root.join("kept").join(part));
        }
    }

    /// As it was kept.
    pub fn put_back(&self) {
        for part in ["home", "project"] {
            let _ = fs::remove_dir_all(self.root.join(part));
            copy(&self.root.join("kept").join(part), &self.root.join(part));
        }
    }

    /// A file as it was kept.
    pub fn kept(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.root.join("kept/project").join(path)).ok()
    }

    pub fn run(&self, play: &Play) -> Finished {
        let program = bin_dir().join(play.program);
        let launch = self.world.command(program, &[]);
        let launch = play.arguments.iter().fold(launch, |launch, argument| launch.arg(argument));
        given(launch, play).run()
    }

    /// The same under `strace`, of which the program's own children know nothing.
    pub fn traced(&self, play: &Play, options: &[&str]) -> Finished {
        let start: &[&str] = if play.has_threads { &["-qq", "-y", "-f"] } else { &["-qq", "-y"] };
        let launch = options.iter().fold(self.world.command("strace", start), |launch, one| launch.arg(*one));
        let launch = launch.arg("--").arg(bin_dir().join(play.program));
        let launch = play.arguments.iter().fold(launch, |launch, argument| launch.arg(argument));
        given(launch, play).run()
    }

    /// Where `strace` writes what it saw.
    pub fn trace(&self) -> PathBuf {
        self.root.join("tmp/trace")
    }
}

fn given(launch: Launch, play: &Play) -> Launch {
    let launch = play.env.iter().fold(launch, |launch, (name, value)| launch.env(name, value));
    launch.stdin(play.stdin.clone())
}

/// Copies a folder with modes and times: how old a file is means something.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the world is writable");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            copy(&from, &to);
            continue;
        }
        fs::copy(&from, &to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        let modified = entry.metadata().and_then(|found| found.modified()).expect("files have times");
        let copied = File::open(&to).expect("the copy");
        copied.set_times(FileTimes::new().set_modified(modified)).expect("our own file");
    }
}
