//! Tokens that are known by how they begin. What follows must look drawn by lot: a placeholder, a slug or the
//! name of a class begins so too.

/// A kind of token.
struct Kind {
    start: &'static [u8],
    /// So many letters and digits follow at least, with those that may stand between them.
    least: usize,
    /// So long is one piece of them at least.
    piece: usize,
    /// What may stand between the pieces.
    between: &'static [u8],
}

const fn kind(start: &'static str, least: usize, piece: usize, between: &'static str) -> Kind {
    Kind { start: start.as_bytes(), least, piece, between: between.as_bytes() }
}

const KINDS: [Kind; 30] = [
    kind("sk-ant-", 20, 12, "-_"),
    kind("sk-proj-", 20, 12, "-_"),
    kind("sk-svcacct-", 20, 12, "-_"),
    kind("sk-admin-", 20, 12, "-_"),
    kind("sk-or-v1-", 32, 32, ""),
    kind("sk-", 32, 32, ""),
    kind("sk_live_", 16, 16, ""),
    kind("rk_live_", 16, 16, ""),
    kind("whsec_", 24, 24, ""),
    kind("ghp_", 30, 30, ""),
    kind("gho_", 30, 30, ""),
    kind("ghu_", 30, 30, ""),
    kind("ghs_", 30, 30, ""),
    kind("ghr_", 30, 30, ""),
    kind("github_pat_", 22, 16, "_"),
    kind("glpat-", 20, 4, "-_"),
    kind("npm_", 30, 30, ""),
    kind("pypi-AgE", 40, 10, "-_"),
    kind("AIza", 33, 8, "-_"),
    kind("GOCSPX-", 20, 4, "-_"),
    kind("hf_", 30, 30, ""),
    kind("xoxa-", 20, 12, "-"),
    kind("xoxb-", 20, 12, "-"),
    kind("xoxp-", 20, 12, "-"),
    kind("xoxr-", 20, 12, "-"),
    kind("xoxs-", 20, 12, "-"),
    kind("xapp-", 20, 12, "-"),
    kind("shpat_", 32, 32, ""),
    kind("dop_v1_", 64, 64, ""),
    kind("AGE-SECRET-KEY-1", 50, 50, ""),
];

/// True when a line holds one of them.
pub(super) fn holds_token(line: &[u8]) -> bool {
    let begins_a_word = |place: &usize| *place == 0 || !continues(&line[..*place]);
    (0..line.len()).filter(begins_a_word).any(|place| {
        let word = &line[place..];
        is_access_key(word) || KINDS.iter().any(|kind| kind.begins(word) && !is_inside_a_slug(line, place))
    })
}

/// Does a word go on behind this? A `\n` in quoted text ends one.
fn continues(before: &[u8]) -> bool {
    let is_escape = matches!(before, [.., b'\\', b'n' | b'r' | b't']);
    before.last().is_some_and(u8::is_ascii_alphanumeric) && !is_escape
}

/// `task-sk-…`: there the letters only happen to stand so.
fn is_inside_a_slug(line: &[u8], place: usize) -> bool {
    line[place..].starts_with(b"sk") && matches!(line[..place].last(), Some(b'-' | b'_'))
}

impl Kind {
    fn begins(&self, word: &[u8]) -> bool {
        let Some(rest) = word.strip_prefix(self.start) else { return false };
        let is_between = |byte: &u8| self.between.contains(byte);
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || is_between(byte)).count();
        let mut pieces = rest[..length].split(is_between);
        length >= self.least && pieces.any(|piece| piece.len() >= self.piece && is_drawn_by_lot(piece))
    }
}

/// Letters and digits both: words have no digits, and neither has a row of `x`.
fn is_drawn_by_lot(piece: &[u8]) -> bool {
    piece.iter().any(u8::is_ascii_digit) && piece.iter().any(u8::is_ascii_alphabetic)
}

