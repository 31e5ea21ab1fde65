//! The replayed client: see `testkit::replay`.

fn main() -> std::process::ExitCode {
    testkit::replay::main()
}
