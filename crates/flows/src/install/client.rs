//! The installed client and its hook support.

use super::InstallError;
use plimsoll_protocol::settings::{FIRST_MODERN_VERSION, HookSupport};
use plimsoll_store::environment;
use std::path::PathBuf;

/// The installed client, for which the settings are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstalledClient {
    Missing,
    /// The client at this path did not report its version.
    UnknownVersion(PathBuf),
    /// The version that the client reported.
    Version(String),
}

impl InstalledClient {
    /// Finds the client on the PATH and queries its version.
    pub fn detect() -> InstalledClient {
        match environment::find_program("claude") {
            None => InstalledClient::Missing,
            Some(program) => plimsoll_launcher::query_client_version(&program)
                .map_or(InstalledClient::UnknownVersion(program), InstalledClient::Version),
        }
    }

    /// Returns which hook events the client supports. If there is no client, assumes modern support for one
    /// that is installed later; for an unknown version, assumes only what every client supports.
    pub fn hook_support_or_modern_if_missing(&self) -> HookSupport {
        match self {
            InstalledClient::Missing => HookSupport::Modern,
            // Clients before 2.1 silently ignore all hooks of a settings file that has an event unknown to them.
            InstalledClient::UnknownVersion(_) => HookSupport::Classic,
            InstalledClient::Version(version) => HookSupport::from_client_version_or_classic(version),
        }
    }

    /// Returns the error that explains why this client does not support the working memory.
    pub(super) fn no_memory_support_error(&self) -> InstallError {
        let client_description = match self {
            InstalledClient::Missing => "there is none".to_owned(),
            InstalledClient::UnknownVersion(path) => {
                format!("{} does not report its version", path.display())
            }
            InstalledClient::Version(version) => {
                format!("this one is {}", version.split_whitespace().next().unwrap_or("?"))
            }
        };
        InstallError::ClientWithoutMemorySupport {
            first: plimsoll_policy::client::format_version(FIRST_MODERN_VERSION),
            client: client_description,
        }
    }
}
