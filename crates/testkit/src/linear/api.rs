//! Validates GraphQL operations against the schema and executes them.
//!
//! `schema.graphql` is the part of Linear's schema that the operations of Plimsoll and `@linear/sdk` use. A field
//! without a value is null, or has a default value if it is non-null. If `PLIMSOLL_LINEAR_SCHEMA` is set, every
//! operation is also validated against the full schema in that file.

use super::fault::graphql_error_body;
use super::state::LinearState;
use apollo_compiler::ast::{OperationType, Type};
use apollo_compiler::resolvers::{Execution, FieldError, ObjectValue, ResolveInfo, ResolvedValue};
use apollo_compiler::response::JsonMap;
use apollo_compiler::validation::Valid;
use apollo_compiler::{ExecutableDocument, Schema};
use serde_json::{Map, Value, json};
use std::sync::{Mutex, OnceLock, PoisonError};

fn bundled_schema() -> &'static Valid<Schema> {
    static SCHEMA: OnceLock<Valid<Schema>> = OnceLock::new();
    SCHEMA.get_or_init(|| parse_schema(include_str!("schema.graphql"), "schema.graphql"))
}

/// Returns Linear's full schema, read from the file in `PLIMSOLL_LINEAR_SCHEMA`, or `None` if that is not set.
fn full_schema_from_env() -> Option<&'static Valid<Schema>> {
    static SCHEMA: OnceLock<Option<Valid<Schema>>> = OnceLock::new();
    let load_from_env = || {
        let path = std::env::var("PLIMSOLL_LINEAR_SCHEMA").ok()?;
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        Some(parse_schema(&text, &path))
    };
    SCHEMA.get_or_init(load_from_env).as_ref()
}

fn parse_schema(text: &str, path: &str) -> Valid<Schema> {
    Schema::parse_and_validate(text, path).unwrap_or_else(|error| panic!("{path}: {}", error.errors))
}

/// Returns the name of the first root field of the query, or an empty string if the query is invalid.
pub(super) fn first_root_field_name_or_empty(query: &str) -> String {
    let Ok(document) = ExecutableDocument::parse_and_validate(bundled_schema(), query, "request") else {
        return String::new();
    };
    let operation = document.operations.iter().next();
    let field = operation.and_then(|operation| operation.root_fields(&document).next());
    field.map(|field| field.name.to_string()).unwrap_or_default()
}

/// Executes a query or mutation and returns the HTTP status and the body of the response.
pub(super) fn execute_query(linear_state: &mut LinearState, query: &str, variables: &Value) -> (u16, Value) {
    let invalid_request_response =
        |message: String| (400, graphql_error_body("GRAPHQL_VALIDATION_FAILED", &message));
    if let Some(full_schema) = full_schema_from_env()
        && let Err(error) = ExecutableDocument::parse_and_validate(full_schema, query, "request")
    {
        return invalid_request_response(error.errors.to_string());
    }
    let document = match ExecutableDocument::parse_and_validate(bundled_schema(), query, "request") {
        Ok(document) => document,
        Err(error) => return invalid_request_response(error.errors.to_string()),
    };
    let Some(operation) = document.operations.iter().next() else {
        return invalid_request_response("no operation".into());
    };
    let root_type = if operation.operation_type == OperationType::Mutation { "Mutation" } else { "Query" };
    let root = RootObject {
        type_name: root_type,
        linear_state: Mutex::new(linear_state),
        error_codes: Mutex::default(),
    };
    let variables: JsonMap = serde_json::from_value(variables.clone()).unwrap_or_default();
    let response =
        Execution::new(bundled_schema(), &document).raw_variable_values(&variables).execute_sync(&root);
    let response = match response {
        Ok(response) => response,
        Err(error) => return invalid_request_response(format!("{error:?}")),
    };
    let mut body = serde_json::to_value(&response).expect("an answer is JSON");
    let error_codes = root.error_codes.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (error, code) in body["errors"].as_array_mut().into_iter().flatten().zip(error_codes) {
        let message = error["message"].as_str().unwrap_or_default();
        error["message"] = message.trim_start_matches("resolver error: ").into();
        error["extensions"] = json!({ "code": code, "userPresentableMessage": error["message"] });
    }
    (200, body)
}

