//! `plimsoll-linear`: delivers notes to Linear.

fn main() -> std::process::ExitCode {
    plimsoll_linear::main()
}
