//! The status line; or, with `--wrap COMMAND`, another one that we measure for.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("--wrap") => plimsoll_hooks::run(|input| {
            plimsoll_flows::hooks::statusline::wrap(input, &arguments.collect::<Vec<_>>())
        }),
        _ => plimsoll_hooks::run(plimsoll_flows::hooks::statusline::statusline),
    }
}
