//! Debian's PostgreSQL and PgBouncer in a temporary folder: on a socket there, and on 127.0.0.1 with TLS if it is asked for.
//!
//! They refuse to run as root, so root starts them as the user `postgres`, whom Debian's package makes. They end with the test,
//! also when it is killed: the system tells them that their parent is gone.

mod cluster;

use crate::{tool, workspace_root};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a server may take to begin or to end, on a machine that has much to do.
const LIMIT: Duration = Duration::from_secs(60);
/// The role, and its password over TCP; on the socket nobody is asked.
pub const ROLE: &str = "captain";
/// Its password.
pub const PASSWORD: &str = "pass:word%of@the/captain";

/// The role of docs/fleet.md for machines that join.
pub const DECKHAND: &str = "deckhand";

/// The statements by which docs/fleet.md makes this role and grants it what it needs.
pub fn of_the_page(role: &str) -> String {
    let page = fs::read_to_string(workspace_root().join("docs/fleet.md")).expect("the page");
    let create = format!("create role {role} login;");
    let is_its = |line: &&str| {
        *line == create || line.starts_with("grant ") && line.ends_with(&format!(" to {role};"))
    };
    let statements: Vec<&str> = page.lines().filter(is_its).collect();
    assert!(statements.len() >= 3, "docs/fleet.md grants {role} {statements:?}");
    statements.join("\n")
}

/// How a server is set up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Setup {
    /// Lines of `postgresql.conf`.
    pub settings: &'static str,
    /// TLS, with a certificate for `localhost` by an authority of the test's own.
    pub has_tls: bool,
    /// Without TLS nobody comes in over TCP.
    pub demands_tls: bool,
    /// Its files are on a disk of this size. Only whoever may mount one can have it.
    pub disk_megabytes: Option<u32>,
}

/// A server.
#[derive(Debug)]
pub struct Postgres {
    folder: TempDir,
    programs: PathBuf,
    user: Option<User>,
    port: u16,
    server: Process,
    /// A disk of its own, to be unmounted.
    has_disk: bool,
}

impl Postgres {
    /// Makes a cluster and starts its server.
    pub fn start(setup: Setup) -> Postgres {
        let folder = tempfile::Builder::new().prefix("pg").tempdir().expect("a temporary folder");
        let user = User::find();
        hand_over(folder.path(), user.as_ref());
        let programs = programs();
        let password = folder.path().join("password");
        fs::write(&password, PASSWORD).expect("a password file");
        hand_over(&password, user.as_ref());
        let data = folder.path().join("data");
        if let Some(size) = setup.disk_megabytes {
            mount(&data, size, user.as_ref());
        }
        cluster::lay_out(&programs, user.as_ref(), folder.path());
        // Another server may take a port that was free a moment ago.
        for _ in 0..5 {
            let port = free_port();
            configure(folder.path(), port, setup, user.as_ref());
            if let Some(server) = begin_server(&programs, user.as_ref(), folder.path()) {
                let has_disk = setup.disk_megabytes.is_some();
                return Postgres { folder, programs, user, port, server, has_disk };
            }
        }
        panic!("it does not begin: {}", fs::read_to_string(folder.path().join("log")).unwrap_or_default())
    }

    /// The port on 127.0.0.1, also a part of the socket's name.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of the socket, in which the role needs no password.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The address by way of the socket.
    pub fn socket(&self) -> String {
        self.socket_of(ROLE)
    }

    /// The same for another role.
    pub fn socket_of(&self, role: &str) -> String {
        format!("host={} port={} user={role} dbname=postgres", self.folder().display(), self.port)
    }

    /// The address by way of TCP, with the password.
    pub fn address(&self) -> String {
        self.address_by(ROLE, self.port)
    }

    /// The same for a role that has the same password, by way of whatever passes on from another port.
    pub fn address_by(&self, role: &str, port: u16) -> String {
        format!("host=localhost port={port} user={role} password='{PASSWORD}' dbname=postgres")
    }

    /// Makes the role that docs/fleet.md says machines need, with the rights that it grants them there, and our password.
    pub fn create_deckhand(&self) {
        self.sql(&of_the_page(DECKHAND));
        self.sql(&format!("alter role {DECKHAND} password '{PASSWORD}'"));
    }

    /// The certificate of the authority.
    pub fn root_certificate(&self) -> PathBuf {
        self.folder().join("ca.crt")
    }

    /// The same as `pg_ctl restart -m immediate`: the server ends without a word to anybody, and recovers.
    pub fn restart_immediately(&mut self) {
        self.server.end(Signal::QUIT);
        self.server = run_server(&self.programs, self.user.as_ref(), self.folder.path());
    }

