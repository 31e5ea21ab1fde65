//! `plimsoll report`: the night as one page, for the morning. Gathered from the files, then written down.

mod contents;
mod entry;
mod filling;
mod gather;
mod handoffs;
mod items;
mod moments;
mod next;
mod page;
mod pauses;
mod run_sessions;
mod standing;
mod troubles;
mod which;
mod workers;

use clap::Args;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_store::{Durability, Project, StoreError, disk, environment};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail, fail_with, refused, say_error};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use which::{Chosen, NoRun, chosen};

/// Of which run, and where to.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArguments {
    /// An earlier run, by the beginning of its id [default: the current one, else the last]
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Write to this file; `-` is standard output [default: report.html in the run's folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll report                  write the run's page, and print its path
  plimsoll report --open           … and open it in the browser
  plimsoll report --run 4f2a       an earlier run, by the beginning of its id
  plimsoll report -o - | less      the page itself

One self-contained page: no script, no network. What looks like a
key, a token or a password is replaced by [redacted:KIND]; read the page before
you send it to anyone.";

/// How long a browser may take to say that it cannot.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Writes it; exit code 1 where there is no run, or it cannot be written or opened.
pub(crate) fn report(arguments: &ReportArguments) -> ExitCode {
    let project = Project::of_command();
    let chosen = match chosen(&project, arguments.run.as_deref()) {
        Ok(chosen) => chosen,
        Err(NoRun::Store(error)) => return refused(&error),
        Err(error) => return fail(error),
    };
    let to_stdout = arguments.output.as_deref() == Some(Path::new("-"));
    if to_stdout && arguments.open {
        return fail_with(
            "a page on standard output cannot be opened: leave out --open or `-o -`",
            ExitStatus::Usage,
        );
    }
    let path = place(&project, &chosen, arguments.output.as_deref());
    let report = gather::gather(&project, &chosen);
    match report.and_then(|report| put(&path, &page::render(&report), to_stdout)) {
        Err(error) => refused(&error),
        Ok(()) if arguments.open => open(&path),
        Ok(()) => ExitCode::SUCCESS,
    }
}

fn place(project: &Project, chosen: &Chosen, output: Option<&Path>) -> PathBuf {
    let usual = || project.run_folder(&chosen.state.run_id).join("report.html");
    output.map_or_else(usual, |output| environment::current_dir().join(output))
}

fn put(path: &Path, html: &str, to_stdout: bool) -> Result<(), StoreError> {
    if to_stdout {
        console::data(html);
        return Ok(());
    }
    disk::sweep_drafts_of(path);
    disk::replace(path, html.as_bytes(), Durability::Lazy)?;
    console::data(&format!("{}\n", path.display()));
    Ok(())
}

/// With the program that opens files on this system.
fn open(path: &Path) -> ExitCode {
    let opener = ["xdg-open", "open"].into_iter().find_map(environment::find_program);
    let Some(opener) = opener else {
        return fail(
            "there is neither xdg-open nor open to open it with\nhint: open the file above in your browser",
        );
    };
    match plimsoll_launcher::leave(&opener, &[path.as_os_str()], TIMEOUT) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say_error(&format!(
                "{} cannot open it: {error}\nhint: open the file above in your browser",
                opener.display()
            ));
            ExitStatus::Failure.into()
        }
    }
}
