//! Fleets on test servers.

use plimsoll_domain::state::DeliveryMode;
use plimsoll_domain::workers::{ItemOutcome, ItemResult};
use plimsoll_fleet::{Database, Fleet, FleetError, NewPlan, URL_VARIABLE, load_settings_with_lookup};
use plimsoll_policy::plan::EstimatedItem;
use plimsoll_policy::workers::Claim;
use plimsoll_testkit::postgres::Postgres;
use postgres::{Client, NoTls};

/// A connection that looks at the tables, independent of the fleet.
pub(crate) fn client(server: &Postgres) -> Client {
    Client::connect(&server.socket_connection_string(), NoTls).expect("the socket")
}

/// Connection settings from these variables only, independent of this computer.
pub(crate) fn settings_from_variables(
    variables: &[(&str, &str)],
) -> Result<plimsoll_fleet::settings::ConnectionSettings, FleetError> {
    let lookup = |name: &str| {
        variables
            .iter()
            .find(|(variable_name, _)| *variable_name == name)
            .map(|(_, value)| (*value).to_owned())
    };
    load_settings_with_lookup(&lookup)
}

pub(crate) fn connect(address: &str) -> Result<Database, FleetError> {
    Database::connect(settings_from_variables(&[(URL_VARIABLE, address)])?)
}

pub(crate) fn plan_items(texts: &[&str]) -> Vec<EstimatedItem> {
    let item = |text: &&str| EstimatedItem {
        is_done: text.starts_with("done"),
        text: (*text).to_owned(),
        file_lines: None,
        model: None,
    };
    texts.iter().map(item).collect()
}

pub(crate) fn new_plan(name: &str) -> NewPlan {
    NewPlan {
        name: name.to_owned(),
        remote_address: "git@example.com:x.git".to_owned(),
        target_branch: "main".to_owned(),
        verify_commands: vec!["make test".to_owned()],
        delivery_mode: DeliveryMode::Branch,
        objective_hash: String::new(),
        max_cost_usd: None,
        start_commit: "c0ffee0000000000000000000000000000000000".to_owned(),
        plan_file: "fix_plan.md".to_owned(),
        is_plan_tracked: true,
        project_folder: String::new(),
        promise_word: "ALL_DONE".to_owned(),
        max_sessions: None,
    }
}

pub(crate) fn create_fleet(address: &str, name: &str, texts: &[&str]) -> Fleet {
    let database = connect(address).expect("a connection");
    Fleet::create_if_name_free(database, &new_plan(name), &plan_items(texts)).expect("a fleet")
}

pub(crate) fn open_fleet(address: &str, name: &str) -> Fleet {
    Fleet::open(connect(address).expect("a connection"), name).expect("a fleet")
}

/// A member's operations, each as one call.
pub(crate) trait MemberSteps {
    fn record_outcome(&mut self, claim: Claim, start: &str, outcome: ItemOutcome) -> Result<(), FleetError>;

    fn offer(&mut self, claim: Claim, commit: &str) -> Result<(), FleetError> {
        self.record_outcome(claim, commit, ItemOutcome::Offered)
    }

    fn give_back(&mut self, claim: Claim) -> Result<(), FleetError> {
        self.record_outcome(claim, "", ItemOutcome::Released)
    }

    fn fail(&mut self, claim: Claim, reason: &str) -> Result<(), FleetError> {
        self.record_outcome(claim, "", ItemOutcome::Failed(reason.to_owned()))
    }

    fn set_aside_with_question(&mut self, claim: Claim, question: &str) -> Result<(), FleetError> {
        self.record_outcome(claim, "", ItemOutcome::WaitsForAnswer(question.to_owned()))
    }

    /// Marks items as merged if one of their commits is in the target branch, as the merger does.
    fn mark_landed_merged(&mut self, is_in_target: impl Fn(&str) -> bool) -> Result<Vec<usize>, FleetError>;
}

impl MemberSteps for Fleet {
    fn record_outcome(&mut self, claim: Claim, start: &str, outcome: ItemOutcome) -> Result<(), FleetError> {
        let (item, epoch, start) = (claim.item_index, claim.epoch, start.to_owned());
        self.store_result_unless_outcome_taken_by_other(&ItemResult {
            item,
            epoch,
            start_commit_id: start,
            outcome,
            ..ItemResult::default()
        })
    }

    fn mark_landed_merged(&mut self, is_in_target: impl Fn(&str) -> bool) -> Result<Vec<usize>, FleetError> {
        let landed_commits = self
            .read_candidate_commits_of_unmerged_items()?
            .into_iter()
            .filter(|commit| is_in_target(commit))
            .collect();
        self.mark_items_with_commits_as_merged(&landed_commits)
    }
}
