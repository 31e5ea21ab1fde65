//! `plimsoll-mcp` as its clients see it: a plain JSON-RPC client of our own, the MCP Inspector, and Claude Code.

mod concurrent_servers;
mod confined_paths;
mod inspector;
mod json_rpc_client;
mod limits;
mod protocol_versions;
mod real_client;
mod startup_time;
mod tools;
