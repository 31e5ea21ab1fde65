// Plimsoll's module: Claude Code 2.1.287 and newer runs it in its own process. Older clients ignore it.
//
// It decides nothing. It asks `plimsoll context` what to show and to do, and `plimsoll checkpoint` for the message that
// takes the place of a conversation. If a program is missing, fails, or takes 8 seconds, the module steps aside and the
// client does what it would have done. Nothing depends on it: the client can switch modules off, and the hooks then do
// all they do anyway. It stays silent in the sessions of `plimsoll run`.
import type { EngineInterface, Register, SessionCompactInput, SessionMessage } from "claude-code";

/** The folder of the programs. `plimsoll init` fills it in; without it, the usual folders are tried. */
const PROGRAM_FOLDER: string = "";
const SCHEMA_VERSION = 1;
const PROGRAM_TIMEOUT_MS = 8_000;
const ANSWER_TIMEOUT_MS = 60_000;
const POLL_INTERVAL_MS = 2_000;
/** The start of the first line of a handoff that stands in a conversation. */
const HANDOFF_MARKER = "[Plimsoll handoff";

/** The answer of `plimsoll context --json`. */
type Context = {
  answers: boolean;
  compaction: "client" | "ask" | "handoff";
  handoff_at: "l1" | "l2" | "l3" | null;
  level: "L0" | "L1" | "L2" | "L3";
  tokens: number | null;
  thresholds: { l1: number; auto_compact: number } | null;
  band: string[];
};

/** The answer of `plimsoll checkpoint --json`. */
type Handoff = { path: string; text: string };

// The state of this session. The client loads the module once per session.
let context: Context | undefined;
let autoCompact: { model: string; threshold?: number; source?: string; enabled: boolean } | undefined;
let statusLine: string | undefined;
let isInteractive = false;
let isTurnRunning = false;
let continuesAfterTurn = false;
/** True while a handoff is written and the conversation cleared: a second press of the key must not do it again. */
let isContinuing = false;
/** False from a handoff until the usage was once below L1, so that handoffs cannot follow each other in a circle. */
let hadRoom = true;
/** The question to `plimsoll context` before, so that a late answer never replaces a newer one. */
let lastRefresh: Promise<void> = Promise.resolve();
let polling: { cancel: () => void } | undefined;
let tokensAtLastContext: number | undefined;

/** Returns true in a session of `plimsoll run`, which decides there what happens at a threshold. */
async function belongsToRun($: EngineInterface): Promise<boolean> {
  return Boolean((await $.env.get("PLIMSOLL_RUN_ID")) ?? (await $.env.get("PLIMSOLL_REVIEW_OF")));
}

async function programFolders($: EngineInterface): Promise<string[]> {
  if (PROGRAM_FOLDER !== "") return [PROGRAM_FOLDER];
  const home = await $.env.get("HOME");
  const ofUser = home === undefined ? [] : [`${home}/.local/bin`, `${home}/.cargo/bin`];
  return [...ofUser, `${$.plugin.root}/bin`];
}

/** Runs one of our programs and returns what it printed; undefined if none can be started, or if it fails. */
async function runProgram($: EngineInterface, program: string, argv: string[], stdin: string): Promise<string | undefined> {
  for (const folder of await programFolders($)) {
    const startedAt = await $.clock.now();
    try {
      const cwd = await $.session.root();
      const run = await $.process.run([`${folder}/${program}`, ...argv], { stdin, cwd, timeoutMs: PROGRAM_TIMEOUT_MS });
      if (run.exitCode === 0) return run.stdout;
      $.ui.log(`${program}: ${run.stderr.trim()}`, { to: "debug" });
      return undefined;
    } catch (error) {
      $.ui.log(`${program}: ${String(error)}`, { to: "debug" });
      // A program that was started and did not end is not tried a second time.
      if ((await $.clock.now()) - startedAt > PROGRAM_TIMEOUT_MS / 2) return undefined;
    }
  }
  return undefined;
}

/** Asks `plimsoll` with what only the client knows; undefined unless the answer is of our version. */
async function askPlimsoll($: EngineInterface, argv: string[], more: object): Promise<any> {
  const usage = (await $.session.usage()).context;
  const agents = isInteractive ? await $.agent.list() : [];
  const report = {
    schema_version: SCHEMA_VERSION,
    session: await $.session.id(),
    client_version: (await $.session.version()).version,
    model: await $.session.model(),
    tokens: usage.tokens,
    window: usage.window,
    auto_compact: await autoCompactOfModel($),
    agents: agents.filter((agent) => agent.status === "running").map(agentReport),
    module_folder: $.plugin.root,
    ...more,
  };
  const printed = await runProgram($, "plimsoll", [...argv, "--json", "--client", "-"], JSON.stringify(report));
  if (printed === undefined) return undefined;
  try {
    const answer = JSON.parse(printed);
    return answer?.schema_version === SCHEMA_VERSION ? answer : undefined;
  } catch {
    return undefined;
  }
}

