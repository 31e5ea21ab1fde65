//! `plimsoll-fleet`: lets several machines work on one plan.

fn main() -> std::process::ExitCode {
    plimsoll_fleet::main()
}
