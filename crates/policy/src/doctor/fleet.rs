//! A fleet: whether its database, its remote and its members are as they should be.

use super::{Finding, ReadFailure, Section};
use plimsoll_domain::text::counted;

/// The oldest PostgreSQL that the tables work with, as it numbers itself.
const OLDEST: i32 = 140_000;

/// What was found about a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetFacts {
    /// Its name.
    pub name: String,
    /// The database, or why nothing is known of it.
    pub database: Result<DatabaseFacts, Unknown>,
    /// The fleet in it, or why nothing is known of it.
    pub fleet: Result<MemberFacts, Unknown>,
    /// The git remote; none outside of a clone.
    pub remote: Option<RemoteFacts>,
    /// Our own version.
    pub version: String,
}

/// Why something is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// What went wrong.
    pub what: String,
    /// What to do about it.
    pub todo: String,
}

/// The server and the role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseFacts {
    /// Where it is.
    pub server: String,
    /// True where the way to it may have listeners: neither a socket nor this computer.
    pub is_remote: bool,
    /// PostgreSQL's own version.
    pub version: String,
    /// The same as a number: 150004.
    pub version_number: i32,
    /// It takes no writes.
    pub is_read_only: bool,
    /// The connection is encrypted, as far as the server knows.
    pub has_tls: bool,
    /// The version of the tables; none if there are none.
    pub schema: Option<i32>,
    /// The one that we know.
    pub known_schema: i32,
    /// Who we are.
    pub role: String,
    /// What a member lacks, such as `update on plimsoll.item`.
    pub lacks: Vec<String>,
    /// True if it may create and forget fleets, too.
    pub may_create: bool,
}

/// The fleet and who works for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberFacts {
    /// What it does, in words.
    pub state: String,
    /// How many items are how far, in words.
    pub items: String,
    /// Where its work comes together.
    pub target: String,
    /// The remote's address.
    pub repo: String,
    /// Workers that are there: name and version.
    pub there: Vec<(String, String)>,
    /// Workers that left an item behind, and have not been heard of for longer than a lease.
    pub lost: Vec<String>,
}

/// The remote, as the clone knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFacts {
    /// Its name.
    pub name: String,
    /// Its address, or why there is none.
    pub address: Result<String, ReadFailure>,
    /// The end of the fleet's branch there, or why it is not known; none if the branch is not there.
    pub target: Result<Option<String>, ReadFailure>,
    /// Whether a push of a worker's branch goes as far as one that pushes nothing can.
    pub push: Result<(), ReadFailure>,
}

/// Looks at everything, in the order in which it would stop a member.
pub fn examine_fleet(facts: &FleetFacts) -> Vec<Section> {
    let mut sections = vec![database(facts)];
    if let Ok(known) = &facts.database {
        sections.push(role(known));
        sections.push(fleet(facts));
    }
    sections.push(remote(facts));
    if let Ok(known) = &facts.fleet {
        sections.push(members(facts, known));
    }
    sections
}

fn database(facts: &FleetFacts) -> Section {
    let known = match &facts.database {
        Err(unknown) => {
            let finding = Finding::problem("fleet.database", unknown.what.clone(), &unknown.todo);
            return Section::new("Database", "it cannot be used", vec![finding]);
        }
        Ok(known) => known,
    };
    let mut findings = Vec::new();
    if known.version_number < OLDEST {
        let what = format!("PostgreSQL {} is older than 14", known.version);
        findings.push(Finding::problem(
            "fleet.old_database",
            what,
            "upgrade the server to PostgreSQL 14 or newer",
        ));
    }
    if known.is_read_only {
        let todo = "name the primary in PLIMSOLL_DATABASE_URL, or add target_session_attrs=read-write";
        findings.push(Finding::problem("fleet.read_only", "it takes no writes: a standby, or set so", todo));
    }
    if known.is_remote && !known.has_tls {
        let todo =
            "turn on `ssl` in its postgresql.conf, and add sslmode=verify-full to PLIMSOLL_DATABASE_URL";
        findings.push(Finding::warning("fleet.no_tls", "the connection is not encrypted", todo));
    }
    findings.extend(schema(known));
    let tls = if known.has_tls { ", TLS" } else { "" };
    let tables = known.schema.map(|schema| format!(", tables of version {schema}")).unwrap_or_default();
    Section::new(
        "Database",
        format!("PostgreSQL {} at {}{tls}{tables}", known.version, known.server),
        findings,
    )
}

