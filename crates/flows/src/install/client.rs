//! The client that an installation is for.

use super::InstallError;
use plimsoll_protocol::settings::{FIRST_MODERN_VERSION, HookSupport};
use plimsoll_store::environment;
use std::path::PathBuf;

/// The client for which the settings are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstalledClient {
    Missing,
    /// A client that did not report its version.
    UnknownVersion(PathBuf),
    /// The version that it reports.
    Version(String),
}

impl InstalledClient {
    /// Finds the client on the PATH.
    pub fn detect() -> InstalledClient {
        match environment::find_program("claude") {
            None => InstalledClient::Missing,
            Some(program) => plimsoll_launcher::query_client_version(&program)
                .map_or(InstalledClient::UnknownVersion(program), InstalledClient::Version),
        }
    }

    /// Returns the hook support. Without a client, the modern template is written for a later one; a client
    /// of unknown version gets the template that every client understands.
    pub fn hook_support(&self) -> HookSupport {
        match self {
            InstalledClient::Missing => HookSupport::Modern,
            // Clients before 2.1 silently drop all hooks of a file that names one event they do not know.
            InstalledClient::UnknownVersion(_) => HookSupport::Classic,
            InstalledClient::Version(version) => HookSupport::from_client_version(version),
        }
    }

    /// Returns the error that says why this client gets no working memory.
    pub(super) fn no_memory_support_error(&self) -> InstallError {
        let client = match self {
            InstalledClient::Missing => "there is none".to_owned(),
            InstalledClient::UnknownVersion(path) => {
                format!("{} does not report its version", path.display())
            }
            InstalledClient::Version(version) => {
                format!("this one is {}", version.split_whitespace().next().unwrap_or("?"))
            }
        };
        InstallError::OldClient {
            first: plimsoll_policy::client::format_version(FIRST_MODERN_VERSION),
            client,
        }
    }
}
