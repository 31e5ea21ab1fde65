//! The client that an installation is for.

use super::InstallError;
use plimsoll_protocol::settings::{FIRST_MODERN, HookSupport};
use plimsoll_store::environment;
use std::path::PathBuf;

/// The client that the settings are written for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Client {
    /// No `claude` on the PATH.
    Missing,
    /// It is there, but did not report its version.
    Silent(PathBuf),
    /// What it says of itself.
    Version(String),
}

impl Client {
    /// The client on the PATH.
    pub fn installed() -> Client {
        match environment::find_program("claude") {
            None => Client::Missing,
            Some(program) => {
                plimsoll_launcher::client_version(&program).map_or(Client::Silent(program), Client::Version)
            }
        }
    }

    /// Without a client the modern template is written, for the one that will come; a silent one gets the
    /// template that every client understands.
    pub fn era(&self) -> HookSupport {
        match self {
            Client::Missing => HookSupport::Modern,
            // Clients before 2.1 silently drop all hooks of a file that names one event they do not know.
            Client::Silent(_) => HookSupport::Classic,
            Client::Version(version) => HookSupport::of_client(version),
        }
    }

    /// Why such a client gets no working memory.
    pub(super) fn too_old(&self) -> InstallError {
        let client = match self {
            Client::Missing => "there is none".to_owned(),
            Client::Silent(path) => format!("{} does not report its version", path.display()),
            Client::Version(version) => {
                format!("this one is {}", version.split_whitespace().next().unwrap_or("?"))
            }
        };
        InstallError::OldClient { first: plimsoll_policy::client::dotted(FIRST_MODERN), client }
    }
}
