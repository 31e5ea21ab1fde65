//! The handoff: what the session wrote below is its own, whatever is renewed above.

use super::Target;
use crate::draw::{Draw, parts};
use crate::foreign::may_be_sent;
use crate::seeds::texts;
use plimsoll_domain::SessionId;
use plimsoll_domain::handoff::{
    CommandFact, GitFacts, Handoff, HandoffNotes, HandoffSummary, RunFacts, UserRequests, VerifyCommandFact,
};
use plimsoll_domain::state::{CheckResult, FileInProgress, ItemWork, VerifyRun};

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
    assert!(HandoffNotes::parse(&document).is_empty(), "nobody has written notes");
    may_be_sent(&document);
    let notes = HandoffNotes::from_message(&message);
    let filled = notes.write_into_document(&document);
    assert_eq!(HandoffNotes::parse(&filled), notes, "read back as they were put in");
    may_be_sent(&filled);
    assert_eq!(
        HandoffNotes::default().write_into_document(&filled),
        filled,
        "nothing to say changes nothing"
    );
    // The session goes on writing there by itself.
    let owned = format!("{filled}{message}");
    let renewed = second.refresh_document(&owned, limit);
    let place = document.rfind(&format!("\n{HEADING}\n")).expect("its heading") + 1;
    assert!(renewed.ends_with(&owned[place..]), "the session's own, byte for byte");
    let fresh = second.render(limit);
    let above = fresh.rfind(&format!("\n{HEADING}\n")).expect("its heading") + 1;
    assert_eq!(
        renewed[..renewed.len() - (owned.len() - place)],
        fresh[..above],
        "the facts are the new ones"
    );
    assert_eq!(HandoffNotes::parse(&renewed), HandoffNotes::parse(&owned));
    // The one of an ordinary session has its user's words, and no label that says nothing.
    let session = ordinary(&mut draw);
    let plan = draw.flag().then(|| "fix_plan.md".to_owned());
    let ordinary = Handoff { user_requests: Some(session), plan_path: plan, ..second };
    let document = ordinary.render_with_notes(&notes, limit);
    may_be_sent(&document);
    assert_eq!(HandoffNotes::parse(&document), notes, "{document}");
    let is_bare =
        |line: &str| ["- Summary:", "- Progress on the item:", "- Next step:"].contains(&line.trim());
    // An item of the plan may have a label for its name.
    let own = document.rfind(&format!("\n{HEADING}\n")).map_or("", |place| &document[place..]);
    assert!(!own.lines().any(is_bare), "{document}");
    assert_eq!(
        HandoffNotes::parse(&ordinary.refresh_document_with_notes(
            &HandoffNotes::default(),
            &document,
            limit
        )),
        notes
    );
    let _ = (HandoffSummary::parse(&message), ordinary.refresh_document_with_notes(&notes, &message, limit));
    // A run's handoff with the checks that are known, drawn last so that the seeds still mean what they meant.
    let checked = Handoff {
        plan_path: draw.some(Draw::text),
        verify_facts: draw.list(2, verify_fact),
        item_work: ItemWork { checks: draw.list(2, check), ..ItemWork::default() },
        ..first.clone()
    };
    let document = checked.render_with_notes(&notes, limit);
    may_be_sent(&document);
    assert_eq!(HandoffNotes::parse(&document), notes, "{document}");
    assert_eq!(
        HandoffNotes::parse(&checked.refresh_document_with_notes(&HandoffNotes::default(), &document, limit)),
        notes
    );
    // Anybody's file, read as a handoff.
    let _ = (
        HandoffNotes::parse(&message),
        first.refresh_document(&message, limit),
        notes.write_into_document(&message),
    );
}

fn ordinary(draw: &mut Draw<'_>) -> UserRequests {
    UserRequests {
        first_request: draw.some(Draw::text),
        last_requests: draw
            .list(3, |draw| draw.one_of(&[HEADING, "- Summary: a", "words\n## What the user asked for"])),
    }
}

fn verify_fact(draw: &mut Draw<'_>) -> VerifyCommandFact {
    let run = |draw: &mut Draw<'_>| VerifyRun {
        command: draw.text(),
        passed: draw.flag(),
        iteration: u32::from(draw.byte()),
        commit: draw.some(Draw::text),
        has_uncommitted: draw.flag(),
    };
    VerifyCommandFact { command: draw.text(), last_run: draw.some(run) }
}

fn check(draw: &mut Draw<'_>) -> CheckResult {
    CheckResult {
        command: draw.text(),
        passed: draw.flag(),
        failures: draw.list(2, Draw::text),
        is_before_edit: draw.flag(),
    }
}

fn handoff(draw: &mut Draw<'_>) -> Handoff {
    Handoff {
        current_item: draw.some(|draw| draw.one_of(&["a", HEADING, "a ## Notes from the session"])),
        run_facts: draw.some(|draw| RunFacts { run_id: "r".into(), task_name: draw.text(), iteration: 1 }),
        session_id: SessionId::from(draw.text()),
        usage_percent: draw.some(Draw::number),
        written_at: "2026-01-07T11:45:00Z".into(),
        git: draw.some(|draw| GitFacts {
            branch: draw.text(),
            head_commit: draw.some(Draw::text),
            head_subject: draw.text(),
            file_list_error: draw.some(Draw::text),
            wip_outcome: draw.text(),
        }),
        changed_files: draw.list(3, |draw| FileInProgress {
            path: draw.text(),
            touched_lines: draw.text(),
            description: draw.text(),
            ..FileInProgress::default()
        }),
        done_items: draw.list(2, Draw::text),
        open_items: draw.list(3, |draw| draw.one_of(&[HEADING, "- Summary: x"])),
        commands: draw.list(2, |draw| CommandFact {
            command: draw.text(),
            passed: draw.some(Draw::flag),
            last_output_line: draw.text(),
            unread_output: CommandFact::excerpt_unread_output(&draw.text()),
            ..CommandFact::default()
        }),
        last_message: draw.some(|draw| draw.one_of(&[HEADING, "- Summary: a\n- Next step: b", "<!--"])),
        memory_lines: draw.list(2, Draw::text),
        transcript_path: draw.some(Draw::text),
        ..Handoff::default()
    }
}
