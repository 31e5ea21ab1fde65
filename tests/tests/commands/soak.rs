//! `scripts/soak.sh` counts the rounds of one commit over several starts, and none that was not played to its end.

use plimsoll_testkit::workspace_root;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Writes a report of two tests, as nextest does.
const GREEN: &str = r#"mkdir -p "${SOAK_JUNIT%/*}"; echo '<testsuites><testsuite name="suite"><testcase name="one"/><testcase name="two"/></testsuite></testsuites>' >"$SOAK_JUNIT""#;
const ONE_FAILS: &str = r#"mkdir -p "${SOAK_JUNIT%/*}"; echo '<testsuites><testsuite name="suite"><testcase name="one"/><testcase name="two"><failure message="a reason"/><system-out>its output</system-out></testcase></testsuite></testsuites>' >"$SOAK_JUNIT"; exit 100"#;

struct Checkout(TempDir);

impl Checkout {
    fn new() -> Checkout {
        let checkout = Checkout(tempfile::tempdir().unwrap());
        fs::create_dir(checkout.path("scripts")).unwrap();
        fs::copy(workspace_root().join("scripts/soak.sh"), checkout.path("scripts/soak.sh")).unwrap();
        fs::write(checkout.path(".gitignore"), "/target\n").unwrap();
        checkout.git(&["init", "-q"]);
        checkout.commit("one");
        checkout
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.0.path())
            .env("HOME", self.0.path())
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("NEXTEST_PROFILE")
            .env_remove("SOAK_JUNIT");
        command
    }

    fn git(&self, arguments: &[&str]) {
        let who = ["-c", "user.name=dev", "-c", "user.email=dev@example.invalid"];
        assert!(self.command("git").args(who).args(arguments).status().unwrap().success(), "{arguments:?}");
    }

    fn commit(&self, word: &str) {
        fs::write(self.path("word"), word).unwrap();
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", word]);
    }

    fn soak(&self, rounds: &str, suite: &str) -> Output {
        self.command(self.path("scripts/soak.sh")).arg(rounds).env("SOAK_COMMAND", suite).output().unwrap()
    }

    /// Starts it, and sends it a signal once the suite works.
    fn stop_within_a_round(&self, signal: &str) -> Output {
        let suite = r#"echo >target/at-work; sleep 1; exit 1"#;
        let mut command = self.command("bash");
        command.args([
            "-c",
            "set -m; scripts/soak.sh 3 & while [ ! -e target/at-work ]; do sleep 0.02; done; kill -$0 $!; wait $!",
            signal,
        ]);
        command.env("SOAK_COMMAND", suite).output().unwrap()
    }

    fn ledger(&self) -> usize {
        fs::read_to_string(self.path("target/soak/ledger.tsv")).unwrap().lines().count()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn a_later_start_goes_on_counting_and_another_commit_begins_anew() {
    let checkout = Checkout::new();
    let green = checkout.soak("2", GREEN);
    assert_eq!(green.status.code(), Some(0), "{green:?}");
    assert!(said(&green).contains("2 of 2 rounds, 0 with failures; 2 tests"), "{}", said(&green));
    let failing = checkout.soak("3", ONE_FAILS);
    assert_eq!((failing.status.code(), checkout.ledger()), (Some(1), 3), "{failing:?}");
    assert!(said(&failing).contains("failed 1 of 3: suite two"), "{}", said(&failing));
    let kept = files(&checkout.path("target/soak/failures"));
    let text = fs::read_to_string(&kept[0]).unwrap();
    assert!(kept.len() == 1 && text.contains("a reason") && text.contains("its output"), "{kept:?}: {text}");
    checkout.commit("two");
    let other = checkout.soak("1", GREEN);
    assert_eq!(other.status.code(), Some(0), "{other:?}");
    assert!(said(&other).contains("1 of 1 rounds, 0 with failures"), "{}", said(&other));
    assert!(said(&other).contains(": 3 rounds, 1 with failures, the last at"), "{}", said(&other));
}

#[test]
fn a_round_that_is_interrupted_or_killed_is_not_counted_and_the_next_start_says_so() {
    for signal in ["INT", "TERM", "KILL"] {
        let checkout = Checkout::new();
        checkout.stop_within_a_round(signal);
        assert_eq!(checkout.ledger(), 0, "{signal}");
        // A suite that outlives a killed script still uses the computer: a second one must wait for it.
        let begun = std::time::Instant::now();
        let next = loop {
            let next = checkout.soak("1", GREEN);
            if !said(&next).contains("still running") || begun.elapsed().as_secs() > 20 {
                break next;
            }
        };
        assert!(said(&next).contains("was interrupted and is not counted"), "{signal}: {}", said(&next));
        assert_eq!((next.status.code(), checkout.ledger()), (Some(0), 1), "{signal}: {next:?}");
    }
}

#[test]
fn a_suite_that_leaves_no_report_or_meets_other_sources_is_not_counted() {
    let checkout = Checkout::new();
    let broken = checkout.soak("1", "echo it does not build; exit 101");
    assert_eq!((broken.status.code(), checkout.ledger()), (Some(3), 0), "{broken:?}");
    assert!(said(&broken).contains("it does not build"), "{}", said(&broken));
    let changed = checkout.soak("1", &format!("echo changed >word; {GREEN}"));
    assert_eq!((changed.status.code(), checkout.ledger()), (Some(3), 0), "{changed:?}");
    let unnamed = checkout.soak("1", &format!("{GREEN}; echo the doctests failed; exit 7"));
    assert_eq!((unnamed.status.code(), checkout.ledger()), (Some(1), 1), "{unnamed:?}");
    assert!(said(&unnamed).contains("the suite ended with 7"), "{}", said(&unnamed));
}
