//! The client, or any program, in a real pseudo-terminal, read as the user would see it.

use crate::process_group::end_group;
use crate::world::{TIMEOUT, World};
use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};
use vt100::Parser;

/// The client takes an Enter that comes with the text for a pasted line end.
const BEFORE_ENTER: Duration = Duration::from_millis(150);

/// A program on a screen of its own; it ends when this is dropped.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    screen: Arc<Mutex<Parser>>,
    received: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
    _master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    /// Starts a program in the world's project, on a screen of this size.
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
        let screen = Arc::new(Mutex::new(Parser::new(at_least_one(rows), at_least_one(columns), 0)));
        let output = pair.master.try_clone_reader().expect("the terminal can be read");
        let received = Arc::new(Mutex::new(Vec::new()));
        let reader = Some(show(output, Arc::clone(&screen), Arc::clone(&received)));
        // Ours would keep the terminal open when the program has ended.
        drop(pair.slave);
        let keyboard = pair.master.take_writer().expect("the terminal can be typed into");
        Terminal { child, keyboard, screen, received, reader, _master: pair.master }
    }

    /// Starts the real client.
    ///
    /// On screen its default is auto mode, whose check a scripted model does not answer: a test that calls tools
    /// says `--permission-mode default --allowedTools Bash`.
    pub fn claude(world: &World, args: &[&str], columns: u16, rows: u16) -> Terminal {
        Terminal::start(world, crate::client::claude(), args, columns, rows)
    }

    /// Types a text, or keys as a terminal sends them (`"\u{3}"` is Ctrl-C).
    pub fn type_text(&mut self, text: &str) {
        let typed = self.keyboard.write_all(text.as_bytes()).and_then(|()| self.keyboard.flush());
        assert!(typed.is_ok(), "cannot type {text:?}: {typed:?}\n{}", self.screen());
    }

    /// Presses Enter, a moment after what was typed.
    pub fn press_enter(&mut self) {
        sleep(BEFORE_ENTER);
        self.type_text("\r");
    }

    /// What the screen shows now.
    pub fn screen(&self) -> String {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).screen().contents()
    }

    /// The lines of the screen with their colours, as escape sequences.
    pub fn painted(&self) -> Vec<String> {
        let parser = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, columns) = parser.screen().size();
        parser.screen().rows_formatted(0, columns.into()).collect()
    }

    /// Every byte that the terminal has got so far.
    pub fn received(&self) -> Vec<u8> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Every byte that the terminal has got, when the program has ended.
    pub fn all_received(&mut self) -> Vec<u8> {
        self.wait_exit();
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader ends with the terminal");
        }
        self.received()
    }

    /// Waits until the screen shows this text and returns the screen; panics with the screen when it does not.
    pub fn wait_for(&self, text: &str) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if screen.contains(text) {
                return screen;
            }
            assert!(start.elapsed() < TIMEOUT, "no {text:?} within {TIMEOUT:?} on this screen:\n{screen}");
            sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the program's own end; panics with the screen when it continues.
    pub fn wait_exit(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("our own child can be waited for") {
                return status;
            }
            assert!(start.elapsed() < TIMEOUT, "still running after {TIMEOUT:?}:\n{}", self.screen());
            sleep(Duration::from_millis(20));
        }
    }

    /// Ends the program.
    pub fn close(self) {}
}

fn at_least_one(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a screen has a row and a column")
}

/// Keeps the screen up to date until the program has closed it.
fn show(
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
        // The program leads a session of its own, so its id is its group's, too.
        if let Some(group) = self.child.process_id() {
            end_group(group, || drop(self.child.try_wait()));
        }
    }
}
