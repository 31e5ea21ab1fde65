//! Nothing is published under a name that is not ours. The tests run the check of the names and the publishing of npm packages
//! against a registry on loopback that responds like npm and crates.io, and a Homebrew tap in a folder.

use crate::packaging::sample_releases::{VERSION, add_windows_archives, write_sample_release};
use crate::packaging::{COMMAND_TIMEOUT, run_bash_line, script_launch};
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const PACKAGES: [&str; 7] = [
    "plimsoll",
    "@plimsoll/linux-x64",
    "@plimsoll/linux-arm64",
    "@plimsoll/darwin-x64",
    "@plimsoll/darwin-arm64",
    "@plimsoll/win32-x64",
    "@plimsoll/win32-arm64",
];

/// A registry on loopback: the document at each path, to which a PUT adds a version, and the published names in order.
#[derive(Clone, Default)]
struct Registry {
    documents: Arc<Mutex<BTreeMap<String, Value>>>,
    published: Arc<Mutex<Vec<String>>>,
}

impl Registry {
    /// Starts the registry and returns its address.
    fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let registry = self.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let registry = registry.clone();
                std::thread::spawn(move || registry.respond(&connection));
            }
        });
        address
    }

    fn respond(&self, mut connection: &TcpStream) -> Option<()> {
        let mut reader = BufReader::new(connection);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let (method, path) = line.split_once(' ')?;
        let (method, path) = (method.to_owned(), path.split([' ', '?']).next()?.replace("%2f", "/"));
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let Some((name, value)) = header.split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let mut documents = self.documents.lock().expect("the documents");
        let (status, response) = if method == "PUT" {
            let put: Value = serde_json::from_slice(&body).ok()?;
            let versions = put["versions"].as_object()?.clone();
            self.published.lock().expect("the list").push(path.trim_start_matches('/').to_owned());
            documents.get_mut(&path)?["versions"].as_object_mut()?.extend(versions);
            ("201 Created", json!({}))
        } else {
            match documents.get(&path) {
                Some(document) => ("200 OK", document.clone()),
                None => ("404 Not Found", json!({"error": "Not found"})),
            }
        };
        let body_text = response.to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body_text.len()
        );
        connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(body_text.as_bytes())).ok()
    }

    /// Adds a package on npm with a first version and these owners.
    fn reserve_package(&self, name: &str, owners: &[&str]) {
        let owners: Vec<Value> = owners
            .iter()
            .map(|name| json!({"name": name, "email": format!("{name}@example.invalid")}))
            .collect();
        let first =
            json!({"name": name, "version": "0.0.0", "dist": {"tarball": "http://127.0.0.1:9/none.tgz"}});
        let document = json!({"name": name, "maintainers": owners, "dist-tags": {"latest": "0.0.0"},
            "versions": {"0.0.0": first}});
        self.documents.lock().expect("the documents").insert(format!("/{name}"), document);
    }

    fn reserve_crate(&self, owners: &[&str]) {
        let users: Vec<Value> = owners.iter().map(|login| json!({"login": login, "kind": "user"})).collect();
        let path = "/api/v1/crates/plimsoll/owners".to_owned();
        self.documents.lock().expect("the documents").insert(path, json!({"users": users}));
    }

    fn unreserve(&self, path: &str) {
        self.documents.lock().expect("the documents").remove(path);
    }

    fn take_published(&self) -> Vec<String> {
        std::mem::take(&mut *self.published.lock().expect("the list"))
    }
}

/// A world with a registry in which every name is ours.
struct RegistryFixture {
    world: World,
    registry: Registry,
    address: String,
}

impl RegistryFixture {
    fn new_with_reserved_names() -> RegistryFixture {
        let (world, registry) = (World::without_git().without_plimsoll_programs(), Registry::default());
        let address = registry.listen();
        PACKAGES.iter().for_each(|name| registry.reserve_package(name, &["ours"]));
        registry.reserve_crate(&["ours", "also-ours"]);
        world.write("owners.json", &json!({"npm": ["ours"], "crates.io": ["ours", "also-ours"]}).to_string());
        // npm refuses to publish without a login.
        world.write(
            world.home().join(".npmrc"),
            &format!("{}/:_authToken=token\n", address.replace("http:", "")),
        );
        run_bash_line(&world, "git init -q --bare taps/homebrew-plimsoll").expect_success();
        RegistryFixture { world, registry, address }
    }

    fn run_release_script(&self, name: &str, arguments: &[&str]) -> FinishedProgram {
        // git replaces the server of `repository` in Cargo.toml by the folder of the taps.
        let server = crate::packaging::sample_releases::repository_address();
        let server = server.rsplit_once('/').expect("a name behind the server").0;
        let launch = script_launch(&self.world, name, arguments)
            .env("npm_config_registry", self.address.as_str())
            // npm would retry for a minute if nothing listens at the address.
            .env("npm_config_fetch_retries", "0")
            .env("PLIMSOLL_CRATES_IO", self.address.as_str())
            .env("PLIMSOLL_OWNERS", self.world.path("owners.json").display().to_string())
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", format!("url.{}/.insteadOf", self.world.path("taps").display()))
            .env("GIT_CONFIG_VALUE_0", format!("{server}/"));
        launch.timeout(COMMAND_TIMEOUT).run()
    }

