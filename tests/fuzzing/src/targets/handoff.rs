//! The handoff: refreshing its facts never changes the notes that the session wrote below them.

use super::Target;
use crate::draw::{Draw, split_at_separator};
use crate::foreign::assert_safe_for_model;
use crate::seeds::text_seeds;
use plimsoll_domain::SessionId;
use plimsoll_domain::handoff::{
    CommandFact, GitFacts, Handoff, HandoffMetadata, HandoffNotes, RunFacts, UserRequests, VerifyCommandFact,
};
use plimsoll_domain::state::{CheckResult, FileInProgress, ItemWork, VerifyRun};

pub(super) const TARGET: Target = Target { name: "handoff", check_input, seeds, mutated_input_count: 5_000 };

const HEADING: &str = "## Notes from the session";

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = text_seeds(&[
        "Summary: wrote a\nProgress on the item: 70%\nNext step: b\n",
        "- **Summary:** x\n* Progress on the item: y\n\nmore words\nNext step: <!-- z -->",
        "Done.\n\nSummary: a <!-- b\nNext step: c",
        "# Handoff\n\n## Notes from the session\n\n- Summary: a\n\n## Notes from the session\nmine",
    ]);
    let seed = [b"words\xff\x00\x19", HEADING.as_bytes()].concat();
    seeds.push(seed);
    seeds.push(b"Summary: x\xff\x05title\x03abc\x01\x02\x01\x03a|b\x01\x05<!--x\x04`x`y\x02".to_vec());
    seeds
}

fn check_input(bytes: &[u8]) {
    let (message, rest) = split_at_separator(bytes);
    let message = String::from_utf8_lossy(message);
    let mut draw = Draw::from_bytes(rest);
    let (first_handoff, second_handoff) = (draw_handoff(&mut draw), draw_handoff(&mut draw));
    let limit = 200 + usize::from(draw.byte()) * 100;
    let document = first_handoff.render_with_empty_notes(limit);
    assert!(HandoffNotes::parse(&document).is_empty(), "nobody has written notes");
    assert_safe_for_model(&document);
    let notes = HandoffNotes::from_message(&message);
    let with_notes = notes.replace_nonempty_notes_in_document(&document);
    assert_eq!(HandoffNotes::parse(&with_notes), notes, "read back as they were put in");
    assert_safe_for_model(&with_notes);
    assert_eq!(
        HandoffNotes::default().replace_nonempty_notes_in_document(&with_notes),
        with_notes,
        "nothing to say changes nothing"
    );
    // The session may continue writing its notes by itself.
    let extended = format!("{with_notes}{message}");
    let refreshed = second_handoff.refresh_document(&extended, limit);
    let notes_start = document.rfind(&format!("\n{HEADING}\n")).expect("its heading") + 1;
    assert!(refreshed.ends_with(&extended[notes_start..]), "the session's own, byte for byte");
    let rendered = second_handoff.render_with_empty_notes(limit);
    let rendered_notes_start = rendered.rfind(&format!("\n{HEADING}\n")).expect("its heading") + 1;
    assert_eq!(
        refreshed[..refreshed.len() - (extended.len() - notes_start)],
        rendered[..rendered_notes_start],
        "the facts are the new ones"
    );
    assert_eq!(HandoffNotes::parse(&refreshed), HandoffNotes::parse(&extended));
    // The handoff of an ordinary session has its user's requests and no empty labels.
    let session = draw_ordinary_session(&mut draw);
    let plan = draw.flag().then(|| "fix_plan.md".to_owned());
    let session_handoff = Handoff { user_requests: Some(session), plan_path: plan, ..second_handoff };
    let document = session_handoff.render_with_notes(&notes, limit);
    assert_safe_for_model(&document);
    assert_eq!(HandoffNotes::parse(&document), notes, "{document}");
    let is_empty_label =
        |line: &str| ["- Summary:", "- Progress on the item:", "- Next step:"].contains(&line.trim());
    // An item of the plan may have the same text as a label, so only the notes section is checked.
    let notes_section = document.rfind(&format!("\n{HEADING}\n")).map_or("", |place| &document[place..]);
    assert!(!notes_section.lines().any(is_empty_label), "{document}");
    assert_eq!(
        HandoffNotes::parse(&session_handoff.refresh_document_with_notes(
            &HandoffNotes::default(),
            &document,
            limit
        )),
        notes
    );
    let _ = (
        HandoffMetadata::parse(&message),
        session_handoff.refresh_document_with_notes(&notes, &message, limit),
    );
    // A run's handoff with its known checks. It is drawn last, so that the existing seeds keep their meaning.
    let handoff_with_checks = Handoff {
        plan_path: draw.optional(Draw::text),
        verify_facts: draw.list(2, draw_verify_fact),
        item_work: ItemWork { checks: draw.list(2, draw_check), ..ItemWork::default() },
        ..first_handoff.clone()
    };
    let document = handoff_with_checks.render_with_notes(&notes, limit);
    assert_safe_for_model(&document);
    assert_eq!(HandoffNotes::parse(&document), notes, "{document}");
    assert_eq!(
        HandoffNotes::parse(&handoff_with_checks.refresh_document_with_notes(
            &HandoffNotes::default(),
            &document,
            limit
        )),
        notes
    );
    // Any file may be read as a handoff.
    let _ = (
        HandoffNotes::parse(&message),
        first_handoff.refresh_document(&message, limit),
        notes.replace_nonempty_notes_in_document(&message),
    );
}

