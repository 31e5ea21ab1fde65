//! How long a client waits for the first answer.

use crate::mcp::json_rpc_client::Client;
use plimsoll_testkit::world::World;
use std::time::{Duration, Instant};

#[test]
fn the_first_answer_comes_within_20_milliseconds() {
    let world = World::without_git();
    // Other tests run beside this one: of three rounds the best is its own.
    let best = (0..3).map(|_| round(&world)).min().expect("a round");
    assert!(best < Duration::from_millis(20), "{best:?}");
}

/// The 95th percentile of a hundred starts.
fn round(world: &World) -> Duration {
    let mut took: Vec<Duration> = (0..100)
        .map(|_| {
            let start = Instant::now();
            let mut client = Client::bare(world, &[]);
            client.initialize("2025-11-25");
            start.elapsed()
        })
        .collect();
    took.sort();
    println!("start to first answer: median {:?}, 95th {:?}, worst {:?}", took[49], took[94], took[99]);
    took[94]
}
