//! Notes for Linear: put into the spool where an issue is set. Nothing is sent here; `plimsoll run` and
//! `plimsoll linear sync` do that.

use launcher::secrets::{tokens_in, without};
use session::Settings;
use session::journal::Entry;
use session::linear::{Kind, Note};
use session::state::RunState;
use store::{Project, clock, config, journal, spool};

/// Notes a checkpoint of a run. A note that cannot be written must not cost the checkpoint.
pub(crate) fn note_checkpoint(project: &Project, settings: &Settings, state: &RunState) {
    let words = || policy::linear::checkpoint(state, &without_tokens);
    note(project, settings, state, Kind::Checkpoint, words);
}

/// Notes the end of a run.
pub(crate) fn note_end(project: &Project, state: &RunState) {
    let (settings, _) = config::load(project);
    note(project, &settings, state, Kind::End, || policy::linear::end(state, &without_tokens));
}

fn note(project: &Project, settings: &Settings, state: &RunState, kind: Kind, words: impl Fn() -> String) {
    let Some(issue) = &settings.linear.issue else { return };
    let note = Note {
        at: clock::stamp(clock::now()),
        run_id: state.run_id.clone(),
        task: without_tokens(&state.task_name),
        issue: issue.clone(),
        iteration: state.iteration,
        kind,
        words: words(),
    };
    // Whoever judges after a kill comes here again.
    let is_told = spool::notes(project, &note.run_id).is_ok_and(|notes| {
        let of_it = notes.iter().rev().find(|known| known.iteration == note.iteration && known.kind == kind);
        of_it.is_some_and(|known| known.words == note.words)
    });
    if is_told {
        return;
    }
    if let Err(error) = spool::add(project, &note) {
        let entry = Entry::new("linear_failed").run(Some((&state.run_id, state.iteration)));
        let _ = journal::note(project, entry.fact("trouble", format!("{error}; {}", error.hint())));
    }
}

/// The words, with a mark in the place of each token.
fn without_tokens(words: &str) -> String {
    without(words, &tokens_in(words).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_in_the_words_is_left_out() {
        let token = format!("{}{}", "ghp_", "a1".repeat(18));
        let words = format!("the key {token} and {token}.");
        assert_eq!(without_tokens(&words), "the key [redacted:github-token] and [redacted:github-token].");
        assert_eq!(without_tokens("nothing"), "nothing");
    }

    #[test]
    fn without_an_issue_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        let state = RunState { run_id: "r1".into(), ..RunState::default() };
        note_checkpoint(&project, &Settings::default(), &state);
        assert!(!store::disk::exists(&spool::folder(&project)));
        let mut settings = Settings::default();
        settings.linear.issue = Some("ENG-1".to_owned());
        note_checkpoint(&project, &settings, &state);
        note_checkpoint(&project, &settings, &state);
        assert_eq!(spool::notes(&project, "r1").unwrap().len(), 1, "the same words are told once");
    }
}
