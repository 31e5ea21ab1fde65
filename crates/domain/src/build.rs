//! Identifies the build of a Plimsoll program. Comparing these values finds programs of different builds that
//! are installed together.

use serde::{Deserialize, Serialize};

/// The output of a program with `--version --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildInfo {
    pub program: String,
    /// The version that all programs of one release share.
    pub version: String,
    /// The target triple it was compiled for; `None` if the build did not state it.
    pub target: Option<String>,
    /// The commit it was built from, with the suffix `-dirty` if files differed; `None` if the build did not
    /// state it.
    pub commit: Option<String>,
}

/// The number of commit digits that are shown.
const SHORT_COMMIT_LENGTH: usize = 12;

impl BuildInfo {
    /// Returns the build of the running program, under the given program name.
    pub fn for_current_program(program_name: &str) -> BuildInfo {
        let non_empty = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        BuildInfo {
            program: program_name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            target: non_empty(env!("PLIMSOLL_BUILT_FOR")),
            commit: non_empty(env!("PLIMSOLL_BUILT_FROM")),
        }
    }

    /// Parses what a program printed. Returns `None` if it is not a build description.
    pub fn from_json(json: &str) -> Option<BuildInfo> {
        serde_json::from_str(json).ok()
    }

    /// Serializes the build in the form that `--version --json` prints.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns false only if both builds state a value and the values differ. A missing value matches
    /// everything.
    pub fn may_be_same_build(&self, other: &BuildInfo) -> bool {
        let equal_if_both_present = |left: &Option<String>, right: &Option<String>| match (left, right) {
            (Some(left), Some(right)) => left == right,
            _ => true,
        };
        self.version == other.version
            && equal_if_both_present(&self.target, &other.target)
            && equal_if_both_present(&self.commit, &other.commit)
    }
}

/// Writes `0.1.0 (x86_64-unknown-linux-musl, 3aa43b2c5072)`, without the parts that are unknown.
impl std::fmt::Display for BuildInfo {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shorten_commit_hash = |commit: &String| match commit.split_once('-') {
            Some((hash, suffix)) => format!("{}-{suffix}", hash.get(..SHORT_COMMIT_LENGTH).unwrap_or(hash)),
            None => commit.get(..SHORT_COMMIT_LENGTH).unwrap_or(commit).to_owned(),
        };
        let details: Vec<String> =
            self.target.iter().cloned().chain(self.commit.as_ref().map(shorten_commit_hash)).collect();
        match details.is_empty() {
            true => formatter.write_str(&self.version),
            false => write!(formatter, "{} ({})", self.version, details.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_info(version: &str, target: Option<&str>, commit: Option<&str>) -> BuildInfo {
        let to_text = |words: &str| words.to_owned();
        BuildInfo {
            program: to_text("plimsoll"),
            version: to_text(version),
            target: target.map(to_text),
            commit: commit.map(to_text),
        }
    }

    #[test]
    fn a_printed_build_is_parsed_back() {
        let build_info = BuildInfo::for_current_program("plimsoll-frame");
        assert_eq!(BuildInfo::from_json(&build_info.to_json()), Some(build_info));
        for text in ["", "{}", "plimsoll\n", "plimsoll 0.0.9\n", "{\"program\": 1, \"version\": \"0\"}x"] {
            assert_eq!(BuildInfo::from_json(text), None, "{text}");
        }
        assert!(
            BuildInfo::for_current_program("plimsoll")
                .target
                .is_some_and(|target| target.contains(std::env::consts::ARCH))
        );
    }

    #[test]
    fn only_fields_that_both_builds_state_can_differ() {
        let ours = build_info("0.1.0", Some("x"), Some("aaa"));
        for (other, same) in [
            (build_info("0.1.0", Some("x"), Some("aaa")), true),
            (build_info("0.1.0", None, None), true),
            (build_info("0.1.0", Some("x"), None), true),
            (build_info("0.1.1", Some("x"), Some("aaa")), false),
            (build_info("0.1.0", Some("y"), None), false),
            (build_info("0.1.0", Some("x"), Some("bbb")), false),
        ] {
            assert_eq!(ours.may_be_same_build(&other), same, "{other:?}");
        }
    }

    #[test]
    fn display_leaves_out_what_is_unknown() {
        let commit = "3aa43b2c50722e413322c0e344728aec1c9c5a44";
        let dirty = format!("{commit}-dirty");
        for (build, shown) in [
            (build_info("0.1.0", None, None), "0.1.0"),
            (build_info("0.1.0", Some("t"), None), "0.1.0 (t)"),
            (build_info("0.1.0", Some("t"), Some(commit)), "0.1.0 (t, 3aa43b2c5072)"),
            (build_info("0.1.0", None, Some(&dirty)), "0.1.0 (3aa43b2c5072-dirty)"),
            (build_info("0.1.0", None, Some("abc")), "0.1.0 (abc)"),
        ] {
            assert_eq!(build.to_string(), shown);
        }
    }
}
