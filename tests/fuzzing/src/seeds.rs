//! The inputs that a fuzzer starts from: the project's own recordings, and inputs that once broke a target (`found/`).

use std::path::Path;

/// Longer lines are left to the tests that read whole recordings.
const MAX_SEED_BYTES: usize = 16 * 1024;

/// Returns the inputs that once broke a target; each is a file in `found/<target>/`.
pub fn regression_inputs(target: &str) -> Vec<Vec<u8>> {
    read_files(&format!("fuzzing/found/{target}"), "")
}

/// Reads the files with this suffix in a folder of `tests/`, sorted by name.
pub(crate) fn read_files(folder: &str, suffix: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(suffix));
    paths.sort();
    paths.into_iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

/// Returns the lines of these files, at most three with the same set of keys: further ones would add nothing.
pub(crate) fn distinct_lines(folder: &str, suffix: &str) -> Vec<Vec<u8>> {
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut count_by_fields: std::collections::BTreeMap<Vec<String>, usize> =
        std::collections::BTreeMap::new();
    for file in read_files(folder, suffix) {
        for line in file.split(|byte| *byte == b'\n').filter(|line| (1..MAX_SEED_BYTES).contains(&line.len()))
        {
            let fields: serde_json::Map<String, serde_json::Value> =
                serde_json::from_slice(line).unwrap_or_default();
            let count = count_by_fields.entry(fields.keys().cloned().collect()).or_default();
            *count += 1;
            if *count <= 3 {
                kept.push(line.to_vec());
            }
        }
    }
    kept
}

/// Returns the beginning of each file in whole lines, up to the size limit; lines that do not fit are skipped.
pub(crate) fn file_beginnings(folder: &str, suffix: &str) -> Vec<Vec<u8>> {
    let keep_whole_lines = |file: Vec<u8>| {
        let mut kept = Vec::new();
        for line in file.split_inclusive(|byte| *byte == b'\n') {
            if kept.len() + line.len() > MAX_SEED_BYTES {
                continue;
            }
            kept.extend_from_slice(line);
        }
        kept
    };
    read_files(folder, suffix).into_iter().map(keep_whole_lines).collect()
}

pub(crate) fn text_seeds(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
