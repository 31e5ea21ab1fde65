//! Every target with its seeds, with what was once found, and with some thousand changed inputs: the same ones on
//! every machine. `scripts/fuzz.sh` runs the same targets under libFuzzer.

use plimsoll_fuzzing::mutation::Mutator;
use plimsoll_fuzzing::{TARGETS, named, seeds};

/// Says which input broke the target.
struct Input<'a>(&'a str, &'a [u8]);

impl Drop for Input<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{} fails with b\"{}\"", self.0, self.1.escape_ascii());
        }
    }
}

fn try_all(name: &str) {
    let target = named(name).expect("a target");
    let given: Vec<Vec<u8>> = (target.seeds)().into_iter().chain(seeds::found(name)).collect();
    assert!(given.len() > 1, "{name} has seeds");
    let mut mutator = Mutator::new(name);
    let changed = (0..target.inputs).map(|_| mutator.input(&given));
    for bytes in given.iter().cloned().chain(changed) {
        let input = Input(name, &bytes);
        (target.body)(input.1);
    }
}

macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            try_all(stringify!($name));
        })*

        #[test]
        fn every_target_is_tried_here() {
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
