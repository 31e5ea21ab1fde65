//! Checks a fleet: its database, its remote and its members.

use super::{Finding, InspectionError, Section};
use plimsoll_domain::text::count_with_noun;

/// The oldest supported PostgreSQL, in the form of `server_version_num`.
const MIN_POSTGRES_VERSION_NUMBER: i32 = 140_000;

/// The maximum number of missing rights that are named; a role that is no member lacks all.
const MAX_SHOWN_RIGHTS: usize = 3;

/// Everything that `plimsoll doctor --fleet` checks.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetDiagnostics {
    pub name: String,
    /// The database, or why it cannot be used.
    pub database: Result<DatabaseInfo, UnavailableReason>,
    /// The fleet in the database, or why it is unknown.
    pub fleet: Result<FleetInfo, UnavailableReason>,
    /// The git remote; `None` outside of a clone.
    pub remote: Option<RemoteInfo>,
    /// The version of this program.
    pub current_version: String,
}

/// Why a part of the fleet could not be inspected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnavailableReason {
    pub message: String,
    /// How the user can fix it.
    pub advice: String,
}

/// The database server and the role used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseInfo {
    /// The server's address.
    pub server: String,
    /// True if the connection may cross a network: it uses neither a Unix socket nor the loopback interface.
    pub is_remote: bool,
    /// The server's version as text.
    pub version: String,
    /// The server's version as a number, such as 150004.
    pub version_number: i32,
    /// True if the server accepts no writes.
    pub is_read_only: bool,
    /// True if the server reports an encrypted connection.
    pub has_tls: bool,
    /// The role that this program uses.
    pub role: String,
    /// The role of the fleet's members.
    pub member_role: String,
    /// Rights that a member needs and the role lacks, such as `select on item`.
    pub missing_rights: Vec<String>,
    /// True if the role owns the fleet, so that it may also decide about it.
    pub is_owner: bool,
    /// True if there is such a fleet.
    pub has_fleet: bool,
}

/// The fleet and its workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetInfo {
    /// A description of its state.
    pub state_text: String,
    /// A description of its items' progress.
    pub items_text: String,
    /// The branch into which the work is merged.
    pub target_branch: String,
    /// The address of the git remote for which the fleet was created.
    pub remote_address: String,
    /// Active workers: name and version.
    pub active_workers: Vec<(String, String)>,
    /// Workers that hold an item and have sent no heartbeat for longer than a lease.
    pub lost_workers: Vec<String>,
}

/// The remote as configured in this clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteInfo {
    pub name: String,
    /// Its address, or why it has none.
    pub address: Result<String, InspectionError>,
    /// The commit of the fleet's target branch on the remote, or why it is unknown; `None` if the branch does
    /// not exist.
    pub target_commit: Result<Option<String>, InspectionError>,
    /// Whether a test push of a worker's branch, which changes nothing, succeeds.
    pub push_result: Result<(), InspectionError>,
    /// The numbers of items that are recorded as merged although the target branch does not contain them.
    pub unconfirmed_items: Vec<usize>,
}

/// Runs all checks. The sections are ordered by how early their problems would stop a member.
pub fn run_fleet_checks(diagnostics: &FleetDiagnostics) -> Vec<Section> {
    let mut sections = vec![check_database_server(diagnostics)];
    if let Ok(database) = &diagnostics.database {
        sections.push(check_role_rights(database));
        sections.push(check_fleet_is_readable(diagnostics));
    }
    sections.push(check_remote_address_branch_and_push(diagnostics));
    if let Ok(fleet) = &diagnostics.fleet {
        sections.push(check_worker_versions_and_lost_workers(diagnostics, fleet));
    }
    sections
}

