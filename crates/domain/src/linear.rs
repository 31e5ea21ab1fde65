//! The notes of a run for Linear, and the state of the one comment that contains them.

use crate::digest::sha256_hex;
use crate::format::FormatVersion;
use crate::ids::RunId;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// One note: a paragraph of the run's comment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinearNote {
    /// When the note was recorded, RFC 3339, UTC.
    #[serde(rename = "at")]
    pub recorded_at: Timestamp,
    pub run_id: RunId,
    /// The run's name.
    #[serde(rename = "task")]
    pub task_name: String,
    /// The issue that was configured at that time.
    #[serde(rename = "issue")]
    pub issue_name: String,
    /// The session that the note is about; for [`LinearNoteKind::Item`] the item's number in the plan, from 1.
    #[serde(rename = "iteration")]
    pub iteration_or_item_number: u32,
    pub kind: LinearNoteKind,
    /// The note's text.
    #[serde(rename = "words")]
    pub text: String,
}

/// The subject of a note.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinearNoteKind {
    #[default]
    Checkpoint,
    /// Questions that wait for an answer.
    Question,
    /// The end of the run.
    End,
    /// The outcome of an item of a parallel run.
    Item,
}

/// Returns the notes to show: the newest one of each kind and iteration, at the position of the first.
pub fn latest_note_per_iteration_and_kind(notes: &[LinearNote]) -> Vec<LinearNote> {
    let mut latest_notes: Vec<LinearNote> = Vec::new();
    for note in notes {
        match latest_notes.iter_mut().find(|earlier_note| {
            earlier_note.iteration_or_item_number == note.iteration_or_item_number
                && earlier_note.kind == note.kind
        }) {
            Some(earlier_note) => earlier_note.clone_from(note),
            None => latest_notes.push(note.clone()),
        }
    }
    latest_notes
}

/// The last recorded state of a run's comment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinearComment {
    pub format: FormatVersion,
    /// The issue of the comment.
    #[serde(rename = "issue")]
    pub issue_name: String,
    /// The comment's id, chosen by Plimsoll.
    pub id: String,
    /// Incremented when the comment was deleted and is created again.
    pub generation: u32,
    /// True once Linear has confirmed that the comment exists.
    #[serde(rename = "is_there")]
    pub is_created: bool,
    /// The number of notes of the outbox that the comment contains.
    #[serde(rename = "delivered")]
    pub delivered_note_count: usize,
    /// The comment's address for the user.
    pub url: Option<String>,
}

impl LinearComment {
    /// Creates the comment of a run, not sent yet. Its id is derived from the run, so it is the same even if
    /// this record is lost, and a run never gets a second comment by accident.
    pub fn for_run(run_id: &RunId, issue_name: &str, generation: u32) -> LinearComment {
        let id = derive_comment_id(run_id, issue_name, generation);
        LinearComment { issue_name: issue_name.to_owned(), id, generation, ..LinearComment::default() }
    }
}

/// Derives an id in the form of a version 4 UUID, which Linear requires. It is unpredictable because the run's
/// id is random.
fn derive_comment_id(run_id: &RunId, issue_name: &str, generation: u32) -> String {
    let hex_digest = sha256_hex(&[
        b"plimsoll linear comment\n",
        run_id.as_bytes(),
        b"\n",
        issue_name.as_bytes(),
        b"\n",
        generation.to_string().as_bytes(),
    ]);
    let variant = match hex_digest.as_bytes()[16] {
        b'0'..=b'3' => '8',
        b'4'..=b'7' => '9',
        b'8' | b'9' | b'a' | b'b' => 'a',
        _ => 'b',
    };
    let part = |start: usize, end: usize| &hex_digest[start..end];
    format!("{}-{}-4{}-{variant}{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

/// When to contact Linear again after a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinearBackoff {
    /// The earliest time of the next request, RFC 3339, UTC.
    #[serde(rename = "until")]
    pub retry_at: Timestamp,
    /// True if Linear itself set this time (a rate limit).
    #[serde(rename = "is_limit")]
    pub is_rate_limited: bool,
    /// Failures in a row.
    #[serde(rename = "failures")]
    pub failure_count: u32,
    /// The last error.
    #[serde(rename = "trouble")]
    pub last_error: String,
}

/// Returns an error message if the text is not the name of an issue.
pub fn describe_invalid_issue_name(issue_name: &str) -> Option<String> {
    if is_issue_identifier(issue_name) || is_uuid(issue_name) {
        return None;
    }
    Some(format!(
        "linear.issue ({issue_name:?}) must be an issue's identifier, such as \"ENG-123\", or its UUID"
    ))
}

fn is_issue_identifier(issue: &str) -> bool {
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
    fn a_runs_comment_has_one_id_in_the_form_of_a_version_4_uuid() {
        let comment_id = LinearComment::for_run(&"run-1".into(), "ENG-1", 0).id;
        assert_eq!(comment_id, LinearComment::for_run(&"run-1".into(), "ENG-1", 0).id);
        for other in [
            LinearComment::for_run(&"run-2".into(), "ENG-1", 0),
            LinearComment::for_run(&"run-1".into(), "ENG-2", 0),
            LinearComment::for_run(&"run-1".into(), "ENG-1", 1),
        ] {
            assert_ne!(comment_id, other.id);
        }
        for number in 0..64 {
            let id = LinearComment::for_run(&"run".into(), "ENG-1", number).id;
            assert!(is_uuid(&id), "{id}");
            assert_eq!(&id[14..15], "4");
            assert!("89ab".contains(&id[19..20]), "{id}");
        }
    }

    #[test]
    fn a_later_checkpoint_of_an_iteration_replaces_the_first() {
        let note = |iteration, kind, words: &str| LinearNote {
            iteration_or_item_number: iteration,
            kind,
            text: words.into(),
            ..LinearNote::default()
        };
        let notes = [
            note(1, LinearNoteKind::Checkpoint, "one"),
            note(2, LinearNoteKind::Checkpoint, "two"),
            note(1, LinearNoteKind::Checkpoint, "one, again"),
            note(2, LinearNoteKind::End, "end"),
        ];
        let words: Vec<String> =
            latest_note_per_iteration_and_kind(&notes).into_iter().map(|note| note.text).collect();
        assert_eq!(words, ["one, again", "two", "end"]);
    }

    #[test]
    fn an_issue_is_an_identifier_or_a_uuid() {
        for good in ["ENG-1", "eng-123", "A2-99", "01234567-89ab-4cde-8f01-23456789abcd"] {
            assert_eq!(describe_invalid_issue_name(good), None, "{good}");
        }
        for bad in ["", "ENG", "ENG-", "-1", "ENG-1a", "ENG 1", "https://linear.app/x/issue/ENG-1/y", "É-1"]
        {
            assert!(describe_invalid_issue_name(bad).is_some(), "{bad}");
        }
    }
}
