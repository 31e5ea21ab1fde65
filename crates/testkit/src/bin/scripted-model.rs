//! Serves a script file as a Messages API on loopback, for trying things by hand.
#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test bench is the outside world: it reads the script file, writes the log, and prints"
)]

use plimsoll_testkit::scripted_model::{Log, Script, ScriptedModel};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: scripted-model SCRIPT.json [--port N] [--log LOG.jsonl]";

struct Options {
    script: PathBuf,
    port: u16,
    log: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Some(options) = options(std::env::args().skip(1)) else { return fail(USAGE) };
    let script = match read(&options.script) {
        Ok(script) => script,
        Err(problem) => return fail(&format!("{}: {problem}", options.script.display())),
    };
    let log = match options.log.as_deref().map(File::create).transpose() {
        Ok(log) => log.map(|file| Box::new(file) as Log),
        Err(error) => return fail(&format!("cannot write the log: {error}")),
    };
    let model = ScriptedModel::serve(script, options.port, log);
    println!("{}", model.url());
    loop {
        std::thread::park();
    }
}

fn options(mut words: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options { script: words.next()?.into(), port: 0, log: None };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--port" => options.port = words.next()?.parse().ok()?,
            "--log" => options.log = Some(words.next()?.into()),
            _ => return None,
        }
    }
    Some(options)
}

fn read(path: &Path) -> Result<Script, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    Script::from_json(&text).map_err(|error| error.to_string())
}

fn fail(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::FAILURE
}