    /// Ends it the same way, and leaves it so; a restart begins it again.
    pub fn stop_immediately(&mut self) {
        self.server.end(Signal::QUIT);
    }

    /// Lets whoever comes from these addresses in with a password. `listen_addresses` has to name where they come.
    pub fn let_in(&self, addresses: &str) {
        let path = self.folder().join("data/pg_hba.conf");
        let known = fs::read_to_string(&path).expect("our own file");
        fs::write(&path, format!("{known}host all all {addresses} scram-sha-256\n")).expect("our own file");
        self.sql("select pg_reload_conf()");
    }

    /// What it answers to a line of SQL, without heads: a line for each row, with `|` between its columns.
    pub fn sql(&self, sql: &str) -> String {
        let mut command = command(self.user.as_ref(), &self.programs.join("psql"), self.folder.path());
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d"]).arg(self.socket());
        let said = tool::run(command.arg("-c").arg(sql), LIMIT);
        said.unwrap_or_else(|error| panic!("{sql}: {error}")).trim_end().to_owned()
    }

    /// PgBouncer before it for this role, with one server connection for each transaction.
    pub fn bouncer(&self, role: &str) -> Bouncer {
        let folder = tempfile::Builder::new().prefix("pgb").tempdir().expect("a temporary folder");
        let port = free_port();
        let users = folder.path().join("users.txt");
        fs::write(&users, format!("\"{role}\" \"{PASSWORD}\"\n")).expect("a file of users");
        let path = folder.path().join("pgbouncer.ini");
        let settings = format!(
            "[databases]\n* = host={} port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {}\npool_mode = transaction\n\
             default_pool_size = 3\nmax_client_conn = 200\n",
            self.folder().display(),
            self.port,
            users.display()
        );
        fs::write(&path, settings).expect("PgBouncer's settings");
        for path in [folder.path(), &users, &path] {
            hand_over(path, self.user.as_ref());
        }
        let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].into_iter().map(Path::new);
        let program = program.into_iter().find(|path| path.exists()).expect("Debian's pgbouncer");
        let mut command = command(self.user.as_ref(), program, folder.path());
        let process = Process::start(command.arg("-q").arg(&path), folder.path());
        let bouncer = Bouncer { role: role.to_owned(), port, process, _folder: folder };
        bouncer.process.await_until(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        bouncer
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Its connections are ended, and it writes what it has.
        self.server.end(Signal::INT);
        if self.has_disk {
            let mut command = Command::new("umount");
            // Something of ours may still hold a file there open: it is gone from here all the same.
            let _ = tool::run(command.arg("--lazy").arg(self.folder().join("data")), LIMIT);
        }
    }
}

/// A PgBouncer.
#[derive(Debug)]
pub struct Bouncer {
    role: String,
    port: u16,
    process: Process,
    _folder: TempDir,
}

impl Bouncer {
    /// The address by way of it.
    pub fn address(&self) -> String {
        let Bouncer { role, port, .. } = self;
        format!("host=127.0.0.1 port={port} user={role} password='{PASSWORD}' dbname=postgres")
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        self.process.end(Signal::TERM);
    }
}

/// A program of ours that runs until it is told to end.
#[derive(Debug)]
struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    fn start(command: &mut Command, folder: &Path) -> Process {
        let log = folder.join("log");
        let file = fs::OpenOptions::new().create(true).append(true).open(&log).expect("a log");
        let other = file.try_clone().expect("a second handle");
        let child = command.stdin(Stdio::null()).stdout(file).stderr(other).spawn();
        Process { child: child.expect("a server's process"), log }
    }

    fn await_until(&self, is_ready: impl Fn() -> bool) {
        Process::wait_for(&self.log, is_ready);
    }

    fn wait_for(log: &Path, mut is_ready: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_ready() {
            let log = || fs::read_to_string(log).unwrap_or_default();
            assert!(begun.elapsed() < LIMIT, "it does not begin: {}", log());
            sleep(Duration::from_millis(20));
        }
    }

    fn end(&mut self, how: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process");
        if matches!(self.child.try_wait(), Ok(Some(_))) || kill_process(pid, how).is_err() {
            return;
        }
        let begun = Instant::now();
        while !matches!(self.child.try_wait(), Ok(Some(_))) {
            if begun.elapsed() > LIMIT {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            sleep(Duration::from_millis(5));
        }
    }
}

/// Who runs the servers where root may not.
#[derive(Debug)]
struct User {
    number: u32,
    group: u32,
}

