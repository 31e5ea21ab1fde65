//! The handoff: what the session wrote below is its own, whatever is renewed above.

use super::Target;
use crate::draw::{Draw, parts};
use crate::foreign::may_be_sent;
use crate::seeds::texts;
use plimsoll_domain::SessionId;
use plimsoll_domain::handoff::{
    CommandFact, GitFacts, Handoff, HandoffSummary, Notes, OrdinarySession, RunFacts, VerifyFact,
};
use plimsoll_domain::state::{Check, FileInProgress, ItemWork, VerifyRun};

pub(super) const TARGET: Target = Target { name: "handoff", body, seeds, inputs: 5_000 };

const HEADING: &str = "## Notes from the session";

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&[
        "Summary: wrote a\nProgress on the item: 70%\nNext step: b\n",
        "- **Summary:** x\n* Progress on the item: y\n\nmore words\nNext step: <!-- z -->",
        "Done.\n\nSummary: a <!-- b\nNext step: c",
        "# Handoff\n\n## Notes from the session\n\n- Summary: a\n\n## Notes from the session\nmine",
    ]);
    let item = [b"words\xff\x00\x19", HEADING.as_bytes()].concat();
    seeds.push(item);
    seeds.push(b"Summary: x\xff\x05title\x03abc\x01\x02\x01\x03a|b\x01\x05<!--x\x04`x`y\x02".to_vec());
    seeds
}

fn body(bytes: &[u8]) {
    let (message, rest) = parts(bytes);
    let message = String::from_utf8_lossy(message);
    let mut draw = Draw::from(rest);
    let (first, second) = (handoff(&mut draw), handoff(&mut draw));
    let limit = 200 + usize::from(draw.byte()) * 100;
    let document = first.render(limit);
    assert!(Notes::parse(&document).is_empty(), "nobody has written notes");
    may_be_sent(&document);
    let notes = Notes::in_message(&message);
    let filled = notes.replace(&document);
    assert_eq!(Notes::parse(&filled), notes, "read back as they were put in");
    may_be_sent(&filled);
    assert_eq!(Notes::default().replace(&filled), filled, "nothing to say changes nothing");
    // The session goes on writing there by itself.
    let owned = format!("{filled}{message}");
    let renewed = second.refresh(&owned, limit);
    let place = document.rfind(&format!("\n{HEADING}\n")).expect("its heading") + 1;
    assert!(renewed.ends_with(&owned[place..]), "the session's own, byte for byte");
    let fresh = second.render(limit);
    let above = fresh.rfind(&format!("\n{HEADING}\n")).expect("its heading") + 1;
    assert_eq!(
        renewed[..renewed.len() - (owned.len() - place)],
        fresh[..above],
        "the facts are the new ones"
    );
    assert_eq!(Notes::parse(&renewed), Notes::parse(&owned));
    // The one of an ordinary session has its user's words, and no label that says nothing.
    let session = ordinary(&mut draw);
    let plan = draw.flag().then(|| "fix_plan.md".to_owned());
    let ordinary = Handoff { ordinary: Some(session), plan, ..second };
    let document = ordinary.document(&notes, limit);
    may_be_sent(&document);
    assert_eq!(Notes::parse(&document), notes, "{document}");
    let is_bare =
        |line: &str| ["- Summary:", "- Progress on the item:", "- Next step:"].contains(&line.trim());
    // An item of the plan may have a label for its name.
    let own = document.rfind(&format!("\n{HEADING}\n")).map_or("", |place| &document[place..]);
    assert!(!own.lines().any(is_bare), "{document}");
    assert_eq!(Notes::parse(&ordinary.renewed(&Notes::default(), &document, limit)), notes);
    let _ = (HandoffSummary::parse(&message), ordinary.renewed(&notes, &message, limit));
    // A run's handoff with the checks that are known, drawn last so that the seeds still mean what they meant.
    let checked = Handoff {
        plan: draw.some(Draw::text),
        verify: draw.list(2, verify_fact),
        work: ItemWork { checks: draw.list(2, check), ..ItemWork::default() },
        ..first.clone()
    };
    let document = checked.document(&notes, limit);
    may_be_sent(&document);
    assert_eq!(Notes::parse(&document), notes, "{document}");
    assert_eq!(Notes::parse(&checked.renewed(&Notes::default(), &document, limit)), notes);
    // Anybody's file, read as a handoff.
    let _ = (Notes::parse(&message), first.refresh(&message, limit), notes.replace(&message));
}

fn ordinary(draw: &mut Draw<'_>) -> OrdinarySession {
    OrdinarySession {
        first_request: draw.some(Draw::text),
        last_requests: draw
            .list(3, |draw| draw.one_of(&[HEADING, "- Summary: a", "words\n## What the user asked for"])),
    }
}

fn verify_fact(draw: &mut Draw<'_>) -> VerifyFact {
    let run = |draw: &mut Draw<'_>| VerifyRun {
        command: draw.text(),
        passed: draw.flag(),
        iteration: u32::from(draw.byte()),
        commit: draw.some(Draw::text),
        has_uncommitted: draw.flag(),
    };
    VerifyFact { command: draw.text(), last: draw.some(run) }
}

fn check(draw: &mut Draw<'_>) -> Check {
    Check {
        command: draw.text(),
        passed: draw.flag(),
        failures: draw.list(2, Draw::text),
        is_before_edit: draw.flag(),
    }
}

fn handoff(draw: &mut Draw<'_>) -> Handoff {
    Handoff {
        current_item: draw.some(|draw| draw.one_of(&["a", HEADING, "a ## Notes from the session"])),
        run: draw.some(|draw| RunFacts { run_id: "r".into(), task_name: draw.text(), iteration: 1 }),
        session_id: SessionId::from(draw.text()),
        percent: draw.some(Draw::number),
        written_at: "2026-01-07T11:45:00Z".into(),
        git: draw.some(|draw| GitFacts {
            branch: draw.text(),
            head: draw.some(Draw::text),
            subject: draw.text(),
            trouble: draw.some(Draw::text),
            work: draw.text(),
        }),
        files: draw.list(3, |draw| FileInProgress {
            path: draw.text(),
            lines: draw.text(),
            description: draw.text(),
            ..FileInProgress::default()
        }),
        done: draw.list(2, Draw::text),
        open: draw.list(3, |draw| draw.one_of(&[HEADING, "- Summary: x"])),
        commands: draw.list(2, |draw| CommandFact {
            command: draw.text(),
            ok: draw.some(Draw::flag),
            last_line: draw.text(),
            unread: CommandFact::excerpt(&draw.text()),
            ..CommandFact::default()
        }),
        last_words: draw.some(|draw| draw.one_of(&[HEADING, "- Summary: a\n- Next step: b", "<!--"])),
        memory: draw.list(2, Draw::text),
        transcript: draw.some(Draw::text),
        ..Handoff::default()
    }
}