/// The root object: `Query` or `Mutation`.
struct RootObject<'a> {
    type_name: &'static str,
    linear_state: Mutex<&'a mut LinearState>,
    /// The codes of the field errors, in the order in which they occurred.
    error_codes: Mutex<Vec<&'static str>>,
}

impl ObjectValue for RootObject<'_> {
    fn type_name(&self) -> &str {
        self.type_name
    }

    fn resolve_field<'a>(&'a self, info: &'a ResolveInfo<'a>) -> Result<ResolvedValue<'a>, FieldError> {
        let arguments = serde_json::to_value(info.arguments()).expect("arguments are JSON");
        let result =
            super::lock_ignoring_poison(&self.linear_state).resolve_root_field(info.field_name(), &arguments);
        match result {
            Ok(value) => Ok(to_resolved_value(value, &info.field_definition().ty, info.schema())),
            Err((code, message)) => {
                super::lock_ignoring_poison(&self.error_codes).push(code);
                Err(FieldError { message })
            }
        }
    }
}

/// Any object except the root, with the fields that have a value.
struct PlainObject {
    type_name: String,
    fields: Map<String, Value>,
}

impl ObjectValue for PlainObject {
    fn type_name(&self) -> &str {
        &self.type_name
    }

    fn resolve_field<'a>(&'a self, info: &'a ResolveInfo<'a>) -> Result<ResolvedValue<'a>, FieldError> {
        let value = self.fields.get(info.field_name()).cloned().unwrap_or_default();
        Ok(to_resolved_value(value, &info.field_definition().ty, info.schema()))
    }
}

/// Converts a JSON value to the type of its field. A missing value becomes null, or a default value if the type is
/// non-null.
fn to_resolved_value<'a>(value: Value, field_type: &Type, schema: &'a Valid<Schema>) -> ResolvedValue<'a> {
    let type_name = field_type.inner_named_type();
    if field_type.is_list() {
        let items = value.as_array().cloned().unwrap_or_default();
        let item_type = field_type.item_type().clone();
        return ResolvedValue::list(
            items.into_iter().map(move |item| to_resolved_value(item, &item_type, schema)),
        );
    }
    match (value, schema.get_object(type_name)) {
        (Value::Null, _) if !field_type.is_non_null() => ResolvedValue::null(),
        (value, Some(_)) => {
            let fields = value.as_object().cloned().unwrap_or_default();
            ResolvedValue::object(PlainObject { type_name: type_name.to_string(), fields })
        }
        (Value::Null, None) => to_resolved_leaf(default_non_null_value(type_name, schema)),
        (value, None) => to_resolved_leaf(value),
    }
}

fn to_resolved_leaf<'a>(value: Value) -> ResolvedValue<'a> {
    let value: apollo_compiler::response::JsonValue = serde_json::from_value(value).expect("JSON is JSON");
    ResolvedValue::leaf(value)
}

/// Returns the value of a non-null field that has no value.
fn default_non_null_value(type_name: &str, schema: &Valid<Schema>) -> Value {
    let first_enum_value = schema.get_enum(type_name).and_then(|enum_type| enum_type.values.keys().next());
    match (first_enum_value, type_name) {
        (Some(enum_value), _) => enum_value.to_string().into(),
        (None, "Int") => 0.into(),
        (None, "Float") => 0.0.into(),
        (None, "Boolean") => false.into(),
        (None, "DateTime" | "TimelessDate") => "2026-01-07T11:45:00.000Z".into(),
        (None, "JSON" | "JSONObject") => json!({}),
        _ => "".into(),
    }
}
