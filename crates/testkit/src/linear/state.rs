//! The data of the server: one user, one issue and its comments.

use serde_json::{Value, json};

/// The API key that the server accepts.
pub const API_KEY: &str = "lin_api_onlyForTheTestServer0000000000000000";
/// The identifier of the only issue.
pub const ISSUE_IDENTIFIER: &str = "ENG-123";
const ISSUE_UUID: &str = "2c1d7a54-6f0e-4b8e-9a51-0d6a5b7b9c11";

/// A comment of the issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    pub id: String,
    pub body: String,
    /// Number of updates to the comment.
    pub edit_count: usize,
}

#[derive(Default)]
pub(super) struct LinearState {
    pub(super) comments: Vec<Comment>,
    pub(super) is_read_only: bool,
    pub(super) is_archived: bool,
}

/// The code and message of a rejected operation.
pub(super) type GraphqlError = (&'static str, String);

impl LinearState {
    /// Executes a root field, which may be a mutation, and returns its JSON value.
    pub(super) fn resolve_root_field(
        &mut self,
        field_name: &str,
        arguments: &Value,
    ) -> Result<Value, GraphqlError> {
        let id = arguments["id"].as_str().unwrap_or_default();
        match field_name {
            "viewer" => Ok(viewer_json()),
            "issue" => self.issue_json_with_comments(id),
            "comment" => self.find_comment(id).map(|comment| self.comment_json(comment)),
            "commentCreate" => self.create_comment(&arguments["input"]),
            "commentUpdate" => self.update_comment(id, &arguments["input"]),
            unknown_field => {
                Err(("INTERNAL_SERVER_ERROR", format!("nobody has told us what {unknown_field} is")))
            }
        }
    }

    fn find_comment(&self, id: &str) -> Result<&Comment, GraphqlError> {
        self.comments.iter().find(|comment| comment.id == id).ok_or_else(|| not_found_error("Comment"))
    }

    fn issue_json_with_comments(&self, id: &str) -> Result<Value, GraphqlError> {
        if id != ISSUE_UUID && !id.eq_ignore_ascii_case(ISSUE_IDENTIFIER) {
            return Err(not_found_error("Issue"));
        }
        let comment_nodes: Vec<Value> =
            self.comments.iter().map(|comment| self.comment_json(comment)).collect();
        let mut issue = issue_json_without_comments();
        issue["archivedAt"] = if self.is_archived { "2026-01-07T11:45:00.000Z".into() } else { Value::Null };
        issue["comments"] = json!({ "nodes": comment_nodes, "pageInfo": { "hasNextPage": false } });
        Ok(issue)
    }

    fn comment_json(&self, comment: &Comment) -> Value {
        json!({
            "id": comment.id,
            "body": comment.body,
            "url": format!("https://linear.app/test/issue/{ISSUE_IDENTIFIER}#comment-{}", &comment.id[..8]),
            "issue": issue_json_without_comments(),
            "user": viewer_json(),
        })
    }

    fn check_writable(&self) -> Result<(), GraphqlError> {
        if self.is_read_only {
            Err(("FORBIDDEN", "Invalid scope: `write` required".to_owned()))
        } else {
            Ok(())
        }
    }

    fn create_comment(&mut self, input: &Value) -> Result<Value, GraphqlError> {
        self.check_writable()?;
        self.issue_json_with_comments(input["issueId"].as_str().unwrap_or_default())?;
        let generated_id = format!("00000000-0000-4000-8000-{:012}", self.comments.len());
        let id = input["id"].as_str().map_or(generated_id, str::to_owned);
        if !is_uuid_v4(&id) {
            return Err(("INPUT_ERROR", "Argument Validation Error: id must be a UUID".to_owned()));
        }
        if self.find_comment(&id).is_ok() {
            return Err(("INPUT_ERROR", "Entity Comment with this id already exists".to_owned()));
        }
        let body = input["body"].as_str().unwrap_or_default().to_owned();
        let comment = Comment { id, body, edit_count: 0 };
        self.comments.push(comment.clone());
        Ok(self.mutation_payload(&comment))
    }

    fn update_comment(&mut self, id: &str, input: &Value) -> Result<Value, GraphqlError> {
        self.check_writable()?;
        self.find_comment(id)?;
        let stored_comment = self.comments.iter_mut().find(|comment| comment.id == id);
        let comment = stored_comment.ok_or_else(|| not_found_error("Comment"))?;
        comment.body = input["body"].as_str().unwrap_or(&comment.body).to_owned();
        comment.edit_count += 1;
        let comment = comment.clone();
        Ok(self.mutation_payload(&comment))
    }

    fn mutation_payload(&self, comment: &Comment) -> Value {
        json!({ "success": true, "comment": self.comment_json(comment) })
    }
}

fn not_found_error(entity: &str) -> GraphqlError {
    ("INPUT_ERROR", format!("Entity not found: {entity} - Could not find referenced {entity}."))
}

fn is_uuid_v4(id: &str) -> bool {
    let part_lengths: Vec<usize> = id.split('-').map(str::len).collect();
    part_lengths == [8, 4, 4, 4, 12] && id.as_bytes()[14] == b'4' && b"89ab".contains(&id.as_bytes()[19])
}

fn viewer_json() -> Value {
    json!({ "id": "u1", "name": "Ada", "displayName": "ada", "organization": { "id": "o1", "name": "Test" } })
}

fn issue_json_without_comments() -> Value {
    json!({
        "id": ISSUE_UUID,
        "identifier": ISSUE_IDENTIFIER,
        "title": "Convert the dates",
        "team": { "id": "t1", "key": "ENG", "name": "Engineering" },
    })
}
