//! The five operations, as Linear's schema has them, and what is taken of their answers.

use super::answer::Answer;
use super::error::GraphError;
use serde_json::{Value, json};

/// An operation: its document and its variables.
pub(crate) struct Operation {
    pub(crate) document: &'static str,
    pub(crate) variables: Value,
}

/// Whose key it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Viewer {
    /// The person, or the application.
    pub(crate) name: String,
    /// The workspace.
    pub(crate) organization: String,
}

/// An issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Issue {
    /// Such as `ENG-123`.
    pub(crate) identifier: String,
    /// Its title.
    pub(crate) title: String,
    /// Its team's name.
    pub(crate) team: String,
    /// True when it has been put away.
    pub(crate) is_archived: bool,
}

/// A comment that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Posted {
    /// Its id.
    pub(crate) id: String,
    /// Where the user reads it.
    pub(crate) url: String,
}

/// An answer with what was complained of beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WithWarnings<T> {
    /// The answer.
    pub(crate) what: T,
    /// Errors that came with it.
    pub(crate) warnings: Vec<GraphError>,
}

const VIEWER: &str = "query Viewer { viewer { id name organization { name } } }";
const ISSUE: &str =
    "query Issue($id: String!) { issue(id: $id) { id identifier title archivedAt team { name } } }";
const COMMENT: &str = "query Comment($id: String!) { comment(id: $id) { id url } }";
const CREATE: &str = "mutation CreateComment($input: CommentCreateInput!) \
     { commentCreate(input: $input) { success comment { id url } } }";
const UPDATE: &str = "mutation UpdateComment($id: String!, $input: CommentUpdateInput!) \
     { commentUpdate(id: $id, input: $input) { success comment { id url } } }";

pub(crate) fn viewer() -> Operation {
    Operation { document: VIEWER, variables: json!({}) }
}

pub(crate) fn issue(id: &str) -> Operation {
    Operation { document: ISSUE, variables: json!({ "id": id }) }
}

pub(crate) fn comment(id: &str) -> Operation {
    Operation { document: COMMENT, variables: json!({ "id": id }) }
}

pub(crate) fn create(id: &str, issue: &str, body: &str) -> Operation {
    let input = json!({ "id": id, "issueId": issue, "body": body });
    Operation { document: CREATE, variables: json!({ "input": input }) }
}

pub(crate) fn update(id: &str, body: &str) -> Operation {
    Operation { document: UPDATE, variables: json!({ "id": id, "input": { "body": body } }) }
}

/// What was asked for; none if it is not in the answer.
pub(crate) fn read<T>(
    answer: Answer,
    take: impl Fn(&Value) -> Option<T>,
) -> Result<WithWarnings<T>, Vec<GraphError>> {
    match take(&answer.data) {
        Some(what) => Ok(WithWarnings { what, warnings: answer.errors }),
        None => Err(answer.errors),
    }
}

pub(crate) fn take_viewer(data: &Value) -> Option<Viewer> {
    let viewer = &data["viewer"];
    viewer["id"].as_str()?;
    Some(Viewer { name: words(&viewer["name"]), organization: words(&viewer["organization"]["name"]) })
}

pub(crate) fn take_issue(data: &Value) -> Option<Issue> {
    let issue = &data["issue"];
    Some(Issue {
        identifier: issue["identifier"].as_str()?.to_owned(),
        title: words(&issue["title"]),
        team: words(&issue["team"]["name"]),
        is_archived: !issue["archivedAt"].is_null(),
    })
}

pub(crate) fn take_comment(data: &Value) -> Option<Posted> {
    posted(&data["comment"])
}

/// The payload of a mutation, which may come without success.
pub(crate) fn take_payload(data: &Value) -> Option<Posted> {
    let payload = [&data["commentCreate"], &data["commentUpdate"]].into_iter().find(|one| one.is_object())?;
    if payload["success"] == true { posted(&payload["comment"]) } else { None }
}

fn posted(comment: &Value) -> Option<Posted> {
    Some(Posted { id: comment["id"].as_str()?.to_owned(), url: words(&comment["url"]) })
}

fn words(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
