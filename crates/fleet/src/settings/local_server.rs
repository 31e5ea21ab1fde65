//! How libpq reaches the server of this computer: through a Unix socket, or through TCP on Windows, where the client
//! library has no sockets.

#[cfg_attr(unix, path = "local_server/unix.rs")]
#[cfg_attr(windows, path = "local_server/windows.rs")]
mod platform;

use postgres::Config;
use postgres::config::Host;
use std::path::Path;

/// Returns the folder of the Unix socket, or `None` for TCP.
pub(super) fn socket_folder(host: &Host) -> Option<&Path> {
    platform::socket_folder(host)
}

/// Returns the host name; empty for a socket.
pub(super) fn host_name(host: &Host) -> &str {
    platform::host_name(host)
}

/// Sets the host that libpq uses if none is named: the socket in `default_socket_folder`, or `localhost` on Windows.
pub(super) fn set_default_host(config: &mut Config, default_socket_folder: &Path) {
    platform::set_default_host(config, default_socket_folder);
}
