//! The files of a server, before it runs for the first time.

use super::{LIMIT, PASSWORD, ROLE, User, command};
use crate::client::lock;
use crate::{target_dir, tool};
use rustix::process::geteuid;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::Command;

/// How `initdb` is asked.
const INITDB: [&str; 8] = ["-U", ROLE, "-A", "scram-sha-256", "--no-sync", "-E", "UTF8", "--locale=C"];

/// Lays them out in `data` in this folder, which has the password. `initdb` runs once for all tests: it takes ten times as long
/// as a copy of what it made.
pub(super) fn lay_out(programs: &Path, user: Option<&User>, folder: &Path) {
    Cluster { programs, user, folder }.lay_out();
}

/// The files of a server that has never run.
struct Cluster<'a> {
    programs: &'a Path,
    user: Option<&'a User>,
    folder: &'a Path,
}

impl Cluster<'_> {
    fn lay_out(&self) {
        let shared = target_dir().join("tmp");
        fs::create_dir_all(&shared).expect("the build folder is writable");
        let kept = shared.join(format!("cluster-{:016x}", self.print()));
        let _lock = (!kept.exists()).then(|| lock(&kept.with_extension("lock")));
        if kept.exists() {
            copy(&kept, &self.folder.join("data"));
            return;
        }
        self.make();
        let draft = kept.with_extension(std::process::id().to_string());
        copy(&self.folder.join("data"), &draft);
        fs::rename(&draft, &kept).expect("the build folder is writable");
    }

    /// What it is made by, and with: another one is made where any of it has changed.
    fn print(&self) -> u64 {
        let initdb = fs::metadata(self.programs.join("initdb")).expect("initdb");
        let mut hasher = DefaultHasher::new();
        let owner = self.user.map_or_else(|| geteuid().as_raw(), |user| user.number);
        (self.programs, initdb.len(), initdb.modified().ok(), owner, INITDB, PASSWORD).hash(&mut hasher);
        hasher.finish()
    }

    fn make(&self) {
        let mut init = command(self.user, &self.programs.join("initdb"), self.folder);
        init.arg("-D").arg(self.folder.join("data")).args(INITDB);
        init.arg("--pwfile").arg(self.folder.join("password"));
        tool::run(&mut init, LIMIT).unwrap_or_else(|error| panic!("initdb: {error}"));
    }
}

/// Copies what is in a folder, with its owners and modes.
fn copy(from: &Path, to: &Path) {
    let mut command = Command::new("cp");
    command.args(["-a", "--reflink=auto"]).arg(from.join(".")).arg(to);
    tool::run(&mut command, LIMIT).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
}