// Older clients report no figures for a subagent.
function agentReport(agent: any): object {
  const { tokenCount, contextWindowSize, model, cost } = agent;
  return { name: agent.name ?? agent.description, tokens: tokenCount, window: contextWindowSize, model, cost: cost?.usd };
}

/** Returns the client's own threshold. The client takes 20 ms to compute it, so it is asked once for each model. */
async function autoCompactOfModel($: EngineInterface) {
  const model = await $.session.model();
  if (autoCompact?.model !== model) {
    const breakdown = (await $.session.usage({ breakdown: "summary" })).context.breakdown as any;
    autoCompact = {
      model,
      threshold: breakdown?.autoCompactThreshold,
      source: breakdown?.autocompactSource,
      enabled: breakdown?.isAutoCompactEnabled ?? true,
    };
  }
  return autoCompact;
}

/** Asks again what to show, once the question before has its answer. */
function refresh($: EngineInterface, isForced: boolean): Promise<void> {
  lastRefresh = lastRefresh.then(() => refreshContext($, isForced)).catch(() => {});
  return lastRefresh;
}

/** Asks again if the usage may have changed the answer: below L1 the client's own figure is enough. */
async function refreshContext($: EngineInterface, isForced: boolean): Promise<void> {
  const tokens = (await $.session.usage()).context.tokens;
  const isBelowL1 = context?.thresholds != null && tokens !== undefined && tokens < context.thresholds.l1;
  // Before the first response of a conversation the client reports no tokens, which is no room yet.
  hadRoom ||= isBelowL1 && tokens > 0;
  const isUnchanged = tokens === tokensAtLastContext && (await $.agent.list()).length === 0;
  if (isForced || (!isBelowL1 && !isUnchanged) || (isBelowL1 && context?.level !== "L0")) {
    tokensAtLastContext = tokens;
    context = await askPlimsoll($, ["context"], {});
    hadRoom ||= context?.level === "L0" && Boolean(context.tokens);
    $.ui.invalidate("ui.render");
  }
}

/** Draws the status line of `plimsoll-statusline`, if the user's settings name no command. */
async function refreshStatusLine($: EngineInterface): Promise<void> {
  if (!isInteractive || ((await $.settings.read()) as any).statusLine !== undefined) return;
  const usage = await $.session.usage();
  const model = await $.session.model();
  const payload = {
    hook_event_name: "Status",
    session_id: await $.session.id(),
    cwd: await $.session.cwd(),
    workspace: { current_dir: await $.session.cwd(), project_dir: await $.session.root() },
    model: { id: model, display_name: model },
    version: (await $.session.version()).version,
    cost: { total_cost_usd: (usage.cost as any)?.usd },
    context_window: {
      context_window_size: usage.context.window,
      total_input_tokens: usage.context.tokens,
      used_percentage: usage.context.percent,
    },
  };
  const text = await runProgram($, "plimsoll-statusline", [], JSON.stringify(payload));
  if (text !== undefined && text !== statusLine) {
    statusLine = text.trimEnd();
    $.ui.invalidate("ui.render");
  }
}

/** Asks for the message that takes the place of the conversation. The program waits until the transcript is complete. */
async function requestHandoff($: EngineInterface, cause: "compact" | "clear", messages: readonly SessionMessage[]): Promise<Handoff | undefined> {
  const last = messages.at(-1);
  const lastToolUse = messages.flatMap((message) => message.toolResults ?? []).at(-1);
  const isPrompt = last?.role === "user" && (last.toolResults ?? []).length === 0 && last.text !== "";
  return askPlimsoll($, ["checkpoint", "--cause", cause], {
    last_tool_use_id: lastToolUse?.tool_use_id,
    last_prompt: isPrompt ? last.text : undefined,
  });
}

/**
 * Asks the user; undefined if there is no answer within a minute, or nobody to ask. The client cannot take a question back:
 * the dialog stays until the user closes it, and an answer that comes too late changes nothing.
 */
function askUser($: EngineInterface, question: string, options: string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    let isOver = false;
    const timer = $.clock.after(ANSWER_TIMEOUT_MS, () => ((isOver = true), resolve(undefined)));
    const settle = (answer: string | undefined) => {
      timer.cancel();
      if (isOver && answer !== undefined) $.ui.toast("Too late: Claude's summary has taken the place of the conversation.");
      resolve(answer);
    };
    $.ui.ask(question, { options, header: "Context full" }).then(settle, () => settle(undefined));
  });
}

const USE_HANDOFF = "Plimsoll's handoff (at once)";
const USE_SUMMARY = "Claude's summary (about 30 seconds)";

