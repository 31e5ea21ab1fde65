//! A world that is prepared once and restored before each attempt, byte for byte and at the same paths.

use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::world::{FinishedProgram, Launch, World};
use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};

/// A program with its arguments, standard input and environment.
#[derive(Clone)]
pub struct Invocation {
    pub program: &'static str,
    pub arguments: Vec<String>,
    pub stdin: String,
    pub env: Vec<(String, String)>,
    /// True if the program works in several threads; it starts no other program then.
    pub has_threads: bool,
}

impl Invocation {
    pub fn plimsoll(arguments: &[&str]) -> Invocation {
        Invocation::new("plimsoll", arguments)
    }

    pub fn new(program: &'static str, arguments: &[&str]) -> Invocation {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let has_threads = program == "plimsoll-mcp";
        Invocation { program, arguments, stdin: String::new(), env: Vec::new(), has_threads }
    }

    pub fn stdin(self, text: impl ToString) -> Invocation {
        Invocation { stdin: text.to_string(), ..self }
    }

    pub fn env(mut self, name: &str, value: impl ToString) -> Invocation {
        self.env.push((name.to_owned(), value.to_string()));
        self
    }
}

pub struct PreparedWorld {
    pub world: World,
    root: PathBuf,
}

impl PreparedWorld {
    pub fn new(world: World) -> PreparedWorld {
        let root = world.project().parent().expect("a project lies in a world").to_owned();
        PreparedWorld { world, root }
    }

    /// Saves a copy of the prepared world.
    pub fn save(&self) {
        for part in ["home", "project"] {
            copy_folder(&self.root.join(part), &self.root.join("kept").join(part));
        }
    }

    /// Restores the world from the saved copy.
    pub fn restore(&self) {
        for part in ["home", "project"] {
            let _ = fs::remove_dir_all(self.root.join(part));
            copy_folder(&self.root.join("kept").join(part), &self.root.join(part));
        }
    }

    /// Returns the content of a project file in the saved copy.
    pub fn saved_file(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.root.join("kept/project").join(path)).ok()
    }

    pub fn run(&self, invocation: &Invocation) -> FinishedProgram {
        let program = find_or_build_bin_dir().join(invocation.program);
        let launch = self.world.command(program, &[]);
        let launch = invocation.arguments.iter().fold(launch, |launch, argument| launch.arg(argument));
        with_environment_and_stdin(launch, invocation).run()
    }

    /// Runs the program under `strace`. The program's children are not traced.
    pub fn run_under_strace(&self, invocation: &Invocation, options: &[&str]) -> FinishedProgram {
        let start: &[&str] = if invocation.has_threads { &["-qq", "-y", "-f"] } else { &["-qq", "-y"] };
        let launch =
            options.iter().fold(self.world.command("strace", start), |launch, option| launch.arg(*option));
        let launch = launch.arg("--").arg(find_or_build_bin_dir().join(invocation.program));
        let launch = invocation.arguments.iter().fold(launch, |launch, argument| launch.arg(argument));
        with_environment_and_stdin(launch, invocation).run()
    }

    /// Returns the path of the file that `strace` writes.
    pub fn trace_path(&self) -> PathBuf {
        self.root.join("tmp/trace")
    }
}

fn with_environment_and_stdin(launch: Launch, invocation: &Invocation) -> Launch {
    let launch = invocation.env.iter().fold(launch, |launch, (name, value)| launch.env(name, value));
    launch.stdin(invocation.stdin.clone())
}

/// Copies a folder with modes and modification times, because the age of a file matters to the programs.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the world is writable");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            copy_folder(&from, &to);
            continue;
        }
        fs::copy(&from, &to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        let modified = entry.metadata().and_then(|metadata| metadata.modified()).expect("files have times");
        let copied = File::open(&to).expect("the copy");
        copied.set_times(FileTimes::new().set_modified(modified)).expect("our own file");
    }
}
