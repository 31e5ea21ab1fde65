//! The replayed client: see `plimsoll_testkit::replay`.

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    plimsoll_testkit::replay::run_replayed_client()
}

// Its sessions were recorded on Linux, with the shell, process groups and signals of Unix.
#[cfg(windows)]
fn main() -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}
