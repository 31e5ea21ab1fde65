//! Secrets that lie about in a working tree are left out of the commit, by their names or by what is in them; what
//! only looks like one is committed. And looking costs little.

use super::may_be_shown;
use crate::time_limit::TimeLimit;
use crate::wip::Wip;
use crate::wip::tests::{committed, last_commit, repository, run, wip};
use cpu_time::ThreadTime;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Letters and digits that look drawn by lot. Everything here is put together, so that this file is not taken for a leak.
fn lot(count: usize) -> String {
    "aB3xQ9kLm2ZrT7wE5yU1".repeat(1 + count / 20)[..count].to_owned()
}

fn put(at: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = at.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

#[test]
fn planted_secrets_are_left_out_and_named() {
    let folder = repository();
    let at = folder.path();
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let wide_be = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let token = format!("{}{}", "ghp_", lot(36));
    let mut planted: Vec<(&str, Vec<u8>)> = vec![
        ("url.txt", format!("db = postgres://app:{}@db/x", lot(12)).into()),
        ("password.yml", format!("db:\n  password: {}\n", lot(12)).into()),
        ("aws.txt", format!("aws_secret_access_key = {}/{}", lot(20), lot(19)).into()),
        ("jwt.txt", format!("{}{}.{}{}.{}", "ey", "JhbGciOiJIUzI1NiJ9", "ey", lot(30), lot(43)).into()),
        ("azure.txt", format!("{}={}==;EndpointSuffix=x", "AccountKey", lot(86)).into()),
        ("azure-ad.txt", format!("secret: abc8{}~{}", "Q", lot(34)).into()),
        ("sendgrid.txt", format!("{}.{}.{}", "SG", lot(22), lot(43)).into()),
        ("vault.txt", format!("{}.{}", "hvs", lot(95)).into()),
        (
            "discord.txt",
            format!("https://discord.com/api/{}/{}/{}", "webhooks", "123456789012345678", lot(68)).into(),
        ),
        ("wireguard.conf", format!("[Interface]\n{} = {}=\n", "PrivateKey", lot(43)).into()),
        ("putty.txt", format!("{}-3: ssh-ed25519\nEncryption: none\n", "PuTTY-User-Key-File").into()),
        (
            "slack.txt",
            format!("https://hooks.slack.com/{}/T{}/B{}/{}", "services", lot(9), lot(9), lot(24)).into(),
        ),
        ("telegram.txt", format!("1234567890:{}{}", "AA", lot(33)).into()),
        ("netrc.txt", format!("machine h login me password {}", lot(10)).into()),
        ("utf16.txt", [b"\xff\xfe".to_vec(), wide(&format!("token {token}\r\n"))].concat()),
        ("utf16-bare.reg", wide(&format!("x {token} y"))),
        ("utf16-be.txt", wide_be(&format!("token {token}\r\n"))),
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
        put(at, name, content);
    }
    put(at, "fine.rs", "let token = lexer.next_token(); // sha256 is in the lock file\n");
    put(at, "fine.lock", format!("checksum = \"{}\"\n", "9fceb02d0ae598e95dc970b74767f193".repeat(2)));
    let (files, mut left_out) = committed(at);
    left_out.sort();
    let mut names: Vec<&str> = planted.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(left_out, names);
    assert_eq!((files, last_commit(at).as_str()), (2, "A\tfine.lock\nA\tfine.rs\n"));
}

#[test]
fn a_secret_in_a_tracked_file_of_any_size_is_found_and_nothing_is_searched_for_ever() {
    let folder = repository();
    let at = folder.path();
    run(at, "truncate -s 40M big.txt; git add -A; git commit -qm big");
    let tail = format!(" {}{}", "glpat-", lot(20));
    run(at, &format!("printf '%s' '{tail}' >> big.txt"));
    assert_eq!(wip(at), Wip::Nothing, "it is left out, and nothing else has changed");
    // What there is no time to search is not known to be harmless.
    assert!(may_be_shown(&at.join("a.txt"), TimeLimit::within(Duration::from_secs(5))));
    assert!(!may_be_shown(&at.join("a.txt"), TimeLimit::within(Duration::ZERO)));
}

#[test]
fn looking_through_two_thousand_files_costs_little() {
    let folder = tempfile::tempdir().unwrap();
    // Some four kilobytes of this crate's own code each, with names that rules look for among them.
    let code = concat!(include_str!("../shown.rs"), include_str!("../filters.rs"));
    let code = format!(
        "{}\nlet token = tokens.next(); // password, api_key, https://example.invalid\n",
        &code[..4000]
    );
    for number in 0..2000 {
        put(folder.path(), &format!("f{number}.rs"), &code);
    }
    let began = ThreadTime::now();
    let limit = TimeLimit::within(Duration::from_secs(60));
    assert!((0..2000).all(|number| may_be_shown(&folder.path().join(format!("f{number}.rs")), limit)));
    // Two seconds are promised of a release; without optimisation it is ten times slower.
    let most = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 2 });
    assert!(began.elapsed() < most, "{:?}", began.elapsed());
}
