//! The server listens on a Unix socket.

use postgres::Config;
use postgres::config::Host;
use std::path::Path;

pub(super) fn socket_folder(host: &Host) -> Option<&Path> {
    match host {
        Host::Unix(folder) => Some(folder),
        Host::Tcp(_) => None,
    }
}

pub(super) fn host_name(host: &Host) -> &str {
    match host {
        Host::Tcp(name) => name,
        Host::Unix(_) => "",
    }
}

pub(super) fn set_default_host(config: &mut Config, default_socket_folder: &Path) {
    config.host_path(default_socket_folder);
}
