//! Recognizes files that hold secrets by their names: credentials, key stores, histories, cookie stores.

/// Returns true if a file with this name or path usually contains secrets. Returns false for an example of such a
/// file; its content is searched like any other.
pub fn is_secret_file_name(path: &str) -> bool {
    let path = path.to_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    let has_prefix = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let has_suffix = |suffixes: &[&str]| suffixes.iter().any(|suffix| name.ends_with(suffix));
    let has_secret_prefix = has_prefix(&SECRET_NAME_PREFIXES) && !has_suffix(&SOURCE_SUFFIXES);
    let is_secret = SECRET_FILE_NAMES.contains(&name)
        || SECRET_PATHS
            .iter()
            .any(|secret_path| path == *secret_path || path.ends_with(&format!("/{secret_path}")))
        || has_suffix(&SECRET_SUFFIXES)
        || has_suffix(&TERRAFORM_VARIABLE_SUFFIXES)
        || path.contains(".gnupg/private-keys-v1.d/")
        || has_prefix(&[".env.", ".env-", ".env_"])
        || has_prefix(&SSH_KEY_PREFIXES) && !has_suffix(&[".pub"])
        || has_secret_prefix
        || has_prefix(&["secret", "service-account", "service_account"]) && has_suffix(&[".json"])
        || name.contains("firebase-adminsdk") && has_suffix(&[".json"]);
    is_secret && !is_example_file_name(name)
}

/// Names of credential files, key stores, cookie stores and histories.
const SECRET_FILE_NAMES: [&str; 58] = [
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
/// Paths of files whose names alone are too common.
const SECRET_PATHS: [&str; 24] = [
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
const SECRET_SUFFIXES: [&str; 24] = [
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
const TERRAFORM_VARIABLE_SUFFIXES: [&str; 2] = [".tfvars", ".tfvars.json"];
const SSH_KEY_PREFIXES: [&str; 5] = ["id_dsa", "id_ecdsa", "id_ed25519", "id_rsa", "id_xmss"];
const SECRET_NAME_PREFIXES: [&str; 4] = ["client_secret", "credentials.", "kubeconfig", "secrets."];
/// Suffixes of code and documents about secrets. `.py` and `.h` are missing, because some people keep the secrets
/// themselves in `secrets.py` or `secrets.h`.
const SOURCE_SUFFIXES: [&str; 14] = [
    ".c", ".cpp", ".cs", ".go", ".html", ".java", ".kt", ".md", ".rb", ".rs", ".scala", ".swift", ".ts",
    ".tsx",
];

/// Returns true for names such as `.env.example`, `sample.env`, `secrets.template.yaml`.
fn is_example_file_name(name: &str) -> bool {
    const EXAMPLE_WORDS: [&str; 6] = ["dist", "example", "examples", "sample", "template", "tmpl"];
    name.split(['.', '-', '_']).any(|part| EXAMPLE_WORDS.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_secrets_are_recognized_by_their_names() {
        let secret_names = [
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
        for name in secret_names {
            assert!(is_secret_file_name(name), "{name}");
        }
        let plain_names = [
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
        for name in plain_names {
            assert!(!is_secret_file_name(name), "{name}");
        }
    }
}
