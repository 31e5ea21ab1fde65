//! Fleets on servers of the test's own.

use plimsoll_domain::state::Deliver;
use plimsoll_domain::workers::{ItemOutcome, ItemResult};
use plimsoll_fleet::{Database, Fleet, FleetError, NewPlan, URL, find_settings_by};
use plimsoll_policy::plan::Item;
use plimsoll_policy::workers::Claim;
use plimsoll_testkit::postgres::Postgres;
use postgres::{Client, NoTls};

/// A client that looks at the tables beside the fleet.
pub(crate) fn client(server: &Postgres) -> Client {
    Client::connect(&server.socket(), NoTls).expect("the socket")
}

/// What a user says, and nothing of this computer.
pub(crate) fn settings(said: &[(&str, &str)]) -> Result<plimsoll_fleet::settings::Settings, FleetError> {
    let variable =
        |name: &str| said.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    find_settings_by(&variable)
}

pub(crate) fn database(address: &str) -> Result<Database, FleetError> {
    Database::connect(settings(&[(URL, address)])?)
}

pub(crate) fn items(texts: &[&str]) -> Vec<Item> {
    let item = |text: &&str| Item {
        done: text.starts_with("done"),
        text: (*text).to_owned(),
        lines: None,
        model: None,
    };
    texts.iter().map(item).collect()
}

pub(crate) fn plan(name: &str) -> NewPlan {
    NewPlan {
        name: name.to_owned(),
        repo: "git@example.com:x.git".to_owned(),
        target: "main".to_owned(),
        verify: vec!["make test".to_owned()],
        deliver: Deliver::Branch,
        objective_hash: String::new(),
        max_cost: None,
        began_at: "c0ffee0000000000000000000000000000000000".to_owned(),
        plan_file: "fix_plan.md".to_owned(),
        plan_is_tracked: true,
        below: String::new(),
        promise: "ALL_DONE".to_owned(),
        max_sessions: None,
    }
}

pub(crate) fn create(address: &str, name: &str, texts: &[&str]) -> Fleet {
    let database = database(address).expect("a connection");
    Fleet::create(database, &plan(name), &items(texts)).expect("a fleet")
}

pub(crate) fn open(address: &str, name: &str) -> Fleet {
    Fleet::open(database(address).expect("a connection"), name).expect("a fleet")
}

/// The steps of a member, each as one call.
pub(crate) trait Member {
    fn tell_outcome(&mut self, claim: Claim, start: &str, outcome: ItemOutcome) -> Result<(), FleetError>;

    fn offer(&mut self, claim: Claim, commit: &str) -> Result<(), FleetError> {
        self.tell_outcome(claim, commit, ItemOutcome::Offered)
    }

    fn give_back(&mut self, claim: Claim) -> Result<(), FleetError> {
        self.tell_outcome(claim, "", ItemOutcome::GivenBack)
    }

    fn fail(&mut self, claim: Claim, reason: &str) -> Result<(), FleetError> {
        self.tell_outcome(claim, "", ItemOutcome::Failed(reason.to_owned()))
    }

    fn ask(&mut self, claim: Claim, question: &str) -> Result<(), FleetError> {
        self.tell_outcome(claim, "", ItemOutcome::Asked(question.to_owned()))
    }

    /// Counts as merged what has one of these commits, as the merger does.
    fn settle(&mut self, is_in_target: impl Fn(&str) -> bool) -> Result<Vec<usize>, FleetError>;
}

impl Member for Fleet {
    fn tell_outcome(&mut self, claim: Claim, start: &str, outcome: ItemOutcome) -> Result<(), FleetError> {
        let (item, epoch, start) = (claim.item, claim.epoch, start.to_owned());
        self.record_result(&ItemResult { item, epoch, start, outcome, ..ItemResult::default() })
    }

    fn settle(&mut self, is_in_target: impl Fn(&str) -> bool) -> Result<Vec<usize>, FleetError> {
        let landed = self.landings()?.into_iter().filter(|commit| is_in_target(commit)).collect();
        self.settle_landed(&landed)
    }
}
