//! The npm packages, installed by npm from what was packed: no network, and of the user's npm nothing.
//!
//! docs/start.md names the commands.

use crate::packaging::sample_releases::{VERSION, serve, stand_in};
use crate::packaging::{LONG, script, shell, tree};
use plimsoll_testkit::world::{Finished, World};
use serde_json::{Value, json};
use std::path::Path;

/// The package of this machine.
fn platform() -> &'static str {
    if cfg!(target_arch = "aarch64") { "linux-arm64" } else { "linux-x64" }
}

/// A world with the packages in `out`, of programs that only say their names.
fn with_packages() -> World {
    let world = World::untouched().without_plimsoll();
    stand_in(&world, "out", VERSION);
    pack(&world);
    world
}

fn pack(world: &World) {
    script(world, "release/packages.sh", &["--out", "out"]).timeout(LONG).run().expect_success();
    world.write("package.json", "{\"name\": \"mine\", \"version\": \"1.0.0\"}\n");
}

/// Puts the real command and the real hooks where npm has unpacked the others, without what a debug build carries along: npm
/// would only take long to pack them.
fn make_real(world: &World) {
    let installed = format!("node_modules/@plimsoll/{}/bin", platform());
    let bin = plimsoll_testkit::bin_dir().display().to_string();
    let real = format!(
        "strip -o {installed}/plimsoll '{bin}/plimsoll' && strip -o {installed}/plimsoll-hook '{bin}/plimsoll-post-tool'"
    );
    shell(world, &real).expect_success();
}

fn npm(world: &World, words: &str) -> Finished {
    shell(world, &format!("npm {words} --no-audit --no-fund --no-update-notifier"))
}

fn commands(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("command").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| commands(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| commands(value, found)),
        _ => {}
    }
}

#[test]
fn init_copies_the_programs_and_hooks_outlive_what_npm_removes() {
    let world = with_packages();
    let both = format!("./out/plimsoll-{}-{VERSION}.tgz ./out/plimsoll-{VERSION}.tgz", platform());
    npm(&world, &format!("install --offline {both}")).expect_success();
    let listed = shell(&world, "ls node_modules/@plimsoll").stdout;
    assert_eq!(listed.trim(), platform());
    make_real(&world);
    let home = world.home().display().to_string();
    let copied = format!("{home}/.local/share/plimsoll/versions/{VERSION}/bin");
    let stable = format!("{home}/.local/share/plimsoll/bin");
    let settings = world.home().join(".claude/settings.json");

    let before = tree(&world, &home);
    let dry = shell(&world, "npx --offline plimsoll init --user --dry-run --diff").expect_success().stdout;
    assert!(dry.contains(&copied) && dry.contains(&stable), "{dry}");
    assert!(!dry.contains("node_modules") && !dry.contains("Careful"), "{dry}");
    let without_npms =
        |text: &str| text.lines().filter(|line| !line.contains("./.npm")).collect::<Vec<_>>().join("\n");
    assert_eq!(without_npms(&tree(&world, &home)), without_npms(&before), "a dry run copies nothing");

    let said = shell(&world, "npx --offline plimsoll init --user --memory").expect_success().stdout;
    assert!(said.contains(&format!("{copied}: the programs, copied")) && !said.contains("Careful"), "{said}");
    let mut named = Vec::new();
    commands(&world.json(&settings), &mut named);
    assert!(named.len() > 8, "{named:?}");
    assert!(named.iter().all(|command| command.starts_with(&format!("{stable}/"))), "{named:?}");
    for name in ["plimsoll", "plimsoll-fleet", "plimsoll-linear", "plimsoll-mcp", "plimsoll-otel"] {
        let linked = shell(&world, &format!("readlink ~/.local/bin/{name}")).expect_success().stdout;
        assert_eq!(linked.trim(), format!("{stable}/{name}"));
        assert!(Path::new(&copied).join(name).exists(), "{name} is copied");
    }
    // What npx starts, without the second that npx takes.
    let doctor = shell(&world, "node_modules/.bin/plimsoll doctor --json").json();
    assert_eq!(doctor["programs"]["folder"], copied.as_str());
    let codes: Vec<_> =
        doctor["findings"].as_array().expect("findings").iter().map(|one| &one["code"]).collect();
    let bad = |code: &&&Value| {
        ["programs.missing", "programs.several", "settings.missing_program"].iter().any(|bad| **code == bad)
    };
    assert!(codes.iter().find(bad).is_none(), "{codes:?}");

    // The second time only a damaged file is copied again.
    world.write(format!("{copied}/plimsoll-mcp"), "spoiled");
    shell(&world, "node_modules/.bin/plimsoll init --user").expect_success();
    assert!(world.read(format!("{copied}/plimsoll-mcp")).starts_with("#!/bin/sh"));

    npm(&world, "uninstall plimsoll").expect_success();
    shell(&world, "rm -rf node_modules ~/.npm").expect_success();
    for command in ["plimsoll-post-tool", "plimsoll-stop-gate"] {
        let told = shell(&world, &format!("'{stable}/{command}' version")).expect_success().stdout;
        assert_eq!(told, format!("{command} {VERSION}\n"));
    }
    shell(&world, "~/.local/bin/plimsoll uninstall --user").expect_success();
    assert!(!settings.exists());
    assert_eq!(shell(&world, "ls ~/.local/bin").stdout, "");
}