/** Answers a compaction of the main conversation; undefined leaves it to the client. */
async function messagesForCompaction($: EngineInterface, e: SessionCompactInput): Promise<SessionMessage[] | undefined> {
  if (e.trigger !== "auto" || e.agentId !== undefined || (await belongsToRun($))) return undefined;
  context = await askPlimsoll($, ["context"], {});
  if (!context?.answers || context.compaction === "client") return undefined;
  if (context.compaction === "ask") {
    const answer = await askUser($, "The context window is full. What should take the place of the conversation?", [USE_HANDOFF, USE_SUMMARY]);
    if (answer !== USE_HANDOFF) return undefined;
  }
  const answer = await requestHandoff($, "compact", e.messages);
  // Built anew: a message with the client's handle would bring the whole old conversation back at `--resume`.
  return answer && [{ role: "user", text: answer.text, toolUses: [] }];
}

/** Continues in a fresh conversation, after the turn if one is running. */
async function continueFresh($: EngineInterface): Promise<void> {
  if (isTurnRunning) {
    continuesAfterTurn = true;
    $.ui.toast("A fresh conversation begins after this turn.");
    return;
  }
  if (isContinuing) return;
  isContinuing = true;
  continuesAfterTurn = false;
  await replaceConversation($).finally(() => (isContinuing = false));
}

/** Writes the handoff, clears the conversation, and begins the next one with the handoff. */
async function replaceConversation($: EngineInterface): Promise<void> {
  const answer = await requestHandoff($, "clear", await $.session.messages());
  if (answer === undefined) {
    $.ui.toast("Plimsoll could not write a handoff, so the conversation stays. `plimsoll doctor` says why.");
    return;
  }
  hadRoom = false;
  context = undefined;
  await $.command.run({ command: "clear" });
  // The text itself, because `@FILE` is not expanded in a prompt of a module.
  await $.prompt.submit({ text: answer.text, asUser: true });
  $.ui.toast("A fresh conversation has begun. `claude --resume` brings the old one back.");
}

async function onTurnStart($: EngineInterface): Promise<void> {
  isTurnRunning = true;
  if (await belongsToRun($)) return;
  await refresh($, context === undefined);
  if (!isInteractive) return;
  await refreshStatusLine($);
  polling?.cancel();
  polling = $.clock.every(POLL_INTERVAL_MS, () => void poll($));
}

async function poll($: EngineInterface): Promise<void> {
  const before = tokensAtLastContext;
  await refresh($, false);
  if (tokensAtLastContext !== before) await refreshStatusLine($);
}

async function onTurnEnd($: EngineInterface, hasAnswered: boolean): Promise<void> {
  isTurnRunning = false;
  polling?.cancel();
  if (!isInteractive || (await belongsToRun($))) return;
  await refresh($, false);
  await refreshStatusLine($);
  const isDue = context?.handoff_at != null && context.level >= context.handoff_at.toUpperCase();
  if (context?.answers && (continuesAfterTurn || (isDue && hadRoom && hasAnswered))) await continueFresh($);
}

export const register: Register = (on) => {
  on("session.start", ($, e, next) => {
    isInteractive = e.isInteractive;
    return next(e);
  });
  on("turn.start", ($, e, next) => {
    if (e.agentId === undefined) void onTurnStart($);
    return next(e);
  });
  on("turn.complete", ($, e, next) => {
    if (e.agentId === undefined) void onTurnEnd($, e.reason === "answer");
    return next(e);
  });
  on("session.compact", async ($, e, next) => {
    // A summary that is prepared ahead of time would never be used.
    if (e.trigger === "precompute" && e.agentId === undefined && context?.answers && context.compaction === "handoff") {
      return { skip: "Plimsoll's handoff takes the place of the summary" };
    }
    const messages = await messagesForCompaction($, e);
    return messages === undefined ? next(e) : { messages };
  });
  on("command.run", ($, e, next) => {
    const isOurs = e.command === "handoff" || e.command === "plimsoll:handoff";
    if (!isOurs || e.args.trim() !== "clear" || !isInteractive) return next(e);
    void continueFresh($);
    return { text: "Plimsoll writes a handoff, clears the conversation, and goes on with the handoff." };
  });
  on("ui.render", { component: "AbovePrompt" }, ($, e, next) => {
    if (!context?.answers || context.band.length === 0 || e.props.hasSurvey) return next(e);
    const { Box, Text, Button } = $.ui.resolve(e);
    const lines = context.band.map((line) => Text({ dimColor: true, wrap: "truncate", children: [line] }));
    const button = Button({ key: "fresh", label: "continue fresh", hotkey: "0", plain: true, onPress: () => void continueFresh($) });
    return Box({ flexDirection: "column", children: [...lines, button] });
  });
  on("ui.render", { component: "UserMessage" }, ($, e, next) => {
    if (e.props.isExpanded || !e.props.text.startsWith(HANDOFF_MARKER)) return next(e);
    return next({ ...e, props: { ...e.props, text: "(Plimsoll's handoff takes the place of the conversation so far; ctrl+o shows it)" } });
  });
  // 2.1.329 has no such site and ignores it.
  on("ui.render", { component: "StatusLine" } as any, ($: EngineInterface, e: any, next: any) => {
    if (e.props.text !== null || e.props.isManaged || statusLine === undefined) return next(e);
    return next({ ...e, props: { ...e.props, text: statusLine } });
  });
};
