//! Fleets on test servers.

use crate::test_fleet::TestFleet;
use plimsoll_domain::state::DeliveryMode;
use plimsoll_fleet::{
    Database, Fleet, FleetError, FleetName, NewPlan, URL_VARIABLE, load_settings_with_lookup,
};
use plimsoll_policy::plan::EstimatedItem;
use plimsoll_testkit::postgres::{PASSWORD, Postgres};
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
        name: FleetName::parse(name).expect("a name"),
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

pub(crate) fn create_fleet(address: &str, name: &str, texts: &[&str]) -> TestFleet {
    create_fleet_with_plan(address, &new_plan(name), &plan_items(texts))
}

pub(crate) fn create_fleet_with_plan(address: &str, plan: &NewPlan, items: &[EstimatedItem]) -> TestFleet {
    let database = connect(address).expect("a connection");
    TestFleet::new(Fleet::create_if_name_free(database, plan, items, PASSWORD).expect("a fleet"))
}

pub(crate) fn open_fleet(address: &str, name: &str) -> TestFleet {
    TestFleet::new(Fleet::open(connect(address).expect("a connection"), name).expect("a fleet"))
}
