//! Nothing is published under a name that is not ours: the check of the names, and npm's packages behind it, against a registry on
//! loopback that answers as npm and crates.io do, and a tap in a folder.

use crate::packaging::sample_releases::{VERSION, stand_in};
use crate::packaging::{LONG, script, shell};
use plimsoll_testkit::world::{Finished, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const PACKAGES: [&str; 5] = [
    "plimsoll",
    "@plimsoll/linux-x64",
    "@plimsoll/linux-arm64",
    "@plimsoll/darwin-x64",
    "@plimsoll/darwin-arm64",
];

/// A registry on loopback: the document at each path, which a PUT adds a version to, and what was put, in order.
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
                std::thread::spawn(move || registry.answer(&connection));
            }
        });
        address
    }

    fn answer(&self, mut connection: &TcpStream) -> Option<()> {
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
        let (status, answer) = if method == "PUT" {
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
        let answer = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            answer.len()
        );
        connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(answer.as_bytes())).ok()
    }

    /// Sets the owners of a package on npm, which has a first version.
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

    fn free(&self, path: &str) {
        self.documents.lock().expect("the documents").remove(path);
    }

    fn published(&self) -> Vec<String> {
        std::mem::take(&mut *self.published.lock().expect("the list"))
    }
}

/// A world in which every name is ours, and the address of its registry.
struct Stage {
    world: World,
    registry: Registry,
    address: String,
}

impl Stage {
    fn new() -> Stage {
        let (world, registry) = (World::without_git().without_plimsoll(), Registry::default());
        let address = registry.listen();
        PACKAGES.iter().for_each(|name| registry.reserve_package(name, &["ours"]));
        registry.reserve_crate(&["ours", "also-ours"]);
        world.write("owners.json", &json!({"npm": ["ours"], "crates.io": ["ours", "also-ours"]}).to_string());
        // npm refuses to publish for nobody.
        world.write(
            world.home().join(".npmrc"),
            &format!("{}/:_authToken=token\n", address.replace("http:", "")),
        );
        shell(&world, "git init -q --bare taps/homebrew-plimsoll").expect_success();
        Stage { world, registry, address }
    }

    fn run(&self, name: &str, arguments: &[&str]) -> Finished {
        // Where `repository` in Cargo.toml leads, the taps lie in a folder.
        let server = crate::packaging::sample_releases::repository();
        let server = server.rsplit_once('/').expect("a name behind the server").0;
        let launch = script(&self.world, name, arguments)
            .env("npm_config_registry", self.address.as_str())
            // npm would try again for a minute where nobody listens.
            .env("npm_config_fetch_retries", "0")
            .env("PLIMSOLL_CRATES_IO", self.address.as_str())
            .env("PLIMSOLL_OWNERS", self.world.path("owners.json").display().to_string())
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", format!("url.{}/.insteadOf", self.world.path("taps").display()))
            .env("GIT_CONFIG_VALUE_0", format!("{server}/"));
        launch.timeout(LONG).run()
    }

    /// Runs the check, which must refuse with these words and nothing else.
    fn assert_refused(&self, words: &str) {
        let refused = self.run("release/names.sh", &[]);
        assert_eq!(refused.code, Some(1), "{words}: {refused:?}");
        assert!(refused.stderr.contains(words), "{words}: {refused:?}");
        assert_eq!(refused.stderr.lines().count(), 1, "{words}: {refused:?}");
    }
}

#[test]
fn names_that_are_all_ours_are_accepted() {
    let stage = Stage::new();
    let accepted = stage.run("release/names.sh", &[]).expect_success();
    assert_eq!((accepted.stdout.lines().count(), accepted.stderr.as_str()), (7, ""), "{accepted:?}");
    assert_eq!(stage.run("release/names.sh", &["frob"]).code, Some(2));
}

#[test]
fn a_name_that_is_free_is_refused() {
    let stage = Stage::new();
    stage.registry.free("/@plimsoll/darwin-x64");
    stage.assert_refused("npm: @plimsoll/darwin-x64 is not reserved");
    stage.registry.reserve_package("@plimsoll/darwin-x64", &["ours"]);
    stage.registry.free("/api/v1/crates/plimsoll/owners");
    stage.assert_refused("crates.io: plimsoll is not reserved");
    stage.registry.reserve_crate(&["ours"]);
    shell(&stage.world, "rm -r taps").expect_success();
    stage.assert_refused("Homebrew: there is no tap");
}

#[test]
fn a_name_of_somebody_else_is_refused_though_we_share_it() {
    let stage = Stage::new();
    for owners in [&["stranger"][..], &["ours", "stranger"]] {
        stage.registry.reserve_package("plimsoll", owners);
        stage.assert_refused("npm: plimsoll belongs to stranger");
    }
    stage.registry.reserve_package("plimsoll", &["ours"]);
    stage.registry.reserve_crate(&["stranger", "ours"]);
    stage.assert_refused("crates.io: plimsoll belongs to stranger");
    // Without a list of ours nobody can say whose a name is, and an owner of the one registry is none of the other.
    stage.registry.reserve_crate(&["ours"]);
    stage.world.write("owners.json", &json!({"npm": ["ours"], "crates.io": []}).to_string());
    stage.assert_refused("names no owner of ours on crates.io");
}

#[test]
fn a_registry_that_does_not_answer_is_no_permission() {
    let mut stage = Stage::new();
    stage.address = "http://127.0.0.1:9".to_owned();
    for part in ["npm", "cargo"] {
        let refused = stage.run("release/names.sh", &[part]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("nothing is published before"), "{refused:?}");
    }
}

#[test]
fn npm_gets_the_main_package_last_and_nothing_under_a_foreign_name() {
    let stage = Stage::new();
    stand_in(&stage.world, "out", VERSION);
    script(&stage.world, "release/packages.sh", &["--out", "out"]).timeout(LONG).run().expect_success();
    stage.registry.reserve_package("plimsoll", &["stranger"]);
    let refused = stage.run("release/npm.sh", &["out"]);
    assert_eq!((refused.code, stage.registry.published()), (Some(1), vec![]), "{refused:?}");

    stage.registry.reserve_package("plimsoll", &["ours"]);
    stage.run("release/npm.sh", &["out"]).expect_success();
    let published = stage.registry.published();
    assert_eq!(
        (published.len(), published.last().map(String::as_str)),
        (5, Some("plimsoll")),
        "{published:?}"
    );
    // A job that failed halfway is started again.
    let again = stage.run("release/npm.sh", &["out"]).expect_success();
    assert_eq!(stage.registry.published(), Vec::<String>::new(), "{again:?}");
    assert_eq!(again.stdout.matches("is published already").count(), 5, "{again:?}");
    // The same version with other bytes is another product under the same name.
    let other = format!(
        "mkdir x && tar -xzf out/plimsoll-{VERSION}.tgz -C x && echo >>x/package/README.md && tar -czf out/plimsoll-{VERSION}.tgz -C x package"
    );
    shell(&stage.world, &other).expect_success();
    let changed = stage.run("release/npm.sh", &["out"]);
    assert!(changed.code == Some(1) && changed.stderr.contains("with other bytes"), "{changed:?}");
}
