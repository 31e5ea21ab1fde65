//! The replayed client: see `plimsoll_testkit::replay`.

fn main() -> std::process::ExitCode {
    plimsoll_testkit::replay::run_replayed_client()
}
