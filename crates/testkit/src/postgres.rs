//! Runs Debian's PostgreSQL and PgBouncer in a temporary folder. They listen on a socket in that folder and on
//! 127.0.0.1, optionally with TLS.
//!
//! They refuse to run as root, so root starts them as the user `postgres`, which Debian's package creates. The
//! kernel signals them when their parent dies, so they exit even if the test is killed.

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

/// How long a server may take to start or to stop on a busy machine.
const SERVER_TIMEOUT: Duration = Duration::from_secs(60);
/// The administrator role. It needs [`PASSWORD`] over TCP and none on the socket.
pub const ADMIN_ROLE: &str = "captain";
/// The password of every role.
pub const PASSWORD: &str = "pass:word%of@the/captain";

/// The role of the members of the fleet `night`.
pub const MEMBER_ROLE: &str = "plimsoll_night";

/// Returns the statements in docs/fleet.md that create this role and grant its privileges.
pub fn role_and_grant_statements_from_docs(role: &str) -> String {
    let docs_page = fs::read_to_string(workspace_root().join("docs/fleet.md")).expect("the page");
    let create_statement = format!("create role {role} login;");
    let is_about_role = |line: &&str| {
        *line == create_statement || line.starts_with("grant ") && line.ends_with(&format!(" to {role};"))
    };
    let statements: Vec<&str> = docs_page.lines().filter(is_about_role).collect();
    assert!(statements.len() >= 3, "docs/fleet.md grants {role} {statements:?}");
    statements.join("\n")
}

/// Options of a test server.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerSetup {
    /// Extra lines of `postgresql.conf`.
    pub settings: &'static str,
    /// Enables TLS with a certificate for `localhost`, issued by a certificate authority of the test.
    pub has_tls: bool,
    /// Rejects TCP connections without TLS.
    pub requires_tls: bool,
    /// Stores the data on a tmpfs of this size. Requires permission to mount it.
    pub disk_megabytes: Option<u32>,
}

/// A running PostgreSQL server.
#[derive(Debug)]
pub struct Postgres {
    folder: TempDir,
    bin_dir: PathBuf,
    user: Option<ServerUser>,
    port: u16,
    server: ServerProcess,
    /// True if the data is on a tmpfs, which must be unmounted.
    has_mounted_disk: bool,
}

impl Postgres {
    /// Creates a cluster and starts its server.
    pub fn create_cluster_and_start(setup: ServerSetup) -> Postgres {
        let folder = tempfile::Builder::new().prefix("pg").tempdir().expect("a temporary folder");
        let user = ServerUser::postgres_user_if_root();
        change_owner(folder.path(), user.as_ref());
        let bin_dir = newest_bin_dir();
        let password_path = folder.path().join("password");
        fs::write(&password_path, PASSWORD).expect("a password file");
        change_owner(&password_path, user.as_ref());
        let data_folder = folder.path().join("data");
        if let Some(megabytes) = setup.disk_megabytes {
            create_folder_and_mount_tmpfs(&data_folder, megabytes, user.as_ref());
        }
        cluster::create_data_folder(&bin_dir, user.as_ref(), folder.path());
        // Retry, because another process may take the free port before the server binds it.
        for _ in 0..5 {
            let port = free_port();
            write_config_and_certificates_if_tls(folder.path(), port, setup, user.as_ref());
            if let Some(server) =
                try_start_server_and_wait_until_ready(&bin_dir, user.as_ref(), folder.path())
            {
                let has_mounted_disk = setup.disk_megabytes.is_some();
                return Postgres { folder, bin_dir, user, port, server, has_mounted_disk };
            }
        }
        panic!("it does not begin: {}", fs::read_to_string(folder.path().join("log")).unwrap_or_default())
    }

    /// Returns the port on 127.0.0.1. It is also part of the socket's name.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder of the socket. Connections over the socket need no password.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the connection string of the administrator role over the socket.
    pub fn socket_connection_string(&self) -> String {
        self.socket_connection_string_for_role(ADMIN_ROLE)
    }

    /// Returns the connection string of a role over the socket.
    pub fn socket_connection_string_for_role(&self, role: &str) -> String {
        format!("host={} port={} user={role} dbname=postgres", self.folder().display(), self.port)
    }

    /// Returns the connection string of the administrator role over TCP, with the password.
    pub fn tcp_connection_string(&self) -> String {
        self.tcp_connection_string_for_role(ADMIN_ROLE, self.port)
    }

