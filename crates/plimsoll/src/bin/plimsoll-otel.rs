//! `plimsoll-otel`: exports a run's spans and logs.

fn main() -> std::process::ExitCode {
    plimsoll_otel::main()
}
