//! Every version of the client: what it gives, what it lacks, and that a lack is handled. `scripts/client-matrix.sh` tries
//! the whole list; without its variable the pinned version is tried.

mod clients_page;
mod events;
mod expected;
mod harness;
mod ordinary_session;
mod plugin;
mod probes;
mod run;

use plimsoll_testkit::client::CLIENT_VERSION;
use probes::{Findings, PROBES};

fn try_client(version: &str) {
    let mut findings = Findings::default();
    if expected::is_borne(version) {
        for part in [events::look, ordinary_session::look, run::look, plugin::look] {
            part(version, &mut findings);
        }
    } else {
        events::look(version, &mut findings);
        run::is_refused(version, &mut findings);
    }
    expected::check(version, &findings);
}

#[test]
fn the_pinned_client_gives_what_is_known_of_it() {
    if asked_for().is_none() {
        try_client(CLIENT_VERSION);
    }
}

/// What the script asks for, one after another; then what they are is printed.
#[test]
fn the_clients_that_were_asked_for_give_what_is_known_of_them() {
    let Some(versions) = asked_for() else { return };
    let failed: Vec<String> = versions
        .split_whitespace()
        .filter(|version| std::panic::catch_unwind(|| try_client(version)).is_err())
        .map(str::to_owned)
        .collect();
    println!("{}", clients_page::matrix(&expected::all()));
    assert!(failed.is_empty(), "not as is known: {failed:?}");
}

fn asked_for() -> Option<String> {
    std::env::var("PLIMSOLL_CLIENT_VERSIONS").ok()
}

#[test]
fn the_page_shows_what_is_known() {
    // The script first finds out, then asks for the page.
    if asked_for().is_none() {
        clients_page::check();
    }
}

#[test]
fn what_must_never_lack_lacks_nowhere() {
    for (version, findings) in expected::all() {
        let broken = expected::broken_promises(&version, &findings);
        assert!(broken.is_empty(), "{version}: {broken:?}");
    }
}

#[test]
fn each_probe_has_a_name_of_its_own() {
    for (place, probe) in PROBES.iter().enumerate() {
        assert!(PROBES[..place].iter().all(|other| other.key != probe.key), "{}", probe.key);
    }
}
