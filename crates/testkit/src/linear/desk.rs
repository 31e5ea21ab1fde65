//! What the server knows: one person, one issue, its comments.

use serde_json::{Value, json};

/// The key that opens the door.
pub const KEY: &str = "lin_api_onlyForTheTestServer0000000000000000";
/// The issue that is there.
pub const ISSUE: &str = "ENG-123";
const ISSUE_UUID: &str = "2c1d7a54-6f0e-4b8e-9a51-0d6a5b7b9c11";

/// A comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Its id.
    pub id: String,
    /// Its text.
    pub body: String,
    /// How often it was changed.
    pub edits: usize,
}

#[derive(Default)]
pub(super) struct Desk {
    pub(super) comments: Vec<Comment>,
    pub(super) is_read_only: bool,
    pub(super) is_archived: bool,
}

/// Why an operation is refused: a code and a message.
pub(super) type Refusal = (&'static str, String);

impl Desk {
    /// The object that a field of a root gives.
    pub(super) fn resolve(&mut self, field: &str, arguments: &Value) -> Result<Value, Refusal> {
        let id = arguments["id"].as_str().unwrap_or_default();
        match field {
            "viewer" => Ok(viewer()),
            "issue" => self.issue(id),
            "comment" => self.find(id).map(|comment| self.shown(comment)),
            "commentCreate" => self.create(&arguments["input"]),
            "commentUpdate" => self.update(id, &arguments["input"]),
            other => Err(("INTERNAL_SERVER_ERROR", format!("nobody has told us what {other} is"))),
        }
    }

    fn find(&self, id: &str) -> Result<&Comment, Refusal> {
        self.comments.iter().find(|comment| comment.id == id).ok_or_else(|| not_found("Comment"))
    }

    fn issue(&self, id: &str) -> Result<Value, Refusal> {
        if id != ISSUE_UUID && !id.eq_ignore_ascii_case(ISSUE) {
            return Err(not_found("Issue"));
        }
        let nodes: Vec<Value> = self.comments.iter().map(|comment| self.shown(comment)).collect();
        let mut issue = bare_issue();
        issue["archivedAt"] = if self.is_archived { "2026-01-07T11:45:00.000Z".into() } else { Value::Null };
        issue["comments"] = json!({ "nodes": nodes, "pageInfo": { "hasNextPage": false } });
        Ok(issue)
    }

    fn shown(&self, comment: &Comment) -> Value {
        json!({
            "id": comment.id,
            "body": comment.body,
            "url": format!("https://linear.app/test/issue/{ISSUE}#comment-{}", &comment.id[..8]),
            "issue": bare_issue(),
            "user": viewer(),
        })
    }

    fn may_write(&self) -> Result<(), Refusal> {
        if self.is_read_only {
            Err(("FORBIDDEN", "Invalid scope: `write` required".to_owned()))
        } else {
            Ok(())
        }
    }

    fn create(&mut self, input: &Value) -> Result<Value, Refusal> {
        self.may_write()?;
        self.issue(input["issueId"].as_str().unwrap_or_default())?;
        let next = format!("00000000-0000-4000-8000-{:012}", self.comments.len());
        let id = input["id"].as_str().map_or(next, str::to_owned);
        if !is_version_4(&id) {
            return Err(("INPUT_ERROR", "Argument Validation Error: id must be a UUID".to_owned()));
        }
        if self.find(&id).is_ok() {
            return Err(("INPUT_ERROR", "Entity Comment with this id already exists".to_owned()));
        }
        let body = input["body"].as_str().unwrap_or_default().to_owned();
        let comment = Comment { id, body, edits: 0 };
        self.comments.push(comment.clone());
        Ok(self.payload(&comment))
    }

    fn update(&mut self, id: &str, input: &Value) -> Result<Value, Refusal> {
        self.may_write()?;
        self.find(id)?;
        let changed = self.comments.iter_mut().find(|comment| comment.id == id);
        let comment = changed.ok_or_else(|| not_found("Comment"))?;
        comment.body = input["body"].as_str().unwrap_or(&comment.body).to_owned();
        comment.edits += 1;
        let comment = comment.clone();
        Ok(self.payload(&comment))
    }

    fn payload(&self, comment: &Comment) -> Value {
        json!({ "success": true, "comment": self.shown(comment) })
    }
}

fn not_found(kind: &str) -> Refusal {
    ("INPUT_ERROR", format!("Entity not found: {kind} - Could not find referenced {kind}."))
}

fn is_version_4(id: &str) -> bool {
    let lengths: Vec<usize> = id.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && id.as_bytes()[14] == b'4' && b"89ab".contains(&id.as_bytes()[19])
}

fn viewer() -> Value {
    json!({ "id": "u1", "name": "Ada", "displayName": "ada", "organization": { "id": "o1", "name": "Test" } })
}

fn bare_issue() -> Value {
    json!({
        "id": ISSUE_UUID,
        "identifier": ISSUE,
        "title": "Convert the dates",
        "team": { "id": "t1", "key": "ENG", "name": "Engineering" },
    })
}
