//! A program in a real pseudo-terminal, with its screen as the user would see it.

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

/// The client takes an Enter that arrives together with text for a pasted line break.
const ENTER_DELAY: Duration = Duration::from_millis(150);

/// A program on its own screen. Dropping it ends the program.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    screen: Arc<Mutex<Parser>>,
    received: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
    _master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    /// Starts a program in the world's project, on a screen of the given size.
    pub fn start(
        world: &World,
        program: impl AsRef<Path>,
        args: &[&str],
        columns: u16,
        rows: u16,
    ) -> Terminal {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(program.as_ref());
        command.args(args);
        command.cwd(world.project());
        command.env_clear();
        for (name, value) in world.env() {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).expect("the program starts");
        let screen = Arc::new(Mutex::new(Parser::new(to_non_zero(rows), to_non_zero(columns), 0)));
        let output = pair.master.try_clone_reader().expect("the terminal can be read");
        let received = Arc::new(Mutex::new(Vec::new()));
        let reader = Some(spawn_screen_reader(output, Arc::clone(&screen), Arc::clone(&received)));
        // Our copy would keep the terminal open after the program has ended.
        drop(pair.slave);
        let keyboard = pair.master.take_writer().expect("the terminal can be typed into");
        Terminal { child, keyboard, screen, received, reader, _master: pair.master }
    }

    /// Starts the real client.
    ///
    /// On a screen its default is auto mode, whose check a scripted model does not answer: a test with tool
    /// calls passes `--permission-mode default --allowedTools Bash`.
    pub fn start_claude(world: &World, args: &[&str], columns: u16, rows: u16) -> Terminal {
        Terminal::start(world, crate::client::pinned_claude(), args, columns, rows)
    }

    /// Types a text, or keys as a terminal sends them (`"\u{3}"` is Ctrl-C).
    pub fn type_text(&mut self, text: &str) {
        let written = self.keyboard.write_all(text.as_bytes()).and_then(|()| self.keyboard.flush());
        assert!(written.is_ok(), "cannot type {text:?}: {written:?}\n{}", self.screen_text());
    }

    /// Presses Enter, a moment after the typed text.
    pub fn press_enter(&mut self) {
        sleep(ENTER_DELAY);
        self.type_text("\r");
    }

    /// Returns the text on the screen now.
    pub fn screen_text(&self) -> String {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).screen().contents()
    }

    /// Returns the lines of the screen with their colors, as escape sequences.
    pub fn colored_lines(&self) -> Vec<String> {
        let parser = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, columns) = parser.screen().size();
        parser.screen().rows_formatted(0, columns.into()).collect()
    }

    /// Returns every byte that the terminal has received so far.
    pub fn received_bytes(&self) -> Vec<u8> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for the program's end and returns every byte that the terminal received.
    pub fn wait_for_all_bytes(&mut self) -> Vec<u8> {
        self.wait_for_exit();
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader ends with the terminal");
        }
        self.received_bytes()
    }

    /// Waits until the screen shows this text and returns the screen. Panics with the screen on a timeout.
    pub fn wait_for_text(&self, text: &str) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen_text();
            if screen.contains(text) {
                return screen;
            }
            assert!(start.elapsed() < TIMEOUT, "no {text:?} within {TIMEOUT:?} on this screen:\n{screen}");
            sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the program ends by itself. Panics with the screen on a timeout.
    pub fn wait_for_exit(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("our own child can be waited for") {
                return status;
            }
            assert!(start.elapsed() < TIMEOUT, "still running after {TIMEOUT:?}:\n{}", self.screen_text());
            sleep(Duration::from_millis(20));
        }
    }

    /// Ends the program.
    pub fn close(self) {}
}

fn to_non_zero(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a screen has a row and a column")
}

/// Starts a thread that updates the screen until the program closes it.
fn spawn_screen_reader(
    mut output: Box<dyn Read + Send>,
    screen: Arc<Mutex<Parser>>,
    received: Arc<Mutex<Vec<u8>>>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(count @ 1..) = output.read(&mut buffer) {
            received.lock().unwrap_or_else(PoisonError::into_inner).extend(&buffer[..count]);
            screen.lock().unwrap_or_else(PoisonError::into_inner).process(&buffer[..count]);
        }
    })
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The program leads its own session, so its id is also the id of its process group.
        if let Some(group) = self.child.process_id() {
            terminate_process_group(group, || drop(self.child.try_wait()));
        }
    }
}
