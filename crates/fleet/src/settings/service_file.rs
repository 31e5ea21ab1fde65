//! `pg_service.conf`: sections of connection parameters, each under a name.

use super::{Parameters, SettingsError, keyword};

/// The parameters of a section; none if the file has no such section.
pub(crate) fn section(text: &str, path: &str, name: &str) -> Result<Option<Parameters>, SettingsError> {
    let mut found: Option<Parameters> = None;
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(title) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            // The first section of a name counts.
            if found.is_some() {
                break;
            }
            found = (title == name).then(Parameters::new);
        } else if let Some(parameters) = &mut found {
            let broken = || SettingsError::ServiceLine { path: path.to_owned(), line: place + 1 };
            let (name, value) = line.split_once('=').ok_or_else(broken)?;
            let name = keyword(name.trim()).filter(|name| *name != "service");
            parameters.insert(name.ok_or(SettingsError::UnknownParameter)?, value.trim().to_owned());
        }
    }
    Ok(found)
}
