//! docs/fleet.md documents every verb, and compose, systemd and Kubernetes would accept what can be copied from it.

use super::FleetTestBench;
use crate::docs::{CodeBlock, code_blocks};
use plimsoll_testkit::workspace_root;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const PAGE: &str = "docs/fleet.md";

#[test]
fn every_fleet_verb_has_help_and_is_documented() {
    let bench = FleetTestBench::new();
    let page = std::fs::read_to_string(workspace_root().join("docs/fleet.md")).expect("the page");
    let help = bench.run_fleet(&["--help"]).expect_success().stdout;
    let verbs = crate::commands_listed_in_help(&help);
    assert!(verbs.len() >= 10, "{help}");
    for verb in verbs {
        bench.run_fleet(&[&verb, "--help"]).expect_success();
        assert!(page.contains(&format!("plimsoll fleet {verb}")), "docs/fleet.md does not name {verb}");
    }
}

/// Returns the only block of the page that contains this text.
fn block_containing(text: &str) -> CodeBlock {
    let found: Vec<CodeBlock> =
        code_blocks(PAGE).into_iter().filter(|block| block.text.contains(text)).collect();
    let [block] = <[CodeBlock; 1]>::try_from(found)
        .unwrap_or_else(|found| panic!("{} blocks have {text}", found.len()));
    block
}

fn parse_yaml_block(text: &str) -> Value {
    let block = block_containing(text);
    serde_yaml_ng::from_str(&block.text).unwrap_or_else(|error| panic!("{}: {error}", block.location))
}

/// Returns the value as an object. Panics unless it has all required fields, and no others than the required and the
/// optional ones.
fn expect_object<'a>(value: &'a Value, required: &[&str], optional: &[&str]) -> &'a Map<String, Value> {
    let object = value.as_object().unwrap_or_else(|| panic!("{value} is no object"));
    let field_names: BTreeSet<&str> = object.keys().map(String::as_str).collect();
    let required: BTreeSet<&str> = required.iter().copied().collect();
    let missing: Vec<_> = required.difference(&field_names).collect();
    let unknown: Vec<_> = field_names.difference(&required).filter(|name| !optional.contains(name)).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "lost {missing:?}, unknown {unknown:?} in {value}");
    object
}

fn expect_list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

fn expect_text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

#[test]
fn the_compose_file_starts_a_database_that_only_this_machine_reaches() {
    let file = parse_yaml_block("# compose.yaml");
    let file = expect_object(&file, &["services", "volumes"], &[]);
    let services = expect_object(&file["services"], &["database"], &[]);
    let optional = ["healthcheck", "restart"];
    let database =
        expect_object(&services["database"], &["image", "environment", "ports", "volumes"], &optional);
    let (image, version) =
        expect_text(&database["image"]).split_once(':').expect("an image with its version");
    assert!(image == "postgres" && version.parse::<u32>().expect("a version") >= 14);
    assert!(expect_list(&database["ports"]).iter().all(|port| expect_text(port).starts_with("127.0.0.1:")));
    // The password comes from the environment, so that nobody copies one from a page.
    assert!(expect_text(&database["environment"]["POSTGRES_PASSWORD"]).starts_with("${PLIMSOLL_PASSWORD:?"));
    for volume in expect_list(&database["volumes"]) {
        let (name, folder) = expect_text(volume).split_once(':').expect("a volume and its folder");
        assert!(file["volumes"].get(name).is_some() && folder.starts_with("/var/lib/postgresql"), "{volume}");
    }
    expect_object(&database["healthcheck"], &["test"], &["interval", "timeout", "retries", "start_period"]);
}

