//! The name of a fleet, which is a part of branch names, of paths, and of the names of its schema and role.

use std::fmt;

/// The name of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FleetName(String);

/// The text cannot be the name of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a name has at most {} letters, digits, `-`, `_` and `.`, and begins with a letter or digit",
    FleetName::MAX_BYTES
)]
pub struct InvalidFleetName;

impl FleetName {
    /// With the prefix of the schema, a name must fit into the 63 bytes of a name in PostgreSQL.
    pub const MAX_BYTES: usize = 50;
    pub(crate) const SCHEMA_PREFIX: &str = "plimsoll_";

    pub fn parse(text: &str) -> Result<FleetName, InvalidFleetName> {
        let is_allowed_character =
            |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        let starts_with_alphanumeric = text.starts_with(|character: char| character.is_ascii_alphanumeric());
        // git refuses these in a branch name.
        let is_reserved_by_git = text.contains("..") || text.ends_with('.') || text.ends_with(".lock");
        let is_valid = starts_with_alphanumeric
            && !is_reserved_by_git
            && text.len() <= FleetName::MAX_BYTES
            && text.chars().all(is_allowed_character);
        if is_valid { Ok(FleetName(text.to_owned())) } else { Err(InvalidFleetName) }
    }

    /// Returns the name of the fleet whose schema this is, or `None` if no fleet can have this schema.
    pub(crate) fn from_schema(schema: &str) -> Option<FleetName> {
        FleetName::parse(schema.strip_prefix(FleetName::SCHEMA_PREFIX)?).ok()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the fleet's schema and of its members' role.
    pub fn schema(&self) -> String {
        format!("{}{}", FleetName::SCHEMA_PREFIX, self.0)
    }

    /// Replaces `{fleet}` in a statement by the quoted name of the fleet's schema and role.
    pub(crate) fn qualify(&self, statement: &str) -> String {
        // No name contains a quote.
        statement.replace("{fleet}", &format!("\"{}\"", self.schema()))
    }
}

impl fmt::Display for FleetName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_git_and_postgresql_take_are_names_of_fleets() {
        let longest = "n".repeat(FleetName::MAX_BYTES);
        for text in ["night", "1", "My-fleet_2.b", &longest] {
            let name = FleetName::parse(text).expect(text);
            assert!(name.schema().len() <= 63, "{text}");
            assert_eq!(FleetName::from_schema(&name.schema()), Some(name));
        }
        let too_long = "n".repeat(FleetName::MAX_BYTES + 1);
        for text in ["", "-x", ".x", "a b", "a\"b", "a..b", "a.", "a.lock", "a/b", "ü", &too_long] {
            assert_eq!(FleetName::parse(text), Err(InvalidFleetName), "{text}");
        }
        assert_eq!(FleetName::from_schema("public"), None);
        assert_eq!(FleetName::from_schema("plimsoll_"), None);
    }

    #[test]
    fn statements_name_the_schema_in_quotes() {
        let name = FleetName::parse("My.night").unwrap();
        assert_eq!(name.qualify("select from {fleet}.plan"), "select from \"plimsoll_My.night\".plan");
    }
}
