//! Lines and paths of single files, in the reports of `init` and `uninstall`.

use plimsoll_flows::install::RestoredFile;
use std::path::{Path, PathBuf};

/// Returns the lines about a file from which our parts were removed: whether it was deleted or restored, and whether its
/// backup is kept.
pub(super) fn restored_file_and_backup_lines(file: &RestoredFile, project: &Path) -> Vec<String> {
    let display = |path: &Path| display_path(path, project);
    let mut lines = Vec::new();
    if file.is_removed {
        lines.push(format!("{}: removed; it contained nothing else", display(&file.path)));
    }
    if file.is_original {
        lines.push(format!("{}: byte for byte as before; the backup is removed", display(&file.path)));
    }
    lines.extend(file.kept_backup.iter().map(|backup| {
        let file_path = display(&file.path);
        format!("Kept: {}, because {file_path} was changed since; delete it when you like", display(backup))
    }));
    lines
}

/// Returns a path relative to the project if it is inside, else the whole path, with the separators of this system.
pub(super) fn display_path(path: &Path, project: &Path) -> String {
    let path: PathBuf = path.strip_prefix(project).unwrap_or(path).components().collect();
    path.display().to_string()
}
