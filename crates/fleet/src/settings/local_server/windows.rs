//! The server listens on a port of this computer.

use postgres::Config;
use postgres::config::Host;
use std::path::Path;

pub(super) fn socket_folder(_host: &Host) -> Option<&Path> {
    None
}

pub(super) fn host_name(host: &Host) -> &str {
    let Host::Tcp(name) = host;
    name
}

pub(super) fn set_default_host(config: &mut Config, _default_socket_folder: &Path) {
    config.host("localhost");
}
