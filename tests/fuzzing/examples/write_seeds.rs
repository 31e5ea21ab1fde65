//! `write_seeds FOLDER`: for libFuzzer, the seeds of every target in files, and the words that stand in them in
//! quotation marks as its dictionary. The targets' names go to standard output.

use std::collections::BTreeSet;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "fuzz/seeds".into()));
    for target in plimsoll_fuzzing::TARGETS {
        let place = folder.join(target.name);
        std::fs::create_dir_all(&place)?;
        let all: Vec<Vec<u8>> =
            (target.seeds)().into_iter().chain(plimsoll_fuzzing::seeds::found(target.name)).collect();
        let words: BTreeSet<String> = all.iter().flat_map(|bytes| quoted_words(bytes)).collect();
        let dictionary: String = words.iter().map(|word| format!("\"\\\"{word}\\\"\"\n")).collect();
        std::fs::write(folder.join(format!("{}.dict", target.name)), dictionary)?;
        for (number, bytes) in all.into_iter().enumerate() {
            std::fs::write(place.join(format!("{number:03}")), bytes)?;
        }
        println!("{}", target.name);
    }
    Ok(())
}

/// Keys and fixed words, mostly.
fn quoted_words(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let is_plain = |word: &&str| {
        (2..32).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    text.split('"').filter(is_plain).map(str::to_owned).collect()
}
