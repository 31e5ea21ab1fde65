//! RULE: `plimsoll-mcp` implements the MCP protocol and checks arguments; the crates below it do the work. Only MCP messages go to
//! standard output, and an error in a call becomes that call's result.
//!
//! It provides the working memory, the turn log and files as MCP tools over standard input and output. `tools` lists the tools;
//! their schemas and checks are derived from that list. `arguments` checks a call's input; `memory`, `turns` and `workspace`
//! execute the call. The file tools access the project through `store::confined_folder`.
//!
//! Limits: `run_command` runs any command of the model, unconfined, like the client's Bash tool. The server cannot tell a
//! subagent from its parent, because a call does not name its agent. It serves one client, until its input ends.

mod arguments;
mod call;
mod first_request_transport;
mod instructions;
mod memory;
mod server;
mod tool_error;
mod tools;
mod turns;
mod workspace;

use plimsoll_domain::build::BuildInfo;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::text::SafeText;
use server::Server;
use std::io::Write;
use std::process::ExitCode;

const USAGE: &str = "The working memory of Plimsoll as an MCP server, over standard input and output.

Usage: plimsoll-mcp [--workspace]

  --workspace  also read_file, write_file and list_files below the project's folder, and run_command: a shell
               with its working directory there, which is not confined in any way
  --version    print the version; with --json also target and commit
  --help       print this

The project is CLAUDE_PROJECT_DIR, or the one that contains the working directory.";

/// Serves the client on standard input and output, or prints the version or the help.
pub fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => server::serve_until_input_end_or_signal(Server::for_current_project(false)),
        ["--workspace"] => server::serve_until_input_end_or_signal(Server::for_current_project(true)),
        ["--version" | "-V"] => print_and_succeed(&format!("plimsoll-mcp {}", env!("CARGO_PKG_VERSION"))),
        ["--version", "--json"] => {
            print_and_succeed(&BuildInfo::for_current_program("plimsoll-mcp").to_json())
        }
        ["--help" | "-h"] => print_and_succeed(USAGE),
        _ => {
            print_error(&format!("unknown arguments: {}\n\n{USAGE}", arguments.join(" ")));
            ExitStatus::Usage.into()
        }
    }
}

/// Prints an error to standard error, without terminal control characters.
#[expect(clippy::disallowed_methods, reason = "the one place of the server that does")]
fn print_error(message: &str) {
    let _ = writeln!(std::io::stderr(), "error: {}", SafeText::from_multiline_text(message).as_str());
}

/// Prints text that contains no input, and returns success.
#[expect(clippy::disallowed_methods, reason = "the client's messages are rmcp's")]
fn print_and_succeed(text: &str) -> ExitCode {
    // A closed pipe is not an error.
    let _ = writeln!(std::io::stdout(), "{text}");
    ExitCode::SUCCESS
}
