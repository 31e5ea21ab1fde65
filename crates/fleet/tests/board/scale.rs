//! A fleet of a thousand workers and ten thousand items, without clients: measures claims per second, the time of one
//! claim, and how both depend on the size of the plan. Runs only in one profile: `cargo nextest run --profile fleet`.

use crate::harness::{client, create_fleet, open_fleet};
use crate::test_fleet::member;
use plimsoll_domain::workers::{ItemOutcome, ItemResult};
use plimsoll_fleet::{Fleet, WorkerReport};
use plimsoll_testkit::postgres::{Postgres, ServerSetup};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const WORKERS: usize = 1_000;
/// Number of connections that the workers share, as they would behind PgBouncer.
const CONNECTIONS: usize = 16;

/// Prints the throughput and the distribution of the times of one kind of operation.
fn print_timings(label: &str, mut durations: Vec<Duration>, total: Duration) {
    durations.sort_unstable();
    let milliseconds_at =
        |quantile: f64| durations[((durations.len() - 1) as f64 * quantile) as usize].as_secs_f64() * 1_000.0;
    println!(
        "{label}: {} in {:.1} s, {:.0} a second; median {:.1} ms, p99 {:.1} ms, longest {:.1} ms",
        durations.len(),
        total.as_secs_f64(),
        durations.len() as f64 / total.as_secs_f64(),
        milliseconds_at(0.5),
        milliseconds_at(0.99),
        milliseconds_at(1.0)
    );
}

/// Runs an operation once for each worker, on shared connections. Returns the time of each and the total time.
fn run_for_all_workers(
    fleets: &mut [Fleet],
    act: impl Fn(&mut Fleet, usize) + Sync,
) -> (Vec<Duration>, Duration) {
    let next = AtomicUsize::new(0);
    let (next, act) = (&next, &act);
    let started_at = Instant::now();
    let durations = thread::scope(|scope| {
        let threads: Vec<_> = fleets
            .iter_mut()
            .map(|fleet| {
                scope.spawn(move || {
                    let mut durations = Vec::new();
                    loop {
                        let worker = next.fetch_add(1, Ordering::Relaxed);
                        if worker >= WORKERS {
                            return durations;
                        }
                        let started_at = Instant::now();
                        act(fleet, worker);
                        durations.push(started_at.elapsed());
                    }
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    (durations, started_at.elapsed())
}

#[test]
fn a_thousand_workers_claim_from_plans_of_all_sizes() {
    // Commits are written to the disk before they count, as in production.
    let server = Postgres::create_cluster_and_start(ServerSetup {
        settings: "fsync = on\nshared_buffers = 256MB\n",
        ..ServerSetup::default()
    });
    for (items, has_areas) in [(1_000, false), (10_000, false), (50_000, false), (10_000, true)] {
        let name = format!("{items}-{has_areas}");
        let text = |item: usize| match has_areas {
            true => format!("item {item} (area: src/{item})"),
            // Every tenth item depends on the one before it.
            false if item % 10 == 9 => format!("item {item} (after: {item})"),
            false => format!("item {item}"),
        };
        let texts: Vec<String> = (0..items).map(text).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let started_at = Instant::now();
        create_fleet(&server.socket_connection_string(), &name, &texts);
        println!(
            "{items} items{}: created in {:.1} s",
            if has_areas { ", all with areas" } else { "" },
            started_at.elapsed().as_secs_f64()
        );
        let analyze = format!("analyze \"plimsoll_{name}\".item");
        client(&server).batch_execute(&analyze).expect("as autovacuum does");
        let member_address = server.socket_connection_string_for_role(&format!("plimsoll_{name}"));
        // As members do, the workers keep their connections.
        let mut fleets: Vec<Fleet> =
            (0..CONNECTIONS).map(|_| open_fleet(&member_address, &name).into_fleet()).collect();
        let member_of_worker = |worker: usize| member(&format!("worker-{worker}"));
        let (durations, total) = run_for_all_workers(&mut fleets, |fleet, index| {
            let report =
                WorkerReport { worker_number: 1, machine_name: "m".to_owned(), ..WorkerReport::default() };
            fleet.record_worker_report(&member_of_worker(index), &report).expect("an answer");
        });
        print_timings("  reports", durations, total);
        let claims = std::sync::Mutex::new(Vec::new());
        // The first claims on each connection take longer, because the server prepares the function for it.
        for label in ["  first claims", "  second claims"] {
            let (durations, total) = run_for_all_workers(&mut fleets, |fleet, index| {
                let member = member_of_worker(index);
                let claim = fleet.claim_next_item(&member, 1, &[]).expect("an answer");
                claims.lock().expect("no panic").extend(claim.map(|claim| (member, claim)));
            });
            print_timings(label, durations, total);
        }
        let claims = claims.into_inner().expect("no panic");
        println!("  {} claimed something", claims.len());
        let (durations, total) = run_for_all_workers(&mut fleets, |fleet, index| {
            if let Some((member, claim)) = claims.get(index) {
                fleet.renew_claim_unless_stale_or_overlapping(member, *claim).expect("mine");
            }
        });
        print_timings("  renewals", durations, total);
        let (durations, total) = run_for_all_workers(&mut fleets, |fleet, index| {
            if let Some((member, claim)) = claims.get(index) {
                let result = ItemResult {
                    item: claim.item_index,
                    epoch: claim.epoch,
                    start_commit_id: "c0ffee0000000000000000000000000000000000".to_owned(),
                    base_commit_id: "c0ffee0000000000000000000000000000000000".to_owned(),
                    outcome: ItemOutcome::Offered,
                    ..ItemResult::default()
                };
                fleet.store_result_unless_outcome_taken_by_other(member, &result).expect("mine");
            }
        });
        print_timings("  offers", durations, total);
        let mut fleet = open_fleet(&server.socket_connection_string(), &name);
        let started_at = Instant::now();
        fleet.read_board().expect("an answer");
        println!("  board: {:.0} ms", started_at.elapsed().as_secs_f64() * 1_000.0);
    }
}