fn check_database_server(diagnostics: &FleetDiagnostics) -> Section {
    let database = match &diagnostics.database {
        Err(reason) => {
            let finding = Finding::problem("fleet.database", reason.message.clone(), &reason.advice);
            return Section::new("Database", "it cannot be used", vec![finding]);
        }
        Ok(database) => database,
    };
    let mut findings = Vec::new();
    if database.version_number < MIN_POSTGRES_VERSION_NUMBER {
        let message = format!("PostgreSQL {} is older than 14", database.version);
        findings.push(Finding::problem(
            "fleet.old_database",
            message,
            "upgrade the server to PostgreSQL 14 or newer",
        ));
    }
    if database.is_read_only {
        let advice = "name the primary in PLIMSOLL_DATABASE_URL, or add target_session_attrs=read-write";
        findings.push(Finding::problem(
            "fleet.read_only",
            "it takes no writes: a standby, or set so",
            advice,
        ));
    }
    if database.is_remote && !database.has_tls {
        let advice =
            "turn on `ssl` in its postgresql.conf, and add sslmode=verify-full to PLIMSOLL_DATABASE_URL";
        findings.push(Finding::warning("fleet.no_tls", "the connection is not encrypted", advice));
    }
    let tls_text = if database.has_tls { ", TLS" } else { "" };
    Section::new(
        "Database",
        format!("PostgreSQL {} at {}{tls_text}", database.version, database.server),
        findings,
    )
}

fn check_role_rights(database: &DatabaseInfo) -> Section {
    if !database.has_fleet {
        return Section::new("Role", format!("{}; its rights were not checked", database.role), Vec::new());
    }
    if database.missing_rights.is_empty() {
        let permissions_text = if database.is_owner {
            "owns the fleet: it may work, and also answer, reopen, drain, resume, stop and forget"
        } else {
            "may work on the fleet as a member"
        };
        return Section::new("Role", format!("{} {permissions_text}", database.role), Vec::new());
    }
    let is_role_of_other_fleet = database.role.starts_with("plimsoll_");
    let grant_advice = if is_role_of_other_fleet {
        String::new()
    } else {
        format!("; or as the owner of the fleet: grant \"{}\" to \"{}\"", database.member_role, database.role)
    };
    let advice =
        format!("connect as \"{}\", the role of the fleet's members{grant_advice}", database.member_role);
    let shown_rights: Vec<&str> =
        database.missing_rights.iter().take(MAX_SHOWN_RIGHTS).map(String::as_str).collect();
    let omitted_count = database.missing_rights.len() - shown_rights.len();
    let omitted_suffix =
        if omitted_count > 0 { format!(" and {omitted_count} more rights") } else { String::new() };
    let message = format!("the role lacks: {}{omitted_suffix}", shown_rights.join(", "));
    Section::new("Role", database.role.clone(), vec![Finding::problem("fleet.rights", message, &advice)])
}

fn check_fleet_is_readable(diagnostics: &FleetDiagnostics) -> Section {
    match &diagnostics.fleet {
        Ok(fleet) => Section::new(
            "Fleet",
            format!("{}: {}; {}", diagnostics.name, fleet.state_text, fleet.items_text),
            Vec::new(),
        ),
        Err(reason) => {
            let finding = Finding::problem("fleet.unknown", reason.message.clone(), &reason.advice);
            Section::new("Fleet", diagnostics.name.clone(), vec![finding])
        }
    }
}

