//! What went wrong with our hooks lately: what they said themselves, and what the client says of them.

use super::{Finding, Section};
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::{Fault, Timestamp};

/// What the client's transcript says of a hook of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFault {
    /// When, RFC 3339; empty if it does not say.
    pub at: Timestamp,
    /// What was started.
    pub command: String,
    /// What became of it.
    pub what: String,
}

/// What went wrong lately.
#[derive(Debug, Clone, Default)]
pub struct FaultFacts {
    /// What our hooks said, oldest first.
    pub own: Vec<Fault>,
    /// What the client says of them in the current session, oldest first.
    pub of_client: Vec<ClientFault>,
    /// A day ago, RFC 3339: what is older is only noted.
    pub since: Timestamp,
}

pub(super) fn section(facts: &FaultFacts) -> Section {
    let recent = facts.own.iter().filter(|fault| fault.at > facts.since).count();
    let mut findings = Vec::new();
    if let Some(last) = facts.own.last() {
        let what = format!("{} at {}: {}", last.program, last.at, clip(&one_line(&last.what), 200));
        let todo = "fix what it names; all recorded faults are in .claude/plimsoll/faults.jsonl";
        findings.push(match recent {
            0 => Finding::note("faults.old", format!("the last fault is more than a day old: {what}"), todo),
            1 => Finding::warning("faults.recent", what, todo),
            more => {
                Finding::warning("faults.recent", format!("{what} (the last of {more} within a day)"), todo)
            }
        });
    }
    if let Some(last) = facts.of_client.last() {
        let count = counted(facts.of_client.len(), "time");
        let what = format!(
            "the client could not run `{}` ({count} in this session): {}",
            clip(&one_line(&last.command), 100),
            clip(&one_line(&last.what), 200)
        );
        let todo = "check that the program exists and starts; `plimsoll init` (with the option of its settings) writes its path again";
        findings.push(Finding::warning("faults.client", what, todo));
    }
    let summary = match (recent, facts.of_client.len()) {
        (0, 0) => "no hook has failed within a day".to_owned(),
        (own, of_client) => format!("{} of hooks within a day", counted(own + of_client, "fault")),
    };
    Section::new("Hooks", summary, findings)
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;

    #[test]
    fn the_last_fault_is_told_and_an_old_one_only_noted() {
        let own = |at: &str| Fault {
            at: Timestamp::from(at),
            program: "plimsoll-stop-gate".to_owned(),
            what: "it broke".to_owned(),
            ..Fault::default()
        };
        let client = ClientFault {
            at: Timestamp::default(),
            command: "/gone/plimsoll-stop-gate".to_owned(),
            what: "ENOENT".to_owned(),
        };
        let look = |own: Vec<Fault>, of_client: Vec<ClientFault>| {
            section(&FaultFacts { own, of_client, since: Timestamp::from("2026-01-06T09:00:00.000Z") })
        };
        let (old, new) = ("2026-01-05T09:00:00.000Z", "2026-01-07T09:00:00.000Z");
        for (section, expected) in [
            (look(vec![], vec![]), vec![]),
            (look(vec![own(old)], vec![]), vec!["faults.old"]),
            (look(vec![own(old), own(new)], vec![]), vec!["faults.recent"]),
            (look(vec![own(new)], vec![client]), vec!["faults.recent", "faults.client"]),
        ] {
            assert_eq!(codes(&section), expected, "{section:?}");
        }
        let both = look(vec![own(new), own(new)], vec![]);
        insta::assert_snapshot!(both.findings[0].what, @"plimsoll-stop-gate at 2026-01-07T09:00:00.000Z: it broke (the last of 2 within a day)");
    }
}
