//! Machines in their own network namespaces, which reach database and remote over a link that is cut.

use super::harness::{
    FLEET_TIMEOUT, Fleet, FleetOptions, assert_all_end_well, assert_nothing_left_behind, honest_agent,
    is_in_namespace_or_rerun, run_shell, spawn_join_via,
};
use plimsoll_testkit::postgres::{MEMBER_ROLE, ServerSetup};
use plimsoll_testkit::proxy::Proxy;
use plimsoll_testkit::scripted_agent::start_model_with_turn_script;
use plimsoll_testkit::scripted_model::ScriptedModel;
use plimsoll_testkit::world::{RunningProgram, World};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// git's default port; nothing else uses it in this network.
const GIT_PORT: u16 = 9418;

/// A network namespace for one machine, kept by a process. It ends with the test.
struct MachineNetwork {
    number: usize,
    namespace_holder: Child,
}

impl MachineNetwork {
    /// Creates a network with a link for the machine's work and one to the model, so that sessions do not depend on
    /// the first.
    fn new(number: usize, world: &World) -> MachineNetwork {
        let mut holder_command = Command::new("setpriv");
        holder_command.args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", "1000"]);
        let namespace_holder = holder_command.stdin(Stdio::null()).spawn().expect("unshare");
        let network = MachineNetwork { number, namespace_holder };
        let namespace_of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let (own_namespace, pid) = (namespace_of("self"), network.pid());
        world.wait_until(
            || namespace_of(&pid).is_some_and(|namespace| Some(namespace) != own_namespace),
            "a network of its own",
        );
        network.run_inside("ip link set lo up");
        for (kind, name) in [(77, "work"), (78, "model")] {
            run_shell(&format!("ip link add {name}{number} type veth peer name {name} netns {pid}"));
            run_shell(&format!("ip addr add 10.{kind}.{number}.1/24 dev {name}{number}"));
            run_shell(&format!("ip link set {name}{number} up"));
            network.run_inside(&format!("ip addr add 10.{kind}.{number}.2/24 dev {name}"));
            network.run_inside(&format!("ip link set {name} up"));
        }
        network
    }

    fn pid(&self) -> String {
        self.namespace_holder.id().to_string()
    }

    fn run_inside(&self, command: &str) {
        run_shell(&format!("nsenter --net --target {} {command}", self.pid()));
    }

    /// Sets the link for the machine's work `up` or `down`.
    fn set_work_link(&self, state: &str) {
        run_shell(&format!("ip link set work{} {state}", self.number));
    }

    /// Creates a machine in this network.
    fn create_machine(&self, fleet: &Fleet, model: &ScriptedModel) -> World {
        let gateway_address = format!("10.77.{}.1", self.number);
        let mut machine = fleet.replay_machine(model);
        let remote = format!("git://{gateway_address}:{GIT_PORT}/bare.git");
        machine.git(&["remote", "set-url", "origin", &remote]);
        let database = fleet.server.tcp_connection_string_for_role(MEMBER_ROLE, fleet.server.port());
        machine.set_env("PLIMSOLL_DATABASE_URL", database.replace("localhost", &gateway_address));
        let port = model.url().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        let model_proxy = Proxy::start_for_port_at_address(&format!("10.78.{}.1", self.number), port);
        machine
            .set_env("ANTHROPIC_BASE_URL", format!("http://10.78.{}.1:{}", self.number, model_proxy.port()));
        machine
    }

    fn spawn_join(&self, machine: &World) -> RunningProgram {
        spawn_join_via(machine, &["nsenter", "--net", "--target", &self.pid()])
    }
}

impl Drop for MachineNetwork {
    fn drop(&mut self) {
        let _ = self.namespace_holder.kill();
        let _ = self.namespace_holder.wait();
    }
}

