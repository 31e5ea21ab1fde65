//! `plimsoll-mcp`: the MCP server.

/// Replaces musl's allocator in static builds, which makes a system call for every larger allocation.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> std::process::ExitCode {
    plimsoll_mcp::main()
}
