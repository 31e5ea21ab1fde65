//! docs/fleet.md: every verb stands there, and what can be copied from it is what compose, systemd and Kubernetes take.

use super::Bench;
use crate::docs::{Block, blocks};
use plimsoll_testkit::workspace_root;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const PAGE: &str = "docs/fleet.md";

#[test]
fn every_verb_has_help_and_stands_on_the_page() {
    let bench = Bench::new();
    let page = std::fs::read_to_string(workspace_root().join("docs/fleet.md")).expect("the page");
    let help = bench.fleet(&["--help"]).expect_success().stdout;
    let verbs = crate::commands_in(&help);
    assert!(verbs.len() >= 10, "{help}");
    for verb in verbs {
        bench.fleet(&[&verb, "--help"]).expect_success();
        assert!(page.contains(&format!("plimsoll fleet {verb}")), "docs/fleet.md does not name {verb}");
    }
}

/// The block of the page that has these words in it.
fn block(words: &str) -> Block {
    let found: Vec<Block> = blocks(PAGE).into_iter().filter(|block| block.text.contains(words)).collect();
    let [block] =
        <[Block; 1]>::try_from(found).unwrap_or_else(|found| panic!("{} blocks have {words}", found.len()));
    block
}

fn yaml(words: &str) -> Value {
    let block = block(words);
    serde_yaml_ng::from_str(&block.text).unwrap_or_else(|error| panic!("{}: {error}", block.place))
}

/// The object there; it has these fields, and none but these and those that may be there.
fn object<'a>(value: &'a Value, needs: &[&str], may: &[&str]) -> &'a Map<String, Value> {
    let object = value.as_object().unwrap_or_else(|| panic!("{value} is no object"));
    let has: BTreeSet<&str> = object.keys().map(String::as_str).collect();
    let needs: BTreeSet<&str> = needs.iter().copied().collect();
    let lost: Vec<_> = needs.difference(&has).collect();
    let unknown: Vec<_> = has.difference(&needs).filter(|name| !may.contains(name)).collect();
    assert!(lost.is_empty() && unknown.is_empty(), "lost {lost:?}, unknown {unknown:?} in {value}");
    object
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

#[test]
fn the_compose_file_starts_a_database_that_only_this_machine_reaches() {
    let file = yaml("# compose.yaml");
    let file = object(&file, &["services", "volumes"], &[]);
    let services = object(&file["services"], &["database"], &[]);
    let may = ["healthcheck", "restart"];
    let database = object(&services["database"], &["image", "environment", "ports", "volumes"], &may);
    let (image, version) = text(&database["image"]).split_once(':').expect("an image with its version");
    assert!(image == "postgres" && version.parse::<u32>().expect("a version") >= 14);
    assert!(list(&database["ports"]).iter().all(|port| text(port).starts_with("127.0.0.1:")));
    // It comes from the environment: nobody copies a password from a page.
    assert!(text(&database["environment"]["POSTGRES_PASSWORD"]).starts_with("${PLIMSOLL_PASSWORD:?"));
    for volume in list(&database["volumes"]) {
        let (name, folder) = text(volume).split_once(':').expect("a volume and its folder");
        assert!(file["volumes"].get(name).is_some() && folder.starts_with("/var/lib/postgresql"), "{volume}");
    }
    object(&database["healthcheck"], &["test"], &["interval", "timeout", "retries", "start_period"]);
}

#[test]
fn the_unit_starts_a_member_and_ends_it_gently() {
    let text = block("[Service]").text;
    const KNOWN: [(&str, &[&str]); 3] = [
        ("[Unit]", &["Description", "Wants", "After"]),
        (
            "[Service]",
            &[
                "User",
                "WorkingDirectory",
                "EnvironmentFile",
                "ExecStart",
                "Restart",
                "RestartSec",
                "RestartPreventExitStatus",
                "KillSignal",
                "KillMode",
                "TimeoutStopSec",
            ],
        ),
        ("[Install]", &["WantedBy"]),
    ];
    let mut section = "";
    let mut found: Vec<(&str, &str, &str)> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.split_once('=') {
            Some((name, value)) => found.push((section, name, value)),
            None => section = line,
        }
    }
    // Each once, and none that systemd would pass over.
    let expected: Vec<(&str, &str)> =
        KNOWN.iter().flat_map(|(section, names)| names.iter().map(|name| (*section, *name))).collect();
    assert_eq!(found.iter().map(|(section, name, _)| (*section, *name)).collect::<Vec<_>>(), expected);
    let value =
        |wanted: &str| found.iter().find(|(_, name, _)| *name == wanted).map(|found| found.2).expect(wanted);
    assert!(value("ExecStart").starts_with("/usr/local/bin/plimsoll fleet join %i --workers "));
    assert!(value("WorkingDirectory").starts_with('/') && value("EnvironmentFile").starts_with('/'));
    // Ctrl-C once, to the member alone: its sessions finish.
    let values = ["Restart", "KillSignal", "KillMode", "WantedBy"].map(value);
    assert_eq!(values, ["on-failure", "SIGINT", "mixed", "multi-user.target"]);
}