    /// Runs the check and asserts that it fails with one line of error that contains these words.
    fn assert_refused(&self, words: &str) {
        let refused = self.run_release_script("release/names.sh", &[]);
        assert_eq!(refused.code, Some(1), "{words}: {refused:?}");
        assert!(refused.stderr.contains(words), "{words}: {refused:?}");
        assert_eq!(refused.stderr.lines().count(), 1, "{words}: {refused:?}");
    }
}

#[test]
fn names_owned_by_us_are_accepted() {
    let fixture = RegistryFixture::new_with_reserved_names();
    let accepted = fixture.run_release_script("release/names.sh", &[]).expect_success();
    assert_eq!((accepted.stdout.lines().count(), accepted.stderr.as_str()), (9, ""), "{accepted:?}");
    assert_eq!(fixture.run_release_script("release/names.sh", &["frob"]).code, Some(2));
}

#[test]
fn unreserved_name_is_refused() {
    let fixture = RegistryFixture::new_with_reserved_names();
    fixture.registry.unreserve("/@plimsoll/darwin-x64");
    fixture.assert_refused("npm: @plimsoll/darwin-x64 is not reserved");
    fixture.registry.reserve_package("@plimsoll/darwin-x64", &["ours"]);
    fixture.registry.unreserve("/api/v1/crates/plimsoll/owners");
    fixture.assert_refused("crates.io: plimsoll is not reserved");
    fixture.registry.reserve_crate(&["ours"]);
    run_bash_line(&fixture.world, "rm -r taps").expect_success();
    fixture.assert_refused("Homebrew: there is no tap");
}

#[test]
fn name_with_a_foreign_owner_is_refused_even_if_we_share_it() {
    let fixture = RegistryFixture::new_with_reserved_names();
    for owners in [&["stranger"][..], &["ours", "stranger"]] {
        fixture.registry.reserve_package("plimsoll", owners);
        fixture.assert_refused("npm: plimsoll belongs to stranger");
    }
    fixture.registry.reserve_package("plimsoll", &["ours"]);
    fixture.registry.reserve_crate(&["stranger", "ours"]);
    fixture.assert_refused("crates.io: plimsoll belongs to stranger");
    // Without a list of our own accounts nobody can tell who owns a name. An account on one registry does not count on the other.
    fixture.registry.reserve_crate(&["ours"]);
    fixture.world.write("owners.json", &json!({"npm": ["ours"], "crates.io": []}).to_string());
    fixture.assert_refused("names no owner of ours on crates.io");
}

#[test]
fn unreachable_registry_blocks_publishing() {
    let mut fixture = RegistryFixture::new_with_reserved_names();
    fixture.address = "http://127.0.0.1:9".to_owned();
    for part in ["npm", "cargo"] {
        let refused = fixture.run_release_script("release/names.sh", &[part]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("nothing is published before"), "{refused:?}");
    }
}

#[test]
fn npm_publishes_the_main_package_last_and_nothing_under_foreign_names() {
    let fixture = RegistryFixture::new_with_reserved_names();
    write_sample_release(&fixture.world, "out", VERSION);
    add_windows_archives(&fixture.world, "out", VERSION);
    script_launch(&fixture.world, "release/packages.sh", &["--out", "out"])
        .timeout(COMMAND_TIMEOUT)
        .run()
        .expect_success();
    fixture.registry.reserve_package("plimsoll", &["stranger"]);
    let refused = fixture.run_release_script("release/npm.sh", &["out"]);
    assert_eq!((refused.code, fixture.registry.take_published()), (Some(1), vec![]), "{refused:?}");

    fixture.registry.reserve_package("plimsoll", &["ours"]);
    fixture.run_release_script("release/npm.sh", &["out"]).expect_success();
    let published = fixture.registry.take_published();
    assert_eq!(
        (published.len(), published.last().map(String::as_str)),
        (PACKAGES.len(), Some("plimsoll")),
        "{published:?}"
    );
    // A job that failed halfway can be run again.
    let again = fixture.run_release_script("release/npm.sh", &["out"]).expect_success();
    assert_eq!(fixture.registry.take_published(), Vec::<String>::new(), "{again:?}");
    assert_eq!(again.stdout.matches("is published already").count(), PACKAGES.len(), "{again:?}");
    // The same version with different bytes must not be accepted as already published.
    let other = format!(
        "mkdir x && tar -xzf out/plimsoll-{VERSION}.tgz -C x && echo >>x/package/README.md && tar -czf out/plimsoll-{VERSION}.tgz -C x package"
    );
    run_bash_line(&fixture.world, &other).expect_success();
    let changed = fixture.run_release_script("release/npm.sh", &["out"]);
    assert!(changed.code == Some(1) && changed.stderr.contains("with other bytes"), "{changed:?}");
}
