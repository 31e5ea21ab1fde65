//! The sandbox of `--verify-sandbox`: which arguments bubblewrap gets, and which variables a command in it keeps.
//!
//! `docs/decisions/verify-sandbox.md` explains each choice.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Folders in which programs find other users' files, sockets of the system's services, or other disks. Each is empty inside.
pub const HIDDEN: [&str; 7] = ["/home", "/root", "/run", "/var/run", "/var/tmp", "/mnt", "/media"];

/// Variables that name folders of the user outside HOME, if they are set. These folders are empty inside, too.
pub const HIDDEN_BY_VARIABLE: [&str; 6] = [
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "CLAUDE_CONFIG_DIR",
];

/// The temporary folder, which is the sandbox's own.
pub const TEMPORARY: &str = "/tmp";

/// What a toolchain keeps below HOME and its programs must read. Parts that may hold a token are not listed, such as
/// `credentials.toml` of cargo.
pub struct Toolchain {
    /// The variable that names its folder.
    pub variable: &'static str,
    /// Its folder below HOME without that variable.
    pub folder: &'static str,
    /// The files and folders in it that are readable inside.
    pub parts: &'static [&'static str],
}

/// Toolchains whose files are not beside their programs.
pub const TOOLCHAINS: [Toolchain; 6] = [
    Toolchain {
        variable: "CARGO_HOME",
        folder: ".cargo",
        parts: &["bin", "config.toml", "config", "env", "registry", "git"],
    },
    Toolchain { variable: "RUSTUP_HOME", folder: ".rustup", parts: &["settings.toml", "toolchains"] },
    Toolchain { variable: "npm_config_cache", folder: ".npm", parts: &["_cacache"] },
    Toolchain { variable: "UV_PYTHON_INSTALL_DIR", folder: ".local/share/uv/python", parts: &[""] },
    Toolchain { variable: "UV_TOOL_DIR", folder: ".local/share/uv/tools", parts: &[""] },
    Toolchain { variable: "PIPX_HOME", folder: ".local/share/pipx", parts: &["venvs"] },
];

/// What lies beside a folder of programs and belongs to them: the libraries of node below `~/.nvm`, the versions of pyenv. The
/// whole folder above would also show what tools keep there of the user, such as `~/.docker/config.json`.
const BESIDE_PROGRAMS: [&str; 11] = [
    "bin",
    "lib",
    "lib64",
    "libexec",
    "include",
    "versions",
    "version",
    "installs",
    "plugins",
    "tools",
    "pyvenv.cfg",
];

/// Names of folders of programs that have such files beside them.
const PROGRAM_FOLDERS: [&str; 3] = ["bin", "sbin", "shims"];

/// In the project: what starts programs outside the sandbox, and Plimsoll's own records.
pub const PROTECTED: [&str; 3] = [".git", ".claude", ".mcp.json"];

/// Every path that the programs on this PATH may need, whether it exists or not.
///
/// `variable` answers with the value of an environment variable that is set.
pub fn tool_paths(path: &str, home: &Path, variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for folder in path.split(':').map(Path::new).filter(|folder| folder.is_absolute()) {
        paths.push(folder.to_owned());
        let is_program_folder = PROGRAM_FOLDERS.iter().any(|name| folder.file_name() == Some(name.as_ref()));
        if let Some(above) = folder.parent().filter(|above| is_program_folder && *above != home) {
            paths.extend(BESIDE_PROGRAMS.iter().map(|name| above.join(name)));
        }
    }
    for toolchain in &TOOLCHAINS {
        let named = variable(toolchain.variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let folder = named.unwrap_or_else(|| home.join(toolchain.folder));
        paths.extend(toolchain.parts.iter().map(|part| join(&folder, part)));
    }
    paths
}

/// Joined with nothing, a path would end with a slash.
fn join(folder: &Path, part: &str) -> PathBuf {
    if part.is_empty() { folder.to_owned() } else { folder.join(part) }
}

/// A path that is readable inside: what is at `source` outside, at `place` inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadablePath {
    /// Outside, without links.
    pub source: PathBuf,
    /// Inside.
    pub place: PathBuf,
}

/// What a sandbox is made of. All paths are absolute, exist and contain no links, except for the places of `readable` and
/// `spelled`.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// The project's folder: the only one of the user's that a command may write.
    pub project: PathBuf,
    /// The project's folder as the user spells it, if a link leads there.
    pub spelled: Option<PathBuf>,
    /// The user's home, which is empty inside.
    pub home: PathBuf,
    /// The run's cache folder, which is `~/.cache` inside; none if there is no run yet.
    pub cache: Option<PathBuf>,
    /// Folders that are empty inside, besides HOME and the temporary folder.
    pub hidden: Vec<PathBuf>,
    /// What stays readable of these.
    pub readable: Vec<ReadablePath>,
    /// Folders of the project's repository that are outside the project, and stay readable as well.
    pub repository: Vec<PathBuf>,
    /// What of the project is read-only.
    pub protected: Vec<PathBuf>,
    /// Sockets of services that listen outside.
    pub sockets: Vec<PathBuf>,
}

impl Layout {
    /// The folders that are empty inside, each folder before those in it: a mount hides what was mounted below it before.
    fn empty_folders(&self) -> Vec<PathBuf> {
        let mut folders = self.hidden.clone();
        folders.extend([self.home.clone(), PathBuf::from(TEMPORARY)]);
        // The root itself cannot be hidden.
        folders.retain(|folder| folder.parent().is_some());
        folders.sort();
        folders.dedup();
        folders
    }

    /// True for a path in a folder that is empty inside.
    fn is_hidden(&self, path: &Path) -> bool {
        self.empty_folders().iter().any(|folder| path.starts_with(folder))
    }

