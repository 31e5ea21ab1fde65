//! Tokens in the shapes in which they occur in commits, and texts that only look similar.

use plimsoll_secrets::{find_secrets, first_secret_kind};

fn is_found(line: &str) -> bool {
    assert_eq!(find_secrets(line).is_empty(), first_secret_kind(line.as_bytes()).is_none(), "{line}");
    !find_secrets(line).is_empty()
}

/// Random-looking letters, assembled at run time, so that this file is not reported as a secret itself.
fn random_letters(count: usize) -> String {
    "aB3xQ9kLm2Zr".repeat(9)[..count].to_owned()
}

#[test]
fn tokens_are_recognized_in_every_shape() {
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
    for (first_part, second_part, count) in starts {
        let token = format!("{first_part}{second_part}{}", random_letters(count));
        for line in [
            token.clone(),
            format!("export KEY={token}"),
            format!("  \"key\": \"{token}\","),
            format!("url = https://name:{token}@example.invalid/"),
            format!("text = 'first\\n{token}\\n'"),
        ] {
            assert!(is_found(&line), "{line}");
        }
    }
    for start in ["AK", "AS"] {
        assert!(is_found(&format!("id: {start}{}", "IAA1B2C3D4E5F6G7H8")), "{start}");
    }
    let plain = format!("sk-proj-{}", "abcdefghijklmnopqrstuvwxyz0123456789");
    assert!(is_found(&plain));
}

#[test]
fn false_friends_are_not_reported() {
    let false_friends = [
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
    for line in false_friends {
        assert!(!is_found(line), "{line}");
    }
}

#[test]
fn private_keys_are_recognized_by_their_first_line() {
    for line in [
        format!("{}RSA {}", "-----BEGIN ", "PRIVATE KEY-----"),
        format!("  key: \"{}{}\\n", "-----BEGIN ", "PRIVATE KEY-----"),
        format!("{}PGP {}", "-----BEGIN ", "PRIVATE KEY BLOCK-----"),
    ] {
        assert!(is_found(&format!("first\n{line}\nlast\n")), "{line}");
    }
    let certificate = format!("{}CERTIFICATE-----", "-----BEGIN ");
    assert!(!is_found(&certificate));
    assert!(!is_found("-----BEGIN\nPRIVATE KEY-----"));
}
