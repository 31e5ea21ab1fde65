//! Checks a fleet: its database, its remote and its members.

use super::{Finding, ReadFailure, Section};
use plimsoll_domain::text::count_with_noun;

/// The oldest supported PostgreSQL, in the form of `server_version_num`.
const MIN_POSTGRES_VERSION_NUMBER: i32 = 140_000;

/// The facts about a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetFacts {
    pub name: String,
    /// The database, or why it cannot be used.
    pub database: Result<DatabaseFacts, UnknownReason>,
    /// The fleet in the database, or why it is unknown.
    pub fleet: Result<MemberFacts, UnknownReason>,
    /// The git remote; `None` outside of a clone.
    pub remote: Option<RemoteFacts>,
    /// The version of this program.
    pub own_version: String,
}

/// Why a part of the facts is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownReason {
    pub message: String,
    /// What the user can do about it.
    pub advice: String,
}

/// The database server and the role used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseFacts {
    /// The server's address.
    pub server: String,
    /// True if the connection may pass other computers: it uses neither a socket nor this computer.
    pub is_remote: bool,
    /// The server's version as text.
    pub version: String,
    /// The server's version as a number, such as 150004.
    pub version_number: i32,
    /// True if the server takes no writes.
    pub is_read_only: bool,
    /// True if the connection is encrypted, as far as the server knows.
    pub has_tls: bool,
    /// The version of the tables; `None` if there are none.
    pub schema_version: Option<i32>,
    /// The version of the tables that this program supports.
    pub supported_schema_version: i32,
    /// The role that this program uses.
    pub role: String,
    /// Rights that a member needs and the role lacks, such as `update on plimsoll.item`.
    pub missing_rights: Vec<String>,
    /// True if the role may also create and forget fleets.
    pub can_create_fleets: bool,
}

/// The fleet and its workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberFacts {
    /// A description of its state.
    pub state_text: String,
    /// A description of how far its items are.
    pub items_text: String,
    /// The branch into which the work is merged.
    pub target_branch: String,
    /// The address of the git remote with which the fleet was created.
    pub remote_address: String,
    /// Active workers: name and version.
    pub active_workers: Vec<(String, String)>,
    /// Workers that hold an item and have sent no heartbeat for longer than a lease.
    pub lost_workers: Vec<String>,
}

/// The remote as configured in this clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFacts {
    pub name: String,
    /// Its address, or why it has none.
    pub address: Result<String, ReadFailure>,
    /// The commit of the fleet's target branch on the remote, or why it is unknown; `None` if the branch does
    /// not exist.
    pub target_commit: Result<Option<String>, ReadFailure>,
    /// Whether a test push of a worker's branch, which changes nothing, succeeds.
    pub push_result: Result<(), ReadFailure>,
}

/// Runs all checks. The sections are ordered by how early their problems would stop a member.
pub fn examine_fleet(facts: &FleetFacts) -> Vec<Section> {
    let mut sections = vec![check_database(facts)];
    if let Ok(database) = &facts.database {
        sections.push(check_role(database));
        sections.push(check_fleet(facts));
    }
    sections.push(check_remote(facts));
    if let Ok(fleet) = &facts.fleet {
        sections.push(check_members(facts, fleet));
    }
    sections
}

fn check_database(facts: &FleetFacts) -> Section {
    let database_facts = match &facts.database {
        Err(unknown) => {
            let finding = Finding::problem("fleet.database", unknown.message.clone(), &unknown.advice);
            return Section::new("Database", "it cannot be used", vec![finding]);
        }
        Ok(database_facts) => database_facts,
    };
    let mut findings = Vec::new();
    if database_facts.version_number < MIN_POSTGRES_VERSION_NUMBER {
        let message = format!("PostgreSQL {} is older than 14", database_facts.version);
        findings.push(Finding::problem(
            "fleet.old_database",
            message,
            "upgrade the server to PostgreSQL 14 or newer",
        ));
    }
    if database_facts.is_read_only {
        let advice = "name the primary in PLIMSOLL_DATABASE_URL, or add target_session_attrs=read-write";
        findings.push(Finding::problem(
            "fleet.read_only",
            "it takes no writes: a standby, or set so",
            advice,
        ));
    }
    if database_facts.is_remote && !database_facts.has_tls {
        let advice =
            "turn on `ssl` in its postgresql.conf, and add sslmode=verify-full to PLIMSOLL_DATABASE_URL";
        findings.push(Finding::warning("fleet.no_tls", "the connection is not encrypted", advice));
    }
    findings.extend(check_schema_version(database_facts));
    let tls_text = if database_facts.has_tls { ", TLS" } else { "" };
    let tables_text = database_facts
        .schema_version
        .map(|schema| format!(", tables of version {schema}"))
        .unwrap_or_default();
    Section::new(
        "Database",
        format!("PostgreSQL {} at {}{tls_text}{tables_text}", database_facts.version, database_facts.server),
        findings,
    )
}

