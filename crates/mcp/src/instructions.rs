//! What the client tells the model once about all of the tools.

/// Under 1.5 KB: it stays in every conversation.
pub(crate) const INSTRUCTIONS: &str = "\
A working memory that you manage: registers (scratch notes of the present frame), a heap (named chunks that every \
frame sees), a stack of frames (sub-tasks with a clean context).

A step is two calls in one message: update_registers with what changed, at least R2 (what you do now) and R7 (what \
came of the last step), and one action. Registers are terse; what does not fit is cut.

Take the first action that applies:
1 heap_free: no later step needs the chunk
2 heap_write: a chunk is stale or wrong
3 pop_frame: the frame's objective is met; in the root, the whole task is
4 push_frame: a phase of several steps with its own goal is next
5 heap_alloc: later frames must know it
6 work: one tool call

Plan, status, next step: registers. Contracts for several frames: heap, only what decides. What one child needs: its \
context. Code and long output: files.

An objective is for a reader who knows nothing: what, in which files, how to verify it.
Bad: \"Do the parser\". Good: \"Write parse.py as heap:grammar says; `pytest -q test_parse.py` passes\".
A return spec asks for facts. Bad: \"Return your work\". Good: \"Files changed; tests passed and failed; open problems\".
The parent sees the result alone: what was done, found, decided; no code. After a pop, see what of the task is \
open before you pop again. Keep a chunk if unsure.";

#[cfg(test)]
mod tests {
    #[test]
    fn the_instructions_are_short() {
        assert!(super::INSTRUCTIONS.len() < 1_500, "{}", super::INSTRUCTIONS.len());
    }
}