#[test]
fn the_kubernetes_job_has_the_fields_of_a_job() {
    let job = yaml("kind: Job");
    let job = object(&job, &["apiVersion", "kind", "metadata", "spec"], &[]);
    assert_eq!((text(&job["apiVersion"]), text(&job["kind"])), ("batch/v1", "Job"));
    let is_label = |name: &str| {
        name.len() <= 63
            && name
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-')
            && !name.starts_with('-')
            && !name.ends_with('-')
    };
    assert!(is_label(text(&object(&job["metadata"], &["name"], &["labels"])["name"])));
    let spec = object(
        &job["spec"],
        &["template", "parallelism", "completions"],
        &["completionMode", "backoffLimit"],
    );
    let number = |name: &str| spec[name].as_u64().unwrap_or_else(|| panic!("{name}"));
    assert!(number("parallelism") > 0 && number("parallelism") <= number("completions"));
    assert_eq!(text(&spec["completionMode"]), "Indexed");
    let template = object(&spec["template"], &["spec"], &["metadata"]);
    let may = ["terminationGracePeriodSeconds", "securityContext", "volumes"];
    let pod = object(&template["spec"], &["restartPolicy", "containers"], &may);
    // A Job takes no `Always`.
    assert!(["OnFailure", "Never"].contains(&text(&pod["restartPolicy"])));
    assert!(pod["terminationGracePeriodSeconds"].as_u64().expect("seconds") >= 60);
    object(&pod["securityContext"], &["runAsNonRoot"], &["runAsUser", "runAsGroup", "fsGroup"]);
    let mut volumes = BTreeSet::new();
    for volume in list(&pod["volumes"]) {
        let volume = object(volume, &["name"], &["emptyDir", "secret"]);
        assert_eq!(volume.len(), 2, "one source: {volume:?}");
        assert!(volume.get("secret").is_none_or(|secret| {
            object(secret, &["secretName"], &["defaultMode"])["defaultMode"] == 0o400
        }));
        volumes.insert(text(&volume["name"]));
    }
    for container in list(&pod["containers"]) {
        let may = ["command", "args", "lifecycle", "env", "envFrom", "resources", "volumeMounts"];
        let container = object(container, &["name", "image"], &may);
        assert!(is_label(text(&container["name"])) && text(&container["image"]).contains(':'));
        assert!(text(&container["args"][0]).contains("exec plimsoll fleet join night --workers "));
        // Ctrl-C once, and the grace period is for what follows from it.
        let hook = &object(&container["lifecycle"], &["preStop"], &[])["preStop"];
        let command = list(&object(&object(hook, &["exec"], &[])["exec"], &["command"], &[])["command"]);
        assert!(text(&command[2]).starts_with("kill -INT 1; while kill -0 1"), "{command:?}");
        for variable in list(&container["env"]) {
            let variable = object(variable, &["name", "value"], &[]);
            // Secrets come from a Secret.
            assert!(["REPOSITORY", "HOME", "GIT_SSH_COMMAND"].contains(&text(&variable["name"])));
        }
        for source in list(&container["envFrom"]) {
            object(&object(source, &["secretRef"], &[])["secretRef"], &["name"], &["optional"]);
        }
        object(&container["resources"], &["requests"], &["limits"]);
        for mount in list(&container["volumeMounts"]) {
            let mount = object(mount, &["name", "mountPath"], &["readOnly"]);
            assert!(volumes.contains(text(&mount["name"])) && text(&mount["mountPath"]).starts_with('/'));
        }
    }
}
