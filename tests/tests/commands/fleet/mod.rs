//! `plimsoll fleet` as users start it, against a real PostgreSQL and a git remote.

mod doctor_fleet;
mod fleet_errors;
mod fleet_page;
mod hostile_database;
mod whole_fleet;

/// A fleet for the tests of the board as well.
#[expect(dead_code, reason = "these tests do not use every operation")]
#[path = "../../../../crates/fleet/tests/board/test_fleet.rs"]
mod test_fleet;

use plimsoll_domain::workers::ItemOutcome;
use plimsoll_fleet::{Database, Fleet, URL_VARIABLE, load_settings_with_lookup};
use plimsoll_policy::workers::{Claim, MAX_FAILED_ATTEMPTS};
use plimsoll_testkit::postgres::{MEMBER_ROLE, Postgres, ServerSetup};
use plimsoll_testkit::world::{FinishedProgram, World};
use postgres::{Client, NoTls};
use test_fleet::TestFleet;

/// A clone with a plan, its remote, and a database.
struct FleetTestBench {
    server: Postgres,
    world: World,
}

const TASK: &str = "Do what the plan says, with great care.\n";
const PLAN: &str = "# Plan\n\n- [x] Begin\n- [ ] Parse dates\n- [ ] Print dates (after: 2)\n- [ ] Say which port\n- [ ] Write the page\n";

impl FleetTestBench {
    fn new() -> FleetTestBench {
        FleetTestBench::with_server(Postgres::create_cluster_and_start(ServerSetup::default()))
    }

    fn with_server(server: Postgres) -> FleetTestBench {
        let mut world = World::new();
        world.set_env(URL_VARIABLE, server.socket_connection_string());
        world.write("fix_plan.md", PLAN);
        world.write("PROMPT.md", TASK);
        world.git(&["add", "fix_plan.md", "PROMPT.md"]);
        world.git(&["commit", "-qm", "Plan the work"]);
        world.git(&["init", "-q", "--bare", "../there.git"]);
        world.git(&["remote", "add", "origin", "../there.git"]);
        world.git(&["push", "-q", "origin", "main"]);
        FleetTestBench { server, world }
    }

    fn run_fleet(&self, arguments: &[&str]) -> FinishedProgram {
        self.world.plimsoll(&[&["fleet"], arguments].concat()).run()
    }

    fn create_fleet(&self, arguments: &[&str]) -> FinishedProgram {
        self.run_fleet(&[&["create", "night"], arguments].concat())
    }

    /// Returns a text without what differs from one world, one server or one installation of PostgreSQL to the next.
    fn stable_text(&self, text: &str) -> String {
        let socket = self.server.socket_connection_string();
        let value = |name: &str| socket.split(' ').find_map(|part| part.strip_prefix(name)).expect("a part");
        let version: String =
            self.sql_client().query_one("show server_version", &[]).expect("an answer").get(0);
        let text = text.replace(value("host="), "[SOCKET]").replace(value("port="), "[PORT]");
        self.world.replace_varying_parts_with_placeholders(&text.replace(&version, "[VERSION]"))
    }

    /// Returns the error of a command. Asserts that the command failed and printed nothing else.
    fn expect_error(&self, finished: &FinishedProgram) -> String {
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{finished:?}");
        self.stable_text(&finished.stderr)
    }

    /// Returns the commit of a branch of the remote, or `None` if there is no such branch.
    fn remote_branch_commit(&self, branch: &str) -> Option<String> {
        let listed = self.world.git(&["ls-remote", "origin", &format!("refs/heads/{branch}")]);
        listed.split_whitespace().next().map(str::to_owned)
    }

    fn head_commit(&self) -> String {
        self.world.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    fn sql_client(&self) -> Client {
        Client::connect(&self.server.socket_connection_string(), NoTls).expect("the socket")
    }

    /// Opens the fleet as a member does.
    fn open_member(&self) -> TestFleet {
        let address = self.server.socket_connection_string_for_role(MEMBER_ROLE);
        let settings =
            load_settings_with_lookup(&|name: &str| (name == URL_VARIABLE).then(|| address.clone()))
                .expect("an address");
        let database = Database::connect(settings).expect("a connection");
        TestFleet::new(Fleet::open(database, "night").expect("a fleet"))
    }
}

fn claim_item(member: &mut TestFleet, worker: &str) -> Claim {
    member.claim_next_item(worker).expect("an answer").expect("an item")
}

/// Records the outcome of an item, as a member does.
fn record_outcome(member: &mut TestFleet, claim: Claim, start: &str, outcome: ItemOutcome) {
    member.record_outcome(claim, start, outcome).expect("the item is the member's");
}

/// Claims an item and fails at it until it is set aside. Returns the last claim.
fn fail_until_set_aside(member: &mut TestFleet, worker: &str, reason: &str) -> Claim {
    let mut failed = claim_item(member, worker);
    for _ in 1..MAX_FAILED_ATTEMPTS {
        record_outcome(member, failed, "", ItemOutcome::Failed(reason.to_owned()));
        failed = claim_item(member, worker);
    }
    record_outcome(member, failed, "", ItemOutcome::Failed(reason.to_owned()));
    failed
}
