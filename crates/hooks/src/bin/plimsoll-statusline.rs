//! The status line; or, with `--wrap COMMAND`, another one that we measure for.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("--wrap") => hooks::run(|input| flows::statusline::wrap(input, &arguments.collect::<Vec<_>>())),
        _ => hooks::run(flows::statusline::statusline),
    }
}
