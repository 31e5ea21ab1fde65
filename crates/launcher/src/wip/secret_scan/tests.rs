//! Secrets in a working tree are left out of the commit, because of their names or their contents; harmless
//! lookalikes are committed. The search is fast.

use super::can_be_read_and_has_no_secret;
use crate::time_limit::TimeLimit;
use crate::wip::WipCommitOutcome;
use crate::wip::tests::{
    commit_and_count, commit_checkpoint, create_repository, files_of_last_commit, run_shell,
};
use cpu_time::ThreadTime;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Returns text that looks random. All secrets here are assembled at run time, so that this file is not taken
/// for a leak.
fn random_looking(count: usize) -> String {
    "aB3xQ9kLm2ZrT7wE5yU1".repeat(1 + count / 20)[..count].to_owned()
}

fn write_file(folder: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

#[test]
fn planted_secrets_are_left_out_and_named() {
    let folder = create_repository();
    let path = folder.path();
    let utf16_le = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let utf16_be = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let token = format!("{}{}", "ghp_", random_looking(36));
    let mut planted: Vec<(&str, Vec<u8>)> = vec![
        ("url.txt", format!("db = postgres://app:{}@db/x", random_looking(12)).into()),
        ("password.yml", format!("db:\n  password: {}\n", random_looking(12)).into()),
        ("aws.txt", format!("aws_secret_access_key = {}/{}", random_looking(20), random_looking(19)).into()),
        (
            "jwt.txt",
            format!("{}{}.{}{}.{}", "ey", "JhbGciOiJIUzI1NiJ9", "ey", random_looking(30), random_looking(43))
                .into(),
        ),
        ("azure.txt", format!("{}={}==;EndpointSuffix=x", "AccountKey", random_looking(86)).into()),
        ("azure-ad.txt", format!("secret: abc8{}~{}", "Q", random_looking(34)).into()),
        ("sendgrid.txt", format!("{}.{}.{}", "SG", random_looking(22), random_looking(43)).into()),
        ("vault.txt", format!("{}.{}", "hvs", random_looking(95)).into()),
        (
            "discord.txt",
            format!("https://discord.com/api/{}/{}/{}", "webhooks", "123456789012345678", random_looking(68))
                .into(),
        ),
        ("wireguard.conf", format!("[Interface]\n{} = {}=\n", "PrivateKey", random_looking(43)).into()),
        ("putty.txt", format!("{}-3: ssh-ed25519\nEncryption: none\n", "PuTTY-User-Key-File").into()),
        (
            "slack.txt",
            format!(
                "https://hooks.slack.com/{}/T{}/B{}/{}",
                "services",
                random_looking(9),
                random_looking(9),
                random_looking(24)
            )
            .into(),
        ),
        ("telegram.txt", format!("1234567890:{}{}", "AA", random_looking(33)).into()),
        ("netrc.txt", format!("machine h login me password {}", random_looking(10)).into()),
        ("utf16.txt", [b"\xff\xfe".to_vec(), utf16_le(&format!("token {token}\r\n"))].concat()),
        ("utf16-bare.reg", utf16_le(&format!("x {token} y"))),
        ("utf16-be.txt", utf16_be(&format!("token {token}\r\n"))),
        ("large.txt", [vec![b'.'; 3_000_000], format!("\n{token}\n").into(), vec![b'.'; 2_000_000]].concat()),
        (
            "edge.txt",
            [vec![b'.'; 256 * 1024 - 20], format!(" {token} ").into(), vec![b'.'; 500_000]].concat(),
        ),
        ("end.txt", [vec![b'\n'; 1_500_000], token.clone().into()].concat()),
        ("binary.bin", [&[0, 159, 146, 150, 255][..], b"\x00x ", token.as_bytes(), b" \x00\xff"].concat()),
    ];
    for name in [
        ".claude.json",
        ".bash_history",
        ".python_history",
        "cookies.sqlite",
        "profile/key4.db",
        ".codex/auth.json",
        "Login Data",
        ".config/gh/hosts.yml",
        "application_default_credentials.json",
        ".aws/config",
        "x.ovpn",
    ] {
        planted.push((name, b"nothing to see".to_vec()));
    }
    for (name, content) in &planted {
        write_file(path, name, content);
    }
    write_file(path, "fine.rs", "let token = lexer.next_token(); // sha256 is in the lock file\n");
    write_file(
        path,
        "fine.lock",
        format!("checksum = \"{}\"\n", "9fceb02d0ae598e95dc970b74767f193".repeat(2)),
    );
    let (files, mut left_out) = commit_and_count(path);
    left_out.sort();
    let mut names: Vec<&str> = planted.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(left_out, names);
    assert_eq!((files, files_of_last_commit(path).as_str()), (2, "A\tfine.lock\nA\tfine.rs\n"));
}

#[test]
fn a_secret_in_a_tracked_file_of_any_size_is_found_within_the_time_limit() {
    let folder = create_repository();
    let path = folder.path();
    run_shell(path, "truncate -s 40M big.txt; git add -A; git commit -qm big");
    let secret = format!(" {}{}", "glpat-", random_looking(20));
    run_shell(path, &format!("printf '%s' '{secret}' >> big.txt"));
    assert_eq!(
        commit_checkpoint(path),
        WipCommitOutcome::NothingToCommit,
        "it is left out, and nothing else has changed"
    );
    // A file that there is no time to search is not known to be harmless.
    assert!(can_be_read_and_has_no_secret(&path.join("a.txt"), TimeLimit::from_now(Duration::from_secs(5))));
    assert!(!can_be_read_and_has_no_secret(&path.join("a.txt"), TimeLimit::from_now(Duration::ZERO)));
}

#[test]
fn searching_two_thousand_files_is_fast() {
    let folder = tempfile::tempdir().unwrap();
    // About four kilobytes of this crate's own code each, with names that the rules look for.
    let code = concat!(include_str!("../secret_scan.rs"), include_str!("../filters.rs"));
    let code = format!(
        "{}\nlet token = tokens.next(); // password, api_key, https://example.invalid\n",
        &code[..4000]
    );
    for number in 0..2000 {
        write_file(folder.path(), &format!("f{number}.rs"), &code);
    }
    let started_at = ThreadTime::now();
    let limit = TimeLimit::from_now(Duration::from_secs(60));
    assert!(
        (0..2000)
            .all(|number| can_be_read_and_has_no_secret(&folder.path().join(format!("f{number}.rs")), limit))
    );
    // The limit for a release build is two seconds; a build without optimization is ten times slower.
    let max_time = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 2 });
    assert!(started_at.elapsed() < max_time, "{:?}", started_at.elapsed());
}
