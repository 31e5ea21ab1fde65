//! `plimsoll-hook`: all hook programs, by the name under which it is started.

/// A static program has musl's allocator otherwise, which takes three times as long and a third of a hook's time.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> std::process::ExitCode {
    plimsoll_hooks::main()
}
