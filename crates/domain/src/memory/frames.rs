//! What happens to the stack.

use super::apply::{Refusal, Report, refuse};
use super::register::UNMERGED;
use super::{Closing, DEEPEST, Frame, Memory, NAME, Owner, Register, Returned, Started, fit};

impl Memory {
    /// A run begins with a root of its own. The heap is the project's, and stays.
    pub(super) fn begin(&mut self, objective: &str) -> Report {
        self.done = None;
        self.frames = vec![Frame { objective: objective.to_owned(), ..Frame::default() }];
        for register in Register::ALL {
            self.set(0, register, "");
        }
        self.set(0, Register::Goal, &as_goal(objective));
        Report::default()
    }

    pub(super) fn push(&mut self, frame: Frame) -> Result<Report, Refusal> {
        if self.depth() >= DEEPEST {
            return refuse(format!(
                "the stack is full: {DEEPEST} frames above the root; finish this one with pop_frame"
            ));
        }
        let length = frame.name.chars().count();
        if length == 0 || length > NAME || frame.name.chars().any(char::is_control) {
            return refuse(format!(
                "a frame's name has 1 to {NAME} characters on one line, and this one has {length}"
            ));
        }
        if frame.objective.trim().is_empty() {
            return refuse("the objective is empty: say what to produce, where, and how to verify it".into());
        }
        let registers = self.top().registers.clone();
        let inherited = UNMERGED.map(|register| registers[register.index()].text.clone());
        let (name, goal) = (frame.name.clone(), as_goal(&frame.objective));
        self.frames.push(Frame { registers, inherited, ..frame });
        let depth = self.depth();
        self.set(depth, Register::Goal, &goal);
        self.set(depth, Register::Next, "");
        self.set(depth, Register::Phase, &format!("entering: {name}"));
        self.set(depth, Register::Status, "Entered sub-frame. Starting.");
        Ok(Report::default())
    }

    /// The client has been told to begin the current frame's subagent: once, and by one call.
    pub(super) fn start(&mut self, call: &str, owner: &Owner) -> Result<Report, Refusal> {
        let (depth, rev) = (self.depth(), self.rev);
        let frame = &mut self.frames[depth];
        if depth == 0 || frame.started.is_some() {
            return refuse("no frame waits to be started: push one first".into());
        }
        frame.started = Some(Started { call: call.to_owned(), owner: owner.clone(), rev });
        Ok(Report::default())
    }

    /// The subagent is there.
    pub(super) fn enter(&mut self, agent: &str) -> Result<Report, Refusal> {
        let depth = self.depth();
        let frame = &mut self.frames[depth];
        if depth == 0 || frame.agent.is_some() {
            return refuse("no frame waits for its subagent".into());
        }
        frame.agent = Some(agent.to_owned());
        Ok(Report::default())
    }

    pub(super) fn pop(&mut self, result: &str) -> Result<Report, Refusal> {
        if self.depth() == 0 {
            self.done = Some(result.to_owned());
            let note = "the root frame is done; open items and verify commands still decide whether the run is complete";
            return Ok(Report { notes: vec![note.to_owned()], ..Report::default() });
        }
        Ok(self.merge(result, None))
    }

    pub(super) fn close(&mut self, how: Closing, words: &str) -> Result<Report, Refusal> {
        match how {
            _ if self.depth() == 0 => refuse("the root frame is closed by pop_frame alone".into()),
            Closing::Unpopped => Ok(self.merge(words, Some(how))),
            Closing::Abandoned => Ok(self.inherit(words)),
        }
    }

    /// What the parent gets of a child that has returned: R7, R3, R2 and R6, and nothing else.
    fn merge(&mut self, result: &str, how: Option<Closing>) -> Report {
        let Some(child) = self.frames.pop() else { return Report::default() };
        let depth = self.depth();
        let mut notes = Vec::new();
        for (register, was) in UNMERGED.into_iter().zip(&child.inherited) {
            if child.registers[register.index()].text != *was {
                notes.push(format!("{} of the child differs from yours, and is not merged", register.key()));
            }
        }
        let questions = child.registers[Register::OpenQuestions.index()].text.clone();
        let before = self.register(Register::OpenQuestions).chars().count();
        if self.register(Register::OpenQuestions) != questions && before > 0 {
            notes.push(format!("{} replaced (was {before} chars)", Register::OpenQuestions.key()));
        }
        self.set(depth, Register::Status, fit(result, Register::Status.limit()));
        self.set(depth, Register::Phase, &format!("returned from: {}", child.name));
        self.set(depth, Register::Next, "");
        self.set(depth, Register::OpenQuestions, &questions);
        self.returned = Some(Returned::new(child, how, result, &notes));
        Report { notes, ..Report::default() }
    }

    /// The registers of a child that died are all that is left of its work: they go to the parent. Where nobody worked
    /// there is none.
    fn inherit(&mut self, words: &str) -> Report {
        let Some(child) = self.frames.pop() else { return Report::default() };
        let depth = self.depth();
        if child.agent.is_some() {
            for register in [Register::Status, Register::OpenQuestions, Register::Plan] {
                self.set(depth, register, &child.registers[register.index()].text);
            }
            self.set(depth, Register::Next, "");
        }
        self.set(depth, Register::Phase, &format!("abandoned: {}", child.name));
        self.returned = Some(Returned::new(child, Some(Closing::Abandoned), words, &[]));
        Report::default()
    }
}

impl Returned {
    fn new(child: Frame, how: Option<Closing>, result: &str, notes: &[String]) -> Returned {
        Returned {
            name: child.name,
            call: child.started.map(|started| started.call),
            agent: child.agent,
            how,
            result: result.to_owned(),
            notes: notes.to_vec(),
        }
    }
}

/// An objective as R0 has it; the whole of it is in the frame.
fn as_goal(objective: &str) -> String {
    let limit = Register::Goal.limit();
    if objective.chars().count() <= limit {
        return objective.to_owned();
    }
    format!("{}…", fit(objective, limit - 1))
}
