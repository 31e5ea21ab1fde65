//! The replayed client, compared with the real one: each recorded kind of session is played with both, and hooks, stream,
//! transcript, requests and exit code must have the same fields in the same order. A change of the client's behavior
//! fails here, so the tests that use the replay are not trusted until the replay follows it.

mod recorded_words;
mod session_kinds;
mod session_trace;

use session_kinds::{SESSION_KINDS, SessionKind};
use session_trace::{SessionTrace, play_session};

fn assert_replay_matches_client(kind: &SessionKind) {
    let (real, mut replayed) = (play_session(kind, false), play_session(kind, true));
    // On a busy machine a client that is signaled sometimes exits before it has printed its result.
    if kind.signal.is_some() && !real.has_result() {
        replayed.drop_result();
    }
    assert!(!real.hooks.is_empty(), "{}: nothing was recorded", kind.name);
    let differences = real.describe_differences(&replayed, kind.is_unordered);
    assert!(differences.is_empty(), "{}: the replay is not what the client does:\n{differences}", kind.name);
}

/// Generates a test for each kind, so that they run in parallel.
macro_rules! kinds {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            let name = stringify!($name);
            assert_replay_matches_client(SESSION_KINDS.iter().find(|kind| kind.name == name).expect("a kind of this name"));
        })*

        #[test]
        fn every_session_kind_has_a_test() {
            let names: Vec<&str> = SESSION_KINDS.iter().map(|kind| kind.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

kinds! {
    tools talk stopped_by_a_batch stopped_at_the_end refused_by_exit_code two_calls_at_once overloaded broken rate_limited
    unauthorized interrupted_in_a_tool killed_in_a_tool interrupted_in_an_answer killed_in_an_answer in_text in_json
    denied settings_of_all_places told_more_at_the_end out_of_turns plain_words
}

#[test]
fn the_replay_names_and_refuses_what_was_not_recorded() {
    for (arguments, refusal) in [
        (&["--continue"][..], "the argument --continue"),
        (&["--model", "haiku"], "the model haiku"),
        (&["--permission-mode", "plan"], "the permission mode plan"),
    ] {
        let mut world = plimsoll_testkit::world::World::new();
        world.use_replayed_client();
        let refused = world
            .command(plimsoll_testkit::find_or_build_replayed_client(), &[&["-p", "hi"], arguments].concat())
            .run();
        assert_eq!(
            refused.code,
            Some(i32::from(plimsoll_testkit::replay::MISSING_RECORDING_EXIT_CODE)),
            "{refused:?}"
        );
        assert!(refused.stderr.contains(refusal), "{refused:?}");
        // The world fails its test unless the refusals have been taken.
        assert_eq!(world.read_and_delete_unrecorded_requests(), format!("{refusal}\n"));
    }
}

/// Checks that the comparison detects differences.
#[test]
fn the_comparison_detects_changes_in_order_fields_and_values() {
    let kind = &SESSION_KINDS[0];
    let trace = play_session(kind, true);
    let copy = trace.clone();
    assert_eq!(trace.describe_differences(&copy, false), "");
    let changes: [fn(&mut SessionTrace); 5] = [
        |trace| trace.hooks.swap(0, 1),
        |trace| _ = trace.stdout.pop(),
        |trace| trace.transcript[3]["isSidechain"] = true.into(),
        |trace| _ = trace.requests[1].as_object_mut().unwrap().shift_remove("model"),
        |trace| trace.exit = "exit 7".to_owned(),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut changed = trace.clone();
        change(&mut changed);
        assert_ne!(trace.describe_differences(&changed, false), "", "{index}");
    }
}