    /// Returns the connection string of a role over TCP, with [`PASSWORD`]. `port` may be the port of a proxy.
    pub fn tcp_connection_string_for_role(&self, role: &str, port: u16) -> String {
        format!("host=localhost port={port} user={role} password='{PASSWORD}' dbname=postgres")
    }

    /// Gives [`MEMBER_ROLE`], whose password `plimsoll fleet create` has printed, [`PASSWORD`] instead.
    pub fn set_member_password(&self) {
        self.run_sql(&format!("alter role {MEMBER_ROLE} password '{PASSWORD}'"));
    }

    /// Returns the path of the certificate authority's certificate.
    pub fn root_certificate_path(&self) -> PathBuf {
        self.folder().join("ca.crt")
    }

    /// Restarts the server like `pg_ctl restart -m immediate`: it exits without a clean shutdown and recovers when it
    /// starts again.
    pub fn restart_immediately(&mut self) {
        self.server.stop_with_signal_or_kill(Signal::QUIT);
        self.server = start_server_or_panic(&self.bin_dir, self.user.as_ref(), self.folder.path());
    }

    /// Stops the server without a clean shutdown. `restart_immediately` starts it again.
    pub fn stop_immediately(&mut self) {
        self.server.stop_with_signal_or_kill(Signal::QUIT);
    }

    /// Allows clients from these addresses to connect with a password. `listen_addresses` must include the address
    /// they connect to.
    pub fn add_allowed_addresses_and_reload_config(&self, addresses: &str) {
        let path = self.folder().join("data/pg_hba.conf");
        let access_rules = fs::read_to_string(&path).expect("our own file");
        fs::write(&path, format!("{access_rules}host all all {addresses} scram-sha-256\n"))
            .expect("our own file");
        self.run_sql("select pg_reload_conf()");
    }

    /// Runs SQL and returns its rows without headers, one row per line, with `|` between the columns.
    pub fn run_sql(&self, sql: &str) -> String {
        let mut command = command_as_user_stopped_when_parent_dies(
            self.user.as_ref(),
            &self.bin_dir.join("psql"),
            self.folder.path(),
        );
        command
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d"])
            .arg(self.socket_connection_string());
        let output = tool::run_for_combined_output(command.arg("-c").arg(sql), SERVER_TIMEOUT);
        output.unwrap_or_else(|error| panic!("{sql}: {error}")).trim_end().to_owned()
    }

    /// Starts PgBouncer in front of this server for a role, in transaction pooling mode.
    pub fn start_pgbouncer(&self, role: &str) -> PgBouncer {
        let folder = tempfile::Builder::new().prefix("pgb").tempdir().expect("a temporary folder");
        let port = free_port();
        let users_path = folder.path().join("users.txt");
        fs::write(&users_path, format!("\"{role}\" \"{PASSWORD}\"\n")).expect("a file of users");
        let settings_path = folder.path().join("pgbouncer.ini");
        let settings = format!(
            "[databases]\n* = host={} port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {}\npool_mode = transaction\n\
             default_pool_size = 3\nmax_client_conn = 200\n",
            self.folder().display(),
            self.port,
            users_path.display()
        );
        fs::write(&settings_path, settings).expect("PgBouncer's settings");
        for path in [folder.path(), &users_path, &settings_path] {
            change_owner(path, self.user.as_ref());
        }
        let candidates = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].into_iter().map(Path::new);
        let program = candidates.into_iter().find(|path| path.exists()).expect("Debian's pgbouncer");
        let mut command =
            command_as_user_stopped_when_parent_dies(self.user.as_ref(), program, folder.path());
        let process =
            ServerProcess::spawn_with_log_in_folder(command.arg("-q").arg(&settings_path), folder.path());
        let bouncer = PgBouncer { role: role.to_owned(), port, process, _folder: folder };
        bouncer.process.wait_until_ready(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        bouncer
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // On SIGINT the server closes its connections and writes its data.
        self.server.stop_with_signal_or_kill(Signal::INT);
        if self.has_mounted_disk {
            let mut command = Command::new("umount");
            // The unmount must be lazy because a process of the test may still have a file open there.
            let _ = tool::run_for_combined_output(
                command.arg("--lazy").arg(self.folder().join("data")),
                SERVER_TIMEOUT,
            );
        }
    }
}

