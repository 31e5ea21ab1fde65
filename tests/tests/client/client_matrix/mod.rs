//! Every version of the client: what it supports, what it lacks, and how Plimsoll handles that.
//! `scripts/client-matrix.sh` tries the whole list; without its environment variable only the pinned version is tried.

mod clients_page;
mod events;
mod expected;
mod harness;
mod old_clients;
mod ordinary_session;
mod plugin;
mod probes;
mod run;
mod status_line;

use plimsoll_testkit::client::CLIENT_VERSION;
use probes::{Findings, PROBES};

fn check_client(version: &str) {
    let mut findings = Findings::default();
    if expected::is_supported_version(version) {
        for probe_part in [
            events::probe_events,
            ordinary_session::probe_ordinary_session,
            run::probe_run,
            plugin::probe_plugin,
            status_line::probe_status_line,
        ] {
            probe_part(version, &mut findings);
        }
    } else {
        events::probe_events(version, &mut findings);
        run::probe_refusal(version, &mut findings);
    }
    expected::check_or_update_findings(version, &findings);
}

#[test]
fn the_pinned_client_matches_its_expectations() {
    if requested_versions().is_none() {
        check_client(CLIENT_VERSION);
    }
}

/// Tries the versions that the script requests, one after another, and prints the matrix. The script selects this test by its name.
#[test]
fn the_clients_that_were_asked_for_match_their_expectations() {
    let Some(versions) = requested_versions() else { return };
    let failed: Vec<String> = versions
        .split_whitespace()
        .filter(|version| std::panic::catch_unwind(|| check_client(version)).is_err())
        .map(str::to_owned)
        .collect();
    println!("{}", clients_page::render_matrix(&expected::load_all_findings()));
    assert!(failed.is_empty(), "not as is known: {failed:?}");
}

fn requested_versions() -> Option<String> {
    std::env::var("PLIMSOLL_CLIENT_VERSIONS").ok()
}

#[test]
fn the_page_shows_what_is_known() {
    // The script tries the versions first and runs this test afterwards.
    if requested_versions().is_none() {
        clients_page::check_or_update_page();
    }
}

#[test]
fn no_supported_version_lacks_a_required_feature() {
    for (version, findings) in expected::load_all_findings() {
        let missing = expected::missing_required_probes(&version, &findings);
        assert!(missing.is_empty(), "{version}: {missing:?}");
    }
}

#[test]
fn probe_keys_are_unique() {
    for (index, probe) in PROBES.iter().enumerate() {
        assert!(PROBES[..index].iter().all(|other| other.key != probe.key), "{}", probe.key);
    }
}
