//! The fingerprint of a project: on what a session began, and what it left.

use crate::our_files;
use plimsoll_domain::state::WorktreeFingerprint;
use plimsoll_store::Project;

/// The current fingerprint of the project: HEAD, files and memory.
pub(crate) fn footing(project: &Project) -> WorktreeFingerprint {
    let found = plimsoll_launcher::worktree_fingerprint::footing(project.root(), &our_files::is_ours);
    WorktreeFingerprint { head: found.head, tree: found.tree, memory: heap(project) }
}

/// A digest of the heap. Registers do not count: an agent without progress keeps writing there that it has none.
fn heap(project: &Project) -> Option<String> {
    let memory = plimsoll_store::memory::load(project).ok().filter(|memory| !memory.is_empty())?;
    let parts: Vec<&[u8]> =
        memory.heap.iter().flat_map(|chunk| [chunk.name.as_bytes(), chunk.content.as_bytes()]).collect();
    Some(plimsoll_domain::digest::sha256(&parts))
}
