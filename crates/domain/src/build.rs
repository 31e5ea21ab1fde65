//! Which build a program of ours is of. Programs of several builds beside each other are found by comparing these.

use serde::{Deserialize, Serialize};

/// What a program says of itself with `--version --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Its name.
    pub program: String,
    /// The version of all our programs that belong together.
    pub version: String,
    /// The target that it was compiled for; none if it did not say.
    pub target: Option<String>,
    /// The commit that it was built from, with `-dirty` behind it if files differed; none if the build was not told.
    pub commit: Option<String>,
}

/// As many digits of a commit as git itself shows.
const SHORT: usize = 12;

impl Build {
    /// That of the program that calls this, under its name.
    pub fn own(program: &str) -> Build {
        let told = |words: &str| (!words.is_empty()).then(|| words.to_owned());
        Build {
            program: program.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            target: told(env!("PLIMSOLL_BUILT_FOR")),
            commit: told(env!("PLIMSOLL_BUILT_FROM")),
        }
    }

    /// What a program printed. None if it is no build.
    pub fn read(printed: &str) -> Option<Build> {
        serde_json::from_str(printed).ok()
    }

    /// As a program prints it.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// True unless both say of what build they are and differ. What one does not say proves nothing.
    pub fn may_be_of_one_build(&self, other: &Build) -> bool {
        let agree = |one: &Option<String>, other: &Option<String>| match (one, other) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        self.version == other.version
            && agree(&self.target, &other.target)
            && agree(&self.commit, &other.commit)
    }
}

/// `0.1.0 (x86_64-unknown-linux-musl, 3aa43b2c5072)`, as far as it is known.
impl std::fmt::Display for Build {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short = |commit: &String| match commit.split_once('-') {
            Some((digits, mark)) => format!("{}-{mark}", digits.get(..SHORT).unwrap_or(digits)),
            None => commit.get(..SHORT).unwrap_or(commit).to_owned(),
        };
        let known: Vec<String> = self.target.iter().cloned().chain(self.commit.as_ref().map(short)).collect();
        match known.is_empty() {
            true => out.write_str(&self.version),
            false => write!(out, "{} ({})", self.version, known.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(version: &str, target: Option<&str>, commit: Option<&str>) -> Build {
        let own = |words: &str| words.to_owned();
        Build {
            program: own("plimsoll"),
            version: own(version),
            target: target.map(own),
            commit: commit.map(own),
        }
    }

    #[test]
    fn what_is_printed_is_read_back() {
        let own = Build::own("plimsoll-frame");
        assert_eq!(Build::read(&own.to_json()), Some(own));
        for other in ["", "{}", "plimsoll\n", "plimsoll 0.0.9\n", "{\"program\": 1, \"version\": \"0\"}x"] {
            assert_eq!(Build::read(other), None, "{other}");
        }
        assert!(Build::own("plimsoll").target.is_some_and(|target| target.contains(std::env::consts::ARCH)));
    }

    #[test]
    fn only_what_both_say_can_differ() {
        let ours = build("0.1.0", Some("x"), Some("aaa"));
        for (other, same) in [
            (build("0.1.0", Some("x"), Some("aaa")), true),
            (build("0.1.0", None, None), true),
            (build("0.1.0", Some("x"), None), true),
            (build("0.1.1", Some("x"), Some("aaa")), false),
            (build("0.1.0", Some("y"), None), false),
            (build("0.1.0", Some("x"), Some("bbb")), false),
        ] {
            assert_eq!(ours.may_be_of_one_build(&other), same, "{other:?}");
        }
    }

    #[test]
    fn a_build_is_shown_as_far_as_it_is_known() {
        let commit = "3aa43b2c50722e413322c0e344728aec1c9c5a44";
        let dirty = format!("{commit}-dirty");
        for (build, shown) in [
            (build("0.1.0", None, None), "0.1.0"),
            (build("0.1.0", Some("t"), None), "0.1.0 (t)"),
            (build("0.1.0", Some("t"), Some(commit)), "0.1.0 (t, 3aa43b2c5072)"),
            (build("0.1.0", None, Some(&dirty)), "0.1.0 (3aa43b2c5072-dirty)"),
            (build("0.1.0", None, Some("abc")), "0.1.0 (abc)"),
        ] {
            assert_eq!(build.to_string(), shown);
        }
    }
}
