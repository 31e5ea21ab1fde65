//! Loads the connection settings from variables, the service file, the password file and the root certificate.

use crate::database_error::FleetError;
use crate::settings::{
    ConnectionSettings, LocalDefaults, Parameters, SettingsError, parameters_from_environment,
    parse_connection_string, service_file, settings_from_parameters,
};
use plimsoll_domain::workers::DATABASE_URL_VARIABLE;
use plimsoll_store::{StoreError, disk, environment};
use std::path::{Path, PathBuf};

/// The environment variable with the address of the database.
pub const URL_VARIABLE: &str = DATABASE_URL_VARIABLE;

/// Loads the connection settings from every source that libpq uses.
pub fn load_settings_from_environment() -> Result<ConnectionSettings, FleetError> {
    load_settings_with_lookup(&environment::variable)
}

/// Loads the connection settings with `lookup` instead of the environment of this process.
pub fn load_settings_with_lookup(lookup: VariableLookup<'_>) -> Result<ConnectionSettings, FleetError> {
    let address_parameters =
        lookup(URL_VARIABLE).map(|url| parse_connection_string(&url)).transpose()?.unwrap_or_default();
    let mut parameters = parameters_from_environment(lookup);
    // Later sources override earlier ones: variables, service, address.
    if let Some(service_name) = address_parameters.get("service").or(parameters.get("service")).cloned() {
        parameters.extend(read_service_parameters(&service_name, lookup)?);
    }
    parameters.extend(address_parameters);
    let defaults = read_local_defaults(&parameters, lookup)?;
    Ok(settings_from_parameters(&parameters, defaults)?)
}

/// Looks up an environment variable by name.
type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

fn absolute_path_in_home(lookup: VariableLookup<'_>, relative_path: &str) -> Option<PathBuf> {
    Some(Path::new(&lookup("HOME")?).join(relative_path)).filter(|path| path.is_absolute())
}

/// Returns the paths of the service files: the user's file, then the system's.
fn service_file_paths(lookup: VariableLookup<'_>) -> Vec<PathBuf> {
    let user_file = lookup("PGSERVICEFILE")
        .map(PathBuf::from)
        .or_else(|| absolute_path_in_home(lookup, ".pg_service.conf"));
    // libpq gets this folder at build time; this is Debian's value.
    let system_folder = lookup("PGSYSCONFDIR").unwrap_or_else(|| "/etc/postgresql-common".to_owned());
    user_file.into_iter().chain([Path::new(&system_folder).join("pg_service.conf")]).collect()
}

fn read_service_parameters(service_name: &str, lookup: VariableLookup<'_>) -> Result<Parameters, FleetError> {
    let paths = service_file_paths(lookup);
    for path in &paths {
        let Some(text) = disk::read_text(path)? else { continue };
        if let Some(parameters) =
            service_file::parse_section(&text, &path.display().to_string(), service_name)?
        {
            return Ok(parameters);
        }
    }
    let path_texts: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    Err(SettingsError::ServiceNotFound(path_texts.join(" or ")).into())
}

fn read_local_defaults(
    parameters: &Parameters,
    lookup: VariableLookup<'_>,
) -> Result<LocalDefaults, FleetError> {
    let pass_file_path =
        parameters.get("passfile").map(PathBuf::from).or_else(|| absolute_path_in_home(lookup, ".pgpass"));
    let (pass_file_text, insecure_pass_file) = read_pass_file_if_private(pass_file_path.as_deref())?;
    Ok(LocalDefaults {
        system_user: whoami::username().ok(),
        socket_folder: default_socket_folder(),
        root_certificate: absolute_path_in_home(lookup, ".postgresql/root.crt")
            .filter(|path| disk::is_file(path)),
        pass_file_text,
        insecure_pass_file,
    })
}

/// Reads the password file. Like libpq, ignores a file that others may read, and returns its path instead of its text.
fn read_pass_file_if_private(path: Option<&Path>) -> Result<(String, Option<PathBuf>), StoreError> {
    let Some(path) = path.filter(|path| disk::is_file(path)) else { return Ok((String::new(), None)) };
    if disk::is_accessible_to_others(path) {
        return Ok((String::new(), Some(path.to_owned())));
    }
    Ok((disk::read_text(path)?.unwrap_or_default(), None))
}

/// Returns `/var/run/postgresql` (Debian, Red Hat) if it exists, otherwise PostgreSQL's default `/tmp`.
fn default_socket_folder() -> PathBuf {
    let distribution_folder = Path::new("/var/run/postgresql");
    if disk::is_folder(distribution_folder) { distribution_folder.to_owned() } else { PathBuf::from("/tmp") }
}
