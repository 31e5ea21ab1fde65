//! The variables, folders and file names by which programs find each other and the user's files on this system.

use std::path::{Path, PathBuf};

/// Variables of Windows itself. Programs do not start without some of them, and the client finds Git Bash by others.
const WINDOWS_SYSTEM_VARIABLES: [&str; 12] = [
    "SystemRoot",
    "SystemDrive",
    "windir",
    "ComSpec",
    "PATHEXT",
    "OS",
    "NUMBER_OF_PROCESSORS",
    "PROCESSOR_ARCHITECTURE",
    "ProgramFiles",
    "ProgramFiles(x86)",
    "ProgramData",
    "CLAUDE_CODE_GIT_BASH_PATH",
];

/// Returns the variables that place all of a user's files in `home` and `temp_folder`, and on Windows also those
/// without which its programs do not start.
pub(crate) fn user_variables(home: &Path, temp_folder: &Path) -> Vec<(&'static str, String)> {
    let text = |path: &Path| path.display().to_string();
    // Programs from Git Bash read HOME on Windows, too.
    let mut variables = vec![("HOME", text(home)), ("TMPDIR", text(temp_folder))];
    if cfg!(windows) {
        variables.extend([
            ("USERPROFILE", text(home)),
            ("APPDATA", text(&config_folder(home))),
            ("LOCALAPPDATA", text(&state_folder(home))),
            ("TEMP", text(temp_folder)),
            ("TMP", text(temp_folder)),
        ]);
        let system_variable = |name| Some((name, std::env::var(name).ok()?));
        variables.extend(WINDOWS_SYSTEM_VARIABLES.into_iter().filter_map(system_variable));
    }
    variables
}

/// Returns the folder of the settings of programs, if no variable names another one.
pub(crate) fn config_folder(home: &Path) -> PathBuf {
    home.join(if cfg!(windows) { r"AppData\Roaming" } else { ".config" })
}

/// Returns the folder of the state of programs, if no variable names another one.
pub(crate) fn state_folder(home: &Path) -> PathBuf {
    home.join(if cfg!(windows) { r"AppData\Local" } else { ".local/state" })
}

/// Returns the folders with the programs of the system.
pub(crate) fn system_program_folders() -> Vec<PathBuf> {
    if cfg!(windows) {
        let system_root = PathBuf::from(std::env::var_os("SystemRoot").expect("Windows sets SystemRoot"));
        let system_folder = system_root.join("System32");
        vec![system_folder.clone(), system_root, system_folder.join(r"WindowsPowerShell\v1.0")]
    } else {
        ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from).to_vec()
    }
}

/// Returns the file name of a program.
pub(crate) fn program_file_name(name: &str) -> String {
    // npm is a script of node.
    if cfg!(windows) && name == "npm" {
        return "npm.cmd".to_owned();
    }
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}
