//! Creates the data folder of a server.

use super::{ADMIN_ROLE, PASSWORD, SERVER_TIMEOUT, ServerUser, command_as_user_stopped_when_parent_dies};
use crate::client::wait_for_exclusive_file_lock;
use crate::{target_dir, tool};
use rustix::process::geteuid;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::Command;

/// The options of `initdb`.
const INITDB_OPTIONS: [&str; 8] =
    ["-U", ADMIN_ROLE, "-A", "scram-sha-256", "--no-sync", "-E", "UTF8", "--locale=C"];

/// Creates the data folder `data` in `folder`, which must contain the password file. `initdb` runs only once for all
/// tests because it takes ten times as long as copying its result.
pub(super) fn create_data_folder(bin_dir: &Path, user: Option<&ServerUser>, folder: &Path) {
    ClusterBuilder { bin_dir, user, folder }.copy_cached_cluster_or_run_initdb();
}

struct ClusterBuilder<'a> {
    bin_dir: &'a Path,
    user: Option<&'a ServerUser>,
    folder: &'a Path,
}

impl ClusterBuilder<'_> {
    fn copy_cached_cluster_or_run_initdb(&self) {
        let cache_folder = target_dir().join("tmp");
        fs::create_dir_all(&cache_folder).expect("the build folder is writable");
        let cached_cluster = cache_folder.join(format!("cluster-{:016x}", self.cache_key()));
        let _lock = (!cached_cluster.exists())
            .then(|| wait_for_exclusive_file_lock(&cached_cluster.with_extension("lock")));
        if cached_cluster.exists() {
            copy_contents(&cached_cluster, &self.folder.join("data"));
            return;
        }
        self.run_initdb();
        let temporary_copy = cached_cluster.with_extension(std::process::id().to_string());
        copy_contents(&self.folder.join("data"), &temporary_copy);
        fs::rename(&temporary_copy, &cached_cluster).expect("the build folder is writable");
    }

    /// Returns a hash of everything that affects the contents of the cluster, so that a change creates a new cache entry.
    fn cache_key(&self) -> u64 {
        let initdb_metadata = fs::metadata(self.bin_dir.join("initdb")).expect("initdb");
        let mut hasher = DefaultHasher::new();
        let owner_uid = self.user.map_or_else(|| geteuid().as_raw(), |user| user.uid);
        (
            self.bin_dir,
            initdb_metadata.len(),
            initdb_metadata.modified().ok(),
            owner_uid,
            INITDB_OPTIONS,
            PASSWORD,
        )
            .hash(&mut hasher);
        hasher.finish()
    }

    fn run_initdb(&self) {
        let mut command =
            command_as_user_stopped_when_parent_dies(self.user, &self.bin_dir.join("initdb"), self.folder);
        command.arg("-D").arg(self.folder.join("data")).args(INITDB_OPTIONS);
        command.arg("--pwfile").arg(self.folder.join("password"));
        tool::run_for_combined_output(&mut command, SERVER_TIMEOUT)
            .unwrap_or_else(|error| panic!("initdb: {error}"));
    }
}

/// Copies the contents of a folder and preserves owners and modes.
fn copy_contents(from: &Path, to: &Path) {
    let mut command = Command::new("cp");
    command.args(["-a", "--reflink=auto"]).arg(from.join(".")).arg(to);
    tool::run_for_combined_output(&mut command, SERVER_TIMEOUT)
        .unwrap_or_else(|error| panic!("{}: {error}", to.display()));
}
