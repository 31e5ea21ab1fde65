//! A fleet of a thousand workers and ten thousand items, without clients: how many claims there are in a second, how long one takes,
//! and what that does with the size of the plan. Left out of all profiles but one: `cargo nextest run --profile fleet`.

use crate::harness::{Member, client, create, open};
use plimsoll_fleet::WorkerReport;
use plimsoll_testkit::postgres::{Postgres, Setup};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const WORKERS: usize = 1_000;
/// The workers share so many connections, as they would behind PgBouncer.
const CONNECTIONS: usize = 16;

/// What one kind of operation took, and how many there were in a second.
fn told(words: &str, mut each: Vec<Duration>, in_all: Duration) {
    each.sort_unstable();
    let at = |part: f64| each[((each.len() - 1) as f64 * part) as usize].as_secs_f64() * 1_000.0;
    println!(
        "{words}: {} in {:.1} s, {:.0} a second; median {:.1} ms, p99 {:.1} ms, longest {:.1} ms",
        each.len(),
        in_all.as_secs_f64(),
        each.len() as f64 / in_all.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

/// Each of the workers does one thing, by the connections that they share: how long each took, and all.
fn by_all(
    address: &str,
    name: &str,
    act: impl Fn(&mut plimsoll_fleet::Fleet, usize) + Sync,
) -> (Vec<Duration>, Duration) {
    let next = AtomicUsize::new(0);
    let (next, act) = (&next, &act);
    let mut fleets: Vec<_> = (0..CONNECTIONS).map(|_| open(address, name)).collect();
    let begun = Instant::now();
    let each = thread::scope(|scope| {
        let threads: Vec<_> = fleets
            .iter_mut()
            .map(|fleet| {
                scope.spawn(move || {
                    let mut each = Vec::new();
                    loop {
                        let worker = next.fetch_add(1, Ordering::Relaxed);
                        if worker >= WORKERS {
                            return each;
                        }
                        let begun = Instant::now();
                        act(fleet, worker);
                        each.push(begun.elapsed());
                    }
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    (each, begun.elapsed())
}

#[test]
fn a_thousand_workers_claim_from_plans_of_all_sizes() {
    // Each commit is on the disk before it counts, as in production.
    let server =
        Postgres::start(Setup { settings: "fsync = on\nshared_buffers = 256MB\n", ..Setup::default() });
    for (items, area) in [(1_000, false), (10_000, false), (50_000, false), (10_000, true)] {
        let name = format!("{items} {area}");
        let text = |item: usize| match area {
            true => format!("item {item} (area: src/{item})"),
            // Every tenth needs the one before it.
            false if item % 10 == 9 => format!("item {item} (after: {item})"),
            false => format!("item {item}"),
        };
        let texts: Vec<String> = (0..items).map(text).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let begun = Instant::now();
        create(&server.socket(), &name, &texts);
        println!(
            "{items} items{}: created in {:.1} s",
            if area { ", all with areas" } else { "" },
            begun.elapsed().as_secs_f64()
        );
        client(&server).batch_execute("analyze plimsoll.item").expect("as autovacuum does");
        let worker = |worker: usize| format!("worker {worker}");
        let (each, all) = by_all(&server.socket(), &name, |fleet, place| {
            let report =
                WorkerReport { name: worker(place), machine: "m".to_owned(), ..WorkerReport::default() };
            fleet.report(&report).expect("an answer");
        });
        told("  reports", each, all);
        let claims = std::sync::Mutex::new(Vec::new());
        let (each, all) = by_all(&server.socket(), &name, |fleet, place| {
            let claim = fleet.claim(&worker(place)).expect("an answer");
            claims.lock().expect("no panic").extend(claim);
        });
        told("  claims", each, all);
        let claims = claims.into_inner().expect("no panic");
        println!("  {} claimed something", claims.len());
        let (each, all) = by_all(&server.socket(), &name, |fleet, place| {
            if let Some(claim) = claims.get(place) {
                fleet.renew(*claim).expect("mine");
            }
        });
        told("  renewals", each, all);
        let (each, all) = by_all(&server.socket(), &name, |fleet, place| {
            if let Some(claim) = claims.get(place) {
                fleet.offer(*claim, "c0ffee0000000000000000000000000000000000").expect("mine");
            }
        });
        told("  offers", each, all);
        let mut fleet = open(&server.socket(), &name);
        let begun = Instant::now();
        fleet.board().expect("an answer");
        println!("  board: {:.0} ms", begun.elapsed().as_secs_f64() * 1_000.0);
    }
}
