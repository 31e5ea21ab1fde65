//! Builds the sandbox of `--verify-sandbox`: the arguments of bubblewrap, and the environment variables that a sandboxed
//! command keeps.
//!
//! `docs/decisions/verify-sandbox.md` explains each choice.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Folders with other users' files, sockets of system services, or other disks. They appear empty inside the sandbox.
pub const HIDDEN_FOLDERS: [&str; 7] = ["/home", "/root", "/run", "/var/run", "/var/tmp", "/mnt", "/media"];

/// Variables that name folders of the user outside HOME, if they are set. These folders appear empty, too.
pub const HIDDEN_FOLDER_VARIABLES: [&str; 6] = [
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "CLAUDE_CONFIG_DIR",
];

/// The temporary folder. The sandbox has a separate one.
pub const TEMPORARY_FOLDER: &str = "/tmp";

/// The files of a toolchain below HOME that its programs must read. Files that may hold a token are not listed, such
/// as cargo's `credentials.toml`.
pub struct Toolchain {
    /// The variable that names its folder.
    pub folder_variable: &'static str,
    /// Its folder below HOME if the variable is not set.
    pub default_folder: &'static str,
    /// The files and folders in it that are readable inside the sandbox.
    pub readable_parts: &'static [&'static str],
}

/// Toolchains whose files are not beside their programs.
pub const TOOLCHAINS: [Toolchain; 6] = [
    Toolchain {
        folder_variable: "CARGO_HOME",
        default_folder: ".cargo",
        readable_parts: &["bin", "config.toml", "config", "env", "registry", "git"],
    },
    Toolchain {
        folder_variable: "RUSTUP_HOME",
        default_folder: ".rustup",
        readable_parts: &["settings.toml", "toolchains"],
    },
    Toolchain { folder_variable: "npm_config_cache", default_folder: ".npm", readable_parts: &["_cacache"] },
    Toolchain {
        folder_variable: "UV_PYTHON_INSTALL_DIR",
        default_folder: ".local/share/uv/python",
        readable_parts: &[""],
    },
    Toolchain {
        folder_variable: "UV_TOOL_DIR",
        default_folder: ".local/share/uv/tools",
        readable_parts: &[""],
    },
    Toolchain {
        folder_variable: "PIPX_HOME",
        default_folder: ".local/share/pipx",
        readable_parts: &["venvs"],
    },
];

/// Names of files and folders that belong to the programs in a folder beside them: the libraries of node below
/// `~/.nvm`, the versions of pyenv. The whole parent folder would also show files that tools keep there for the user,
/// such as `~/.docker/config.json`.
const PROGRAM_FOLDER_SIBLINGS: [&str; 11] = [
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

/// Names of program folders that may have such siblings.
const PROGRAM_FOLDER_NAMES: [&str; 3] = ["bin", "sbin", "shims"];

/// Paths in the project that are read-only: they can start programs outside the sandbox, or hold Plimsoll's own
/// records.
pub const READ_ONLY_PROJECT_PATHS: [&str; 3] = [".git", ".claude", ".mcp.json"];

/// Returns every path that the programs on this PATH may need, whether it exists or not.
///
/// `read_variable` returns the value of an environment variable, if it is set.
pub fn paths_needed_by_programs_and_toolchains(
    path_variable: &str,
    home: &Path,
    read_variable: impl Fn(&str) -> Option<String>,
) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for folder in path_variable.split(':').map(Path::new).filter(|folder| folder.is_absolute()) {
        paths.push(folder.to_owned());
        let is_program_folder =
            PROGRAM_FOLDER_NAMES.iter().any(|name| folder.file_name() == Some(name.as_ref()));
        if let Some(parent) =
            folder.parent().filter(|parent_folder| is_program_folder && *parent_folder != home)
        {
            paths.extend(PROGRAM_FOLDER_SIBLINGS.iter().map(|name| parent.join(name)));
        }
    }
    for toolchain in &TOOLCHAINS {
        let configured_folder =
            read_variable(toolchain.folder_variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let folder = configured_folder.unwrap_or_else(|| home.join(toolchain.default_folder));
        paths.extend(toolchain.readable_parts.iter().map(|part| join_without_trailing_slash(&folder, part)));
    }
    paths
}

/// Joins a folder and a part. `Path::join` with an empty part would append a slash.
fn join_without_trailing_slash(folder: &Path, part: &str) -> PathBuf {
    if part.is_empty() { folder.to_owned() } else { folder.join(part) }
}

/// A file or folder outside the sandbox, and the path at which it is readable inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadablePath {
    /// Path outside, without links.
    pub source: PathBuf,
    /// Path inside.
    pub target: PathBuf,
}

