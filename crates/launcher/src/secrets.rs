//! What looks like a secret and is therefore never committed by us. A guess on the safe side: what it takes for
//! one is left out and named, and the user can commit it himself.

/// True when a file's name says that it holds a secret.
pub(crate) fn is_secret_name(path: &str) -> bool {
    const NAMES: [&str; 7] =
        [".netrc", ".npmrc", ".pypirc", ".htpasswd", ".git-credentials", "credentials", "credentials.json"];
    const ENDINGS: [&str; 7] = [".pem", ".key", ".p12", ".pfx", ".kdbx", ".jks", ".keystore"];
    const KEYS: [&str; 4] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    NAMES.contains(&name.as_str())
        || ends(&ENDINGS)
        || name == ".env"
        || starts(&[".env."]) && !ends(&[".example", ".sample", ".template"])
        || starts(&KEYS) && !ends(&[".pub"])
        || starts(&["secrets."])
        || starts(&["service-account"]) && ends(&[".json"])
}

/// True when a file holds a private key or something that looks like a well-known kind of token.
pub(crate) fn holds_secret(content: &[u8]) -> bool {
    content.split(|byte| *byte == b'\n').any(|line| is_key_line(line) || holds_token(line))
}

/// In two pieces, so that this file is not taken for a secret itself.
const KEY_STARTS: &[u8] = b"-----BEGIN ";
const KEY_ENDS: [&[u8]; 2] = [b"PRIVATE KEY-----", b"PRIVATE KEY BLOCK-----"];

fn is_key_line(line: &[u8]) -> bool {
    let start = places(line, KEY_STARTS).next();
    start.is_some_and(|start| KEY_ENDS.iter().any(|end| places(&line[start..], end).next().is_some()))
}

/// How a token begins, how many letters follow at least, and which letters may beside letters and digits.
const TOKENS: [(&[u8], usize, &[u8]); 6] = [
    (b"sk-ant-", 20, b"-_"),
    (b"ghp_", 30, b""),
    (b"github_pat_", 22, b"_"),
    (b"glpat-", 20, b"-_"),
    (b"xoxb-", 20, b"-"),
    (b"xoxp-", 20, b"-"),
];

fn holds_token(line: &[u8]) -> bool {
    let starts_a_word = |place: usize| place == 0 || !line[place - 1].is_ascii_alphanumeric();
    let letters_from = |place: usize, allowed: &dyn Fn(u8) -> bool| {
        line[place..].iter().take_while(|byte| allowed(**byte)).count()
    };
    let is_token = TOKENS.iter().any(|(start, least, others)| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
        places(line, start)
            .any(|place| starts_a_word(place) && letters_from(place + start.len(), &allowed) >= *least)
    });
    // The one kind whose length is known: longer runs of capitals are something else.
    let is_access_key = |place: usize| {
        let rest = &line[place + 4..];
        starts_a_word(place)
            && letters_from(place + 4, &|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()) == 16
            && !rest.get(16).is_some_and(u8::is_ascii_alphanumeric)
    };
    is_token || places(line, b"AKIA").any(is_access_key)
}

/// Where a word stands in a line.
fn places<'a>(line: &'a [u8], word: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let first = word.first().copied();
    let starts = line.iter().enumerate().filter(move |(_, byte)| Some(**byte) == first);
    starts.map(|(place, _)| place).filter(move |place| line[*place..].starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_hold_secrets_are_known_by_their_names() {
        let secret = [
            ".env",
            "app/.env.local",
            ".env.production",
            "server.pem",
            "tls/a.KEY",
            "a.p12",
            "a.pfx",
            "a.kdbx",
            "a.jks",
            "a.keystore",
            "id_rsa",
            "id_ed25519_work",
            "id_ecdsa",
            "id_dsa.bak",
            ".netrc",
            ".npmrc",
            ".pypirc",
            ".htpasswd",
            ".git-credentials",
            ".aws/credentials",
            "credentials.json",
            "secrets.yaml",
            "service-account.json",
            "service-account-prod.json",
        ];
        for name in secret {
            assert!(is_secret_name(name), "{name}");
        }
        let plain = [
            ".env.example",
            ".env.local.sample",
            ".env.template",
            ".envrc",
            "id_rsa.pub",
            "key.rs",
            "keys",
            "credentials.rs",
            "my_secrets.md",
            "service-account.md",
            "environment",
            "pem",
            "src/a.rs",
        ];
        for name in plain {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn keys_and_tokens_are_known_by_their_looks() {
        let letters = |count: usize| "aB3".repeat(count)[..count].to_owned();
        let secret = [
            format!("{}RSA {}", "-----BEGIN ", "PRIVATE KEY-----"),
            format!("  key: \"{}{}\\n", "-----BEGIN ", "PRIVATE KEY-----"),
            format!("{}PGP {}", "-----BEGIN ", "PRIVATE KEY BLOCK-----"),
            format!("token = 'sk-{}api03-{}'", "ant-", letters(30)),
            format!("ghp{}{}", "_", letters(36)),
            format!("x=github_{}{}", "pat_", letters(40)),
            format!("GL:glp{}{}", "at-", letters(20)),
            format!("xo{}12345-67890-{}", "xb-", letters(24)),
            format!("xo{}12345-67890-{}", "xp-", letters(24)),
            format!("id: AK{}{}", "IA", "A1B2C3D4E5F6G7H8"),
        ];
        for line in &secret {
            assert!(holds_secret(format!("first\n{line}\nlast\n").as_bytes()), "{line}");
        }
        let plain = [
            format!("{}CERTIFICATE-----", "-----BEGIN "),
            "-----BEGIN\nPRIVATE KEY-----".to_owned(),
            "sk-ant-, ghp_, github_pat_, glpat-, xoxb-".to_owned(),
            format!("disk-ant-{}", letters(40)),
            "AKIAshort".to_owned(),
            format!("AKIA{}", "A".repeat(40)),
            format!("MAKIA{}", "A".repeat(16)),
        ];
        for line in &plain {
            assert!(!holds_secret(line.as_bytes()), "{line}");
        }
    }
}