fn check_remote_address_branch_and_push(diagnostics: &FleetDiagnostics) -> Section {
    let Some(remote) = &diagnostics.remote else {
        let advice = "run this in a clone of the repository to check the remote";
        let note = Finding::note("fleet.no_clone", "this folder is not in a git repository", advice);
        return Section::new("Remote", "not checked", vec![note]);
    };
    let address = match &remote.address {
        Err(error) => {
            let finding =
                Finding::problem("fleet.no_remote", error.to_string(), "name the remote with --remote");
            return Section::new("Remote", remote.name.clone(), vec![finding]);
        }
        Ok(address) => address,
    };
    let mut findings = Vec::new();
    if let Ok(fleet) = &diagnostics.fleet {
        if fleet.remote_address != *address {
            let message = format!(
                "the fleet was created with {}, and {} is {address} here",
                fleet.remote_address, remote.name
            );
            let advice = "nothing, if both are the same repository; else run this in the right clone";
            findings.push(Finding::note("fleet.other_remote", message, advice));
        }
        findings.extend(check_target_branch_exists(remote, &fleet.target_branch));
        let unconfirmed_problem = |number: &usize| {
            let message = format!(
                "item {number} is recorded as merged, and {} does not contain it",
                fleet.target_branch
            );
            let advice = format!(
                "plimsoll fleet log {name} says who recorded that; to have the item done again, in this clone: \
                 plimsoll fleet reopen {name} {number}",
                name = diagnostics.name
            );
            Finding::problem("fleet.unconfirmed_merge", message, &advice)
        };
        findings.extend(remote.unconfirmed_items.iter().map(unconfirmed_problem));
    }
    let fetch_error = remote.target_commit.as_ref().err().filter(|_| diagnostics.fleet.is_ok());
    // An unreachable remote refuses a push for the same reason.
    if let Some(error) = remote.push_result.as_ref().err().filter(|error| fetch_error != Some(error)) {
        let advice = "see that `git push` works here: the key or token, and its right to write";
        findings.push(Finding::problem("fleet.no_push", error.to_string(), advice));
    }
    Section::new("Remote", format!("{}: {address}", remote.name), findings)
}

fn check_target_branch_exists(remote: &RemoteInfo, target_branch: &str) -> Option<Finding> {
    match &remote.target_commit {
        Ok(Some(_)) => None,
        Ok(None) => {
            let message =
                format!("the branch {target_branch}, into which the work is merged, does not exist");
            Some(Finding::problem(
                "fleet.no_target",
                message,
                "push it again from a clone that has it, or create the fleet anew",
            ))
        }
        Err(error) => {
            let advice = "see that `git fetch` works here: the network, the key or token";
            Some(Finding::problem("fleet.unreachable", error.to_string(), advice))
        }
    }
}

