//! The recordings under `tests/fixtures`, by folder.

#![expect(
    clippy::disallowed_methods,
    reason = "the recordings lie on the disk, and `protocol` may not link `store`"
)]

/// The recordings that all crates share.
pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures");

/// The recordings that only this crate reads.
const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");

pub(crate) struct Recording {
    /// The file's name without its last extension.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Recording {
    /// The lines of a `jsonl` recording.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
    }
}

/// Returns the names in a folder, sorted.
pub(crate) fn names(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(format!("{ROOT}/{folder}")).expect("the folder of recordings");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
        .filter(|name| name != "README.md")
        .collect();
    names.sort();
    names
}

/// Returns the recordings in a folder, sorted by name.
pub(crate) fn recordings(folder: &str) -> Vec<Recording> {
    let shared = names(folder).into_iter().map(|file| read(ROOT, folder, &file));
    let own = own_names(folder).into_iter().map(|file| read(OWN, folder, &file));
    let mut recordings: Vec<Recording> = shared.chain(own).collect();
    recordings.sort_by(|one, other| one.name.cmp(&other.name));
    recordings
}

fn own_names(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(format!("{OWN}/{folder}"));
    let names = entries.into_iter().flatten().map(|entry| entry.expect("an entry").file_name());
    names.map(|name| name.into_string().expect("a plain name")).collect()
}

fn read(root: &str, folder: &str, file: &str) -> Recording {
    Recording {
        bytes: std::fs::read(format!("{root}/{folder}/{file}")).expect("a readable recording"),
        name: file.rsplit_once('.').map_or(file, |(stem, _)| stem).to_owned(),
    }
}
