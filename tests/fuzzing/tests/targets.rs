//! Runs every target with its seeds, with the inputs that once broke it, and with some thousand mutated inputs, the same ones on
//! every machine. `scripts/fuzz.sh` runs the same targets under libFuzzer.

use plimsoll_fuzzing::mutation::Mutator;
use plimsoll_fuzzing::{TARGETS, seeds, target_by_name};

/// Prints the input that broke a target: its name and bytes.
struct InputReport<'a>(&'a str, &'a [u8]);

impl Drop for InputReport<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{} fails with b\"{}\"", self.0, self.1.escape_ascii());
        }
    }
}

fn check_target(name: &str) {
    let target = target_by_name(name).expect("a target");
    let inputs: Vec<Vec<u8>> = (target.seeds)().into_iter().chain(seeds::regression_inputs(name)).collect();
    assert!(inputs.len() > 1, "{name} has seeds");
    let mut mutator = Mutator::new(name);
    let mutated = (0..target.mutated_input_count).map(|_| mutator.mutated_seed(&inputs));
    for bytes in inputs.iter().cloned().chain(mutated) {
        let report = InputReport(name, &bytes);
        (target.check_input)(report.1);
    }
}

macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            check_target(stringify!($name));
        })*

        #[test]
        fn every_fuzz_target_has_a_test() {
            let tried = [$(stringify!($name)),*];
            assert_eq!(TARGETS.map(|target| target.name).to_vec(), tried);
        }
    };
}

targets!(
    authority,
    claims,
    client_files,
    handoff,
    hook_event,
    memory,
    plan_boxes,
    plimsoll_settings,
    project_files,
    prompt,
    recording,
    server_file,
    settings_file,
    state,
    status_line,
    status_payload,
    stream,
    todo_list,
    transcript_tail,
    turn_log,
    words,
);
