// Placeholder: the real module replaces this file.
import type { Register } from "claude-code";

const PROGRAM_FOLDER = "";

export const register: Register = (on) => {
  on("session.start", async ($, event, next) => {
    if (PROGRAM_FOLDER !== "") {
      await $.process.run([`${PROGRAM_FOLDER}/plimsoll`, "context", "--json"], { timeoutMs: 8000 });
    }
    return next(event);
  });
};