/// A running PgBouncer.
#[derive(Debug)]
pub struct PgBouncer {
    role: String,
    port: u16,
    process: ServerProcess,
    _folder: TempDir,
}

impl PgBouncer {
    /// Returns the connection string for PgBouncer.
    pub fn connection_string(&self) -> String {
        let PgBouncer { role, port, .. } = self;
        format!("host=127.0.0.1 port={port} user={role} password='{PASSWORD}' dbname=postgres")
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        self.process.stop_with_signal_or_kill(Signal::TERM);
    }
}

/// A server process, stopped with a signal.
#[derive(Debug)]
struct ServerProcess {
    child: Child,
    log_path: PathBuf,
}

impl ServerProcess {
    fn spawn_with_log_in_folder(command: &mut Command, folder: &Path) -> ServerProcess {
        let log_path = folder.join("log");
        let stdout_file = fs::OpenOptions::new().create(true).append(true).open(&log_path).expect("a log");
        let stderr_file = stdout_file.try_clone().expect("a second handle");
        let child = command.stdin(Stdio::null()).stdout(stdout_file).stderr(stderr_file).spawn();
        ServerProcess { child: child.expect("a server's process"), log_path }
    }

    fn wait_until_ready(&self, is_ready: impl Fn() -> bool) {
        ServerProcess::wait_until_or_panic_with_log(&self.log_path, is_ready);
    }

    fn wait_until_or_panic_with_log(log_path: &Path, mut is_ready: impl FnMut() -> bool) {
        let started_at = Instant::now();
        while !is_ready() {
            let read_log = || fs::read_to_string(log_path).unwrap_or_default();
            assert!(started_at.elapsed() < SERVER_TIMEOUT, "it does not begin: {}", read_log());
            sleep(Duration::from_millis(20));
        }
    }

    fn stop_with_signal_or_kill(&mut self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process");
        if matches!(self.child.try_wait(), Ok(Some(_))) || kill_process(pid, signal).is_err() {
            return;
        }
        let started_at = Instant::now();
        while !matches!(self.child.try_wait(), Ok(Some(_))) {
            if started_at.elapsed() > SERVER_TIMEOUT {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            sleep(Duration::from_millis(5));
        }
    }
}

/// The user that runs the servers if the test runs as root.
#[derive(Debug)]
struct ServerUser {
    uid: u32,
    gid: u32,
}

impl ServerUser {
    /// Returns the user `postgres` if the test runs as root, else `None`.
    fn postgres_user_if_root() -> Option<ServerUser> {
        if !geteuid().is_root() {
            return None;
        }
        let passwd_text = fs::read_to_string("/etc/passwd").expect("the list of users");
        let user = passwd_text.lines().find_map(|line| {
            let mut fields = line.strip_prefix("postgres:")?.split(':').skip(1);
            Some(ServerUser { uid: fields.next()?.parse().ok()?, gid: fields.next()?.parse().ok()? })
        });
        Some(user.expect("the user `postgres`, whom Debian's package makes"))
    }
}

/// Returns a command that runs a program as `user` with a minimal environment. The kernel sends SIGINT to the process
/// when this thread ends.
fn command_as_user_stopped_when_parent_dies(
    user: Option<&ServerUser>,
    program: &Path,
    folder: &Path,
) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "INT"]);
    if let Some(user) = user {
        command.arg(format!("--reuid={}", user.uid)).arg(format!("--regid={}", user.gid));
        command.arg("--clear-groups");
    }
    command.arg(program).current_dir(folder).env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    command
}

fn change_owner(path: &Path, user: Option<&ServerUser>) {
    if let Some(user) = user {
        chown(path, Some(user.uid), Some(user.gid)).expect("root may give files away");
    }
}

fn create_folder_and_mount_tmpfs(data_folder: &Path, megabytes: u32, user: Option<&ServerUser>) {
    fs::create_dir(data_folder).expect("a folder");
    let owner_options = user
        .map(|ServerUser { uid: user_id, gid: group_id }| format!(",uid={user_id},gid={group_id}"))
        .unwrap_or_default();
    let mut command = Command::new("mount");
    command
        .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m,mode=700{owner_options}"), "tmpfs"])
        .arg(data_folder);
    tool::run_for_combined_output(&mut command, SERVER_TIMEOUT)
        .unwrap_or_else(|error| panic!("NOT TESTED: no small disk: {error}"));
}

