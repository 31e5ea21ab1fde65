#!/usr/bin/env python3
"""What our monitor decides, as a good user would write it in Python: how full is the session, and which level is new?"""

import fcntl
import json
import os
import sys

LEVELS = ((70, "L1"), (85, "L2"), (95, "L3"))
SMALL_WINDOWS = {"claude-haiku-4-5": 200_000, "claude-sonnet-4-5": 200_000}
LONGEST_TAIL = 8 * 1024 * 1024


def last_answer(path):
    """The last line of the main conversation that has a usage, read backwards from the file's end."""
    with open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        length = 32 * 1024
        while True:
            start = max(0, end - length)
            file.seek(start)
            lines = file.read(end - start).split(b"\n")
            for line in reversed(lines if start == 0 else lines[1:]):
                if b'"usage"' not in line:
                    continue
                entry = json.loads(line)
                if entry.get("type") == "assistant" and not entry.get("isSidechain"):
                    return entry
            if start == 0 or length >= LONGEST_TAIL:
                return None
            length *= 4


def percent_of(answer, calls):
    usage = answer["message"]["usage"]
    used = usage["input_tokens"] + usage["cache_creation_input_tokens"] + usage["cache_read_input_tokens"]
    added = sum(len(str(call.get("tool_response", ""))) for call in calls) // 4
    window = SMALL_WINDOWS.get(answer.get("requestedModel"), 1_000_000)
    return int((used + usage["output_tokens"] + added) * 100 / window + 0.5)


def remember(path, percent):
    """Notes the percent under a lock; answers with the level that is new, if one is."""
    level = next((name for mark, name in reversed(LEVELS) if percent >= mark), "L0")
    with open(path + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            with open(path) as file:
                before = json.load(file)
        except (FileNotFoundError, ValueError):
            before = {"percent": None, "peak": 0, "announced": "L0"}
        after = {
            "percent": percent,
            "peak": max(before["peak"], percent),
            "announced": max(before["announced"], level),
        }
        if after != before:
            with open(path + ".draft", "w") as file:
                json.dump(after, file)
            os.replace(path + ".draft", path)
    return level if level > before["announced"] else None


def main():
    payload = json.load(sys.stdin)
    answer = last_answer(payload["transcript_path"])
    if answer is None:
        return print("{}")
    percent = percent_of(answer, payload.get("tool_calls", []))
    folder = os.environ.get("CLAUDE_PROJECT_DIR", payload["cwd"])
    level = remember(f"{folder}/.claude/hook-{payload['session_id']}.json", percent)
    warning = {"systemMessage": f"CCS_WARNING|{level}|{percent}|Context at {percent}%"}
    print(json.dumps(warning if level else {}))


main()
