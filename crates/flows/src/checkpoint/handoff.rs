//! The document of a handoff, without secrets: an item, a command, a commit's subject, the memory and the session's own
//! notes can each hold one. Each is searched whole, before anything is cut to its length, and the document once more.

use plimsoll_domain::handoff::{CommandFact, GitFacts, Handoff, Notes, RunFacts, VerifyFact};
use plimsoll_domain::state::{Check, EarlierNotes, ItemWork};

/// The document of a first checkpoint.
pub(crate) fn document(handoff: &Handoff, notes: &Notes, limit: usize) -> String {
    plimsoll_secrets::without(&safe(handoff).document(&safe_notes(notes), limit))
}

/// The document with its generated part renewed, and these notes where the session has some.
pub(crate) fn renewed(handoff: &Handoff, notes: &Notes, old: &str, limit: usize) -> String {
    plimsoll_secrets::without(&safe(handoff).renewed(&safe_notes(notes), old, limit))
}

/// What was run, without secrets.
pub(crate) fn safe_command(command: &CommandFact) -> CommandFact {
    CommandFact {
        command: plimsoll_secrets::without(&command.command),
        last_line: plimsoll_secrets::without(&command.last_line),
        unread: plimsoll_secrets::without(&command.unread),
        ..command.clone()
    }
}

/// What a check said, without secrets.
pub(crate) fn safe_check(check: &Check) -> Check {
    Check {
        command: plimsoll_secrets::without(&check.command),
        failures: each(&check.failures),
        ..check.clone()
    }
}

fn safe_earlier(notes: &EarlierNotes) -> EarlierNotes {
    EarlierNotes {
        iteration: notes.iteration,
        summary: plimsoll_secrets::without(&notes.summary),
        progress: plimsoll_secrets::without(&notes.progress),
        next_step: plimsoll_secrets::without(&notes.next_step),
    }
}

fn safe_verify(fact: &VerifyFact) -> VerifyFact {
    VerifyFact { command: plimsoll_secrets::without(&fact.command), ..fact.clone() }
}

fn safe_notes(notes: &Notes) -> Notes {
    Notes {
        summary: plimsoll_secrets::without(&notes.summary),
        progress: plimsoll_secrets::without(&notes.progress),
        next: plimsoll_secrets::without(&notes.next),
    }
}

/// Only for the document: the state knows items by the words of the list. Commands, last words and requests are safe
/// already.
fn safe(handoff: &Handoff) -> Handoff {
    let run =
        |run: &RunFacts| RunFacts { task_name: plimsoll_secrets::without(&run.task_name), ..run.clone() };
    let git = |git: &GitFacts| GitFacts {
        subject: plimsoll_secrets::without(&git.subject),
        work: plimsoll_secrets::without(&git.work),
        ..git.clone()
    };
    Handoff {
        run: handoff.run.as_ref().map(run),
        git: handoff.git.as_ref().map(git),
        current_item: handoff.current_item.as_deref().map(plimsoll_secrets::without),
        work: ItemWork { finished: each(&handoff.work.finished), ..handoff.work.clone() },
        plan: handoff.plan.as_deref().map(plimsoll_secrets::without),
        verify: handoff.verify.iter().map(safe_verify).collect(),
        earlier_notes: handoff.earlier_notes.as_ref().map(safe_earlier),
        done: listed(&handoff.done),
        open: listed(&handoff.open),
        memory: each(&handoff.memory),
        ..handoff.clone()
    }
}

/// Of a long list, whose end is only counted, what can be shown.
fn listed(items: &[String]) -> Vec<String> {
    let (shown, counted) = items.split_at(items.len().min(Handoff::MOST_LISTED));
    let mut listed = each(shown);
    listed.resize_with(shown.len() + counted.len(), String::new);
    listed
}

fn each(words: &[String]) -> Vec<String> {
    words.iter().map(|words| plimsoll_secrets::without(words)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_list_the_rest_is_counted() {
        let open: Vec<String> = (1..=1_000).map(|number| format!("Item {number}")).collect();
        let handoff = Handoff { run: Some(RunFacts::default()), open, ..Handoff::default() };
        let text = document(&handoff, &Notes::default(), 8192);
        assert!(text.contains("Open (1000)") && text.contains("- Item 20\n- … and 980 more\n"), "{text}");
    }

    #[test]
    fn no_part_of_a_handoff_shows_a_secret_and_the_rest_stays() {
        // Drawn by lot, and put together here; a hundred letters before it, so that a cut would go through it.
        let token = |mark: &str| format!("{}{mark}{}", "ghp_", "aB3dE5fG7hK9".repeat(3));
        let words = |mark: &str| format!("{} {} and on", "word ".repeat(30), token(mark));
        let handoff = Handoff {
            run: Some(RunFacts { task_name: words("r"), ..RunFacts::default() }),
            git: Some(GitFacts { subject: token("g"), work: token("w"), ..GitFacts::default() }),
            current_item: Some(words("i")),
            work: ItemWork { finished: vec![words("f")], is_begun: true, ..ItemWork::default() },
            verify: vec![VerifyFact { command: token("v"), last: None }],
            done: vec![words("d")],
            open: vec![words("o"), "Write the changelog".into()],
            memory: vec![words("m")],
            ..Handoff::default()
        };
        let notes = Notes { summary: words("s"), progress: words("p"), next: words("n") };
        let first = document(&handoff, &notes, 8192);
        let by_hand = first.replace("- Next step:", &format!("- Next step: {} or", token("h")));
        let second = renewed(&handoff, &Notes::default(), &by_hand, 8192);
        for text in [&first, &second] {
            assert!(!text.contains("ghp_"), "{text}");
            assert!(text.matches("[redacted:github-token]").count() >= 8, "{text}");
            assert!(text.contains("Write the changelog") && text.contains("and on"), "{text}");
        }
        assert!(Notes::parse(&second).next.starts_with("[redacted:github-token]"), "{second}");
    }
}
