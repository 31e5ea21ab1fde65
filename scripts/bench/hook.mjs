#!/usr/bin/env node
// What our monitor decides, as a good user would write it for node: how full is the session, and which level is new?

import fs from "node:fs";

const LEVELS = [[95, "L3"], [85, "L2"], [70, "L1"]];
const SMALL_WINDOWS = { "claude-haiku-4-5": 200_000, "claude-sonnet-4-5": 200_000 };
const LONGEST_TAIL = 8 * 1024 * 1024;

/** The last line of the main conversation that has a usage, read backwards from the file's end. */
function lastAnswer(path) {
  const file = fs.openSync(path, "r");
  const end = fs.fstatSync(file).size;
  for (let length = 32 * 1024; ; length *= 4) {
    const start = Math.max(0, end - length);
    const bytes = Buffer.allocUnsafe(end - start);
    const read = fs.readSync(file, bytes, 0, bytes.length, start);
    const lines = bytes.toString("utf8", 0, read).split("\n");
    for (let number = lines.length - 1; number >= (start === 0 ? 0 : 1); number--) {
      if (!lines[number].includes('"usage"')) continue;
      const entry = JSON.parse(lines[number]);
      if (entry.type === "assistant" && !entry.isSidechain) return entry;
    }
    if (start === 0 || length >= LONGEST_TAIL) return null;
  }
}

function percentOf(answer, calls) {
  const usage = answer.message.usage;
  const used = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens;
  const text = (response) => (typeof response === "string" ? response : JSON.stringify(response ?? ""));
  const added = Math.floor(calls.reduce((sum, call) => sum + text(call.tool_response).length, 0) / 4);
  const window = SMALL_WINDOWS[answer.requestedModel] ?? 1_000_000;
  return Math.round(((used + usage.output_tokens + added) * 100) / window);
}

/** Node has no flock: a file that only one can make, and a short wait for it. */
function locked(path, work) {
  const nap = new Int32Array(new SharedArrayBuffer(4));
  for (const deadline = Date.now() + 5000; ; Atomics.wait(nap, 0, 0, 2)) {
    try {
      fs.closeSync(fs.openSync(path, "wx"));
      break;
    } catch (error) {
      if (error.code !== "EEXIST" || Date.now() > deadline) throw error;
    }
  }
  try {
    return work();
  } finally {
    fs.unlinkSync(path);
  }
}

/** Notes the percent under a lock; answers with the level that is new, if one is. */
function remember(path, percent) {
  const level = LEVELS.find(([mark]) => percent >= mark)?.[1] ?? "L0";
  return locked(`${path}.held`, () => {
    let text = "";
    let before = { percent: null, peak: 0, announced: "L0" };
    try {
      text = fs.readFileSync(path, "utf8");
      before = JSON.parse(text);
    } catch {}
    const announced = level > before.announced ? level : before.announced;
    const after = JSON.stringify({ percent, peak: Math.max(before.peak, percent), announced });
    if (after !== text) {
      fs.writeFileSync(`${path}.draft`, after);
      fs.renameSync(`${path}.draft`, path);
    }
    return level > before.announced ? level : null;
  });
}

const payload = JSON.parse(fs.readFileSync(0, "utf8"));
const answer = lastAnswer(payload.transcript_path);
let reply = {};
if (answer) {
  const percent = percentOf(answer, payload.tool_calls ?? []);
  const folder = process.env.CLAUDE_PROJECT_DIR ?? payload.cwd;
  const level = remember(`${folder}/.claude/hook-${payload.session_id}.json`, percent);
  if (level) reply = { systemMessage: `CCS_WARNING|${level}|${percent}|Context at ${percent}%` };
}
console.log(JSON.stringify(reply));
