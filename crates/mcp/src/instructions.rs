//! The instructions for all tools, which the client passes to the model once.

/// At most 2,000 characters: it stays in every conversation, and Claude Code cuts a server's instructions at 2 KB.
pub(crate) const INSTRUCTIONS: &str = "\
A working memory that you manage: registers (scratch notes of the present frame), a heap (named chunks that every \
frame sees), a stack of frames (sub-tasks with a clean context).

First orient yourself: the frame's objective, the registers, the heap's index. Then a step, two calls in one message: \
update_registers with what changed, and one action. Registers are terse; what does not fit is cut. R2 (what you do \
now) and R7 (what came of the last step) change with each step; R0 is set once; in R1 cross off what is done; R3 changes \
with the phase; clear R5 and R6 once verified or answered. What keeps growing goes to the heap, its register says \
\"see heap:NAME\".

Take the first action that applies:
1 heap_free: no later step needs the chunk
2 heap_write: a chunk is stale or wrong; merge small ones before the heap is full
3 pop_frame: the frame's objective is met; in the root, the whole task is
4 push_frame: a phase of several steps with its own goal is next
5 heap_alloc: later frames must know it
6 work: one tool call

Contracts for several frames: heap, only what decides. What one child needs: its context. Code and long output: files.

An objective is for a reader who knows nothing: what, in which files, how to verify it. Not \"Do the parser\" but \
\"Write parse.py as heap:grammar says; `pytest -q test_parse.py` passes\". A return spec asks for facts: \"Files changed; \
tests passed and failed; open problems\". The parent sees the result alone: what was done, found, decided; no code. \
After a pop, see what of the task is open before you pop again. Keep a chunk if unsure.

For example: R1 \"1 calc.py 2 tests\", R2 \"delegate 1\", push_frame calc; in it R2 \"write calc.py\", write; R7 \"written\", R2 \
\"verify\", run; pop_frame \"calc.py: add, div; div(1,0) raises ValueError; verified\". Back in the root R1 \"1 done 2 tests\", R2 \
\"delegate 2\", push_frame tests.";

#[cfg(test)]
mod tests {
    #[test]
    fn instructions_have_at_most_2000_bytes() {
        assert!(super::INSTRUCTIONS.len() <= 2_000, "{}", super::INSTRUCTIONS.len());
    }
}