fn check_schema_version(database: &DatabaseFacts) -> Option<Finding> {
    let (code, message, advice) = match database.schema_version {
        // A role without rights sees no tables.
        None if !database.missing_rights.is_empty() => return None,
        None => (
            "fleet.no_tables",
            "it has no fleet yet".to_owned(),
            "create one: `plimsoll fleet create NAME`, in a clone",
        ),
        Some(schema) if schema > database.supported_schema_version => (
            "fleet.newer_tables",
            format!(
                "its tables are of version {schema}, and this program knows {}",
                database.supported_schema_version
            ),
            "install the newer Plimsoll on this computer, too",
        ),
        Some(schema) if schema < database.supported_schema_version => (
            "fleet.older_tables",
            format!(
                "its tables are of version {schema}, and this program needs {}",
                database.supported_schema_version
            ),
            "create a fleet with this version: that brings the tables up to date",
        ),
        Some(_) => return None,
    };
    Some(Finding::problem(code, message, advice))
}

fn check_role(database: &DatabaseFacts) -> Section {
    let missing_rights = database.missing_rights.join(", ");
    let advice = format!(
        "as the owner of the tables: grant {} to {} (docs/fleet.md has all)",
        missing_rights, database.role
    );
    let missing_rights_problem = (!database.missing_rights.is_empty())
        .then(|| Finding::problem("fleet.rights", format!("the role lacks: {missing_rights}"), &advice));
    let abilities = if database.can_create_fleets {
        "may create and forget fleets, too"
    } else {
        "may work, and not create or forget fleets"
    };
    let summary = if missing_rights_problem.is_some() {
        database.role.clone()
    } else {
        format!("{} {abilities}", database.role)
    };
    Section::new("Role", summary, missing_rights_problem.into_iter().collect())
}

fn check_fleet(facts: &FleetFacts) -> Section {
    match &facts.fleet {
        Ok(members) => Section::new(
            "Fleet",
            format!("{}: {}; {}", facts.name, members.state_text, members.items_text),
            Vec::new(),
        ),
        Err(unknown) => {
            let finding = Finding::problem("fleet.unknown", unknown.message.clone(), &unknown.advice);
            Section::new("Fleet", facts.name.clone(), vec![finding])
        }
    }
}

fn check_remote(facts: &FleetFacts) -> Section {
    let Some(remote_facts) = &facts.remote else {
        let advice = "run this in a clone of the repository to have the remote checked";
        let note = Finding::note("fleet.no_clone", "this folder is in no git repository", advice);
        return Section::new("Remote", "not checked", vec![note]);
    };
    let address = match &remote_facts.address {
        Err(error) => {
            let finding =
                Finding::problem("fleet.no_remote", error.to_string(), "name the remote with --remote");
            return Section::new("Remote", remote_facts.name.clone(), vec![finding]);
        }
        Ok(address) => address,
    };
    let mut findings = Vec::new();
    if let Ok(fleet) = &facts.fleet {
        if fleet.remote_address != *address {
            let message = format!(
                "the fleet was created with {}, and {} is {address} here",
                fleet.remote_address, remote_facts.name
            );
            let advice = "nothing, if both are the same repository; else run this in the right clone";
            findings.push(Finding::note("fleet.other_remote", message, advice));
        }
        findings.extend(check_target_branch(remote_facts, &fleet.target_branch));
    }
    if let Err(error) = &remote_facts.push_result {
        let advice = "see that `git push` works here: the key or token, and its right to write";
        findings.push(Finding::problem("fleet.no_push", error.to_string(), advice));
    }
    Section::new("Remote", format!("{}: {address}", remote_facts.name), findings)
}