/// `AKIA…`, `ASIA…`: the one kind whose length is known. Longer runs of capitals are something else, and so is
/// the one in all documentation.
fn is_access_key(word: &[u8]) -> bool {
    const LENGTH: usize = 20;
    let is_known = word.starts_with(b"AKIA") || word.starts_with(b"ASIA");
    let is_in_it = |byte: &&u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    is_known
        && word.iter().take_while(is_in_it).count() == LENGTH
        && !word.get(LENGTH).is_some_and(u8::is_ascii_alphanumeric)
        && word[..LENGTH].iter().any(u8::is_ascii_digit)
        && !word[..LENGTH].ends_with(b"EXAMPLE")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drawn by lot, and put together here, so that this file is not taken for a secret itself.
    fn letters(count: usize) -> String {
        "aB3xQ9kLm2Zr".repeat(9)[..count].to_owned()
    }

    #[test]
    fn tokens_are_known_by_their_looks() {
        let starts = [
            ("sk-", "ant-api03-", 30),
            ("sk-", "proj-", 40),
            ("sk-", "svcacct-", 40),
            ("sk-", "", 48),
            ("sk_", "live_", 24),
            ("rk_", "live_", 24),
            ("wh", "sec_", 32),
            ("gh", "p_", 36),
            ("gh", "o_", 36),
            ("gh", "u_", 36),
            ("gh", "s_", 36),
            ("gh", "r_", 36),
            ("github", "_pat_", 40),
            ("glp", "at-", 20),
            ("np", "m_", 36),
            ("AI", "zaSy", 33),
            ("GOC", "SPX-", 28),
            ("h", "f_", 34),
            ("xo", "xa-2-", 24),
            ("xo", "xb-12345-67890-", 24),
            ("xo", "xp-12345-67890-", 24),
            ("xa", "pp-1-A0123-45678-", 64),
        ];
        for (one, two, count) in starts {
            let token = format!("{one}{two}{}", letters(count));
            for line in [
                token.clone(),
                format!("export KEY={token}"),
                format!("  \"key\": \"{token}\","),
                format!("url = https://name:{token}@example.invalid/"),
                format!("text = 'first\\n{token}\\n'"),
            ] {
                assert!(holds_token(line.as_bytes()), "{line}");
            }
        }
        for start in ["AK", "AS"] {
            assert!(holds_token(format!("id: {start}{}", "IAA1B2C3D4E5F6G7H8").as_bytes()), "{start}");
        }
        let plain = format!("sk-proj-{}", "abcdefghijklmnopqrstuvwxyz0123456789");
        assert!(holds_token(plain.as_bytes()));
    }

    #[test]
    fn false_friends_stay_committed() {
        let friends = [
            "sk-ant-, ghp_, github_pat_, glpat-, xoxb-, AIza, hf_, npm_",
            "pip install sk-learn==1.5.2 sk-ant-colony-optimisation-for-python3",
            "from hf_hub import hf_hub_download, hf_transfer_enabled_20240101",
            "npm_config_registry=https://registry.npmjs.org npm_lifecycle_event npm_package_version_2",
            "AIzaSy, AIzaSyXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX",
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx and sk-ant-api03-xxxxxxxxxxxxxxxxxxxxxxxx",
            "sk-ant-your-key-goes-here-0000 sk-proj-refactoring-the-whole-database-layer-2",
            ".sk-cube-grid .sk-circle-fade-dot { animation: sk-circle-fade-dot-keyframes-12 1.2s }",
            "disk-ant-aB3xQ9kLm2ZraB3xQ9kLm2Zr",
            "task-sk-4f9c2a7be01d4f9c2a7be01d4f9c2a7b",
            "task-sk-proj-4f9c2a7be01d4f9c2a7be01d",
            "https://example.invalid/risk-4f9c2a7be01d4f9c2a7be01d4f9c2a7b",
            "md5 d41d8cd98f00b204e9800998ecf8427e sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "sk-550e8400-e29b-41d4-a716-446655440000 6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "integrity sha512-AIzbq3Ee9Yz0sk1aB3xQ9kLm2ZraB3xQ9kLm2ZraB3xQ9kLm2Zr==",
            "the word sk_live_ and rk_live_mode_is_on_2024, a webhook's whsec_...",
            "pub fn ghs_header_of_the_response_in_version_2() {}",
            "AKIAshort AKIAIOSFODNN7EXAMPLE ASIAPACIFICHEADQUARTERS",
            "AKIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA MAKIA1B2C3D4E5F6G7H8X",
            "xoxb-not-a-real-token-just-some-words xoxo-",
        ];
        for line in friends {
            assert!(!holds_token(line.as_bytes()), "{line}");
        }
    }
}
