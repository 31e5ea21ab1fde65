//! RULE: `plimsoll-mcp` speaks MCP and checks what it is told; what happens is decided and done by the crates below. Nothing but
//! MCP's messages goes to standard output, and whatever goes wrong in a call is that call's result.
//!
//! It offers the working memory, the turn log and files as tools of an MCP client, over standard input and output. `tools` is
//! the one list of them, from which schemas and checks are derived; `arguments` reads a call's input, `memory`, `turns` and
//! `workspace` carry it out. The file tools walk the project through `store::confined`.
//!
//! Limits: `run_command` runs what the model asks for, unconfined, as the client's own Bash tool would. A caller is known by
//! what the client says: the server cannot tell a subagent from its parent. It serves one client, until its input ends.

mod arguments;
mod call;
mod instructions;
mod memory;
mod patient;
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

/// Serves the client at standard input and output, or says what was asked for.
pub fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => server::run(Server::of_project(false)),
        ["--workspace"] => server::run(Server::of_project(true)),
        ["--version" | "-V"] => say(&format!("plimsoll-mcp {}", env!("CARGO_PKG_VERSION"))),
        ["--version", "--json"] => say(&BuildInfo::for_current_program("plimsoll-mcp").to_json()),
        ["--help" | "-h"] => say(USAGE),
        _ => {
            complain(&format!("unknown arguments {arguments:?}\n\n{USAGE}"));
            ExitStatus::Usage.into()
        }
    }
}

/// Says on standard error what went wrong, in words that steer no terminal.
#[expect(clippy::disallowed_methods, reason = "the one place of the server that does")]
fn complain(words: &str) {
    let _ = writeln!(std::io::stderr(), "plimsoll-mcp: {}", SafeText::from_multiline_text(words).as_str());
}

/// Prints words of ours.
#[expect(clippy::disallowed_methods, reason = "the client's messages are rmcp's")]
fn say(text: &str) -> ExitCode {
    // A reader that closes the pipe has read enough.
    let _ = writeln!(std::io::stdout(), "{text}");
    ExitCode::SUCCESS
}
