//! What a fuzzer begins with: the project's own recordings, and what was once found (`found/`).

use std::path::Path;

/// Longer lines than this are left to the tests that read whole recordings.
const LONGEST: usize = 16 * 1024;

/// The inputs that once broke a target, each a file in `found/<target>/`.
pub fn found(target: &str) -> Vec<Vec<u8>> {
    files(&format!("fuzzing/found/{target}"), "")
}

/// The files below a folder of `tests/`, in the order of their names.
pub(crate) fn files(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(ending));
    paths.sort();
    paths.into_iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

/// The lines of such files, each kind of line once: a hundred of one kind teach nothing that three do not.
pub(crate) fn lines(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut kinds: std::collections::BTreeMap<Vec<String>, usize> = std::collections::BTreeMap::new();
    for file in files(folder, ending) {
        for line in file.split(|byte| *byte == b'\n').filter(|line| (1..LONGEST).contains(&line.len())) {
            let fields: serde_json::Map<String, serde_json::Value> =
                serde_json::from_slice(line).unwrap_or_default();
            let seen = kinds.entry(fields.keys().cloned().collect()).or_default();
            *seen += 1;
            if *seen <= 3 {
                kept.push(line.to_vec());
            }
        }
    }
    kept
}

/// The beginning of each file, in whole lines.
pub(crate) fn beginnings(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let cut = |file: Vec<u8>| {
        let mut kept = Vec::new();
        for line in file.split_inclusive(|byte| *byte == b'\n') {
            if kept.len() + line.len() > LONGEST {
                continue;
            }
            kept.extend_from_slice(line);
        }
        kept
    };
    files(folder, ending).into_iter().map(cut).collect()
}

pub(crate) fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
