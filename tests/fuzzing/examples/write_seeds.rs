//! `write_seeds FOLDER` writes the seeds of every target into files for libFuzzer, and the quoted words in them as its dictionary.
//! It prints the names of the targets.

use std::collections::BTreeSet;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "fuzz/seeds".into()));
    for target in plimsoll_fuzzing::TARGETS {
        let target_folder = folder.join(target.name);
        std::fs::create_dir_all(&target_folder)?;
        let inputs: Vec<Vec<u8>> = (target.seeds)()
            .into_iter()
            .chain(plimsoll_fuzzing::seeds::regression_inputs(target.name))
            .collect();
        let words: BTreeSet<String> = inputs.iter().flat_map(|bytes| quoted_words(bytes)).collect();
        let dictionary: String = words.iter().map(|word| format!("\"\\\"{word}\\\"\"\n")).collect();
        std::fs::write(folder.join(format!("{}.dict", target.name)), dictionary)?;
        for (number, bytes) in inputs.into_iter().enumerate() {
            std::fs::write(target_folder.join(format!("{number:03}")), bytes)?;
        }
        println!("{}", target.name);
    }
    Ok(())
}

/// Returns the plain words between quotation marks: mostly keys and fixed values.
fn quoted_words(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let is_plain = |word: &&str| {
        (2..32).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    text.split('"').filter(is_plain).map(str::to_owned).collect()
}
