//! The replayed client against the real one: each kind of session that was recorded is played with both, and hooks,
//! stream, transcript, requests and exit code must be the same, with their fields, in their order. What the client does
//! otherwise one day is seen here, and the tests that stand on the replay are not believed until it knows.

mod recorded_words;
mod session_kinds;
mod session_trace;

use session_kinds::{KINDS, Kind};
use session_trace::{Trace, play};

fn compare(kind: &Kind) {
    let (real, mut replayed) = (play(kind, false), play(kind, true));
    // On a busy machine a client that was told to end sometimes leaves before it has printed its result.
    if kind.signal.is_some() && !real.has_result() {
        replayed.drop_result();
    }
    assert!(!real.hooks.is_empty(), "{}: nothing was recorded", kind.name);
    let differences = real.differences(&replayed, kind.is_unordered);
    assert!(differences.is_empty(), "{}: the replay is not what the client does:\n{differences}", kind.name);
}

/// So that each is a test of its own, side by side with the others.
macro_rules! kinds {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            let name = stringify!($name);
            compare(KINDS.iter().find(|kind| kind.name == name).expect("a kind of this name"));
        })*

        #[test]
        fn every_kind_has_its_test() {
            let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
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
fn what_was_not_recorded_is_refused_by_name() {
    for (arguments, what) in [
        (&["--continue"][..], "the argument --continue"),
        (&["--model", "haiku"], "the model haiku"),
        (&["--permission-mode", "plan"], "the permission mode plan"),
    ] {
        let mut world = plimsoll_testkit::world::World::new();
        world.use_replay();
        let refused =
            world.command(plimsoll_testkit::replayed_client(), &[&["-p", "hi"], arguments].concat()).run();
        assert_eq!(refused.code, Some(i32::from(plimsoll_testkit::replay::NOT_RECORDED)), "{refused:?}");
        assert!(refused.stderr.contains(what), "{refused:?}");
        // And the world fails its test, unless somebody has looked.
        assert_eq!(world.take_refusals(), format!("{what}\n"));
    }
}

/// What a difference looks like, so that the comparison cannot be blind.
#[test]
fn a_difference_in_order_fields_or_words_is_seen() {
    let kind = &KINDS[0];
    let seen = play(kind, true);
    let untouched = seen.clone();
    assert_eq!(seen.differences(&untouched, false), "");
    let spoil: [fn(&mut Trace); 5] = [
        |trace| trace.hooks.swap(0, 1),
        |trace| _ = trace.stdout.pop(),
        |trace| trace.transcript[3]["isSidechain"] = true.into(),
        |trace| _ = trace.requests[1].as_object_mut().unwrap().shift_remove("model"),
        |trace| trace.exit = "exit 7".to_owned(),
    ];
    for (index, spoil) in spoil.into_iter().enumerate() {
        let mut spoilt = seen.clone();
        spoil(&mut spoilt);
        assert_ne!(seen.differences(&spoilt, false), "", "{index}");
    }
}