impl User {
    /// None if whoever runs the test is not root.
    fn find() -> Option<User> {
        if !geteuid().is_root() {
            return None;
        }
        let users = fs::read_to_string("/etc/passwd").expect("the list of users");
        let user = users.lines().find_map(|line| {
            let mut fields = line.strip_prefix("postgres:")?.split(':').skip(1);
            Some(User { number: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
        });
        Some(user.expect("the user `postgres`, whom Debian's package makes"))
    }
}

/// A program as that user; it ends when this thread does.
fn command(user: Option<&User>, program: &Path, folder: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "INT"]);
    if let Some(user) = user {
        command.arg(format!("--reuid={}", user.number)).arg(format!("--regid={}", user.group));
        command.arg("--clear-groups");
    }
    command.arg(program).current_dir(folder).env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    command
}

fn hand_over(path: &Path, user: Option<&User>) {
    if let Some(user) = user {
        chown(path, Some(user.number), Some(user.group)).expect("root may give files away");
    }
}

fn mount(data: &Path, megabytes: u32, user: Option<&User>) {
    fs::create_dir(data).expect("a folder");
    let owner = user.map(|User { number, group }| format!(",uid={number},gid={group}")).unwrap_or_default();
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", &format!("size={megabytes}m,mode=700{owner}"), "tmpfs"]).arg(data);
    tool::run(&mut command, LIMIT).unwrap_or_else(|error| panic!("NOT TESTED: no small disk: {error}"));
}

/// The newest PostgreSQL of Debian's.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let number = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let newest = versions.map(|entry| entry.path()).max_by_key(number);
    newest.expect("Debian's package `postgresql`").join("bin")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("its number").port()
}

fn configure(folder: &Path, port: u16, setup: Setup, user: Option<&User>) {
    let Setup { settings, has_tls, demands_tls, .. } = setup;
    let mut text = format!(
        "port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{0}'\nmax_connections = 100\n\
         shared_buffers = 64MB\nlog_line_prefix = '%m [%p] '\n",
        folder.display()
    );
    // What the system has is what an immediate restart finds: only the loss of the machine is not tested.
    if !settings.contains("fsync") {
        text.push_str("fsync = off\n");
    }
    if has_tls {
        make_certificates(folder, user);
        text.push_str(&format!(
            "ssl = on\nssl_cert_file = '{0}/server.crt'\nssl_key_file = '{0}/server.key'\n",
            folder.display()
        ));
    }
    text.push_str(settings);
    let data = folder.join("data");
    fs::write(data.join("postgresql.conf"), text).expect("postgresql.conf");
    let kind = if demands_tls { "hostssl" } else { "host" };
    let who = format!("local all all trust\n{kind} all all 127.0.0.1/32 scram-sha-256\n");
    fs::write(data.join("pg_hba.conf"), who).expect("pg_hba.conf");
}

/// An authority `ca`, and by it a certificate `server` for this computer.
fn make_certificates(folder: &Path, user: Option<&User>) {
    const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    let lines = [
        format!("openssl req -x509 {KEY} -keyout ca.key -out ca.crt -days 2 -subj /CN=authority"),
        format!("openssl req -new {KEY} -keyout server.key -out server.csr -subj /CN=localhost"),
        "printf 'subjectAltName = DNS:localhost, IP:127.0.0.1\\n' >names".to_owned(),
        "openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.crt"
            .to_owned(),
    ];
    let mut shell = Command::new("sh");
    shell.args(["-c", &lines.join(" && ")]).current_dir(folder);
    tool::run(&mut shell, LIMIT).unwrap_or_else(|error| panic!("openssl: {error}"));
    let key = folder.join("server.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("our own file");
    for path in [key, folder.join("server.crt")] {
        hand_over(&path, user);
    }
}

fn run_server(programs: &Path, user: Option<&User>, folder: &Path) -> Process {
    begin_server(programs, user, folder).expect("a server that begins again")
}

/// None for one that ended before it was ready.
fn begin_server(programs: &Path, user: Option<&User>, folder: &Path) -> Option<Process> {
    let data = folder.join("data");
    let mut command = command(user, &programs.join("postgres"), folder);
    let mut server = Process::start(command.arg("-D").arg(&data), folder);
    let pid = server.child.id().to_string();
    // Its own word for that it takes connections.
    let is_ready = || {
        let said = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
        said.lines().next() == Some(&pid) && said.lines().any(|line| line.trim_end() == "ready")
    };
    let mut has_ended = false;
    let Process { child, log } = &mut server;
    Process::wait_for(log, || {
        has_ended = matches!(child.try_wait(), Ok(Some(_)));
        has_ended || is_ready()
    });
    (!has_ended).then_some(server)
}
