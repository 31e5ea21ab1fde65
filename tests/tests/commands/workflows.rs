//! GitHub's workflows: one file names the macOS runner images, with the day on which GitHub retires each of them, and
//! every action is pinned to the commit of its version.

use crate::packaging::{COMMAND_TIMEOUT, script_launch};
use plimsoll_testkit::world::World;
use plimsoll_testkit::{target_dir, workspace_root};
use serde_json::Value;
use std::collections::BTreeMap;

fn mac_runners() -> Vec<Value> {
    let text = std::fs::read_to_string(workspace_root().join(".github/runners.json")).expect("runners.json");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    file["macos"].as_array().expect("a list").clone()
}

/// Returns the text of every workflow by its file name.
fn workflows() -> BTreeMap<String, String> {
    let folder = std::fs::read_dir(workspace_root().join(".github/workflows")).expect("workflows");
    let read = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path()).expect("a workflow");
        (entry.file_name().display().to_string(), text)
    };
    folder.flatten().map(read).collect()
}

#[test]
fn workflows_do_not_hard_code_mac_runners() {
    for (name, text) in workflows() {
        let named: Vec<&str> = text.lines().filter(|line| line.contains("macos-1")).collect();
        assert_eq!(named, Vec::<&str>::new(), "{name}");
    }
}

/// Returns the action or container image that a line uses: the text after `uses:` or `image:`.
fn used_by_line(line: &str) -> Option<&str> {
    let line = line.trim_start().trim_start_matches("- ");
    let used = line.strip_prefix("uses:").or_else(|| line.strip_prefix("image:"))?;
    Some(used.trim())
}

/// Whether an action is pinned to a commit with its version in a comment, or is a file of this repository.
fn is_pinned(used: &str) -> bool {
    let parts = used.split_once('@').and_then(|(action, rest)| Some((action, rest.split_once(" # v")?)));
    let Some((action, (commit, version))) = parts else { return used.starts_with("./") };
    let is_number = |part: &str| !part.is_empty() && part.chars().all(|digit| digit.is_ascii_digit());
    action.contains('/')
        && !action.contains(':')
        && commit.len() == 40
        && commit.chars().all(|digit| matches!(digit, '0'..='9' | 'a'..='f'))
        && version.split('.').count() == 3
        && version.split('.').all(is_number)
}

/// A tag can be moved to another commit after a review, and the workflow that signs a release would run that commit.
#[test]
fn every_action_is_pinned_to_the_commit_of_one_version() {
    let mut pins: BTreeMap<String, String> = BTreeMap::new();
    for (name, text) in workflows() {
        for used in text.lines().filter_map(used_by_line) {
            assert!(is_pinned(used), "{name}: {used}");
            let Some((action, pin)) = used.split_once('@') else { continue };
            let first_pin = pins.entry(action.to_owned()).or_insert_with(|| pin.to_owned());
            assert_eq!(first_pin, pin, "{name}: {action} has one version in all workflows");
        }
    }
    assert!(pins.len() > 3, "the search has lost the actions: {pins:?}");
}