    /// True for a path that would show more than itself: a folder that is to be empty.
    fn is_too_wide(&self, path: &Path) -> bool {
        self.empty_folders().iter().any(|folder| folder.starts_with(path))
    }

    /// What is mounted again of the empty folders, read-only.
    fn mounts(&self) -> Vec<ReadablePath> {
        let repository = self.repository.iter().cloned();
        let repository = repository.map(|folder| ReadablePath { source: folder.clone(), place: folder });
        // The folder above a project would show its neighbors; only that of the repository may.
        let is_apart = |path: &ReadablePath| {
            !self.project.starts_with(&path.source)
                && !self.project.starts_with(&path.place)
                && !path.place.starts_with(&self.project)
        };
        let readable = self.readable.iter().filter(|path| is_apart(path)).cloned();
        let is_of_use = |path: &ReadablePath| {
            self.is_hidden(&path.place) && !self.is_too_wide(&path.source) && !self.is_too_wide(&path.place)
        };
        repository.chain(readable).filter(is_of_use).collect()
    }

    /// The arguments of bubblewrap before the command. Order matters: a later mount covers an earlier one.
    pub fn bwrap_arguments(&self) -> Vec<OsString> {
        let mut arguments = Arguments(Vec::new());
        // With bubblewrap everything in its process namespace ends, and it ends with us.
        arguments.add(&["--die-with-parent", "--new-session", "--unshare-all"]);
        // Root could unmount what hides files.
        arguments.add(&["--cap-drop", "ALL"]);
        arguments.add(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
        let (in_project, elsewhere): (Vec<PathBuf>, Vec<PathBuf>) =
            self.empty_folders().into_iter().partition(|folder| folder.starts_with(&self.project));
        elsewhere.iter().for_each(|folder| arguments.mount_empty(folder));
        let mounts = self.mounts();
        mounts.iter().for_each(|path| arguments.mount("--ro-bind", &path.source, &path.place));
        for socket in &self.sockets {
            let is_mounted = mounts.iter().any(|path| socket.starts_with(&path.place));
            let is_visible = is_mounted || !self.is_hidden(socket);
            if is_visible && !socket.starts_with(&self.project) {
                arguments.mount("--ro-bind", Path::new("/dev/null"), socket);
            }
        }
        if let Some(cache) = &self.cache {
            arguments.mount("--bind", cache, &self.home.join(".cache"));
        }
        arguments.mount("--bind", &self.project, &self.project);
        let spelled = self.spelled.as_ref();
        let spelled =
            spelled.filter(|spelled| self.is_hidden(spelled) && !spelled.starts_with(&self.project));
        if let Some(spelled) = spelled {
            arguments.mount("--bind", &self.project, spelled);
        }
        in_project.iter().for_each(|folder| arguments.mount_empty(folder));
        for protected in &self.protected {
            arguments.mount("--ro-bind", protected, protected);
            if let (Some(spelled), Ok(below)) = (spelled, protected.strip_prefix(&self.project)) {
                arguments.mount("--ro-bind", protected, &spelled.join(below));
            }
        }
        arguments.add(&["--chdir"]);
        arguments.0.push(self.project.clone().into());
        arguments.0
    }
}

struct Arguments(Vec<OsString>);

impl Arguments {
    fn add(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn mount(&mut self, option: &str, source: &Path, place: &Path) {
        self.0.extend([option.into(), source.into(), place.into()]);
    }

    fn mount_empty(&mut self, folder: &Path) {
        self.0.extend(["--tmpfs".into(), folder.into()]);
    }
}

/// Paths of sockets in the text of `/proc/net/unix`. Abstract ones have no path: they stay outside with the network.
pub fn socket_paths(table: &str) -> Vec<PathBuf> {
    let path = |line: &str| line.find(" /").map(|at| PathBuf::from(line[at + 1..].trim_end()));
    let mut paths: Vec<PathBuf> = table.lines().filter_map(path).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Variables that a command keeps, by their whole name.
const KEPT: [&str; 40] = [
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "CI",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    "LD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "NODE_ENV",
    "NODE_PATH",
    "NODE_OPTIONS",
    "NVM_DIR",
    "npm_config_cache",
    "PYTHONPATH",
    "PYTHONHASHSEED",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "VIRTUAL_ENV",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "UV_PYTHON_INSTALL_DIR",
    "UV_TOOL_DIR",
    "PIPX_HOME",
    "GOROOT",
    "JAVA_HOME",
    "PLIMSOLL_WORKER",
];

/// Variables that a command keeps, by how their names begin.
const KEPT_FAMILIES: [&str; 3] = ["LC_", "CARGO_", "RUST"];

/// Words in the names of variables that hold a secret, such as `CARGO_REGISTRY_TOKEN`.
const SECRET_WORDS: [&str; 6] = ["TOKEN", "SECRET", "PASS", "KEY", "CREDENTIAL", "AUTH"];

/// True for a variable that a command in the sandbox keeps.
///
/// HOME and XDG_CACHE_HOME are given anew. A `CARGO_TARGET_DIR` outside the project could not be written.
pub fn is_kept_variable(name: &str, value: &str, project: &Path) -> bool {
    if name == "CARGO_TARGET_DIR" {
        let folder = Path::new(value);
        return !folder.is_absolute() || folder.starts_with(project);
    }
    let is_of_family = KEPT_FAMILIES.iter().any(|family| name.starts_with(family));
    let is_secret = SECRET_WORDS.iter().any(|word| name.to_uppercase().contains(word));
    KEPT.contains(&name) || is_of_family && !is_secret
}

#[cfg(test)]
mod tests;