fn schema(known: &DatabaseFacts) -> Option<Finding> {
    let (code, what, todo) = match known.schema {
        // A role without rights sees none.
        None if !known.lacks.is_empty() => return None,
        None => (
            "fleet.no_tables",
            "it has no fleet yet".to_owned(),
            "create one: `plimsoll fleet create NAME`, in a clone",
        ),
        Some(schema) if schema > known.known_schema => (
            "fleet.newer_tables",
            format!("its tables are of version {schema}, and this program knows {}", known.known_schema),
            "install the newer Plimsoll on this computer, too",
        ),
        Some(schema) if schema < known.known_schema => (
            "fleet.older_tables",
            format!("its tables are of version {schema}, and this program needs {}", known.known_schema),
            "create a fleet with this version: that brings the tables up to date",
        ),
        Some(_) => return None,
    };
    Some(Finding::problem(code, what, todo))
}

fn role(known: &DatabaseFacts) -> Section {
    let lacks = known.lacks.join(", ");
    let todo =
        format!("as the owner of the tables: grant {} to {} (docs/fleet.md has all)", lacks, known.role);
    let lacking = (!known.lacks.is_empty())
        .then(|| Finding::problem("fleet.rights", format!("the role lacks: {lacks}"), &todo));
    let may = if known.may_create {
        "may create and forget fleets, too"
    } else {
        "may work, and not create or forget fleets"
    };
    let summary = if lacking.is_some() { known.role.clone() } else { format!("{} {may}", known.role) };
    Section::new("Role", summary, lacking.into_iter().collect())
}

fn fleet(facts: &FleetFacts) -> Section {
    match &facts.fleet {
        Ok(known) => {
            Section::new("Fleet", format!("{}: {}; {}", facts.name, known.state, known.items), Vec::new())
        }
        Err(unknown) => {
            let finding = Finding::problem("fleet.unknown", unknown.what.clone(), &unknown.todo);
            Section::new("Fleet", facts.name.clone(), vec![finding])
        }
    }
}

fn remote(facts: &FleetFacts) -> Section {
    let Some(known) = &facts.remote else {
        let todo = "run this in a clone of the repository to have the remote checked";
        let note = Finding::note("fleet.no_clone", "this folder is in no git repository", todo);
        return Section::new("Remote", "not checked", vec![note]);
    };
    let address = match &known.address {
        Err(why) => {
            let finding =
                Finding::problem("fleet.no_remote", why.to_string(), "name the remote with --remote");
            return Section::new("Remote", known.name.clone(), vec![finding]);
        }
        Ok(address) => address,
    };
    let mut findings = Vec::new();
    if let Ok(fleet) = &facts.fleet {
        if fleet.repo != *address {
            let what =
                format!("the fleet was created with {}, and {} is {address} here", fleet.repo, known.name);
            let todo = "nothing, if both are the same repository; else run this in the right clone";
            findings.push(Finding::note("fleet.other_remote", what, todo));
        }
        findings.extend(target(known, &fleet.target));
    }
    if let Err(why) = &known.push {
        let todo = "see that `git push` works here: the key or token, and its right to write";
        findings.push(Finding::problem("fleet.no_push", why.to_string(), todo));
    }
    Section::new("Remote", format!("{}: {address}", known.name), findings)
}

fn target(known: &RemoteFacts, target: &str) -> Option<Finding> {
    match &known.target {
        Ok(Some(_)) => None,
        Ok(None) => {
            let what = format!("the branch {target}, on which the work comes together, is not there");
            Some(Finding::problem(
                "fleet.no_target",
                what,
                "push it again from a clone that has it, or create the fleet anew",
            ))
        }
        Err(why) => {
            let todo = "see that `git fetch` works here: the network, the key or token";
            Some(Finding::problem("fleet.unreachable", why.to_string(), todo))
        }
    }
}

