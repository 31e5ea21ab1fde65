//! What goes to Linear: the notes of a run, and what is known of the one comment that holds them.

use crate::digest::sha256;
use crate::format::Format;
use crate::ids::RunId;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// One note: a paragraph of a run's comment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Note {
    /// When, RFC 3339 UTC.
    pub at: Timestamp,
    /// The run.
    pub run_id: RunId,
    /// Its name.
    pub task: String,
    /// The issue that was set at that time.
    pub issue: String,
    /// The session it is about; of [`NoteKind::Item`] the item's number in the plan, from 1.
    pub iteration: u32,
    /// What it reports.
    pub kind: NoteKind,
    /// What it says.
    pub words: String,
}

/// What a note reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// A checkpoint.
    #[default]
    Checkpoint,
    /// Questions that wait for an answer.
    Question,
    /// The end of the run.
    End,
    /// What has become of an item of a parallel run.
    Item,
}

/// The notes as they are shown: one of a kind for each iteration, the newest words in the place of the first.
pub fn folded(notes: &[Note]) -> Vec<Note> {
    let mut shown: Vec<Note> = Vec::new();
    for note in notes {
        match shown.iter_mut().find(|known| known.iteration == note.iteration && known.kind == note.kind) {
            Some(known) => known.clone_from(note),
            None => shown.push(note.clone()),
        }
    }
    shown
}

/// The comment of a run, as far as we know it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Comment {
    /// The format of the file.
    pub format: Format,
    /// The issue it is at.
    pub issue: String,
    /// Its id, which we have chosen.
    pub id: String,
    /// Incremented when the comment was deleted and is created again.
    pub generation: u32,
    /// True once Linear has said that it is there.
    pub is_there: bool,
    /// How many notes of the outbox are in it.
    pub delivered: usize,
    /// Where the user reads it.
    pub url: Option<String>,
}

impl Comment {
    /// The comment of a run that has not been sent yet. Its id follows from the run: it is the same when this record
    /// is lost, so that a run never gets a second comment by accident.
    pub fn of(run_id: &RunId, issue: &str, generation: u32) -> Comment {
        let id = comment_id(run_id, issue, generation);
        Comment { issue: issue.to_owned(), id, generation, ..Comment::default() }
    }
}

/// An id in the form of a UUID of version 4, as Linear asks for it. A run's own id is drawn by lot.
fn comment_id(run_id: &RunId, issue: &str, generation: u32) -> String {
    let digits = sha256(&[
        b"plimsoll linear comment\n",
        run_id.as_bytes(),
        b"\n",
        issue.as_bytes(),
        b"\n",
        generation.to_string().as_bytes(),
    ]);
    let variant = match digits.as_bytes()[16] {
        b'0'..=b'3' => '8',
        b'4'..=b'7' => '9',
        b'8' | b'9' | b'a' | b'b' => 'a',
        _ => 'b',
    };
    let part = |from: usize, to: usize| &digits[from..to];
    format!("{}-{}-4{}-{variant}{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

/// When Linear may be asked again, after something went wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wait {
    /// Not before this moment, RFC 3339 UTC.
    pub until: Timestamp,
    /// True when Linear itself has said so.
    pub is_limit: bool,
    /// Failures in a row.
    pub failures: u32,
    /// What went wrong, in words.
    pub trouble: String,
}

/// What is wrong with the name of an issue.
pub fn problem_of_issue(issue: &str) -> Option<String> {
    if is_identifier(issue) || is_uuid(issue) {
        return None;
    }
    Some(format!("linear.issue ({issue:?}) must be an issue's identifier, such as \"ENG-123\", or its UUID"))
}

fn is_identifier(issue: &str) -> bool {
    let Some((team, number)) = issue.split_once('-') else { return false };
    let is_team = (1..=10).contains(&team.len()) && team.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_team && (1..=9).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_uuid(issue: &str) -> bool {
    let lengths: Vec<usize> = issue.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && issue.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runs_comment_has_one_id_in_the_form_of_a_uuid_of_version_4() {
        let one = Comment::of(&"run-1".into(), "ENG-1", 0).id;
        assert_eq!(one, Comment::of(&"run-1".into(), "ENG-1", 0).id);
        for other in [
            Comment::of(&"run-2".into(), "ENG-1", 0),
            Comment::of(&"run-1".into(), "ENG-2", 0),
            Comment::of(&"run-1".into(), "ENG-1", 1),
        ] {
            assert_ne!(one, other.id);
        }
        for number in 0..64 {
            let id = Comment::of(&"run".into(), "ENG-1", number).id;
            assert!(is_uuid(&id), "{id}");
            assert_eq!(&id[14..15], "4");
            assert!("89ab".contains(&id[19..20]), "{id}");
        }
    }

    #[test]
    fn a_later_checkpoint_of_an_iteration_takes_the_place_of_the_first() {
        let note =
            |iteration, kind, words: &str| Note { iteration, kind, words: words.into(), ..Note::default() };
        let notes = [
            note(1, NoteKind::Checkpoint, "one"),
            note(2, NoteKind::Checkpoint, "two"),
            note(1, NoteKind::Checkpoint, "one, again"),
            note(2, NoteKind::End, "end"),
        ];
        let words: Vec<String> = folded(&notes).into_iter().map(|note| note.words).collect();
        assert_eq!(words, ["one, again", "two", "end"]);
    }

    #[test]
    fn an_issue_is_an_identifier_or_a_uuid() {
        for good in ["ENG-1", "eng-123", "A2-99", "01234567-89ab-4cde-8f01-23456789abcd"] {
            assert_eq!(problem_of_issue(good), None, "{good}");
        }
        for bad in ["", "ENG", "ENG-", "-1", "ENG-1a", "ENG 1", "https://linear.app/x/issue/ENG-1/y", "É-1"]
        {
            assert!(problem_of_issue(bad).is_some(), "{bad}");
        }
    }
}