fn check_target_branch(remote: &RemoteFacts, target: &str) -> Option<Finding> {
    match &remote.target_commit {
        Ok(Some(_)) => None,
        Ok(None) => {
            let message = format!("the branch {target}, on which the work comes together, is not there");
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

fn check_members(facts: &FleetFacts, fleet: &MemberFacts) -> Section {
    let members_of_other_version =
        fleet.active_workers.iter().filter(|(_, version)| *version != facts.own_version);
    let version_warning = |(name, version): &(String, String)| {
        let message = format!("{name} has Plimsoll {version}, and here is {}", facts.own_version);
        Finding::warning(
            "fleet.other_version",
            message,
            "install one version on all machines, then let that member join again",
        )
    };
    let lost_worker_warning = |name: &String| {
        let message = format!("{name} has an item, and was not heard of for longer than a lease");
        Finding::warning(
            "fleet.lost_worker",
            message,
            "nothing: another worker takes the item up; look at that machine",
        )
    };
    let findings = members_of_other_version
        .map(version_warning)
        .chain(fleet.lost_workers.iter().map(lost_worker_warning))
        .collect();
    let workers_text = count_with_noun(fleet.active_workers.len(), "worker");
    let verb = if fleet.active_workers.len() == 1 { "is" } else { "are" };
    Section::new("Members", format!("{workers_text} {verb} there"), findings)
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    fn healthy_facts() -> FleetFacts {
        FleetFacts {
            name: "night".to_owned(),
            database: Ok(DatabaseFacts {
                server: "db:5432".to_owned(),
                is_remote: true,
                version: "15.4".to_owned(),
                version_number: 150_004,
                is_read_only: false,
                has_tls: true,
                schema_version: Some(2),
                supported_schema_version: 2,
                role: "fleet".to_owned(),
                missing_rights: Vec::new(),
                can_create_fleets: true,
            }),
            fleet: Ok(MemberFacts {
                state_text: "at work".to_owned(),
                items_text: "1 of 2 items merged".to_owned(),
                target_branch: "plimsoll/night".to_owned(),
                remote_address: "git@example.com:x.git".to_owned(),
                active_workers: vec![("one/1".to_owned(), "0.1.0".to_owned())],
                lost_workers: Vec::new(),
            }),
            remote: Some(RemoteFacts {
                name: "origin".to_owned(),
                address: Ok("git@example.com:x.git".to_owned()),
                target_commit: Ok(Some("c0ffee".to_owned())),
                push_result: Ok(()),
            }),
            own_version: "0.1.0".to_owned(),
        }
    }

    fn changed_facts(
        change: impl FnOnce(&mut DatabaseFacts, &mut MemberFacts, &mut RemoteFacts),
    ) -> FleetFacts {
        let mut facts = healthy_facts();
        let FleetFacts { database: Ok(database), fleet: Ok(fleet), remote: Some(remote), .. } = &mut facts
        else {
            panic!("it is sound")
        };
        change(database, fleet, remote);
        facts
    }

    fn unknown_reason() -> UnknownReason {
        UnknownReason { message: "x".to_owned(), advice: "y".to_owned() }
    }

    #[test]
    fn each_problem_of_a_fleet_has_a_code_and_advice() {
        use Severity::{Note, Problem, Warning};
        let text = || "no".to_owned();
        let failure = || ReadFailure("no".to_owned());
        let cases: Vec<(FleetFacts, Option<(&str, Severity)>)> = vec![
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
            (
                changed_facts(|database, _, _| database.schema_version = Some(3)),
                Some(("fleet.newer_tables", Problem)),
            ),
            (
                changed_facts(|database, _, _| database.schema_version = Some(1)),
                Some(("fleet.older_tables", Problem)),
            ),
            (changed_facts(|database, _, _| database.can_create_fleets = false), None),
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
            (FleetFacts { remote: None, ..healthy_facts() }, Some(("fleet.no_clone", Note))),
            (
                FleetFacts { fleet: Err(unknown_reason()), ..healthy_facts() },
                Some(("fleet.unknown", Problem)),
            ),
            (
                FleetFacts {
                    database: Err(unknown_reason()),
                    fleet: Err(unknown_reason()),
                    ..healthy_facts()
                },
                Some(("fleet.database", Problem)),
            ),
        ];
        for (facts, expected) in cases {
            let sections = examine_fleet(&facts);
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
        let without_tables = changed_facts(|database, _, _| database.schema_version = None);
        let sections = examine_fleet(&FleetFacts { fleet: Err(unknown_reason()), ..without_tables });
        assert_eq!(sections[0].findings[0].code, "fleet.no_tables");
    }
}
