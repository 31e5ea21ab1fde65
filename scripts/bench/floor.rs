//! What any program costs: a process that does nothing.

fn main() {}
