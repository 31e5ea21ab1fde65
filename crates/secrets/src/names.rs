//! Files that hold secrets by their names: settings with credentials, key stores, histories, cookie stores.

/// True when a file's name says that it holds a secret. An example of such a file holds none: what is in it
/// is looked at all the same.
pub fn is_secret_name(path: &str) -> bool {
    let path = path.to_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    let speaks_of_secrets = starts(&SPEAK_OF_SECRETS) && !ends(&SOURCES);
    let is_secret = NAMES.contains(&name)
        || PLACES.iter().any(|place| path == *place || path.ends_with(&format!("/{place}")))
        || ends(&ENDINGS)
        || ends(&VARIABLES)
        || path.contains(".gnupg/private-keys-v1.d/")
        || starts(&[".env.", ".env-", ".env_"])
        || starts(&KEYS) && !ends(&[".pub"])
        || speaks_of_secrets
        || starts(&["secret", "service-account", "service_account"]) && ends(&[".json"])
        || name.contains("firebase-adminsdk") && ends(&[".json"]);
    is_secret && !is_example(name)
}

/// Files of credentials, key stores, cookie stores and histories.
const NAMES: [&str; 58] = [
    ".bash_history",
    ".boto",
    ".claude.json",
    ".claude.json.backup",
    ".credentials.json",
    ".dockercfg",
    ".dockerconfigjson",
    ".envrc",
    ".git-credentials",
    ".htpasswd",
    ".lesshst",
    ".my.cnf",
    ".mylogin.cnf",
    ".mysql_history",
    ".netrc",
    ".node_repl_history",
    ".npmrc",
    ".pgpass",
    ".psql_history",
    ".pypirc",
    ".python_history",
    ".rediscli_history",
    ".s3cfg",
    ".sh_history",
    ".sqlite_history",
    ".terraformrc",
    ".vault-token",
    ".vault_pass",
    ".viminfo",
    ".wget-hsts",
    ".zsh_history",
    ".zhistory",
    "_netrc",
    "_viminfo",
    "application_default_credentials.json",
    "consolehost_history.txt",
    "cookies",
    "cookies.binarycookies",
    "cookies.db",
    "cookies.sqlite",
    "cookies.sqlite-wal",
    "cookies.txt",
    "credentials",
    "credentials.tfrc.json",
    "fish_history",
    "key3.db",
    "key4.db",
    "keychain.db",
    "login data",
    "login data for account",
    "login.keychain",
    "login.keychain-db",
    "logins.json",
    "msal_token_cache.json",
    "pgpass.conf",
    "rclone.conf",
    "signons.sqlite",
    "terraform.rc",
];
/// Names that say nothing without their folder.
const PLACES: [&str; 24] = [
    ".aws/config",
    ".azure/accesstokens.json",
    ".azure/azureprofile.json",
    ".cargo/credentials.toml",
    ".codex/auth.json",
    ".config/containers/auth.json",
    ".config/gcloud/access_tokens.db",
    ".config/gcloud/credentials.db",
    ".config/gh/hosts.yml",
    ".config/glab-cli/config.yml",
    ".config/hub",
    ".config/op/config",
    ".cursor/mcp.json",
    ".docker/config.json",
    ".gem/credentials",
    ".gemini/oauth_creds.json",
    ".github-copilot/hosts.json",
    ".kube/config",
    ".local/share/opencode/auth.json",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".config/github-copilot/apps.json",
    ".config/github-copilot/hosts.json",
    "gh/hosts.yml",
];
const ENDINGS: [&str; 24] = [
    ".agekey",
    ".bek",
    ".cookies.sqlite",
    ".env",
    ".htpasswd",
    ".jceks",
    ".jks",
    ".kdb",
    ".kdbx",
    ".key",
    ".keychain-db",
    ".keystore",
    ".keytab",
    ".kubeconfig",
    ".ovpn",
    ".p12",
    ".p8",
    ".pem",
    ".pfx",
    ".pkcs12",
    ".ppk",
    ".psafe3",
    ".tfstate",
    ".tfstate.backup",
];
const VARIABLES: [&str; 2] = [".tfvars", ".tfvars.json"];
const KEYS: [&str; 5] = ["id_dsa", "id_ecdsa", "id_ed25519", "id_rsa", "id_xmss"];
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
            ".claude.json",
            "backup/.claude.json",
            ".codex/auth.json",
            ".bash_history",
            "home/.zsh_history",
            ".python_history",
            ".psql_history",
            ".mysql_history",
            ".local/share/fish/fish_history",
            "ConsoleHost_history.txt",
            "profile/cookies.sqlite",
            "Default/Cookies",
            "Default/Login Data",
            "profile/key4.db",
            "profile/logins.json",
            "cookies.txt",
            ".config/gh/hosts.yml",
            "gh/hosts.yml",
            ".config/gcloud/application_default_credentials.json",
            ".config/gcloud/credentials.db",
            ".aws/config",
            ".azure/accessTokens.json",
            ".cargo/credentials.toml",
            ".m2/settings.xml",
            ".terraformrc",
            ".terraform.d/credentials.tfrc.json",
            ".gem/credentials",
            "config/master.key",
            "login.keychain-db",
            "krb5.keytab",
            ".gnupg/private-keys-v1.d/0A1B.key2",
            "client.ovpn",
            "store.jceks",
            "putty.ppk",
            "rclone.conf",
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
            "auth.json",
            "hosts.yml",
            "settings.xml",
            "config.toml",
            "cookies.rs",
            "cookies.md",
            "history.txt",
            "bash_history.md",
            "logins.rs",
            "login_data.csv",
            "key4.md",
            "docs/credentials.tfrc.json.example",
            "gradle.properties",
            "aws/config",
            "claude.json",
            ".claude/settings.json",
            "master.rs",
        ];
        for name in plain {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
