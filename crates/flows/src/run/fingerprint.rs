//! The fingerprint of a project: its state before and after a session.

use crate::plimsoll_files;
use plimsoll_domain::state::WorktreeFingerprint;
use plimsoll_store::Project;

/// Reads the current fingerprint of the project: HEAD, files and memory.
pub(crate) fn read_fingerprint(project: &Project) -> WorktreeFingerprint {
    let fingerprint = plimsoll_launcher::worktree_fingerprint::compute_fingerprint(
        project.root(),
        &plimsoll_files::is_plimsoll_file,
    );
    WorktreeFingerprint {
        head: fingerprint.head,
        files_digest: fingerprint.tree_digest,
        memory_digest: heap_digest(project),
    }
}

/// Returns a digest of the heap. Registers are left out, because an agent without progress keeps writing to
/// them.
fn heap_digest(project: &Project) -> Option<String> {
    let memory = plimsoll_store::memory::load_memory(project).ok().filter(|memory| !memory.is_empty())?;
    let parts: Vec<&[u8]> =
        memory.heap.iter().flat_map(|chunk| [chunk.name.as_bytes(), chunk.content.as_bytes()]).collect();
    Some(plimsoll_domain::digest::sha256_hex(&parts))
}