/// Returns the `bin` folder of the newest PostgreSQL version that Debian has installed.
fn newest_bin_dir() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let version_of = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let newest = versions.map(|entry| entry.path()).max_by_key(version_of);
    newest.expect("Debian's package `postgresql`").join("bin")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("its number").port()
}

fn write_config_and_certificates_if_tls(
    folder: &Path,
    port: u16,
    setup: ServerSetup,
    user: Option<&ServerUser>,
) {
    let ServerSetup { settings, has_tls, requires_tls: is_tls_required, .. } = setup;
    let mut config_text = format!(
        "port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{0}'\nmax_connections = 100\n\
         shared_buffers = 64MB\nlog_line_prefix = '%m [%p] '\n",
        folder.display()
    );
    // After an immediate restart, all writes are still in the page cache. Only a crash of the whole machine would
    // require fsync, and no test simulates that.
    if !settings.contains("fsync") {
        config_text.push_str("fsync = off\n");
    }
    if has_tls {
        create_ca_and_server_certificate(folder, user);
        config_text.push_str(&format!(
            "ssl = on\nssl_cert_file = '{0}/server.crt'\nssl_key_file = '{0}/server.key'\n",
            folder.display()
        ));
    }
    config_text.push_str(settings);
    let data_folder = folder.join("data");
    fs::write(data_folder.join("postgresql.conf"), config_text).expect("postgresql.conf");
    let connection_type = if is_tls_required { "hostssl" } else { "host" };
    let access_rules = format!("local all all trust\n{connection_type} all all 127.0.0.1/32 scram-sha-256\n");
    fs::write(data_folder.join("pg_hba.conf"), access_rules).expect("pg_hba.conf");
}

/// Creates the certificate authority `ca` and a certificate `server` for `localhost` that it signs.
fn create_ca_and_server_certificate(folder: &Path, user: Option<&ServerUser>) {
    const KEY_OPTIONS: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    let commands = [
        format!("openssl req -x509 {KEY_OPTIONS} -keyout ca.key -out ca.crt -days 2 -subj /CN=authority"),
        format!("openssl req -new {KEY_OPTIONS} -keyout server.key -out server.csr -subj /CN=localhost"),
        "printf 'subjectAltName = DNS:localhost, IP:127.0.0.1\\n' >names".to_owned(),
        "openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.crt"
            .to_owned(),
    ];
    let mut shell = Command::new("sh");
    shell.args(["-c", &commands.join(" && ")]).current_dir(folder);
    tool::run_for_combined_output(&mut shell, SERVER_TIMEOUT)
        .unwrap_or_else(|error| panic!("openssl: {error}"));
    let key_path = folder.join("server.key");
    fs::set_permissions(&key_path, fs::Permissions::from_mode(0o600)).expect("our own file");
    for path in [key_path, folder.join("server.crt")] {
        change_owner(&path, user);
    }
}

fn start_server_or_panic(bin_dir: &Path, user: Option<&ServerUser>, folder: &Path) -> ServerProcess {
    try_start_server_and_wait_until_ready(bin_dir, user, folder).expect("a server that begins again")
}

/// Starts the server and waits until it is ready. Returns `None` if it exits before that.
fn try_start_server_and_wait_until_ready(
    bin_dir: &Path,
    user: Option<&ServerUser>,
    folder: &Path,
) -> Option<ServerProcess> {
    let data_folder = folder.join("data");
    let mut command = command_as_user_stopped_when_parent_dies(user, &bin_dir.join("postgres"), folder);
    let mut server = ServerProcess::spawn_with_log_in_folder(command.arg("-D").arg(&data_folder), folder);
    let pid = server.child.id().to_string();
    // The server writes `ready` to this file when it accepts connections.
    let is_ready = || {
        let pid_file = fs::read_to_string(data_folder.join("postmaster.pid")).unwrap_or_default();
        pid_file.lines().next() == Some(&pid) && pid_file.lines().any(|line| line.trim_end() == "ready")
    };
    let mut has_exited = false;
    let ServerProcess { child, log_path } = &mut server;
    ServerProcess::wait_until_or_panic_with_log(log_path, || {
        has_exited = matches!(child.try_wait(), Ok(Some(_)));
        has_exited || is_ready()
    });
    (!has_exited).then_some(server)
}
