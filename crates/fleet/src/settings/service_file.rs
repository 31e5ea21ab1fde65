//! `pg_service.conf`: named sections of connection parameters.

use super::{Parameters, SettingsError, find_keyword};

/// Parses the first section with this name. Returns `None` if there is none.
pub(crate) fn parse_section(
    text: &str,
    path: &str,
    section_name: &str,
) -> Result<Option<Parameters>, SettingsError> {
    let mut section_parameters: Option<Parameters> = None;
    for (line_index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(title) =
            line.strip_prefix('[').and_then(|line_after_bracket| line_after_bracket.strip_suffix(']'))
        {
            // If two sections have the same name, the first one counts.
            if section_parameters.is_some() {
                break;
            }
            section_parameters = (title == section_name).then(Parameters::new);
        } else if let Some(parameters) = &mut section_parameters {
            let invalid_line =
                || SettingsError::InvalidServiceLine { path: path.to_owned(), line: line_index + 1 };
            let (name, value) = line.split_once('=').ok_or_else(invalid_line)?;
            let name = find_keyword(name.trim()).filter(|name| *name != "service");
            parameters.insert(name.ok_or(SettingsError::UnknownParameter)?, value.trim().to_owned());
        }
    }
    Ok(section_parameters)
}
