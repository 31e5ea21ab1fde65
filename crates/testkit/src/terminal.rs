//! Runs a program in a real pseudo-terminal and reads its screen.

use crate::process_group::terminate_process_group;
use crate::world::{TIMEOUT, World};
use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};
use vt100::Parser;

/// The client treats an Enter that arrives together with text as a pasted line break.
const ENTER_DELAY: Duration = Duration::from_millis(150);

/// How long a typed prompt may take to appear, and how often it is typed.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(10);
const PROMPT_ATTEMPTS: usize = 5;
/// Ctrl-U, which clears the client's input line.
const CLEAR_LINE_KEY: &str = "\u{15}";
const SUGGESTIONS_DELAY: Duration = Duration::from_millis(150);
const SCREEN_INTERVAL: Duration = Duration::from_millis(20);

/// A program in its own pseudo-terminal. Dropping it ends the program.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    screen: Arc<Mutex<Parser>>,
    output_bytes: Arc<Mutex<Vec<u8>>>,
    reader_thread: Option<JoinHandle<()>>,
    _master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    /// Starts a program in the world's project, in a terminal of this size.
    pub fn start_program_in_project(
        world: &World,
        program: impl AsRef<Path>,
        args: &[&str],
        columns: u16,
        rows: u16,
    ) -> Terminal {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pty_pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(program.as_ref());
        command.args(args);
        command.cwd(world.project());
        command.env_clear();
        for (name, value) in world.env_with_programs_on_path() {
            command.env(name, value);
        }
        let child = pty_pair.slave.spawn_command(command).expect("the program starts");
        let screen = Arc::new(Mutex::new(Parser::new(to_non_zero(rows), to_non_zero(columns), 0)));
        let output_reader = pty_pair.master.try_clone_reader().expect("the terminal can be read");
        let output_bytes = Arc::new(Mutex::new(Vec::new()));
        let reader_thread =
            Some(spawn_screen_reader(output_reader, Arc::clone(&screen), Arc::clone(&output_bytes)));
        // An open slave would keep the terminal open after the program has ended.
        drop(pty_pair.slave);
        let keyboard = pty_pair.master.take_writer().expect("the terminal can be typed into");
        Terminal { child, keyboard, screen, output_bytes, reader_thread, _master: pty_pair.master }
    }

    /// Starts the real client.
    ///
    /// In a terminal its default is auto mode, which sends a permission check that a scripted model does not answer.
    /// A test with tool calls passes `--permission-mode default --allowedTools Bash`.
    pub fn start_claude(world: &World, args: &[&str], columns: u16, rows: u16) -> Terminal {
        Terminal::start_program_in_project(
            world,
            crate::client::find_claude_from_env_or_install_pinned(),
            args,
            columns,
            rows,
        )
    }

    /// Types text, or keys as a terminal sends them (`"\u{3}"` is Ctrl-C).
    pub fn type_text(&mut self, text: &str) {
        let write_result = self.keyboard.write_all(text.as_bytes()).and_then(|()| self.keyboard.flush());
        assert!(write_result.is_ok(), "cannot type {text:?}: {write_result:?}\n{}", self.screen_text());
    }

    /// Presses Enter after a short delay.
    pub fn press_enter(&mut self) {
        sleep(ENTER_DELAY);
        self.type_text("\r");
    }

    /// Types a prompt or a slash command for the client, and presses Enter once the input line holds exactly this text.
    ///
    /// The line is cleared first, because a key that was pressed for something else may have arrived late. The text is
    /// typed again if it does not appear, because the client loses what is typed while it clears its screen.
    pub fn submit_prompt(&mut self, prompt: &str) {
        let count_before = self.count_lines_with_prompt(prompt);
        for _ in 0..PROMPT_ATTEMPTS {
            self.type_text(CLEAR_LINE_KEY);
            self.type_text(prompt);
            let typed_at = Instant::now();
            while typed_at.elapsed() < PROMPT_TIMEOUT {
                if self.count_lines_with_prompt(prompt) > count_before {
                    // A list of files or commands may have opened. It closes in this time.
                    sleep(SUGGESTIONS_DELAY);
                    return self.press_enter();
                }
                sleep(SCREEN_INTERVAL);
            }
        }
        panic!("the prompt {prompt:?} does not appear:\n{}", self.screen_text());
    }

    /// Counts the places of the screen where this prompt follows the client's prompt character, as in its input line and
    /// in the prompts that were sent before. Whitespace is not compared, because the client wraps long lines.
    fn count_lines_with_prompt(&self, prompt: &str) -> usize {
        let without_whitespace = |text: &str| text.split_whitespace().collect::<String>();
        let (screen, prompt) = (without_whitespace(&self.screen_text()), without_whitespace(prompt));
        // 2.0 shows `>`.
        ['❯', '>'].map(|character| screen.matches(&format!("{character}{prompt}")).count()).iter().sum()
    }

    /// Returns the text that the screen currently shows.
    pub fn screen_text(&self) -> String {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).screen().contents()
    }

    /// Returns each row of the screen, also if the program has continued a line in the next row.
    pub fn rows(&self) -> Vec<String> {
        let parser = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, columns) = parser.screen().size();
        parser.screen().rows(0, columns.into()).collect()
    }

    /// Returns the lines of the screen with their colors, as escape sequences.
    pub fn colored_lines(&self) -> Vec<String> {
        let parser = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, columns) = parser.screen().size();
        parser.screen().rows_formatted(0, columns.into()).collect()
    }

    /// Returns every byte that the terminal has received so far.
    pub fn received_bytes(&self) -> Vec<u8> {
        self.output_bytes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the program exits and returns every byte that the terminal received.
    pub fn wait_for_exit_and_all_bytes(&mut self) -> Vec<u8> {
        self.wait_for_exit();
        if let Some(reader_thread) = self.reader_thread.take() {
            reader_thread.join().expect("the reader ends with the terminal");
        }
        self.received_bytes()
    }

    /// Waits until the screen shows this text and returns the screen. Panics with the screen on a timeout.
    pub fn wait_for_text(&self, text: &str) -> String {
        let mut screen = String::new();
        self.wait_until(
            || {
                screen = self.screen_text();
                screen.contains(text)
            },
            &format!("{text:?}"),
        );
        screen
    }

    /// Waits until the condition holds. Panics with the screen on a timeout.
    pub fn wait_until(&self, mut condition: impl FnMut() -> bool, description: &str) {
        let started_at = Instant::now();
        while !condition() {
            assert!(
                started_at.elapsed() < TIMEOUT,
                "no {description} within {TIMEOUT:?} on this screen:\n{}",
                self.screen_text()
            );
            sleep(SCREEN_INTERVAL);
        }
    }

    /// Waits until the program exits by itself. Panics with the screen on a timeout.
    pub fn wait_for_exit(&mut self) -> ExitStatus {
        let started_at = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("our own child can be waited for") {
                return status;
            }
            assert!(
                started_at.elapsed() < TIMEOUT,
                "still running after {TIMEOUT:?}:\n{}",
                self.screen_text()
            );
            sleep(Duration::from_millis(20));
        }
    }

    /// Ends the program by dropping it.
    pub fn close(self) {}
}

fn to_non_zero(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a screen has a row and a column")
}

/// Starts a thread that applies the program's output to the screen until the output ends.
fn spawn_screen_reader(
    mut output_reader: Box<dyn Read + Send>,
    screen: Arc<Mutex<Parser>>,
    output_bytes: Arc<Mutex<Vec<u8>>>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(count @ 1..) = output_reader.read(&mut buffer) {
            output_bytes.lock().unwrap_or_else(PoisonError::into_inner).extend(&buffer[..count]);
            screen.lock().unwrap_or_else(PoisonError::into_inner).process(&buffer[..count]);
        }
    })
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The program leads its own session, so its id is also the id of its process group.
        if let Some(group) = self.child.process_id() {
            terminate_process_group(group, || self.child.try_wait().is_ok_and(|status| status.is_some()));
        }
    }
}
