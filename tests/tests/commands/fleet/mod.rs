//! `plimsoll fleet` as users start it, against a real PostgreSQL and a git remote.

mod doctor_fleet;
mod fleet_errors;
mod fleet_page;
mod hostile_database;
mod whole_fleet;

use plimsoll_domain::workers::{ItemOutcome, ItemResult};
use plimsoll_fleet::{Database, Fleet, URL_VARIABLE, load_settings_with};
use plimsoll_policy::workers::{Claim, MAX_TRIES};
use plimsoll_testkit::postgres::{Postgres, Setup};
use plimsoll_testkit::world::{Finished, World};
use postgres::{Client, NoTls};

/// A clone with a plan, its remote, and a database.
struct Bench {
    server: Postgres,
    world: World,
}

const TASK: &str = "Do what the plan says, with great care.\n";
const PLAN: &str = "# Plan\n\n- [x] Begin\n- [ ] Parse dates\n- [ ] Print dates (after: 2)\n- [ ] Say which port\n- [ ] Write the page\n";

impl Bench {
    fn new() -> Bench {
        Bench::on(Postgres::start(Setup::default()))
    }

    fn on(server: Postgres) -> Bench {
        let mut world = World::new();
        world.set_env(URL_VARIABLE, server.socket());
        world.write("fix_plan.md", PLAN);
        world.write("PROMPT.md", TASK);
        world.git(&["add", "fix_plan.md", "PROMPT.md"]);
        world.git(&["commit", "-qm", "Plan the work"]);
        world.git(&["init", "-q", "--bare", "../there.git"]);
        world.git(&["remote", "add", "origin", "../there.git"]);
        world.git(&["push", "-q", "origin", "main"]);
        Bench { server, world }
    }

    fn fleet(&self, words: &[&str]) -> Finished {
        self.world.plimsoll(&[&["fleet"], words].concat()).run()
    }

    fn create(&self, words: &[&str]) -> Finished {
        self.fleet(&[&["create", "night"], words].concat())
    }

    /// Returns a text without what differs from one world, one server or one installation of PostgreSQL to the next.
    fn stable_text(&self, text: &str) -> String {
        let socket = self.server.socket();
        let value = |name: &str| socket.split(' ').find_map(|part| part.strip_prefix(name)).expect("a part");
        let version: String = self.sql().query_one("show server_version", &[]).expect("an answer").get(0);
        let text = text.replace(value("host="), "[SOCKET]").replace(value("port="), "[PORT]");
        self.world.stable_text(&text.replace(&version, "[VERSION]"))
    }

    /// Returns the error of a command that failed and printed nothing else.
    fn error_of(&self, finished: &Finished) -> String {
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{finished:?}");
        self.stable_text(&finished.stderr)
    }

    /// The end of a branch of the remote.
    fn there(&self, branch: &str) -> Option<String> {
        let listed = self.world.git(&["ls-remote", "origin", &format!("refs/heads/{branch}")]);
        listed.split_whitespace().next().map(str::to_owned)
    }

    fn head(&self) -> String {
        self.world.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    fn sql(&self) -> Client {
        Client::connect(&self.server.socket(), NoTls).expect("the socket")
    }

    /// The board, as a member of the fleet has it.
    fn member(&self) -> Fleet {
        let address = self.server.socket();
        let settings = load_settings_with(&|name: &str| (name == URL_VARIABLE).then(|| address.clone()))
            .expect("an address");
        Fleet::open(Database::connect(settings).expect("a connection"), "night").expect("a fleet")
    }
}

fn claim(member: &mut Fleet, worker: &str) -> Claim {
    member.claim_next_item(worker).expect("an answer").expect("an item")
}

/// Says what has become of an item, as a member does.
fn tell(member: &mut Fleet, claim: Claim, start: &str, outcome: ItemOutcome) {
    let (item, epoch, start) = (claim.item, claim.epoch, start.to_owned());
    let result = ItemResult { item, epoch, start_commit_id: start, outcome, ..ItemResult::default() };
    member.record_item_result(&result).expect("the item is the member's");
}

/// Fails at the next item until it is set aside.
fn fail_for_good(member: &mut Fleet, worker: &str, reason: &str) -> Claim {
    let mut failed = claim(member, worker);
    for _ in 1..MAX_TRIES {
        tell(member, failed, "", ItemOutcome::Failed(reason.to_owned()));
        failed = claim(member, worker);
    }
    tell(member, failed, "", ItemOutcome::Failed(reason.to_owned()));
    failed
}