fn parse_workflow(name: &str) -> Value {
    serde_yaml_ng::from_str(&workflows()[name]).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Whether an artifact's name matches a pattern like `{*-linux-musl,sbom}`.
fn matches_artifact_pattern(pattern: &str, artifact: &str) -> bool {
    let alternatives = pattern.trim_start_matches('{').trim_end_matches('}').split(',');
    alternatives.into_iter().any(|alternative| match alternative.strip_prefix('*') {
        Some(ending) => artifact.ends_with(ending),
        None => artifact == alternative,
    })
}

/// Returns the names of the artifacts that the jobs of a workflow upload, one for each target of a matrix.
fn uploaded_artifacts(workflow: &Value) -> Vec<String> {
    let mut artifacts = Vec::new();
    for job in workflow["jobs"].as_object().expect("jobs").values() {
        let matrix = &job["strategy"]["matrix"];
        let included = matrix["include"].as_array().into_iter().flatten().map(|entry| &entry["target"]);
        let targets = matrix["target"].as_array().into_iter().flatten().chain(included);
        let targets: Vec<&str> = targets.filter_map(Value::as_str).collect();
        let uploads = job["steps"].as_array().into_iter().flatten().filter(|step| {
            step["uses"].as_str().is_some_and(|action| action.starts_with("actions/upload-artifact@"))
        });
        for name in uploads.filter_map(|step| step["with"]["name"].as_str()) {
            match name.contains("${{") {
                true => artifacts.extend(targets.iter().map(|t| name.replace("${{ matrix.target }}", t))),
                false => artifacts.push(name.to_owned()),
            }
        }
    }
    artifacts
}

/// Publishing waits for Windows but does without it. Everything else that it needs must have succeeded, which its own condition
/// requires in place of GitHub's default.
#[test]
fn a_release_has_archives_for_windows_only_if_the_tests_pass_there() {
    let release = parse_workflow("release.yml");
    let jobs = &release["jobs"];
    assert!(jobs["windows"]["uses"].as_str().is_some_and(|file| file.ends_with("/workflows/windows.yml")));
    assert_eq!(jobs["pack-for-windows"]["needs"], "windows");
    assert!(jobs["pack-for-windows"]["if"].is_null(), "skipped if the job before it failed");
    let condition = jobs["publish"]["if"].as_str().expect("a condition");
    assert!(!condition.contains("||") && condition.starts_with("!cancelled() && "), "{condition}");
    let needs: Vec<&str> =
        jobs["publish"]["needs"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    for need in &needs {
        let is_required = condition.contains(&format!("needs.{need}.result == 'success'"));
        assert_eq!(is_required, *need != "pack-for-windows", "{need}: {condition}");
    }
    assert!(needs.contains(&"pack-for-windows") && needs.len() > 3, "{needs:?}");

    let steps = jobs["publish"]["steps"].as_array().expect("steps");
    // Half of the archives for Windows would be worse than none.
    let downloads: Vec<(&str, bool)> = steps
        .iter()
        .filter_map(|step| Some((step["with"]["pattern"].as_str()?, !step["if"].is_null())))
        .collect();
    let [(pattern, false), (windows_pattern, true)] = downloads.as_slice() else { panic!("{downloads:?}") };
    for artifact in uploaded_artifacts(&release) {
        let is_for_windows = artifact.contains("windows");
        assert_eq!(matches_artifact_pattern(windows_pattern, &artifact), is_for_windows, "{artifact}");
        let is_expected = artifact != "npm" && !is_for_windows;
        assert_eq!(matches_artifact_pattern(pattern, &artifact), is_expected, "{artifact}");
    }
    let programs = uploaded_artifacts(&parse_workflow("windows.yml"));
    assert_eq!(programs.len(), 2, "{programs:?}");
    for artifact in programs {
        for pattern in [pattern, windows_pattern] {
            assert!(!matches_artifact_pattern(pattern, &artifact), "{artifact} is no archive");
        }
    }
}

/// The unit tests that run as Windows programs under wine also run on Windows.
#[test]
fn windows_runs_the_unit_tests_of_the_crates_that_run_under_wine() {
    let listed_crates = |script: &str| {
        let text = std::fs::read_to_string(workspace_root().join("scripts").join(script)).expect(script);
        let line = text.lines().find(|line| line.starts_with("crates=(")).expect(script);
        line.to_owned()
    };
    assert_eq!(listed_crates("windows.sh"), listed_crates("wine.sh"));
}

/// zizmor checks for expressions in scripts, stored credentials, unneeded permissions and poisoned caches, without the network.
#[test]
fn zizmor_finds_no_weakness_in_the_workflows() {
    let zizmor = target_dir().join("judges/bin/zizmor");
    assert!(zizmor.exists(), "{} is missing: scripts/judges.sh installs it", zizmor.display());
    let world = World::without_git();
    let workflows = workspace_root().join(".github/workflows").display().to_string();
    let run_zizmor = |folder: &str| {
        world
            .command(&zizmor, &["--offline", "--no-progress", "--no-config", folder])
            .timeout(COMMAND_TIMEOUT)
            .run()
    };
    let checked = run_zizmor(&workflows);
    assert!(checked.code == Some(0) && checked.stdout.contains("No findings"), "{checked:?}");
    // The check itself works: in this workflow a shell would run the name of a branch, which anybody can choose.
    let text = "on: pull_request_target\njobs:\n  a:\n    runs-on: x\n    steps:\n      - run: echo ${{ github.head_ref }}\n";
    world.write("weak/.github/workflows/weak.yml", text);
    let weak = run_zizmor(&world.path("weak").display().to_string());
    assert!(weak.code != Some(0) && weak.stdout.contains("template-injection"), "{weak:?}");
}

/// actionlint checks keys, expressions and the jobs that others need, and has shellcheck read the scripts.
#[test]
fn actionlint_finds_no_mistake_in_the_workflows() {
    let judges = target_dir().join("judges/bin");
    let (actionlint, shellcheck) = (judges.join("actionlint"), judges.join("shellcheck"));
    for program in [&actionlint, &shellcheck] {
        assert!(program.exists(), "{} is missing: scripts/judges.sh installs it", program.display());
    }
    let world = World::without_git();
    let shellcheck_option = format!("-shellcheck={}", shellcheck.display());
    let run_actionlint = |files: &[&str]| {
        let options = ["-no-color", "-oneline", "-pyflakes=", &shellcheck_option];
        world.command(&actionlint, &[&options[..], files].concat()).timeout(COMMAND_TIMEOUT).run()
    };
    let folder = workspace_root().join(".github/workflows");
    let paths: Vec<String> = workflows().keys().map(|name| folder.join(name).display().to_string()).collect();
    let checked = run_actionlint(&paths.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(checked.code == Some(0) && checked.stdout.is_empty(), "{checked:?}");
    // The check itself works: this job needs one that does not exist, and its script reads a variable without quotes.
    let text = "on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    needs: b\n    steps:\n      - run: cat $HOME/x $1\n";
    world.write("wrong.yml", text);
    let wrong = run_actionlint(&["wrong.yml"]);
    assert_ne!(wrong.code, Some(0), "{wrong:?}");
    assert!(wrong.stdout.contains("[job-needs]") && wrong.stdout.contains("SC2086"), "{wrong:?}");
}

/// `scripts/client-versions.sh` with an npm that prints this list.
#[test]
fn only_releases_that_are_newer_than_the_page_of_clients_are_tried() {
    let world = World::without_git();
    let page = std::fs::read_to_string(workspace_root().join("docs/clients.md")).expect("the page");
    let line = page.lines().find(|line| line.starts_with("Newest version at")).expect("the newest version");
    let newest = line.split([':', ',']).nth(1).expect("a version").trim();
    let parts: Vec<u32> = newest.split('.').map(|part| part.parse().expect("a number")).collect();
    let (major, minor, patch) = (parts[0], parts[1], parts[2]);
    let npm_folder = world.home().join("npm-stand-in");
    let path =
        format!("{}:{}", npm_folder.display(), std::env::var("PATH").expect("the path of this machine"));
    let older = format!("{major}.{minor}.{}", patch - 1);
    let next = |step: u32| format!("{major}.{minor}.{}", patch + step);
    // Compared as numbers: as a text, the tenth minor version would be older than the ninth.
    let next_minor = format!("{major}.{}.0", minor + 100);
    let list = |versions: &[&str]| format!("{versions:?}");
    for (published, expected) in [
        (list(&["1.0.128", &older, newest]), String::new()),
        (list(&[&next_minor, newest, &next(1)]), format!("{} {next_minor}\n", next(1))),
        (list(&[&format!("{}-beta.1", next(1)), "$(reboot)"]), String::new()),
        (format!("{:?}", next(2)), format!("{}\n", next(2))),
        (
            list(&[&next(1), &next(2), &next(3), &next(4), &next(5), &next(6)]),
            format!("{} {} {} {} {}\n", next(2), next(3), next(4), next(5), next(6)),
        ),
    ] {
        world.write_program(npm_folder.join("npm"), &format!("#!/bin/sh\ncat <<'END'\n{published}\nEND\n"));
        let printed = script_launch(&world, "client-versions.sh", &[]).env("PATH", &path).run();
        assert_eq!((printed.code, &printed.stdout), (Some(0), &expected), "{published}: {printed:?}");
    }
    world.write_program(npm_folder.join("npm"), "#!/bin/sh\nexit 1\n");
    let failed = script_launch(&world, "client-versions.sh", &[]).env("PATH", &path).run();
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""), "{failed:?}");
}

#[test]
fn tags_branches_and_short_commits_do_not_count_as_pinned() {
    let commit = "08c6903cd8c0fde910a37f88322edcfb5dd907a8";
    for (used, pinned) in [
        (format!("actions/checkout@{commit} # v5.0.0"), true),
        (format!("owner/repository/folder@{commit} # v1.22.333"), true),
        ("./.github/actions/own".to_owned(), true),
        (format!("actions/checkout@{commit}"), false),
        (format!("actions/checkout@{commit} # v5"), false),
        (format!("actions/checkout@{} # v5.0.0", &commit[..39]), false),
        ("actions/checkout@v5.0.0".to_owned(), false),
        ("actions/checkout@main # v5.0.0".to_owned(), false),
        ("docker://alpine:3.20".to_owned(), false),
    ] {
        assert_eq!(is_pinned(&used), pinned, "{used}");
        assert_eq!(used_by_line(&format!("      - uses: {used}")), Some(used.as_str()));
    }
}

#[test]
fn runner_image_that_expires_within_60_days_is_reported() {
    let world = World::without_git();
    let earliest =
        mac_runners().iter().map(|machine| machine["until"].as_str().expect("a day").to_owned()).min();
    let earliest = earliest.expect("a machine").parse::<chrono::NaiveDate>().expect("a day");
    for (days, code) in [(61, 0), (59, 1), (-1, 1)] {
        let today = (earliest - chrono::Duration::days(days)).to_string();
        let checked = script_launch(&world, "runners.sh", &[&today]).run();
        assert_eq!(checked.code, Some(code), "{today}: {checked:?}");
        assert_eq!(checked.stderr.contains("choose another machine"), code == 1, "{today}: {checked:?}");
    }
}
