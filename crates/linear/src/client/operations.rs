//! The five GraphQL operations of Linear's schema, and the extraction of data from their responses.

use super::error::GraphqlError;
use super::response::GraphqlResponse;
use serde_json::{Value, json};

/// A GraphQL document with its variables.
pub(crate) struct Operation {
    pub(crate) document: &'static str,
    pub(crate) variables: Value,
}

/// The owner of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Viewer {
    /// Name of the person or application.
    pub(crate) name: String,
    /// Name of the workspace.
    pub(crate) organization: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Issue {
    /// The identifier that users see, such as `ENG-123`.
    pub(crate) identifier: String,
    pub(crate) title: String,
    pub(crate) team_name: String,
    pub(crate) is_archived: bool,
}

/// A comment that exists in Linear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PostedComment {
    pub(crate) id: String,
    /// Web address of the comment; may be empty.
    pub(crate) url: String,
}

/// The extracted data, with the errors that the same response contained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WithWarnings<T> {
    pub(crate) data: T,
    pub(crate) warnings: Vec<GraphqlError>,
}

const VIEWER_QUERY: &str = "query Viewer { viewer { id name organization { name } } }";
const ISSUE_QUERY: &str =
    "query Issue($id: String!) { issue(id: $id) { id identifier title archivedAt team { name } } }";
const COMMENT_QUERY: &str = "query Comment($id: String!) { comment(id: $id) { id url } }";
const CREATE_COMMENT_MUTATION: &str = "mutation CreateComment($input: CommentCreateInput!) \
     { commentCreate(input: $input) { success comment { id url } } }";
const UPDATE_COMMENT_MUTATION: &str = "mutation UpdateComment($id: String!, $input: CommentUpdateInput!) \
     { commentUpdate(id: $id, input: $input) { success comment { id url } } }";

pub(crate) fn viewer_query() -> Operation {
    Operation { document: VIEWER_QUERY, variables: json!({}) }
}

pub(crate) fn issue_query(id: &str) -> Operation {
    Operation { document: ISSUE_QUERY, variables: json!({ "id": id }) }
}

pub(crate) fn comment_query(id: &str) -> Operation {
    Operation { document: COMMENT_QUERY, variables: json!({ "id": id }) }
}

pub(crate) fn create_comment_mutation(comment_id: &str, issue_id: &str, body: &str) -> Operation {
    let input = json!({ "id": comment_id, "issueId": issue_id, "body": body });
    Operation { document: CREATE_COMMENT_MUTATION, variables: json!({ "input": input }) }
}

pub(crate) fn update_comment_mutation(comment_id: &str, body: &str) -> Operation {
    Operation {
        document: UPDATE_COMMENT_MUTATION,
        variables: json!({ "id": comment_id, "input": { "body": body } }),
    }
}

/// Extracts the requested data, with the response's errors as warnings. If the data is missing, the errors are returned as `Err`.
pub(crate) fn extract_data<T>(
    response: GraphqlResponse,
    extract: impl Fn(&Value) -> Option<T>,
) -> Result<WithWarnings<T>, Vec<GraphqlError>> {
    match extract(&response.data) {
        Some(data) => Ok(WithWarnings { data, warnings: response.errors }),
        None => Err(response.errors),
    }
}

pub(crate) fn extract_viewer(data: &Value) -> Option<Viewer> {
    let viewer = &data["viewer"];
    viewer["id"].as_str()?;
    Some(Viewer {
        name: string_or_empty(&viewer["name"]),
        organization: string_or_empty(&viewer["organization"]["name"]),
    })
}

pub(crate) fn extract_issue(data: &Value) -> Option<Issue> {
    let issue = &data["issue"];
    Some(Issue {
        identifier: issue["identifier"].as_str()?.to_owned(),
        title: string_or_empty(&issue["title"]),
        team_name: string_or_empty(&issue["team"]["name"]),
        is_archived: !issue["archivedAt"].is_null(),
    })
}

pub(crate) fn extract_comment(data: &Value) -> Option<PostedComment> {
    parse_comment(&data["comment"])
}

/// Extracts the comment from the payload of a mutation. Returns `None` unless the payload reports success.
pub(crate) fn extract_comment_if_successful(data: &Value) -> Option<PostedComment> {
    let payload = [&data["commentCreate"], &data["commentUpdate"]]
        .into_iter()
        .find(|candidate| candidate.is_object())?;
    if payload["success"] == true { parse_comment(&payload["comment"]) } else { None }
}

fn parse_comment(comment: &Value) -> Option<PostedComment> {
    Some(PostedComment { id: comment["id"].as_str()?.to_owned(), url: string_or_empty(&comment["url"]) })
}

fn string_or_empty(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