fn members(facts: &FleetFacts, known: &MemberFacts) -> Section {
    let others = known.there.iter().filter(|(_, version)| *version != facts.version);
    let other = |(name, version): &(String, String)| {
        let what = format!("{name} has Plimsoll {version}, and here is {}", facts.version);
        Finding::warning(
            "fleet.other_version",
            what,
            "install one version on all machines, then let that member join again",
        )
    };
    let lost = |name: &String| {
        let what = format!("{name} has an item, and was not heard of for longer than a lease");
        Finding::warning(
            "fleet.lost_worker",
            what,
            "nothing: another worker takes the item up; look at that machine",
        )
    };
    let findings = others.map(other).chain(known.lost.iter().map(lost)).collect();
    let there = counted(known.there.len(), "worker");
    let verb = if known.there.len() == 1 { "is" } else { "are" };
    Section::new("Members", format!("{there} {verb} there"), findings)
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    fn sound() -> FleetFacts {
        FleetFacts {
            name: "night".to_owned(),
            database: Ok(DatabaseFacts {
                server: "db:5432".to_owned(),
                is_remote: true,
                version: "15.4".to_owned(),
                version_number: 150_004,
                is_read_only: false,
                has_tls: true,
                schema: Some(2),
                known_schema: 2,
                role: "fleet".to_owned(),
                lacks: Vec::new(),
                may_create: true,
            }),
            fleet: Ok(MemberFacts {
                state: "at work".to_owned(),
                items: "1 of 2 items merged".to_owned(),
                target: "plimsoll/night".to_owned(),
                repo: "git@example.com:x.git".to_owned(),
                there: vec![("one/1".to_owned(), "0.1.0".to_owned())],
                lost: Vec::new(),
            }),
            remote: Some(RemoteFacts {
                name: "origin".to_owned(),
                address: Ok("git@example.com:x.git".to_owned()),
                target: Ok(Some("c0ffee".to_owned())),
                push: Ok(()),
            }),
            version: "0.1.0".to_owned(),
        }
    }

    fn with(change: impl FnOnce(&mut DatabaseFacts, &mut MemberFacts, &mut RemoteFacts)) -> FleetFacts {
        let mut facts = sound();
        let FleetFacts { database: Ok(database), fleet: Ok(fleet), remote: Some(remote), .. } = &mut facts
        else {
            panic!("it is sound")
        };
        change(database, fleet, remote);
        facts
    }

    fn unknown() -> Unknown {
        Unknown { what: "x".to_owned(), todo: "y".to_owned() }
    }

    #[test]
    fn what_is_wrong_with_a_fleet_has_a_name_and_something_to_do() {
        use Severity::{Note, Problem, Warning};
        let why = || "no".to_owned();
        let failure = || ReadFailure("no".to_owned());
        let cases: Vec<(FleetFacts, Option<(&str, Severity)>)> = vec![
            (sound(), None),
            (with(|database, _, _| database.version_number = 130_009), Some(("fleet.old_database", Problem))),
            (with(|database, _, _| database.is_read_only = true), Some(("fleet.read_only", Problem))),
            (with(|database, _, _| database.has_tls = false), Some(("fleet.no_tls", Warning))),
            (with(|database, _, _| (database.has_tls, database.is_remote) = (false, false)), None),
            (with(|database, _, _| database.schema = Some(3)), Some(("fleet.newer_tables", Problem))),
            (with(|database, _, _| database.schema = Some(1)), Some(("fleet.older_tables", Problem))),
            (with(|database, _, _| database.may_create = false), None),
            (with(|database, _, _| database.lacks = vec![why()]), Some(("fleet.rights", Problem))),
            (
                with(|_, fleet, _| fleet.there[0].1 = "0.2.0".to_owned()),
                Some(("fleet.other_version", Warning)),
            ),
            (with(|_, fleet, _| fleet.lost = vec![why()]), Some(("fleet.lost_worker", Warning))),
            (with(|_, fleet, _| fleet.repo = why()), Some(("fleet.other_remote", Note))),
            (with(|_, _, remote| remote.address = Err(failure())), Some(("fleet.no_remote", Problem))),
            (with(|_, _, remote| remote.target = Ok(None)), Some(("fleet.no_target", Problem))),
            (with(|_, _, remote| remote.target = Err(failure())), Some(("fleet.unreachable", Problem))),
            (with(|_, _, remote| remote.push = Err(failure())), Some(("fleet.no_push", Problem))),
            (FleetFacts { remote: None, ..sound() }, Some(("fleet.no_clone", Note))),
            (FleetFacts { fleet: Err(unknown()), ..sound() }, Some(("fleet.unknown", Problem))),
            (
                FleetFacts { database: Err(unknown()), fleet: Err(unknown()), ..sound() },
                Some(("fleet.database", Problem)),
            ),
        ];
        for (facts, expected) in cases {
            let sections = examine_fleet(&facts);
            let found: Vec<(&str, Severity)> = sections
                .iter()
                .flat_map(|section| &section.findings)
                .map(|one| (one.code, one.severity))
                .collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
            assert!(sections.iter().flat_map(|section| &section.findings).all(|one| !one.todo.is_empty()));
        }
        let none = with(|database, _, _| database.schema = None);
        let sections = examine_fleet(&FleetFacts { fleet: Err(unknown()), ..none });
        assert_eq!(sections[0].findings[0].code, "fleet.no_tables");
    }
}
