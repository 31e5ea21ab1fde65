//! The operations on the stack of frames.

use super::apply::{ApplyError, ChangeReport, refuse_change};
use super::register::REGISTERS_NOT_MERGED;
use super::{
    AbnormalEnd, Frame, FrameOwner, MAX_FRAME_DEPTH, MAX_FRAME_NAME_CHARS, Memory, Register, ReturnedFrame,
    SubagentLaunch, truncate_at_grapheme,
};

impl Memory {
    /// Replaces the stack with the root frame of a new run. The heap belongs to the project and is kept.
    pub(super) fn replace_stack_with_root_frame(&mut self, objective: &str) -> ChangeReport {
        self.root_result = None;
        self.frames = vec![Frame { objective: objective.to_owned(), ..Frame::default() }];
        for register in Register::ALL {
            self.set_register(0, register, "");
        }
        self.set_register(0, Register::Goal, &truncate_to_goal_register(objective));
        ChangeReport::default()
    }

    pub(super) fn push_frame_inheriting_registers(
        &mut self,
        frame: Frame,
    ) -> Result<ChangeReport, ApplyError> {
        if self.depth() >= MAX_FRAME_DEPTH {
            return refuse_change(format!(
                "the stack is full ({MAX_FRAME_DEPTH} frames above the root): finish this one with pop_frame"
            ));
        }
        let name_chars = frame.name.chars().count();
        if name_chars == 0 || name_chars > MAX_FRAME_NAME_CHARS || frame.name.chars().any(char::is_control) {
            return refuse_change(format!(
                "a frame's name has 1 to {MAX_FRAME_NAME_CHARS} characters on one line, and this one has {name_chars}"
            ));
        }
        if frame.objective.trim().is_empty() {
            return refuse_change(
                "the objective is empty: state what to produce, where, and how to verify it".into(),
            );
        }
        let registers = self.current_frame().registers.clone();
        let inherited_texts = REGISTERS_NOT_MERGED.map(|register| registers[register.index()].text.clone());
        let (name, goal) = (frame.name.clone(), truncate_to_goal_register(&frame.objective));
        self.frames.push(Frame { registers, inherited_registers: inherited_texts, ..frame });
        let depth = self.depth();
        self.set_register(depth, Register::Goal, &goal);
        self.set_register(depth, Register::Next, "");
        self.set_register(depth, Register::Phase, &format!("entering: {name}"));
        self.set_register(depth, Register::Status, "Entered sub-frame. Starting.");
        Ok(ChangeReport::default())
    }

    /// Records the tool call that starts the current frame's subagent. Returns an error if one was recorded already.
    pub(super) fn record_first_subagent_launch_of_frame(
        &mut self,
        call_id: &str,
        owner: &FrameOwner,
    ) -> Result<ChangeReport, ApplyError> {
        let (depth, rev) = (self.depth(), self.revision);
        let frame = &mut self.frames[depth];
        if depth == 0 || frame.subagent_launch.is_some() {
            return refuse_change("no frame is waiting to start: push one first".into());
        }
        frame.subagent_launch =
            Some(SubagentLaunch { call_id: call_id.to_owned(), owner: owner.clone(), brief_revision: rev });
        Ok(ChangeReport::default())
    }

    /// Records the subagent that works in the current frame. Returns an error if the frame already has one.
    pub(super) fn assign_subagent_to_current_frame(
        &mut self,
        agent_id: &str,
    ) -> Result<ChangeReport, ApplyError> {
        let depth = self.depth();
        let frame = &mut self.frames[depth];
        if depth == 0 || frame.agent_id.is_some() {
            return refuse_change("no frame is waiting for its subagent".into());
        }
        frame.agent_id = Some(agent_id.to_owned());
        Ok(ChangeReport::default())
    }

    pub(super) fn pop_frame_or_finish_root(&mut self, result: &str) -> Result<ChangeReport, ApplyError> {
        if self.depth() == 0 {
            self.root_result = Some(result.to_owned());
            let note = "the root frame is done; open items and verify commands still decide whether the run is complete";
            return Ok(ChangeReport { notes: vec![note.to_owned()], ..ChangeReport::default() });
        }
        Ok(self.pop_frame_merging_result_and_questions(result, None))
    }