fn draw_ordinary_session(draw: &mut Draw<'_>) -> UserRequests {
    UserRequests {
        first_request: draw.optional(Draw::text),
        last_requests: draw.list(3, |draw| {
            draw.one_of_or_text(&[HEADING, "- Summary: a", "words\n## What the user asked for"])
        }),
    }
}

fn draw_verify_fact(draw: &mut Draw<'_>) -> VerifyCommandFact {
    let draw_run = |draw: &mut Draw<'_>| VerifyRun {
        command: draw.text(),
        passed: draw.flag(),
        iteration: u32::from(draw.byte()),
        commit: draw.optional(Draw::text),
        has_uncommitted: draw.flag(),
    };
    VerifyCommandFact { command: draw.text(), last_run: draw.optional(draw_run) }
}

fn draw_check(draw: &mut Draw<'_>) -> CheckResult {
    CheckResult {
        command: draw.text(),
        passed: draw.flag(),
        failures: draw.list(2, Draw::text),
        is_before_edit: draw.flag(),
    }
}

fn draw_handoff(draw: &mut Draw<'_>) -> Handoff {
    Handoff {
        current_item: draw
            .optional(|draw| draw.one_of_or_text(&["a", HEADING, "a ## Notes from the session"])),
        run_facts: draw.optional(|draw| RunFacts {
            run_id: "r".into(),
            task_name: draw.text(),
            iteration: 1,
        }),
        session_id: SessionId::from(draw.text()),
        usage_percent: draw.optional(Draw::number),
        written_at: "2026-01-07T11:45:00Z".into(),
        git: draw.optional(|draw| GitFacts {
            branch: draw.text(),
            head_commit: draw.optional(Draw::text),
            head_subject: draw.text(),
            file_list_error: draw.optional(Draw::text),
            uncommitted_work_outcome: draw.text(),
        }),
        changed_files: draw.list(3, |draw| FileInProgress {
            path: draw.text(),
            touched_lines: draw.text(),
            description: draw.text(),
            ..FileInProgress::default()
        }),
        done_items: draw.list(2, Draw::text),
        open_items: draw.list(3, |draw| draw.one_of_or_text(&[HEADING, "- Summary: x"])),
        commands: draw.list(2, |draw| CommandFact {
            command: draw.text(),
            passed: draw.optional(Draw::flag),
            last_output_line: draw.text(),
            unread_output: CommandFact::excerpt_unread_output(&draw.text()),
            ..CommandFact::default()
        }),
        last_message: draw
            .optional(|draw| draw.one_of_or_text(&[HEADING, "- Summary: a\n- Next step: b", "<!--"])),
        memory_lines: draw.list(2, Draw::text),
        transcript_path: draw.optional(Draw::text),
        ..Handoff::default()
    }
}
