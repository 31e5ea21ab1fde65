//! `plimsoll-linear`: the one program that uses the network.

fn main() -> std::process::ExitCode {
    plimsoll_linear::main()
}