/// The layout of a sandbox. All paths are absolute, exist and contain no links, except for the targets of readable paths
/// and for `project_link`.
#[derive(Debug, Clone, Default)]
pub struct SandboxLayout {
    /// The project's folder: the only folder of the user that a command may write.
    pub project: PathBuf,
    /// The project's folder as the user spells it, if that path contains a link.
    pub project_link: Option<PathBuf>,
    /// The user's home, which is empty inside.
    pub home: PathBuf,
    /// The run's cache folder, which is `~/.cache` inside; `None` if there is no run yet.
    pub cache_folder: Option<PathBuf>,
    /// Folders that are empty inside, besides HOME and the temporary folder.
    pub hidden_folders: Vec<PathBuf>,
    /// Paths in the empty folders that stay readable.
    pub readable_paths: Vec<ReadablePath>,
    /// Folders of the project's repository that are outside the project. They stay readable, too.
    pub repository_folders: Vec<PathBuf>,
    /// Paths in the project that are read-only.
    pub read_only_paths: Vec<PathBuf>,
    /// Sockets of services that listen outside.
    pub socket_paths: Vec<PathBuf>,
}

impl SandboxLayout {
    /// Returns the folders that appear empty inside, parents before children, because a mount hides earlier mounts below
    /// it.
    fn empty_folders(&self) -> Vec<PathBuf> {
        let mut folders = self.hidden_folders.clone();
        folders.extend([self.home.clone(), PathBuf::from(TEMPORARY_FOLDER)]);
        // The root itself cannot be hidden.
        folders.retain(|folder| folder.parent().is_some());
        folders.sort();
        folders.dedup();
        folders
    }

    /// Returns true for a path in a folder that is empty inside.
    fn is_in_empty_folder(&self, path: &Path) -> bool {
        self.empty_folders().iter().any(|folder| path.starts_with(folder))
    }

    /// Returns true for a path that must not be mounted because it contains a folder that must appear empty.
    fn contains_empty_folder(&self, path: &Path) -> bool {
        self.empty_folders().iter().any(|folder| folder.starts_with(path))
    }

    /// Returns the read-only mounts of the paths that stay readable in empty folders.
    fn read_only_mounts(&self) -> Vec<ReadablePath> {
        let repository_folders = self.repository_folders.iter().cloned();
        let repository_mounts =
            repository_folders.map(|folder| ReadablePath { source: folder.clone(), target: folder });
        // A folder above the project would also show the project's siblings, so only repository folders may be mounted
        // there.
        let is_disjoint_from_project = |path: &ReadablePath| {
            !self.project.starts_with(&path.source)
                && !self.project.starts_with(&path.target)
                && !path.target.starts_with(&self.project)
        };
        let other_mounts = self.readable_paths.iter().filter(|path| is_disjoint_from_project(path)).cloned();
        let should_mount = |path: &ReadablePath| {
            self.is_in_empty_folder(&path.target)
                && !self.contains_empty_folder(&path.source)
                && !self.contains_empty_folder(&path.target)
        };
        repository_mounts.chain(other_mounts).filter(should_mount).collect()
    }

