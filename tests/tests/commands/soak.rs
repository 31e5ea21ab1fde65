//! `scripts/soak.sh` counts the completed rounds of one commit over several starts.

use plimsoll_testkit::workspace_root;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A suite of two passing tests: writes a JUnit report, as nextest does.
const PASSING_SUITE: &str = r#"mkdir -p "${SOAK_JUNIT%/*}"; echo '<testsuites><testsuite name="suite"><testcase name="one"/><testcase name="two"/></testsuite></testsuites>' >"$SOAK_JUNIT""#;
const SUITE_WITH_A_FAILURE: &str = r#"mkdir -p "${SOAK_JUNIT%/*}"; echo '<testsuites><testsuite name="suite"><testcase name="one"/><testcase name="two"><failure message="a reason"/><system-out>its output</system-out></testcase></testsuite></testsuites>' >"$SOAK_JUNIT"; exit 100"#;

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
        let identity = ["-c", "user.name=dev", "-c", "user.email=dev@example.invalid"];
        assert!(
            self.command("git").args(identity).args(arguments).status().unwrap().success(),
            "{arguments:?}"
        );
    }

    fn commit(&self, word: &str) {
        fs::write(self.path("word"), word).unwrap();
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", word]);
    }

    fn run_soak(&self, rounds: &str, suite: &str) -> Output {
        self.command(self.path("scripts/soak.sh")).arg(rounds).env("SOAK_COMMAND", suite).output().unwrap()
    }

    /// Starts the script and sends it a signal while the suite runs.
    fn send_signal_during_a_round(&self, signal: &str) -> Output {
        let suite = r#"echo >target/at-work; sleep 1; exit 1"#;
        let mut command = self.command("bash");
        command.args([
            "-c",
            "set -m; scripts/soak.sh 3 & while [ ! -e target/at-work ]; do sleep 0.02; done; kill -$0 $!; wait $!",
            signal,
        ]);
        command.env("SOAK_COMMAND", suite).output().unwrap()
    }

    fn ledger_line_count(&self) -> usize {
        fs::read_to_string(self.path("target/soak/ledger.tsv")).unwrap().lines().count()
    }
}

fn output_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn later_start_continues_the_count_and_a_new_commit_resets_it() {
    let checkout = Checkout::new();
    let passing = checkout.run_soak("2", PASSING_SUITE);
    assert_eq!(passing.status.code(), Some(0), "{passing:?}");
    assert!(
        output_text(&passing).contains("2 of 2 rounds, 0 with failures; 2 tests"),
        "{}",
        output_text(&passing)
    );
    let failing = checkout.run_soak("3", SUITE_WITH_A_FAILURE);
    assert_eq!((failing.status.code(), checkout.ledger_line_count()), (Some(1), 3), "{failing:?}");
    assert!(output_text(&failing).contains("failed 1 of 3: suite two"), "{}", output_text(&failing));
    let failure_files = files_below(&checkout.path("target/soak/failures"));
    let text = fs::read_to_string(&failure_files[0]).unwrap();
    assert!(
        failure_files.len() == 1 && text.contains("a reason") && text.contains("its output"),
        "{failure_files:?}: {text}"
    );
    checkout.commit("two");
    let on_new_commit = checkout.run_soak("1", PASSING_SUITE);
    assert_eq!(on_new_commit.status.code(), Some(0), "{on_new_commit:?}");
    assert!(
        output_text(&on_new_commit).contains("1 of 1 rounds, 0 with failures"),
        "{}",
        output_text(&on_new_commit)
    );
    assert!(
        output_text(&on_new_commit).contains(": 3 rounds, 1 with failures, the last at"),
        "{}",
        output_text(&on_new_commit)
    );
}

#[test]
fn interrupted_rounds_are_not_counted_and_the_next_start_reports_them() {
    for signal in ["INT", "TERM", "KILL"] {
        let checkout = Checkout::new();
        checkout.send_signal_during_a_round(signal);
        assert_eq!(checkout.ledger_line_count(), 0, "{signal}");
        // A suite that outlives its killed script still uses the computer, so the next start must wait for it.
        let started_at = std::time::Instant::now();
        let next = loop {
            let next = checkout.run_soak("1", PASSING_SUITE);
            if !output_text(&next).contains("still running") || started_at.elapsed().as_secs() > 20 {
                break next;
            }
        };
        assert!(
            output_text(&next).contains("was interrupted and is not counted"),
            "{signal}: {}",
            output_text(&next)
        );
        assert_eq!((next.status.code(), checkout.ledger_line_count()), (Some(0), 1), "{signal}: {next:?}");
    }
}

#[test]
fn rounds_without_a_report_or_with_changed_sources_are_not_counted() {
    let checkout = Checkout::new();
    let broken = checkout.run_soak("1", "echo it does not build; exit 101");
    assert_eq!((broken.status.code(), checkout.ledger_line_count()), (Some(3), 0), "{broken:?}");
    assert!(output_text(&broken).contains("it does not build"), "{}", output_text(&broken));
    let changed = checkout.run_soak("1", &format!("echo changed >word; {PASSING_SUITE}"));
    assert_eq!((changed.status.code(), checkout.ledger_line_count()), (Some(3), 0), "{changed:?}");
    let failed_without_test =
        checkout.run_soak("1", &format!("{PASSING_SUITE}; echo the doctests failed; exit 7"));
    assert_eq!(
        (failed_without_test.status.code(), checkout.ledger_line_count()),
        (Some(1), 1),
        "{failed_without_test:?}"
    );
    assert!(
        output_text(&failed_without_test).contains("the suite ended with 7"),
        "{}",
        output_text(&failed_without_test)
    );
}
