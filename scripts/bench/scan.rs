//! Reads a file forward, line by line, and does nothing with the lines: what reading alone takes.

use std::io::{BufRead, BufReader};

fn main() {
    let path = std::env::args().nth(1).expect("a file");
    let mut reader = BufReader::with_capacity(256 * 1024, std::fs::File::open(&path).expect(&path));
    let (mut line, mut lines) = (Vec::new(), 0_u64);
    while reader.read_until(b'\n', &mut line).expect(&path) > 0 {
        lines += 1;
        line.clear();
    }
    println!("{lines}");
}
