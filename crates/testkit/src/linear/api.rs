//! GraphQL: an operation is held to the schema before anything is done, and answered in the shape that it asks for.
//!
//! `schema.graphql` is the part of Linear's schema that our operations and those of `@linear/sdk` touch. A field that
//! the desk knows nothing of is null, or empty where it may not be null. With `PLIMSOLL_LINEAR_SCHEMA` every operation is
//! held to the whole schema in that file too.

use super::desk::Desk;
use super::fault::errors;
use apollo_compiler::ast::{OperationType, Type};
use apollo_compiler::resolvers::{Execution, FieldError, ObjectValue, ResolveInfo, ResolvedValue};
use apollo_compiler::response::JsonMap;
use apollo_compiler::validation::Valid;
use apollo_compiler::{ExecutableDocument, Schema};
use serde_json::{Map, Value, json};
use std::sync::{Mutex, OnceLock, PoisonError};

fn schema() -> &'static Valid<Schema> {
    static SCHEMA: OnceLock<Valid<Schema>> = OnceLock::new();
    SCHEMA.get_or_init(|| parsed(include_str!("schema.graphql"), "schema.graphql"))
}

/// Linear's own, where it is at hand.
fn whole_schema() -> Option<&'static Valid<Schema>> {
    static SCHEMA: OnceLock<Option<Valid<Schema>>> = OnceLock::new();
    let read = || {
        let path = std::env::var("PLIMSOLL_LINEAR_SCHEMA").ok()?;
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        Some(parsed(&text, &path))
    };
    SCHEMA.get_or_init(read).as_ref()
}

fn parsed(text: &str, path: &str) -> Valid<Schema> {
    Schema::parse_and_validate(text, path).unwrap_or_else(|error| panic!("{path}: {}", error.errors))
}

/// The first field that an operation asks for.
pub(super) fn first_field(query: &str) -> String {
    let Ok(document) = ExecutableDocument::parse_and_validate(schema(), query, "request") else {
        return String::new();
    };
    let operation = document.operations.iter().next();
    let field = operation.and_then(|operation| operation.root_fields(&document).next());
    field.map(|field| field.name.to_string()).unwrap_or_default()
}

/// The status and the body of the answer.
pub(super) fn answer(desk: &mut Desk, query: &str, variables: &Value) -> (u16, Value) {
    let invalid = |why: String| (400, errors("GRAPHQL_VALIDATION_FAILED", &why));
    if let Some(whole) = whole_schema()
        && let Err(error) = ExecutableDocument::parse_and_validate(whole, query, "request")
    {
        return invalid(error.errors.to_string());
    }
    let document = match ExecutableDocument::parse_and_validate(schema(), query, "request") {
        Ok(document) => document,
        Err(error) => return invalid(error.errors.to_string()),
    };
    let Some(operation) = document.operations.iter().next() else { return invalid("no operation".into()) };
    let name = if operation.operation_type == OperationType::Mutation { "Mutation" } else { "Query" };
    let root = Root { name, desk: Mutex::new(desk), codes: Mutex::default() };
    let variables: JsonMap = serde_json::from_value(variables.clone()).unwrap_or_default();
    let response = Execution::new(schema(), &document).raw_variable_values(&variables).execute_sync(&root);
    let response = match response {
        Ok(response) => response,
        Err(error) => return invalid(format!("{error:?}")),
    };
    let mut body = serde_json::to_value(&response).expect("an answer is JSON");
    let codes = root.codes.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (error, code) in body["errors"].as_array_mut().into_iter().flatten().zip(codes) {
        let message = error["message"].as_str().unwrap_or_default();
        error["message"] = message.trim_start_matches("resolver error: ").into();
        error["extensions"] = json!({ "code": code, "userPresentableMessage": error["message"] });
    }
    (200, body)
}

/// `Query` or `Mutation`.
struct Root<'a> {
    name: &'static str,
    desk: Mutex<&'a mut Desk>,
    /// The codes of the errors, in their order.
    codes: Mutex<Vec<&'static str>>,
}

impl ObjectValue for Root<'_> {
    fn type_name(&self) -> &str {
        self.name
    }

    fn resolve_field<'a>(&'a self, info: &'a ResolveInfo<'a>) -> Result<ResolvedValue<'a>, FieldError> {
        let arguments = serde_json::to_value(info.arguments()).expect("arguments are JSON");
        let resolved = super::open(&self.desk).resolve(info.field_name(), &arguments);
        match resolved {
            Ok(value) => Ok(given(value, &info.field_definition().ty, info.schema())),
            Err((code, message)) => {
                super::open(&self.codes).push(code);
                Err(FieldError { message })
            }
        }
    }
}

/// Any other object: what is known of it.
struct Thing {
    kind: String,
    fields: Map<String, Value>,
}

impl ObjectValue for Thing {
    fn type_name(&self) -> &str {
        &self.kind
    }

    fn resolve_field<'a>(&'a self, info: &'a ResolveInfo<'a>) -> Result<ResolvedValue<'a>, FieldError> {
        let known = self.fields.get(info.field_name()).cloned().unwrap_or_default();
        Ok(given(known, &info.field_definition().ty, info.schema()))
    }
}

/// A value in the shape of its type; what is not known is null, or empty where it may not be.
fn given<'a>(value: Value, kind: &Type, schema: &'a Valid<Schema>) -> ResolvedValue<'a> {
    let name = kind.inner_named_type();
    if kind.is_list() {
        let items = value.as_array().cloned().unwrap_or_default();
        let inner = kind.item_type().clone();
        return ResolvedValue::list(items.into_iter().map(move |item| given(item, &inner, schema)));
    }
    match (value, schema.get_object(name)) {
        (Value::Null, _) if !kind.is_non_null() => ResolvedValue::null(),
        (value, Some(_)) => {
            let fields = value.as_object().cloned().unwrap_or_default();
            ResolvedValue::object(Thing { kind: name.to_string(), fields })
        }
        (Value::Null, None) => leaf(empty(name, schema)),
        (value, None) => leaf(value),
    }
}

fn leaf<'a>(value: Value) -> ResolvedValue<'a> {
    let value: apollo_compiler::response::JsonValue = serde_json::from_value(value).expect("JSON is JSON");
    ResolvedValue::leaf(value)
}

/// What is where nothing is known and something must be.
fn empty(name: &str, schema: &Valid<Schema>) -> Value {
    let first = schema.get_enum(name).and_then(|kind| kind.values.keys().next());
    match (first, name) {
        (Some(first), _) => first.to_string().into(),
        (None, "Int") => 0.into(),
        (None, "Float") => 0.0.into(),
        (None, "Boolean") => false.into(),
        (None, "DateTime" | "TimelessDate") => "2026-01-07T11:45:00.000Z".into(),
        (None, "JSON" | "JSONObject") => json!({}),
        _ => "".into(),
    }
}
