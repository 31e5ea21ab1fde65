//! Reads what says how the database is reached: variables, service file, password file, root certificate.

use crate::fault::FleetError;
use crate::settings::{
    Here, Parameters, Settings, SettingsError, of_connection_string, of_environment, service_file, settings,
};
use plimsoll_domain::workers::DATABASE_VARIABLE;
use plimsoll_store::{StoreError, disk, environment};
use std::path::{Path, PathBuf};

/// The variable with the address of the database.
pub const URL: &str = DATABASE_VARIABLE;

/// How the database is reached, by everything that a user of libpq may have said.
pub fn find_settings() -> Result<Settings, FleetError> {
    find_settings_by(&environment::variable)
}

/// The same by other variables than those of this process.
pub fn find_settings_by(variable: Variables<'_>) -> Result<Settings, FleetError> {
    let stated = variable(URL).map(|url| of_connection_string(&url)).transpose()?.unwrap_or_default();
    let mut parameters = of_environment(variable);
    // The stronger comes later: variables, service, address.
    if let Some(service) = stated.get("service").or(parameters.get("service")).cloned() {
        parameters.extend(of_service(&service, variable)?);
    }
    parameters.extend(stated);
    let here = here(&parameters, variable)?;
    Ok(settings(&parameters, here)?)
}

/// Variables by their names.
type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

fn in_home(variable: Variables<'_>, name: &str) -> Option<PathBuf> {
    Some(Path::new(&variable("HOME")?).join(name)).filter(|path| path.is_absolute())
}

/// The service files, the user's own first.
fn service_files(variable: Variables<'_>) -> Vec<PathBuf> {
    let own = variable("PGSERVICEFILE").map(PathBuf::from).or_else(|| in_home(variable, ".pg_service.conf"));
    // libpq has this folder from how it was built: it is Debian's.
    let shared = variable("PGSYSCONFDIR").unwrap_or_else(|| "/etc/postgresql-common".to_owned());
    own.into_iter().chain([Path::new(&shared).join("pg_service.conf")]).collect()
}

fn of_service(name: &str, variable: Variables<'_>) -> Result<Parameters, FleetError> {
    let files = service_files(variable);
    for path in &files {
        let Some(text) = disk::read_text(path)? else { continue };
        if let Some(found) = service_file::section(&text, &path.display().to_string(), name)? {
            return Ok(found);
        }
    }
    let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    Err(SettingsError::NoService(files.join(" or ")).into())
}

fn here(parameters: &Parameters, variable: Variables<'_>) -> Result<Here, FleetError> {
    let pass_file = parameters.get("passfile").map(PathBuf::from).or_else(|| in_home(variable, ".pgpass"));
    let (passwords, open_pass_file) = passwords(pass_file.as_deref())?;
    Ok(Here {
        user: whoami::username().ok(),
        socket_folder: socket_folder(),
        root: in_home(variable, ".postgresql/root.crt").filter(|path| disk::is_file(path)),
        passwords,
        open_pass_file,
    })
}

/// As libpq does, a password file that others may read counts for nothing.
fn passwords(path: Option<&Path>) -> Result<(String, Option<PathBuf>), StoreError> {
    let Some(path) = path.filter(|path| disk::is_file(path)) else { return Ok((String::new(), None)) };
    if disk::is_open_to_others(path) {
        return Ok((String::new(), Some(path.to_owned())));
    }
    Ok((disk::read_text(path)?.unwrap_or_default(), None))
}

/// Debian's and Red Hat's folder of sockets; else PostgreSQL's own.
fn socket_folder() -> PathBuf {
    let usual = Path::new("/var/run/postgresql");
    if disk::is_folder(usual) { usual.to_owned() } else { PathBuf::from("/tmp") }
}