#[test]
fn without_its_programs_it_says_what_to_install_and_it_ends_as_they_end() {
    let world = with_packages();
    npm(&world, &format!("install --offline --omit=optional ./out/plimsoll-{VERSION}.tgz")).expect_success();
    let missing = shell(&world, "npx --offline plimsoll --version");
    assert_eq!(missing.code, Some(1), "{missing:?}");
    let package = format!("@plimsoll/{}", platform());
    for words in [
        &format!("the package {package} is missing"),
        "--omit=optional",
        &format!("npm install {package}@{VERSION}"),
    ] {
        assert!(missing.stderr.contains(words), "{words}: {missing:?}");
    }
    for (platform, words) in [
        (
            "plan9",
            &["no program for plan9-", "@plimsoll/linux-x64", "cargo install --locked --git https://"][..],
        ),
        ("win32", &["no programs for Windows yet; use WSL"]),
    ] {
        let find = format!(
            "node -e 'Object.defineProperty(process, \"platform\", {{value: \"{platform}\"}}); require(\"./node_modules/plimsoll/bin/find.js\")'"
        );
        let elsewhere = shell(&world, &find);
        assert_eq!(elsewhere.code, Some(1), "{elsewhere:?}");
        assert!(words.iter().all(|word| elsewhere.stderr.contains(word)), "{elsewhere:?}");
    }
    let manifest = world.read("node_modules/plimsoll/package.json");
    let manifest: Value = serde_json::from_str(&manifest).expect("a package");
    assert_eq!(manifest["os"], json!(["linux", "darwin"]));

    let program = format!("node_modules/{package}/bin/plimsoll");
    world.write(format!("node_modules/{package}/package.json"), "{}");
    let start = "node_modules/.bin/plimsoll";
    world.write_program(&program, "#!/bin/sh\nprintf '%s|' \"$@\"; cat; exit 7\n");
    let finished = world.command(start, &["a b", "*"]).stdin("input").run();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(7), "a b|*|input"));
    world.write_program(&program, "#!/bin/sh\nkill -KILL $$\n");
    assert_eq!(world.command(start, &[]).run().signal, Some(9));
    world.write_program(
        &program,
        "#!/bin/sh\ntrap 'echo ended; exit 3' TERM INT\necho ready\nwhile :; do sleep 0.05; done\n",
    );
    for end in [plimsoll_testkit::world::Running::terminate, plimsoll_testkit::world::Running::interrupt] {
        let mut running = world.command(start, &[]).spawn();
        world.wait_until(|| running.stdout_so_far().contains("ready"), "the program runs");
        end(&mut running);
        let finished = running.wait(LONG);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(3), "ready\nended\n"), "{finished:?}");
    }
    // What `nohup` asks for reaches the program: the first bit of the mask is SIGHUP's.
    world.write_program(&program, "#!/bin/sh\nsed -n 's/^SigIgn:.*\\(.\\)$/\\1/p' /proc/$$/status\n");
    let ignored = |words: &str| {
        let last = shell(&world, &format!("{words} {start} 2>/dev/null")).expect_success().stdout;
        u8::from_str_radix(last.trim(), 16).expect("a mask") & 1
    };
    assert_eq!((ignored("nohup"), ignored("env")), (1, 0));
    shell(&world, &format!("chmod 644 '{program}'")).expect_success();
    let broken = world.command(start, &[]).run();
    assert!(broken.code == Some(1) && broken.stderr.contains("cannot start"), "{broken:?}");
}

