//! Paths that lead out of the project are refused; the races are tested in `plimsoll_store::confined`.

use crate::mcp::json_rpc_client::JsonRpcClient;
use plimsoll_testkit::world::World;
use serde_json::json;
use std::os::unix::fs::symlink;
use std::process::Command;

#[test]
fn paths_that_lead_out_of_the_project_are_refused() {
    let world = World::without_git();
    let root = world.project();
    let outside = root.parent().expect("a folder").join("outside");
    std::fs::create_dir(&outside).expect("a folder");
    std::fs::write(outside.join("secret"), "secret").expect("a file");
    world.write("inside/a.txt", "a");
    symlink("../outside", world.path("link")).expect("a link");
    symlink(&outside, world.path("absolute")).expect("a link");
    symlink("../outside/new", world.path("dangling")).expect("a link");
    symlink("inside", world.path("within")).expect("a link");
    let mut client = JsonRpcClient::start_initialized(&world, &["--workspace"]);
    let absolute = outside.join("secret").display().to_string();
    for path in [
        "../outside/secret",
        "inside/../../outside/secret",
        "inside/../inside/a.txt",
        &absolute,
        "/etc/passwd",
        "link/secret",
        "absolute/secret",
        "dangling",
    ] {
        for (tool, arguments) in [
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "x"})),
            ("list_files", json!({"path": path})),
        ] {
            let refused = client.call_refused_tool(tool, arguments).replace(path, "[PATH]");
            insta::allow_duplicates! {
                insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&refused), @"[PATH] leads out of the project: only paths below [PROJECT] are allowed, without `..`");
            }
        }
    }
    let refused = client.call_refused_tool("list_files", json!({"path": "link"}));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&refused), @"link leads out of the project: only paths below [PROJECT] are allowed, without `..`");
    assert_eq!(std::fs::read_to_string(outside.join("secret")).expect("it"), "secret");
    assert_eq!(std::fs::read_dir(&outside).expect("it").count(), 1);
    let within = world.path("inside/a.txt").display().to_string();
    for path in ["inside/a.txt", "./inside//a.txt", "within/a.txt", &within] {
        assert_eq!(client.call_tool("read_file", json!({"path": path})), "a", "{path}");
    }
    assert_eq!(
        client.call_tool("list_files", json!({})),
        ".claude/\nabsolute@\ndangling@\ninside/\nlink@\nwithin@"
    );
}

#[test]
fn only_regular_files_are_read_and_written() {
    let world = World::without_git();
    let mkfifo_status = Command::new("mkfifo").arg(world.path("pipe")).status().expect("mkfifo");
    assert!(mkfifo_status.success());
    let _socket = std::os::unix::net::UnixListener::bind(world.path("socket")).expect("a socket");
    // A link to a device leads out. Making a device inside needs root; such a device is refused as a device.
    let mknod_output = Command::new("mknod").arg(world.path("device")).args(["c", "1", "5"]).output();
    let has_device = mknod_output.is_ok_and(|made| made.status.success());
    symlink("/dev/zero", world.path("zero")).expect("a link");
    std::fs::create_dir(world.path("folder")).expect("a folder");
    let mut client = JsonRpcClient::start_initialized(&world, &["--workspace"]);
    let cases = [
        ("pipe", "is a pipe"),
        ("socket", "is a socket"),
        ("folder", "is a folder"),
        ("zero", "leads out"),
        ("device", if has_device { "is a device" } else { "does not exist" }),
        ("missing", "does not exist"),
    ];
    for (path, expected) in cases {
        let read = client.call_refused_tool("read_file", json!({"path": path}));
        assert!(read.contains(expected), "{path}: {read}");
        if expected != "does not exist" {
            let written = client.call_refused_tool("write_file", json!({"path": path, "content": "x"}));
            assert!(written.contains(expected), "{path}: {written}");
        }
    }
    insta::assert_snapshot!(client.call_refused_tool("list_files", json!({"path": "pipe"})), @"pipe is not a folder");
}