fn check_worker_versions_and_lost_workers(diagnostics: &FleetDiagnostics, fleet: &FleetInfo) -> Section {
    let workers_of_other_version =
        fleet.active_workers.iter().filter(|(_, version)| *version != diagnostics.current_version);
    let version_warning = |(name, version): &(String, String)| {
        let message =
            format!("{name} has Plimsoll {version}; this machine has {}", diagnostics.current_version);
        Finding::warning(
            "fleet.other_version",
            message,
            "install one version on all machines, then let that member join again",
        )
    };
    let lost_worker_warning = |name: &String| {
        let message = format!("{name} has an item, but has not reported for longer than a lease");
        Finding::warning(
            "fleet.lost_worker",
            message,
            "nothing to do: another worker takes over the item; check that machine",
        )
    };
    let findings = workers_of_other_version
        .map(version_warning)
        .chain(fleet.lost_workers.iter().map(lost_worker_warning))
        .collect();
    let workers_text = count_with_noun(fleet.active_workers.len(), "worker");
    let verb = if fleet.active_workers.len() == 1 { "is" } else { "are" };
    Section::new("Members", format!("{workers_text} {verb} active"), findings)
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    fn healthy_facts() -> FleetDiagnostics {
        FleetDiagnostics {
            name: "night".to_owned(),
            database: Ok(DatabaseInfo {
                server: "db:5432".to_owned(),
                is_remote: true,
                version: "15.4".to_owned(),
                version_number: 150_004,
                is_read_only: false,
                has_tls: true,
                role: "captain".to_owned(),
                member_role: "plimsoll_night".to_owned(),
                missing_rights: Vec::new(),
                is_owner: true,
                has_fleet: true,
            }),
            fleet: Ok(FleetInfo {
                state_text: "at work".to_owned(),
                items_text: "1 of 2 items merged".to_owned(),
                target_branch: "plimsoll/night".to_owned(),
                remote_address: "git@example.com:x.git".to_owned(),
                active_workers: vec![("one/1".to_owned(), "0.1.0".to_owned())],
                lost_workers: Vec::new(),
            }),
            remote: Some(RemoteInfo {
                name: "origin".to_owned(),
                address: Ok("git@example.com:x.git".to_owned()),
                target_commit: Ok(Some("c0ffee".to_owned())),
                push_result: Ok(()),
                unconfirmed_items: Vec::new(),
            }),
            current_version: "0.1.0".to_owned(),
        }
    }

    fn changed_facts(
        change: impl FnOnce(&mut DatabaseInfo, &mut FleetInfo, &mut RemoteInfo),
    ) -> FleetDiagnostics {
        let mut facts = healthy_facts();
        let FleetDiagnostics { database: Ok(database), fleet: Ok(fleet), remote: Some(remote), .. } =
            &mut facts
        else {
            panic!("it is sound")
        };
        change(database, fleet, remote);
        facts
    }

    fn unknown_reason() -> UnavailableReason {
        UnavailableReason { message: "x".to_owned(), advice: "y".to_owned() }
    }

    #[test]
    fn each_problem_of_a_fleet_has_a_code_and_advice() {
        use Severity::{Note, Problem, Warning};
        let text = || "no".to_owned();
        let failure = || InspectionError("no".to_owned());
        let cases: Vec<(FleetDiagnostics, Option<(&str, Severity)>)> = vec![
            (healthy_facts(), None),
            (
                changed_facts(|database, _, _| database.version_number = 130_009),
                Some(("fleet.old_database", Problem)),
            ),
            (
                changed_facts(|database, _, _| database.is_read_only = true),
                Some(("fleet.read_only", Problem)),
            ),
            (changed_facts(|database, _, _| database.has_tls = false), Some(("fleet.no_tls", Warning))),
            (changed_facts(|database, _, _| (database.has_tls, database.is_remote) = (false, false)), None),
            (changed_facts(|database, _, _| database.is_owner = false), None),
            (changed_facts(|database, _, _| database.has_fleet = false), None),
            (
                changed_facts(|database, _, _| database.missing_rights = vec![text()]),
                Some(("fleet.rights", Problem)),
            ),
            (
                changed_facts(|_, fleet, _| fleet.active_workers[0].1 = "0.2.0".to_owned()),
                Some(("fleet.other_version", Warning)),
            ),
            (
                changed_facts(|_, fleet, _| fleet.lost_workers = vec![text()]),
                Some(("fleet.lost_worker", Warning)),
            ),
            (changed_facts(|_, fleet, _| fleet.remote_address = text()), Some(("fleet.other_remote", Note))),
            (
                changed_facts(|_, _, remote| remote.address = Err(failure())),
                Some(("fleet.no_remote", Problem)),
            ),
            (
                changed_facts(|_, _, remote| remote.target_commit = Ok(None)),
                Some(("fleet.no_target", Problem)),
            ),
            (
                changed_facts(|_, _, remote| remote.target_commit = Err(failure())),
                Some(("fleet.unreachable", Problem)),
            ),
            (
                changed_facts(|_, _, remote| remote.push_result = Err(failure())),
                Some(("fleet.no_push", Problem)),
            ),
            (
                changed_facts(|_, _, remote| remote.unconfirmed_items = vec![2]),
                Some(("fleet.unconfirmed_merge", Problem)),
            ),
            (FleetDiagnostics { remote: None, ..healthy_facts() }, Some(("fleet.no_clone", Note))),
            (
                FleetDiagnostics { fleet: Err(unknown_reason()), ..healthy_facts() },
                Some(("fleet.unknown", Problem)),
            ),
            (
                FleetDiagnostics {
                    database: Err(unknown_reason()),
                    fleet: Err(unknown_reason()),
                    ..healthy_facts()
                },
                Some(("fleet.database", Problem)),
            ),
        ];
        for (facts, expected) in cases {
            let sections = run_fleet_checks(&facts);
            let actual: Vec<(&str, Severity)> = sections
                .iter()
                .flat_map(|section| &section.findings)
                .map(|finding| (finding.code, finding.severity))
                .collect();
            assert_eq!(actual, expected.into_iter().collect::<Vec<_>>());
            assert!(
                sections
                    .iter()
                    .flat_map(|section| &section.findings)
                    .all(|finding| !finding.advice.is_empty())
            );
        }
    }
}