/// A registry on loopback with two versions: the older one is the newer one with another number.
fn registry(world: &World) -> String {
    shell(world, "mkdir -p registry/@plimsoll").expect_success();
    let server = serve(world.path("registry"));
    for (name, file) in [
        ("plimsoll", "plimsoll"),
        ("@plimsoll/linux-x64", "plimsoll-linux-x64"),
        ("@plimsoll/linux-arm64", "plimsoll-linux-arm64"),
    ] {
        let older = format!(
            "set -e; cp out/{file}-{VERSION}.tgz registry/; rm -rf package; tar -xzf out/{file}-{VERSION}.tgz; \
             sed -i 's/\"{VERSION}\"/\"0.0.9\"/' package/package.json; [ ! -e package/bin/plimsoll ] || \
             printf '#!/bin/sh\\necho plimsoll 0.0.9\\n' >package/bin/plimsoll; tar -czf registry/{file}-0.0.9.tgz package"
        );
        shell(world, &older).expect_success();
        let mut versions = json!({});
        for version in ["0.0.9", VERSION] {
            let line = format!("tar -xzOf registry/{file}-{version}.tgz package/package.json");
            let mut manifest = shell(world, &line).expect_success().json();
            manifest["dist"] = json!({"tarball": format!("{server}/{file}-{version}.tgz")});
            versions[version] = manifest;
        }
        let document = json!({"name": name, "dist-tags": {"latest": VERSION}, "versions": versions});
        world.write(format!("registry/{}", name.replace('/', "%2f")), &document.to_string());
    }
    server
}

#[test]
fn npx_takes_the_program_of_this_machine_alone_and_an_upgrade_takes_both() {
    let world = with_packages();
    let registry = registry(&world);
    shell(&world, &format!("npm config set registry {registry}/")).expect_success();
    npm(&world, "install plimsoll@0.0.9").expect_success();
    let listed = || shell(&world, "ls node_modules/@plimsoll; npx --offline plimsoll --version").stdout;
    assert_eq!(listed(), format!("{}\nplimsoll 0.0.9\n", platform()));
    npm(&world, "install plimsoll@latest").expect_success();
    assert_eq!(listed(), format!("{}\nplimsoll {VERSION}\n", platform()));
    npm(&world, "uninstall plimsoll").expect_success();
    assert_eq!(shell(&world, "find node_modules -name 'plimsoll*'").stdout, "");

    // In an empty folder, from the cache of npx.
    let told =
        shell(&world, "mkdir empty && cd empty && npx --yes plimsoll --version").expect_success().stdout;
    assert_eq!(told, format!("plimsoll {VERSION}\n"));
    assert_eq!(shell(&world, "ls ~/.npm/_npx/*/node_modules/@plimsoll").stdout.trim(), platform());
}
