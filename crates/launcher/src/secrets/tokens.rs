//! Tokens that are known by how they begin. What follows must look drawn by lot: a placeholder, a slug or the
//! name of a class begins so too.

use super::Found;

/// A kind of token.
struct Kind {
    name: &'static str,
    start: &'static [u8],
    /// So many letters and digits follow at least, with those that may stand between them.
    least: usize,
    /// So long is one piece of them at least.
    piece: usize,
    /// What may stand between the pieces.
    between: &'static [u8],
}

const fn kind(
    name: &'static str,
    start: &'static str,
    least: usize,
    piece: usize,
    between: &'static str,
) -> Kind {
    Kind { name, start: start.as_bytes(), least, piece, between: between.as_bytes() }
}

const KINDS: [Kind; 32] = [
    kind("anthropic-key", "sk-ant-", 20, 12, "-_"),
    kind("openai-key", "sk-proj-", 20, 12, "-_"),
    kind("openai-key", "sk-svcacct-", 20, 12, "-_"),
    kind("openai-key", "sk-admin-", 20, 12, "-_"),
    kind("openrouter-key", "sk-or-v1-", 32, 32, ""),
    kind("openai-key", "sk-", 32, 32, ""),
    kind("stripe-key", "sk_live_", 16, 16, ""),
    kind("stripe-key", "rk_live_", 16, 16, ""),
    kind("stripe-webhook", "whsec_", 24, 24, ""),
    kind("github-token", "ghp_", 30, 30, ""),
    kind("github-token", "gho_", 30, 30, ""),
    kind("github-token", "ghu_", 30, 30, ""),
    kind("github-token", "ghs_", 30, 30, ""),
    kind("github-token", "ghr_", 30, 30, ""),
    kind("github-token", "github_pat_", 22, 16, "_"),
    kind("gitlab-token", "glpat-", 20, 4, "-_"),
    kind("linear-key", "lin_api_", 32, 32, ""),
    kind("linear-key", "lin_oauth_", 32, 32, ""),
    kind("npm-token", "npm_", 30, 30, ""),
    kind("pypi-token", "pypi-AgE", 40, 10, "-_"),
    kind("google-key", "AIza", 33, 8, "-_"),
    kind("google-client-secret", "GOCSPX-", 20, 4, "-_"),
    kind("hugging-face-token", "hf_", 30, 30, ""),
    kind("slack-token", "xoxa-", 20, 12, "-"),
    kind("slack-token", "xoxb-", 20, 12, "-"),
    kind("slack-token", "xoxp-", 20, 12, "-"),
    kind("slack-token", "xoxr-", 20, 12, "-"),
    kind("slack-token", "xoxs-", 20, 12, "-"),
    kind("slack-token", "xapp-", 20, 12, "-"),
    kind("shopify-token", "shpat_", 32, 32, ""),
    kind("digitalocean-token", "dop_v1_", 64, 64, ""),
    kind("age-key", "AGE-SECRET-KEY-1", 50, 50, ""),
];

/// True when a line holds one of them.
pub(super) fn holds_token(line: &[u8]) -> bool {
    tokens(line).next().is_some()
}

/// Where they stand in a text.
pub(super) fn tokens(text: &[u8]) -> impl Iterator<Item = Found> + '_ {
    let begins_a_word = |place: &usize| *place == 0 || !continues(&text[..*place]);
    (0..text.len()).filter(begins_a_word).filter_map(|place| {
        let word = &text[place..];
        let (kind, length) = if is_access_key(word) {
            ("aws-access-key", ACCESS_KEY)
        } else {
            let known = |kind: &Kind| Some((kind.name, kind.length(word)?));
            KINDS.iter().find_map(known).filter(|_| !is_inside_a_slug(text, place))?
        };
        Some(Found { kind, range: place..place + length })
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
    /// How long the token is that a word begins with.
    fn length(&self, word: &[u8]) -> Option<usize> {
        let rest = word.strip_prefix(self.start)?;
        let is_between = |byte: &u8| self.between.contains(byte);
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || is_between(byte)).count();
        let mut pieces = rest[..length].split(is_between);
        let is_one =
            length >= self.least && pieces.any(|piece| piece.len() >= self.piece && is_drawn_by_lot(piece));
        is_one.then_some(self.start.len() + length)
    }
}

/// Letters and digits both: words have no digits, and neither has a row of `x`.
fn is_drawn_by_lot(piece: &[u8]) -> bool {
    piece.iter().any(u8::is_ascii_digit) && piece.iter().any(u8::is_ascii_alphabetic)
}

const ACCESS_KEY: usize = 20;

/// `AKIA…`, `ASIA…`: the one kind whose length is known. Longer runs of capitals are something else, and so is
/// the one in all documentation.
fn is_access_key(word: &[u8]) -> bool {
    let is_known = word.starts_with(b"AKIA") || word.starts_with(b"ASIA");
    let is_in_it = |byte: &&u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    is_known
        && word.iter().take_while(is_in_it).count() == ACCESS_KEY
        && !word.get(ACCESS_KEY).is_some_and(u8::is_ascii_alphanumeric)
        && word[..ACCESS_KEY].iter().any(u8::is_ascii_digit)
        && !word[..ACCESS_KEY].ends_with(b"EXAMPLE")
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
            ("lin", "_api_", 40),
            ("lin", "_oauth_", 64),
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
