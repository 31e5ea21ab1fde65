//! Limits for the instructions and the memory that reading many transcripts takes.

use super::{Lines, world_in_time_zone, write_transcript};
use crate::cost_in_large_projects::{can_measure, count_instructions_with_callgrind};
use plimsoll_testkit::world::World;
use serde_json::json;

/// Measured: 5.0 as built for tests.
const MAX_INSTRUCTIONS_PER_BYTE: f64 = 6.0;
const MAX_PEAK_KILOBYTES: u64 = 64 * 1024;

/// Writes transcripts of which a third is responses and the rest results of tools, as in real ones. Returns their size.
fn write_typical_transcripts(world: &World, file_count: usize, responses_per_file: usize) -> u64 {
    let mut total_bytes = 0;
    for file_index in 0..file_count {
        let mut lines = Lines::default();
        for response_index in 0..responses_per_file {
            let id = format!("{file_index}-{response_index}");
            let text = "the \"parser\" reads dates\n and fails on leap years ".repeat(30);
            lines = lines.response(&id, "2026-10-01T00:00:00Z", 5, |line| {
                line["message"]["content"] = json!([{"type": "text", "text": text}]);
            });
            let result = json!({"parentUuid": "x", "isSidechain": false, "type": "user",
                "message": {"role": "user", "content": [{"type": "tool_result", "content": text.repeat(4)}]}});
            lines = lines.raw(&format!("{result}\n"));
        }
        total_bytes += lines.0.len() as u64;
        write_transcript(world, &format!("-p{}/s{file_index}.jsonl", file_index % 9), &lines);
    }
    total_bytes
}

#[test]
fn usage_costs_few_instructions_a_byte() {
    if !can_measure() {
        return;
    }
    let world = world_in_time_zone("UTC");
    let count = |world: &World| {
        count_instructions_with_callgrind(world, |by| {
            let plimsoll = plimsoll_testkit::find_or_build_bin_dir().join("plimsoll").display().to_string();
            let arguments = [&by[1..], &[plimsoll.as_str(), "usage", "--json"]].concat();
            world.command(by[0], &arguments).run().expect_success();
        })
    };
    write_typical_transcripts(&world, 10, 20);
    let (few, few_bytes) = (count(&world), write_typical_transcripts(&world, 10, 20));
    let many_bytes = write_typical_transcripts(&world, 40, 60);
    let per_byte = (count(&world) - few) as f64 / (many_bytes - few_bytes) as f64;
    println!("{per_byte:.2} instructions a byte");
    assert!(per_byte < MAX_INSTRUCTIONS_PER_BYTE, "{per_byte}");
}

#[test]
fn memory_stays_small_with_many_files_and_a_line_of_500_megabytes() {
    let world = world_in_time_zone("UTC");
    write_typical_transcripts(&world, 2_000, 30);
    // A file of zeros takes no space on the disk.
    let long_line = std::fs::File::create(world.home().join(".claude/projects/-p0/long.jsonl")).unwrap();
    long_line.set_len(500 << 20).unwrap();
    let plimsoll = plimsoll_testkit::find_or_build_bin_dir().join("plimsoll").display().to_string();
    let script = "import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)";
    let finished = world
        .command("python3", &["-c", script, &plimsoll, "usage", "daily", "--json"])
        .run()
        .expect_success();
    assert_eq!(finished.stdout_json()["totals"]["responses"], 60_000);
    assert_eq!(finished.stdout_json()["skipped"][0]["reason"], "1 line longer than 16 MB");
    let peak: u64 = finished.stderr.trim().rsplit(' ').next().unwrap().parse().unwrap();
    println!("{peak} KB");
    assert!(peak < MAX_PEAK_KILOBYTES, "{peak} KB");
}
