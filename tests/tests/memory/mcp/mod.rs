//! `plimsoll-mcp` as its clients see it: a plain one of our own, the MCP Inspector, and the real one.

mod client;
mod crowd;
mod eras;
mod inspector;
mod limits;
mod paths;
mod real;
mod start;
mod tools;
