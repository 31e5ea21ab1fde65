//! Machines in networks of their own, which reach database and remote by a link that is cut.

use super::harness::{Fleet, LIMIT, Terms, all_end_well, assert_tidy, honest, is_apart, join_by, run_tool};
use plimsoll_testkit::postgres::{DECKHAND, Setup};
use plimsoll_testkit::proxy::Proxy;
use plimsoll_testkit::scripted_model::ScriptedModel;
use plimsoll_testkit::story::story;
use plimsoll_testkit::world::{Running, World};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Git's own port: nobody else is in this network.
const GIT_PORT: u16 = 9418;

/// A network in which a machine is alone. It ends with the test.
struct Network {
    number: usize,
    holder: Child,
}

impl Network {
    /// With a link for its work, and one to the model: sessions have their own way.
    fn new(number: usize, world: &World) -> Network {
        let mut holder = Command::new("setpriv");
        holder.args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", "1000"]);
        let holder = holder.stdin(Stdio::null()).spawn().expect("unshare");
        let network = Network { number, holder };
        let space = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let (own, pid) = (space("self"), network.pid());
        world.wait_until(|| space(&pid).is_some_and(|its| Some(its) != own), "a network of its own");
        network.inside("ip link set lo up");
        for (kind, name) in [(77, "work"), (78, "model")] {
            run_tool(&format!("ip link add {name}{number} type veth peer name {name} netns {pid}"));
            run_tool(&format!("ip addr add 10.{kind}.{number}.1/24 dev {name}{number}"));
            run_tool(&format!("ip link set {name}{number} up"));
            network.inside(&format!("ip addr add 10.{kind}.{number}.2/24 dev {name}"));
            network.inside(&format!("ip link set {name} up"));
        }
        network
    }

    fn pid(&self) -> String {
        self.holder.id().to_string()
    }

    fn inside(&self, line: &str) {
        run_tool(&format!("nsenter --net --target {} {line}", self.pid()));
    }

    /// Pulls the plug of its work, or puts it back.
    fn link(&self, how: &str) {
        run_tool(&format!("ip link set work{} {how}", self.number));
    }

    /// A machine there.
    fn machine(&self, fleet: &Fleet, model: &ScriptedModel) -> World {
        let here = format!("10.77.{}.1", self.number);
        let mut machine = fleet.machine(model);
        let remote = format!("git://{here}:{GIT_PORT}/bare.git");
        machine.git(&["remote", "set-url", "origin", &remote]);
        let database = fleet.server.address_by(DECKHAND, fleet.server.port());
        machine.set_env("PLIMSOLL_DATABASE_URL", database.replace("localhost", &here));
        let port = model.url().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        let model = Proxy::at(&format!("10.78.{}.1", self.number), port);
        machine.set_env("ANTHROPIC_BASE_URL", format!("http://10.78.{}.1:{}", self.number, model.port()));
        machine
    }

    fn join(&self, machine: &World) -> Running {
        join_by(machine, &["nsenter", "--net", "--target", &self.pid()])
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// A fleet whose database and remote are reached by the network. Its last part ends with the test.
fn fleet_on_network(items: &[&str]) -> (Fleet, Daemon) {
    run_tool("ip link set lo up");
    let setup = Setup { settings: "listen_addresses = '*'\n", ..Setup::default() };
    let fleet = Fleet::new(items, &Terms { setup, ..Terms::default() });
    fleet.server.let_in("10.77.0.0/16");
    let folder = fleet.bare().parent().expect("a folder").to_owned();
    let mut daemon = Command::new("setpriv");
    daemon.args(["--pdeathsig", "KILL", "git", "daemon", "--reuseaddr", "--export-all"]);
    daemon.arg("--enable=receive-pack").arg(format!("--base-path={}", folder.display())).arg(&folder);
    daemon.env_clear().envs(fleet.source.env()).stdin(Stdio::null()).stderr(Stdio::null());
    let daemon = Daemon(daemon.process_group(0).spawn().expect("git daemon"));
    let is_there = || std::net::TcpStream::connect(("127.0.0.1", GIT_PORT)).is_ok();
    fleet.source.wait_until(is_there, "git serves");
    (fleet, daemon)
}

/// `git daemon` with what it has started.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-9", "--", &format!("-{}", self.0.id())]).status();
        let _ = self.0.wait();
    }
}

#[test]
fn a_machine_whose_link_is_cut_for_a_while_ends_its_session_and_tells_what_it_did_afterwards() {
    if !is_apart(
        &plimsoll_tests::test_name(
            module_path!(),
            "a_machine_whose_link_is_cut_for_a_while_ends_its_session_and_tells_what_it_did_afterwards",
        ),
        "--net",
    ) {
        return;
    }
    let (fleet, _daemon) = fleet_on_network(&["Item 1", "Item 2", "Item 3"]);
    let model = story(|turn| honest(turn).delay(Duration::from_millis(700)));
    let networks = [1, 2].map(|number| Network::new(number, &fleet.source));
    let machines = [0, 1].map(|place| networks[place].machine(&fleet, &model));
    let first = networks[0].join(&machines[0]);
    fleet.source.wait_until(|| !model.main_requests().is_empty(), "it works");
    networks[0].link("down");
    // The session has another way, and comes to its end; what it did has none.
    fleet.source.wait_until(|| first.stdout_so_far().contains("is done"), "its session ends");
    assert_eq!((fleet.events("claimed"), fleet.events("offered")), (1, 0), "{}", first.stdout_so_far());
    let second = networks[1].join(&machines[1]);
    fleet.source.wait_until(|| fleet.events("merged") >= 1, "the other works meanwhile");
    assert_eq!(fleet.server.sql("select stage, epoch from plimsoll.item where place = 0"), "leased|1");
    networks[0].link("up");
    all_end_well(&machines, [first, second]);
    fleet.assert_landed_once("");
    assert_eq!(model.main_requests().len(), 6, "no session was repeated");
}

#[test]
fn a_machine_whose_link_is_cut_beyond_its_lease_changes_nothing_when_it_is_back() {
    if !is_apart(
        &plimsoll_tests::test_name(
            module_path!(),
            "a_machine_whose_link_is_cut_beyond_its_lease_changes_nothing_when_it_is_back",
        ),
        "--net",
    ) {
        return;
    }
    let (fleet, _daemon) = fleet_on_network(&["Item 1", "Item 2"]);
    let model = story(|turn| honest(turn).delay(Duration::from_millis(300)));
    let networks = [1, 2].map(|number| Network::new(number, &fleet.source));
    let machines = [0, 1].map(|place| networks[place].machine(&fleet, &model));
    let cut = networks[0].join(&machines[0]);
    fleet.source.wait_until(|| !model.main_requests().is_empty(), "it works");
    networks[0].link("down");
    fleet.let_leases_end();
    let finished = networks[1].join(&machines[1]).wait(LIMIT);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    networks[0].link("up");
    let late = cut.wait(LIMIT);
    assert_eq!(late.code, Some(0), "{late:?}");
    fleet.assert_landed_once(&format!("{late:?} {finished:?}"));
    assert_eq!(fleet.events("offered"), 2, "what came late was no longer wanted");
    for (machine, finished) in machines.iter().zip([late, finished]) {
        assert_tidy(machine, &finished);
    }
}