#[test]
fn the_systemd_unit_starts_a_member_and_stops_it_with_sigint() {
    let text = block_containing("[Service]").text;
    const KNOWN_SETTINGS: [(&str, &[&str]); 3] = [
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
    // Each setting occurs once, and there is none that systemd would ignore.
    let expected: Vec<(&str, &str)> = KNOWN_SETTINGS
        .iter()
        .flat_map(|(section, names)| names.iter().map(|name| (*section, *name)))
        .collect();
    assert_eq!(found.iter().map(|(section, name, _)| (*section, *name)).collect::<Vec<_>>(), expected);
    let value =
        |wanted: &str| found.iter().find(|(_, name, _)| *name == wanted).map(|found| found.2).expect(wanted);
    assert!(value("ExecStart").starts_with("/usr/local/bin/plimsoll fleet join %i --workers "));
    assert!(value("WorkingDirectory").starts_with('/') && value("EnvironmentFile").starts_with('/'));
    // The member alone gets one SIGINT, so that its sessions can finish.
    let values = ["Restart", "KillSignal", "KillMode", "WantedBy"].map(value);
    assert_eq!(values, ["on-failure", "SIGINT", "mixed", "multi-user.target"]);
}

#[test]
fn the_kubernetes_job_has_only_known_job_fields() {
    let job = parse_yaml_block("kind: Job");
    let job = expect_object(&job, &["apiVersion", "kind", "metadata", "spec"], &[]);
    assert_eq!((expect_text(&job["apiVersion"]), expect_text(&job["kind"])), ("batch/v1", "Job"));
    let is_label = |name: &str| {
        name.len() <= 63
            && name
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-')
            && !name.starts_with('-')
            && !name.ends_with('-')
    };
    assert!(is_label(expect_text(&expect_object(&job["metadata"], &["name"], &["labels"])["name"])));
    let spec = expect_object(
        &job["spec"],
        &["template", "parallelism", "completions"],
        &["completionMode", "backoffLimit"],
    );
    let number = |name: &str| spec[name].as_u64().unwrap_or_else(|| panic!("{name}"));
    assert!(number("parallelism") > 0 && number("parallelism") <= number("completions"));
    assert_eq!(expect_text(&spec["completionMode"]), "Indexed");
    let template = expect_object(&spec["template"], &["spec"], &["metadata"]);
    let optional = ["terminationGracePeriodSeconds", "securityContext", "volumes"];
    let pod = expect_object(&template["spec"], &["restartPolicy", "containers"], &optional);
    // A Job does not allow `Always`.
    assert!(["OnFailure", "Never"].contains(&expect_text(&pod["restartPolicy"])));
    assert!(pod["terminationGracePeriodSeconds"].as_u64().expect("seconds") >= 60);
    expect_object(&pod["securityContext"], &["runAsNonRoot"], &["runAsUser", "runAsGroup", "fsGroup"]);
    let mut volumes = BTreeSet::new();
    for volume in expect_list(&pod["volumes"]) {
        let volume = expect_object(volume, &["name"], &["emptyDir", "secret"]);
        assert_eq!(volume.len(), 2, "one source: {volume:?}");
        assert!(volume.get("secret").is_none_or(|secret| {
            expect_object(secret, &["secretName"], &["defaultMode"])["defaultMode"] == 0o400
        }));
        volumes.insert(expect_text(&volume["name"]));
    }
    for container in expect_list(&pod["containers"]) {
        let optional = ["command", "args", "lifecycle", "env", "envFrom", "resources", "volumeMounts"];
        let container = expect_object(container, &["name", "image"], &optional);
        assert!(is_label(expect_text(&container["name"])) && expect_text(&container["image"]).contains(':'));
        assert!(expect_text(&container["args"][0]).contains("exec plimsoll fleet join night --workers "));
        // The process gets one SIGINT; the grace period is for the shutdown that follows.
        let hook = &expect_object(&container["lifecycle"], &["preStop"], &[])["preStop"];
        let command = expect_list(
            &expect_object(&expect_object(hook, &["exec"], &[])["exec"], &["command"], &[])["command"],
        );
        assert!(expect_text(&command[2]).starts_with("kill -INT 1; while kill -0 1"), "{command:?}");
        for variable in expect_list(&container["env"]) {
            let variable = expect_object(variable, &["name", "value"], &[]);
            // Secrets come from a Secret.
            assert!(["REPOSITORY", "HOME", "GIT_SSH_COMMAND"].contains(&expect_text(&variable["name"])));
        }
        for source in expect_list(&container["envFrom"]) {
            expect_object(&expect_object(source, &["secretRef"], &[])["secretRef"], &["name"], &["optional"]);
        }
        expect_object(&container["resources"], &["requests"], &["limits"]);
        for mount in expect_list(&container["volumeMounts"]) {
            let mount = expect_object(mount, &["name", "mountPath"], &["readOnly"]);
            assert!(
                volumes.contains(expect_text(&mount["name"]))
                    && expect_text(&mount["mountPath"]).starts_with('/')
            );
        }
    }
}
