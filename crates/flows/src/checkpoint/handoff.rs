//! Renders handoffs without secrets. Items, commands, commit subjects, the memory and the session's notes may
//! contain secrets. Each text is redacted before it is truncated, and the finished document is redacted once
//! more.

use plimsoll_domain::handoff::{CommandFact, GitFacts, Handoff, HandoffNotes, RunFacts, VerifyCommandFact};
use plimsoll_domain::state::{CheckResult, EarlierNotes, ItemWork};

/// Renders the first handoff of a session.
pub(crate) fn render_without_secrets(handoff: &Handoff, notes: &HandoffNotes, max_bytes: usize) -> String {
    plimsoll_secrets::redact(&redact_handoff(handoff).render_with_notes(&redact_notes(notes), max_bytes))
}

/// Renders an existing handoff with a new generated part. The notes in the old document are kept unless new
/// ones replace them.
pub(crate) fn refresh_document_without_secrets(
    handoff: &Handoff,
    notes: &HandoffNotes,
    old_document: &str,
    max_bytes: usize,
) -> String {
    plimsoll_secrets::redact(&redact_handoff(handoff).refresh_document_with_notes(
        &redact_notes(notes),
        old_document,
        max_bytes,
    ))
}

pub(crate) fn redact_command(command: &CommandFact) -> CommandFact {
    CommandFact {
        command: plimsoll_secrets::redact(&command.command),
        last_output_line: plimsoll_secrets::redact(&command.last_output_line),
        unread_output: plimsoll_secrets::redact(&command.unread_output),
        ..command.clone()
    }
}

pub(crate) fn redact_check(check: &CheckResult) -> CheckResult {
    CheckResult {
        command: plimsoll_secrets::redact(&check.command),
        failures: redact_all(&check.failures),
        ..check.clone()
    }
}

fn redact_earlier_notes(notes: &EarlierNotes) -> EarlierNotes {
    EarlierNotes {
        iteration: notes.iteration,
        summary: plimsoll_secrets::redact(&notes.summary),
        progress: plimsoll_secrets::redact(&notes.progress),
        next_step: plimsoll_secrets::redact(&notes.next_step),
    }
}

fn redact_verify_fact(fact: &VerifyCommandFact) -> VerifyCommandFact {
    VerifyCommandFact { command: plimsoll_secrets::redact(&fact.command), ..fact.clone() }
}

fn redact_notes(notes: &HandoffNotes) -> HandoffNotes {
    HandoffNotes {
        summary: plimsoll_secrets::redact(&notes.summary),
        progress: plimsoll_secrets::redact(&notes.progress),
        next_step: plimsoll_secrets::redact(&notes.next_step),
    }
}

/// Redacts a copy that is only rendered: the state needs the items exactly as they are in the plan. Commands,
/// the last message and the requests have already been redacted.
fn redact_handoff(handoff: &Handoff) -> Handoff {
    let redact_run =
        |run: &RunFacts| RunFacts { task_name: plimsoll_secrets::redact(&run.task_name), ..run.clone() };
    let redact_git = |git: &GitFacts| GitFacts {
        head_subject: plimsoll_secrets::redact(&git.head_subject),
        uncommitted_work_outcome: plimsoll_secrets::redact(&git.uncommitted_work_outcome),
        ..git.clone()
    };
    Handoff {
        run_facts: handoff.run_facts.as_ref().map(redact_run),
        git: handoff.git.as_ref().map(redact_git),
        current_item: handoff.current_item.as_deref().map(plimsoll_secrets::redact),
        item_work: ItemWork {
            ticked_items: redact_all(&handoff.item_work.ticked_items),
            ..handoff.item_work.clone()
        },
        plan_path: handoff.plan_path.as_deref().map(plimsoll_secrets::redact),
        verify_facts: handoff.verify_facts.iter().map(redact_verify_fact).collect(),
        earlier_notes: handoff.earlier_notes.as_ref().map(redact_earlier_notes),
        done_items: redact_listed_items(&handoff.done_items),
        open_items: redact_listed_items(&handoff.open_items),
        memory_lines: redact_all(&handoff.memory_lines),
        ..handoff.clone()
    }
}

/// Redacts only the items that are shown. The remaining items of a long list are only counted, so they are
/// replaced by empty strings.
fn redact_listed_items(items: &[String]) -> Vec<String> {
    let (shown_items, counted_items) = items.split_at(items.len().min(Handoff::MAX_LIST_ROWS));
    let mut redacted = redact_all(shown_items);
    redacted.resize_with(shown_items.len() + counted_items.len(), String::new);
    redacted
}

fn redact_all(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| plimsoll_secrets::redact(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_beyond_the_shown_ones_are_only_counted() {
        let open: Vec<String> = (1..=1_000).map(|number| format!("Item {number}")).collect();
        let long_handoff =
            Handoff { run_facts: Some(RunFacts::default()), open_items: open, ..Handoff::default() };
        let text = render_without_secrets(&long_handoff, &HandoffNotes::default(), 8192);
        assert!(text.contains("Open (1000)") && text.contains("- Item 20\n- … and 980 more\n"), "{text}");
    }

    #[test]
    fn every_part_of_a_handoff_is_redacted_and_other_text_is_kept() {
        // A random token, assembled here so that no scanner finds it, behind more than a hundred letters, so
        // that a cut would go through it.
        let token = |mark: &str| format!("{}{mark}{}", "ghp_", "aB3dE5fG7hK9".repeat(3));
        let text_with_token = |mark: &str| format!("{} {} and on", "word ".repeat(30), token(mark));
        let handoff = Handoff {
            run_facts: Some(RunFacts { task_name: text_with_token("r"), ..RunFacts::default() }),
            git: Some(GitFacts {
                head_subject: token("g"),
                uncommitted_work_outcome: token("w"),
                ..GitFacts::default()
            }),
            current_item: Some(text_with_token("i")),
            item_work: ItemWork {
                ticked_items: vec![text_with_token("f")],
                is_begun: true,
                ..ItemWork::default()
            },
            verify_facts: vec![VerifyCommandFact { command: token("v"), last_run: None }],
            done_items: vec![text_with_token("d")],
            open_items: vec![text_with_token("o"), "Write the changelog".into()],
            memory_lines: vec![text_with_token("m")],
            ..Handoff::default()
        };
        let notes = HandoffNotes {
            summary: text_with_token("s"),
            progress: text_with_token("p"),
            next_step: text_with_token("n"),
        };
        let first_document = render_without_secrets(&handoff, &notes, 8192);
        let edited_document =
            first_document.replace("- Next step:", &format!("- Next step: {} or", token("h")));
        let refreshed_document =
            refresh_document_without_secrets(&handoff, &HandoffNotes::default(), &edited_document, 8192);
        for text in [&first_document, &refreshed_document] {
            assert!(!text.contains("ghp_"), "{text}");
            assert!(text.matches("[redacted:github-token]").count() >= 8, "{text}");
            assert!(text.contains("Write the changelog") && text.contains("and on"), "{text}");
        }
        assert!(
            HandoffNotes::parse(&refreshed_document).next_step.starts_with("[redacted:github-token]"),
            "{refreshed_document}"
        );
    }
}