/// Creates a fleet whose database and remote are reached over the network. The daemon ends when it is dropped.
fn fleet_on_network(items: &[&str]) -> (Fleet, GitDaemon) {
    run_shell("ip link set lo up");
    let setup = ServerSetup { settings: "listen_addresses = '*'\n", ..ServerSetup::default() };
    let fleet = Fleet::new(items, &FleetOptions { setup, ..FleetOptions::default() });
    fleet.server.add_allowed_addresses_and_reload_config("10.77.0.0/16");
    let folder = fleet.bare_remote_path().parent().expect("a folder").to_owned();
    let mut daemon = Command::new("setpriv");
    daemon.args(["--pdeathsig", "KILL", "git", "daemon", "--reuseaddr", "--export-all"]);
    daemon.arg("--enable=receive-pack").arg(format!("--base-path={}", folder.display())).arg(&folder);
    daemon
        .env_clear()
        .envs(fleet.source.env_with_programs_on_path())
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let daemon = GitDaemon(daemon.process_group(0).spawn().expect("git daemon"));
    let accepts_connections = || std::net::TcpStream::connect(("127.0.0.1", GIT_PORT)).is_ok();
    fleet.source.wait_until(accepts_connections, "git serves");
    (fleet, daemon)
}

/// `git daemon` with the processes that it started.
struct GitDaemon(Child);

impl Drop for GitDaemon {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-9", "--", &format!("-{}", self.0.id())]).status();
        let _ = self.0.wait();
    }
}

#[test]
fn a_machine_with_a_link_cut_for_a_while_reports_its_work_afterwards() {
    if !is_in_namespace_or_rerun(
        &plimsoll_tests::exact_test_name(
            module_path!(),
            "a_machine_with_a_link_cut_for_a_while_reports_its_work_afterwards",
        ),
        "--net",
    ) {
        return;
    }
    let (fleet, _daemon) = fleet_on_network(&["Item 1", "Item 2", "Item 3"]);
    let model =
        start_model_with_turn_script(|turn| honest_agent(turn).with_delay(Duration::from_millis(700)));
    let networks = [1, 2].map(|number| MachineNetwork::new(number, &fleet.source));
    let machines = [0, 1].map(|index| networks[index].create_machine(&fleet, &model));
    let first_run = networks[0].spawn_join(&machines[0]);
    fleet.source.wait_until(|| !model.main_requests().is_empty(), "it works");
    networks[0].set_work_link("down");
    // The session reaches the model over another link and completes; its result cannot be reported.
    fleet.source.wait_until(|| first_run.stdout_so_far().contains("is done"), "its session ends");
    assert_eq!(
        (fleet.event_count("claimed"), fleet.event_count("offered")),
        (1, 0),
        "{}",
        first_run.stdout_so_far()
    );
    let second_run = networks[1].spawn_join(&machines[1]);
    fleet.source.wait_until(|| fleet.event_count("merged") >= 1, "the other works meanwhile");
    assert_eq!(
        fleet.server.run_sql("select stage, epoch from plimsoll_night.item where place = 0"),
        "leased|1"
    );
    networks[0].set_work_link("up");
    assert_all_end_well(&machines, [first_run, second_run]);
    fleet.assert_landed_once("");
    assert_eq!(model.main_requests().len(), 6, "no session was repeated");
}

#[test]
fn a_machine_cut_off_beyond_its_lease_changes_nothing_when_it_is_back() {
    if !is_in_namespace_or_rerun(
        &plimsoll_tests::exact_test_name(
            module_path!(),
            "a_machine_cut_off_beyond_its_lease_changes_nothing_when_it_is_back",
        ),
        "--net",
    ) {
        return;
    }
    let (fleet, _daemon) = fleet_on_network(&["Item 1", "Item 2"]);
    let model =
        start_model_with_turn_script(|turn| honest_agent(turn).with_delay(Duration::from_millis(300)));
    let networks = [1, 2].map(|number| MachineNetwork::new(number, &fleet.source));
    let machines = [0, 1].map(|index| networks[index].create_machine(&fleet, &model));
    let cut_off_run = networks[0].spawn_join(&machines[0]);
    fleet.source.wait_until(|| !model.main_requests().is_empty(), "it works");
    networks[0].set_work_link("down");
    fleet.expire_leases();
    let finished = networks[1].spawn_join(&machines[1]).wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    networks[0].set_work_link("up");
    let late_result = cut_off_run.wait_or_kill_and_panic(FLEET_TIMEOUT);
    assert_eq!(late_result.code, Some(0), "{late_result:?}");
    fleet.assert_landed_once(&format!("{late_result:?} {finished:?}"));
    assert_eq!(fleet.event_count("offered"), 2, "what came late was no longer wanted");
    for (machine, finished) in machines.iter().zip([late_result, finished]) {
        assert_nothing_left_behind(machine, &finished);
    }
}