    pub(super) fn merge_or_abandon_non_root_frame(
        &mut self,
        abnormal_end: AbnormalEnd,
        last_message: &str,
    ) -> Result<ChangeReport, ApplyError> {
        match abnormal_end {
            _ if self.depth() == 0 => refuse_change("only pop_frame closes the root frame".into()),
            AbnormalEnd::TurnEndedWithoutPop => {
                Ok(self.pop_frame_merging_result_and_questions(last_message, Some(abnormal_end)))
            }
            AbnormalEnd::Abandoned => Ok(self.pop_abandoned_frame_merging_if_started(last_message)),
        }
    }

    /// Pops the current frame and writes its result into the parent's R7, R3, R2 and R6. No other register of
    /// the parent changes.
    fn pop_frame_merging_result_and_questions(
        &mut self,
        result: &str,
        abnormal_end: Option<AbnormalEnd>,
    ) -> ChangeReport {
        let Some(child) = self.frames.pop() else { return ChangeReport::default() };
        let depth = self.depth();
        let mut notes = Vec::new();
        for (register, inherited_text) in REGISTERS_NOT_MERGED.into_iter().zip(&child.inherited_registers) {
            if child.registers[register.index()].text != *inherited_text {
                notes.push(format!("{} of the child differs from yours and was not merged", register.key()));
            }
        }
        let child_questions = child.registers[Register::OpenQuestions.index()].text.clone();
        let previous_question_chars = self.register_text(Register::OpenQuestions).chars().count();
        if self.register_text(Register::OpenQuestions) != child_questions && previous_question_chars > 0 {
            notes.push(format!(
                "{} replaced (was {previous_question_chars} chars)",
                Register::OpenQuestions.key()
            ));
        }
        self.set_register(
            depth,
            Register::Status,
            truncate_at_grapheme(result, Register::Status.max_chars()),
        );
        self.set_register(depth, Register::Phase, &format!("returned from: {}", child.name));
        self.set_register(depth, Register::Next, "");
        self.set_register(depth, Register::OpenQuestions, &child_questions);
        self.last_returned_frame =
            Some(ReturnedFrame::from_closed_frame(child, abnormal_end, result, &notes));
        ChangeReport { notes, ..ChangeReport::default() }
    }

    /// Pops a frame whose subagent died or was never started. If a subagent worked in it, R7, R6 and R1 are copied
    /// into the parent, because these registers are the only record of its work.
    fn pop_abandoned_frame_merging_if_started(&mut self, last_message: &str) -> ChangeReport {
        let Some(child) = self.frames.pop() else { return ChangeReport::default() };
        let depth = self.depth();
        if child.agent_id.is_some() {
            for register in [Register::Status, Register::OpenQuestions, Register::Plan] {
                self.set_register(depth, register, &child.registers[register.index()].text);
            }
            self.set_register(depth, Register::Next, "");
        }
        self.set_register(depth, Register::Phase, &format!("abandoned: {}", child.name));
        self.last_returned_frame =
            Some(ReturnedFrame::from_closed_frame(child, Some(AbnormalEnd::Abandoned), last_message, &[]));
        ChangeReport::default()
    }
}

impl ReturnedFrame {
    fn from_closed_frame(
        child_frame: Frame,
        abnormal_end: Option<AbnormalEnd>,
        result: &str,
        merge_notes: &[String],
    ) -> ReturnedFrame {
        ReturnedFrame {
            name: child_frame.name,
            call_id: child_frame.subagent_launch.map(|launch| launch.call_id),
            agent_id: child_frame.agent_id,
            abnormal_end,
            result: result.to_owned(),
            merge_notes: merge_notes.to_vec(),
        }
    }
}

/// Truncates an objective to the maximum length of R0. The frame keeps the full text.
fn truncate_to_goal_register(objective: &str) -> String {
    let max_chars = Register::Goal.max_chars();
    if objective.chars().count() <= max_chars {
        return objective.to_owned();
    }
    format!("{}…", truncate_at_grapheme(objective, max_chars - 1))
}