    /// Returns the arguments of bubblewrap before the command. Order matters: a later mount covers an earlier one.
    pub fn bubblewrap_arguments(&self) -> Vec<OsString> {
        let mut arguments = BubblewrapArguments(Vec::new());
        // When bubblewrap ends, all processes in its namespace end, and bubblewrap ends with its parent.
        arguments.push(&["--die-with-parent", "--new-session", "--unshare-all"]);
        // Root could unmount the empty folders.
        arguments.push(&["--cap-drop", "ALL"]);
        arguments.push(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
        let (empty_in_project, empty_elsewhere): (Vec<PathBuf>, Vec<PathBuf>) =
            self.empty_folders().into_iter().partition(|folder| folder.starts_with(&self.project));
        empty_elsewhere.iter().for_each(|folder| arguments.push_empty_mount(folder));
        let mounts = self.read_only_mounts();
        mounts.iter().for_each(|path| arguments.push_mount("--ro-bind", &path.source, &path.target));
        for socket in &self.socket_paths {
            let is_mounted = mounts.iter().any(|path| socket.starts_with(&path.target));
            let is_visible = is_mounted || !self.is_in_empty_folder(socket);
            if is_visible && !socket.starts_with(&self.project) {
                arguments.push_mount("--ro-bind", Path::new("/dev/null"), socket);
            }
        }
        if let Some(cache) = &self.cache_folder {
            arguments.push_mount("--bind", cache, &self.home.join(".cache"));
        }
        arguments.push_mount("--bind", &self.project, &self.project);
        let project_link = self.project_link.as_ref();
        let project_link =
            project_link.filter(|link| self.is_in_empty_folder(link) && !link.starts_with(&self.project));
        if let Some(project_link) = project_link {
            arguments.push_mount("--bind", &self.project, project_link);
        }
        empty_in_project.iter().for_each(|folder| arguments.push_empty_mount(folder));
        for read_only_path in &self.read_only_paths {
            arguments.push_mount("--ro-bind", read_only_path, read_only_path);
            if let (Some(project_link), Ok(relative_path)) =
                (project_link, read_only_path.strip_prefix(&self.project))
            {
                arguments.push_mount("--ro-bind", read_only_path, &project_link.join(relative_path));
            }
        }
        arguments.push(&["--chdir"]);
        arguments.0.push(self.project.clone().into());
        arguments.0
    }
}

struct BubblewrapArguments(Vec<OsString>);

impl BubblewrapArguments {
    fn push(&mut self, arguments: &[&str]) {
        self.0.extend(arguments.iter().map(OsString::from));
    }

    fn push_mount(&mut self, option: &str, source: &Path, target: &Path) {
        self.0.extend([option.into(), source.into(), target.into()]);
    }

    fn push_empty_mount(&mut self, folder: &Path) {
        self.0.extend(["--tmpfs".into(), folder.into()]);
    }
}

/// Returns the sorted paths of sockets in the text of `/proc/net/unix`. Abstract sockets have no path: they are isolated
/// with the network.
pub fn parse_sorted_socket_paths(proc_net_unix: &str) -> Vec<PathBuf> {
    let parse_path = |line: &str| line.find(" /").map(|index| PathBuf::from(line[index + 1..].trim_end()));
    let mut paths: Vec<PathBuf> = proc_net_unix.lines().filter_map(parse_path).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Names of variables that a command keeps.
const ALLOWLISTED_VARIABLES: [&str; 40] = [
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

/// Prefixes of variables that a command keeps.
const ALLOWLISTED_VARIABLE_PREFIXES: [&str; 3] = ["LC_", "CARGO_", "RUST"];

/// Words in the names of variables that hold a secret, such as `CARGO_REGISTRY_TOKEN`.
const SECRET_WORDS: [&str; 6] = ["TOKEN", "SECRET", "PASS", "KEY", "CREDENTIAL", "AUTH"];

/// Returns true if a sandboxed command keeps the variable.
///
/// HOME and XDG_CACHE_HOME are set separately. A `CARGO_TARGET_DIR` outside the project could not be written.
pub fn is_variable_allowlisted_for_sandbox(name: &str, value: &str, project: &Path) -> bool {
    if name == "CARGO_TARGET_DIR" {
        let folder = Path::new(value);
        return !folder.is_absolute() || folder.starts_with(project);
    }
    let has_allowlisted_prefix = ALLOWLISTED_VARIABLE_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let is_secret = SECRET_WORDS.iter().any(|word| name.to_uppercase().contains(word));
    ALLOWLISTED_VARIABLES.contains(&name) || has_allowlisted_prefix && !is_secret
}

// bubblewrap is a program for Linux, and the paths in these tests are absolute only on Unix.
#[cfg(unix)]
#[cfg(test)]
mod tests;
