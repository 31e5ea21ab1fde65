//! `plimsoll report`: one HTML page about a run. The data is first read from the files into a `Report`, then rendered.

mod chart_marks;
mod contents;
mod entry;
mod handoffs;
mod items;
mod next_steps;
mod page;
mod pauses;
mod problems;
mod report_builder;
mod run_selection;
mod run_sessions;
mod status_text;
mod window_usage;
mod workers;

use clap::Args;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_store::{Durability, Project, StoreError, disk, environment};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail, fail_with, fail_with_store_error, print_error};
use run_selection::{RunSelectionError, SelectedRun, select_run_by_prefix_or_newest};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArguments {
    /// The run whose id begins so [default: the current or last one]
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// The file, or `-` for standard output
    ///
    /// The default is report.html in the run's folder.
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

/// How long to wait for `xdg-open` or `open` to report an error.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);

/// Writes the report to a file or to standard output, and opens it in the browser if requested. Returns exit code 1 if
/// there is no run, or if the page cannot be written or opened.
pub(crate) fn write_report(arguments: &ReportArguments) -> ExitCode {
    let project = Project::find_upwards_from_current_dir();
    let selected_run = match select_run_by_prefix_or_newest(&project, arguments.run.as_deref()) {
        Ok(selected_run) => selected_run,
        Err(RunSelectionError::Store(error)) => return fail_with_store_error(&error),
        Err(error) => return fail(error),
    };
    let to_stdout = arguments.output.as_deref() == Some(Path::new("-"));
    if to_stdout && arguments.open {
        return fail_with(
            "cannot open a page on standard output: leave out --open or `-o -`",
            ExitStatus::Usage,
        );
    }
    let path = output_path(&project, &selected_run, arguments.output.as_deref());
    let report_result = report_builder::record_missing_turns_and_build_report(&project, &selected_run);
    match report_result
        .and_then(|report| print_page_or_write_and_print_path(&path, &page::render(&report), to_stdout))
    {
        Err(error) => fail_with_store_error(&error),
        Ok(()) if arguments.open => open_in_browser(&path),
        Ok(()) => ExitCode::SUCCESS,
    }
}

fn output_path(project: &Project, selected_run: &SelectedRun, output: Option<&Path>) -> PathBuf {
    let default_path = || project.run_folder(&selected_run.state.run_id).join("report.html");
    output.map_or_else(default_path, |output| environment::current_dir().join(output))
}

fn print_page_or_write_and_print_path(path: &Path, html: &str, to_stdout: bool) -> Result<(), StoreError> {
    if to_stdout {
        console::print_text_escaped_only_on_terminal(html);
        return Ok(());
    }
    disk::remove_leftover_temporary_files_of(path);
    disk::replace(path, html.as_bytes(), Durability::Lazy)?;
    console::print_text_escaped_only_on_terminal(&format!("{}\n", path.display()));
    Ok(())
}

/// Opens a file with `xdg-open` or `open`.
fn open_in_browser(path: &Path) -> ExitCode {
    let opener = ["xdg-open", "open"].into_iter().find_map(environment::find_program);
    let Some(opener) = opener else {
        return fail(
            "cannot open it: neither xdg-open nor open was found\nhint: open the file above in your browser",
        );
    };
    match plimsoll_launcher::start_detached_and_watch_for_failure(&opener, &[path.as_os_str()], OPEN_TIMEOUT)
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&format!(
                "{} cannot open it: {error}\nhint: open the file above in your browser",
                opener.display()
            ));
            ExitStatus::Failure.into()
        }
    }
}
