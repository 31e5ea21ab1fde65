//! `plimsoll-mcp`: the MCP server.

/// A static program has musl's allocator otherwise, which asks the system for every larger piece.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> std::process::ExitCode {
    plimsoll_mcp::main()
}
