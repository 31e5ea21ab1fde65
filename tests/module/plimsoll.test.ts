// Tests of the module for every surface on which the client draws. The client runs them: `claude plugin test`.
import { expect, mock, test } from "claude-code/testing";

const SURFACES = ["terminal", "desktop", "vscode", "mobile"] as const;
const SITE = { isWorking: false, hasSurvey: false, isCollapsed: false, maxRows: 20, bodyColumns: 100, scroll: { top: 0, bodyRows: 20, contentRows: 0 }, view: {} };

const CONTEXT = {
  schema_version: 1,
  answers: true,
  compaction: "handoff",
  handoff_at: null,
  level: "L1",
  thresholds: { l1: 700_000, l2: 850_000, l3: 950_000, auto_compact: 967_000 },
  band: ["72% of the context window used", "Explore: 45k of 200k tokens (23%), $0.12"],
};
const SUMMARY = "the client's summary";
const HANDOFF = { schema_version: 1, path: "a.md", text: "[Plimsoll handoff, for a fresh conversation]\n\ntext" };

/** Answers what the module asks of the session and of our programs; returns what it did. */
function world(on: any, context: object | string, tokens = 720_000, env: Record<string, string> = {}) {
  const done: string[] = [];
  const clock = mock.clock(on);
  mock.env(on, { HOME: "/home/u", ...env });
  const answer = (event: string, value: unknown) => on(event, () => ({ value }));
  answer("session.usage", { startedAt: 0, context: { tokens, window: 1_000_000, percent: 72, breakdown: { autoCompactThreshold: 967_000, isAutoCompactEnabled: true } }, rateLimits: [] });
  answer("session.id", "s1");
  answer("session.model", "claude-opus-5-5");
  answer("session.cwd", "/p");
  answer("session.root", "/p");
  answer("session.version", { version: "2.1.329" });
  answer("session.messages", []);
  answer("settings.read", {});
  answer("agent.list", []);
  on("process.run", (_$: any, e: any) => {
    const words = [e.argv[0].split("/").pop(), e.argv[1]].join(" ");
    done.push(words);
    const document = words === "plimsoll checkpoint" ? HANDOFF : context;
    return { value: { exitCode: 0, stdout: typeof document === "string" ? document : JSON.stringify(document), stderr: "" } };
  });
  on("command.run", (_$: any, e: any) => (done.push(`/${e.command}`), { text: "" }));
  on("prompt.submit", (_$: any, e: any) => (done.push(`prompt ${e.text.split("\n")[0]}`), { text: e.text }));
  on("session.start", (_$: any, e: any) => ({ cwd: e.cwd }));
  on("turn.start", (_$: any, e: any) => ({ turnId: e.turnId }));
  on("turn.complete", (_$: any, e: any) => ({ text: e.answer }));
  on("session.compact", () => ({ messages: [{ role: "user", text: SUMMARY, toolUses: [] }] }));
  for (const quiet of ["ui.invalidate", "ui.log", "ui.toast"]) answer(quiet, undefined);
  return { clock, done };
}

async function beginTurn($: any) {
  await $.session.start({ cwd: "/p", surface: "terminal", isInteractive: true });
  await $.turn.start({ text: "go", turnId: "t1" });
  await $.turn.complete({ turnId: "t1", reason: "answer", answer: "done", durationMs: 1, isAborted: false });
}

for (const surface of SURFACES) {
  test(`the band on ${surface} shows usage and subagents, and its button continues fresh`, async ($, on) => {
    const { clock, done } = world(on, CONTEXT);
    await beginTurn($);
    await clock.settle();
    const ui = await $.ui.mount({ plugin: "plimsoll", surface, component: "AbovePrompt", props: SITE as any });
    expect(await ui.find({ text: /72% of the context window used/ })).toBeDefined();
    expect(await ui.find({ text: /Explore: 45k of 200k tokens/ })).toBeDefined();
    await ui.press({ key: "fresh" });
    await clock.settle();
    expect(done.slice(-3)).toEqual(["plimsoll checkpoint", "/clear", "prompt [Plimsoll handoff, for a fresh conversation]"]);
    await ui.unmount();
  });
}

test("below L1 nothing is drawn", async ($, on) => {
  const { clock } = world(on, { ...CONTEXT, level: "L0", band: [] }, 10_000);
  await beginTurn($);
  await clock.settle();
  // With 2.1.287 nothing stands beneath the module, so a mount fails if the module draws nothing.
  const ui = await $.ui.mount({ plugin: "plimsoll", surface: "terminal", component: "AbovePrompt", props: SITE as any }).catch(() => undefined);
  expect(await ui?.find({ key: "fresh" })).toBeUndefined();
});

const COMPACTION = { trigger: "auto", messages: [{ role: "user", text: "go", toolUses: [], handle: "h" }] } as any;

test("an automatic compaction of the main conversation gets one message without a handle", async ($, on) => {
  world(on, CONTEXT);
  const answer: any = await $.session.compact(COMPACTION);
  expect(answer.messages).toEqual([{ role: "user", text: HANDOFF.text, toolUses: [] }]);
});

for (const [name, more, context] of [
  ["the user's own /compact", { trigger: "manual" }, CONTEXT],
  ["a plugin's compaction", { trigger: "plugin" }, CONTEXT],
  ["a subagent's compaction", { agentId: "a1" }, CONTEXT],
  ["a session in which it does not answer", {}, { ...CONTEXT, answers: false }],
  ["the user's choice of the client's summary", {}, { ...CONTEXT, compaction: "client" }],
  ["an answer of another version", {}, { ...CONTEXT, schema_version: 2 }],
  ["an answer that is not JSON", {}, "not JSON"],
] as const) {
  test(`the client keeps ${name}`, async ($, on) => {
    world(on, context);
      const answer: any = await $.session.compact({ ...COMPACTION, ...more });
    expect(answer.messages[0].text).toBe(SUMMARY);
  });
}

for (const name of ["PLIMSOLL_RUN_ID", "PLIMSOLL_REVIEW_OF"]) {
  test(`with ${name} it starts no program and answers nothing`, async ($, on) => {
    const { clock, done } = world(on, CONTEXT, 720_000, { [name]: "20260107-090000-dates" });
    await beginTurn($);
    await clock.settle();
    const answer: any = await $.session.compact(COMPACTION);
    expect(answer.messages[0].text).toBe(SUMMARY);
    expect(done).toEqual([]);
  });
}

test("a summary ahead of time is skipped only if a handoff will take its place", async ($, on) => {
  const { clock } = world(on, CONTEXT);
  const before: any = await $.session.compact({ ...COMPACTION, trigger: "precompute" });
  expect(before.skip).toBeUndefined();
  await beginTurn($);
  await clock.settle();
  const after: any = await $.session.compact({ ...COMPACTION, trigger: "precompute" });
  expect(after.skip).toContain("Plimsoll");
});

test("an unanswered question is the client's compaction after a minute", async ($, on) => {
  const { clock } = world(on, { ...CONTEXT, compaction: "ask" });
  on("tool.call", { tool: "AskUserQuestion" } as any, () => new Promise(() => undefined) as any);
  const answering = $.session.compact(COMPACTION) as Promise<any>;
  await clock.settle();
  await clock.advance(59_000);
  await clock.advance(2_000);
  expect((await answering).messages[0].text).toBe(SUMMARY);
});
