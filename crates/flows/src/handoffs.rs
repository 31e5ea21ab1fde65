//! The handoffs of a project, for those who want to continue from one.

use plimsoll_domain::handoff::HandoffSummary;
use plimsoll_store::{Project, UnreadHandoffs, clock, disk};
use std::path::PathBuf;

/// One handoff.
#[derive(Debug, Clone)]
pub struct KnownHandoff {
    /// The file.
    pub path: PathBuf,
    /// What it says of itself.
    pub summary: HandoffSummary,
    /// True until a session was offered it; never of a run's, whose next session reads it.
    pub is_unread: bool,
}

/// All handoffs, the one written last first.
pub fn all(project: &Project) -> Vec<KnownHandoff> {
    let unread = UnreadHandoffs::of(project).names();
    let folder = project.handoffs();
    let mut known: Vec<KnownHandoff> = disk::names(&folder)
        .into_iter()
        .filter(|name| name.ends_with(".md"))
        .filter_map(|name| {
            let path = folder.join(&name);
            // A link may lead anywhere, and is none of ours.
            let text = if disk::is_link(&path) { None } else { disk::read_text(&path).ok().flatten() }?;
            let mut summary = HandoffSummary::parse(&text);
            if clock::moment(&summary.written_at).is_none() {
                let modified = disk::modified(&path).map(chrono::DateTime::from);
                summary.written_at = modified.map(clock::stamp).unwrap_or_default();
            }
            let is_unread = summary.run.is_none() && unread.contains(&name);
            Some(KnownHandoff { path, summary, is_unread })
        })
        .collect();
    known.sort_by_key(|handoff| std::cmp::Reverse(clock::moment(&handoff.summary.written_at)));
    known
}
