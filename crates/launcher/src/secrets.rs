//! What looks like a secret and is therefore never committed by us. A guess on the safe side: what it takes for
//! one is left out and named, and the user can commit it himself.

mod tokens;

use std::ops::Range;

/// Something in a text that looks like a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What it looks like, such as `github-token`.
    pub kind: &'static str,
    /// Its bytes.
    pub range: Range<usize>,
}

/// The tokens in a text that are known by how they begin.
pub fn tokens_in(text: &str) -> impl Iterator<Item = Found> + '_ {
    tokens::tokens(text.as_bytes())
}

/// A text with a mark in the place of each secret that was found; of two that lie over each other the first is named.
pub fn without(text: &str, found: &[Found]) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut from = 0;
    for found in found {
        if found.range.start >= from {
            cleaned.push_str(&text[from..found.range.start]);
            cleaned.push_str(&mark(found.kind));
            from = found.range.end;
        }
    }
    cleaned + &text[from..]
}

/// What stands in the place of a secret.
pub fn mark(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

/// True when a file's name says that it holds a secret. An example of such a file holds none: what stands in it
/// is looked at all the same.
pub(crate) fn is_secret_name(path: &str) -> bool {
    let path = path.to_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    let speaks_of_secrets = starts(&SPEAK_OF_SECRETS) && !ends(&SOURCES);
    let is_secret = NAMES.contains(&name)
        || PLACES.iter().any(|place| path == *place || path.ends_with(&format!("/{place}")))
        || ends(&ENDINGS)
        || starts(&[".env.", ".env-", ".env_"])
        || starts(&KEYS) && !ends(&[".pub"])
        || speaks_of_secrets
        || starts(&["secret", "service-account", "service_account"]) && ends(&[".json"])
        || name.contains("firebase-adminsdk") && ends(&[".json"]);
    is_secret && !is_example(name)
}

const NAMES: [&str; 18] = [
    ".boto",
    ".credentials.json",
    ".dockercfg",
    ".dockerconfigjson",
    ".envrc",
    ".git-credentials",
    ".htpasswd",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".s3cfg",
    ".vault-token",
    ".vault_pass",
    "_netrc",
    "credentials",
    "pgpass.conf",
];
/// Names that say nothing without their folder.
const PLACES: [&str; 2] = [".docker/config.json", ".kube/config"];
const ENDINGS: [&str; 18] = [
    ".agekey",
    ".env",
    ".htpasswd",
    ".jks",
    ".kdbx",
    ".key",
    ".keystore",
    ".kubeconfig",
    ".p12",
    ".p8",
    ".pem",
    ".pfx",
    ".pkcs12",
    ".ppk",
    ".tfstate",
    ".tfstate.backup",
    ".tfvars",
    ".tfvars.json",
];
const KEYS: [&str; 4] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
const SPEAK_OF_SECRETS: [&str; 4] = ["client_secret", "credentials.", "kubeconfig", "secrets."];
/// Code and prose about secrets. (Not so `secrets.py` and `secrets.h`: there some keep the secrets themselves.)
const SOURCES: [&str; 14] = [
    ".c", ".cpp", ".cs", ".go", ".html", ".java", ".kt", ".md", ".rb", ".rs", ".scala", ".swift", ".ts",
    ".tsx",
];

/// `.env.example`, `sample.env`, `secrets.template.yaml`.
fn is_example(name: &str) -> bool {
    const EXAMPLES: [&str; 6] = ["dist", "example", "examples", "sample", "template", "tmpl"];
    name.split(['.', '-', '_']).any(|part| EXAMPLES.contains(&part))
}

/// True when a file holds a private key or something that looks like a well-known kind of token.
pub(crate) fn holds_secret(content: &[u8]) -> bool {
    content.split(|byte| *byte == b'\n').any(|line| is_key_line(line) || tokens::holds_token(line))
}

/// In two pieces, so that this file is not taken for a secret itself.
const KEY_STARTS: &[u8] = b"-----BEGIN ";
const KEY_ENDS: [&[u8]; 2] = [b"PRIVATE KEY-----", b"PRIVATE KEY BLOCK-----"];

fn is_key_line(line: &[u8]) -> bool {
    let start = places(line, KEY_STARTS).next();
    start.is_some_and(|start| KEY_ENDS.iter().any(|end| places(&line[start..], end).next().is_some()))
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
            "prod.env",
            "deploy/.envrc",
            ".env_prod",
            ".pgpass",
            "prod.tfvars",
            "prod.auto.tfvars.json",
            "terraform.tfstate",
            "terraform.tfstate.backup",
            "client_secret.json",
            "client_secret_12-ab.apps.googleusercontent.com.json",
            "secret.json",
            "secret-prod.json",
            "secrets.py",
            "secrets.json",
            "credentials.yml",
            "config/credentials.yml.enc",
            ".claude/.credentials.json",
            "kubeconfig",
            "kubeconfig-prod.yaml",
            ".kube/config",
            "home/.docker/config.json",
            "my-app-firebase-adminsdk-x1.json",
            "AuthKey_1.p8",
        ];
        for name in secret {
            assert!(is_secret_name(name), "{name}");
        }
        let plain = [
            ".env.example",
            ".env.local.sample",
            ".env.template",
            ".env-example",
            ".env.dist",
            "prod.env.example",
            "example.env",
            "app.env.template",
            ".envrc.sample",
            "prod.tfvars.example",
            "secrets.example.yaml",
            "client_secret.json.template",
            "id_rsa.pub",
            "secrets.rs",
            "client_secret.go",
            "secret.rs",
            "secretary.txt",
            "docker/config.json",
            "kube/config",
            "env.ts",
            "environment.json",
            "main.tf",
            "tfstate.md",
            "token.ts",
            "keystore.rs",
            "monkey",
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
    fn private_keys_are_known_by_their_first_line() {
        for line in [
            format!("{}RSA {}", "-----BEGIN ", "PRIVATE KEY-----"),
            format!("  key: \"{}{}\\n", "-----BEGIN ", "PRIVATE KEY-----"),
            format!("{}PGP {}", "-----BEGIN ", "PRIVATE KEY BLOCK-----"),
        ] {
            assert!(holds_secret(format!("first\n{line}\nlast\n").as_bytes()), "{line}");
        }
        let certificate = format!("{}CERTIFICATE-----", "-----BEGIN ");
        assert!(!holds_secret(certificate.as_bytes()));
        assert!(!holds_secret(b"-----BEGIN\nPRIVATE KEY-----"));
    }
}
