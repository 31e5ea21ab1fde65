//! The stream of a connection: how TLS begins, and how much a server may make us keep.
//!
//! `tokio-postgres` makes room for a whole message as soon as it has read its length, which a server states as it likes (up to 2 GB), and
//! it takes every answer to the question for TLS but `S` for "no TLS". Both happen here instead: a length is checked before it is
//! passed on, and a refusal keeps its words. Connections without TLS go through here as well, as TLS that is none.
//!
//! Limit: a server behind a socket of this computer is not checked, because the library connects to sockets only by itself.

use crate::fault::{Fault, of_server};
use plimsoll_domain::text::one_line;
use postgres::Socket;
use postgres::error::SqlState;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The longest message before a connection stands: libpq's own limit for an error is half of it.
const MAX_STARTUP_MESSAGE: u32 = 64 * 1024;
/// The longest message of an answer, which is a row of a board: items, notes and events are a few kilobytes each.
const MAX_MESSAGE: u32 = 16 * 1024 * 1024;
/// All messages before a connection stands, and all of one answer: those of a fleet of 100,000 sessions are smaller.
const MAX_STARTUP: u64 = 1024 * 1024;
const MAX_ANSWER: u64 = 256 * 1024 * 1024;

/// What asks a server for TLS: a length and a number that is no version of the protocol.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
/// The type and the length of a message.
const HEADER: usize = 5;

/// Connects to a server, with TLS or without.
#[derive(Clone)]
pub(crate) struct Connector {
    /// None for a connection without.
    pub(crate) tls: Option<MakeRustlsConnect>,
}

type RustlsConnect = <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect;
type RustlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

impl MakeTlsConnect<Socket> for Connector {
    type Stream = GuardedStream;
    type TlsConnect = ServerConnect;
    type Error = Fault;

    fn make_tls_connect(&mut self, domain: &str) -> Result<ServerConnect, Fault> {
        let tls = self.tls.as_mut().map(|tls| MakeTlsConnect::<Socket>::make_tls_connect(tls, domain));
        let tls = tls.transpose().map_err(|error| Fault::TlsFailed(error.to_string()))?;
        Ok(ServerConnect { tls })
    }
}

/// Connects to one server.
pub(crate) struct ServerConnect {
    tls: Option<RustlsConnect>,
}

impl TlsConnect<Socket> for ServerConnect {
    type Stream = GuardedStream;
    type Error = Fault;
    type Future = Pin<Box<dyn Future<Output = Result<GuardedStream, Fault>> + Send>>;

    fn connect(self, mut socket: Socket) -> Self::Future {
        Box::pin(async move {
            let Some(tls) = self.tls else { return Ok(GuardedStream::new(Inner::Plain(socket))) };
            ask_for_tls(&mut socket).await?;
            let stream = tls.connect(socket).await.map_err(|error| tls_refusal(&error))?;
            Ok(GuardedStream::new(Inner::Tls(Box::new(stream))))
        })
    }
}

/// Asks whether a server has TLS. Nothing is read beyond its answer: what somebody has put behind it is not taken for the server's.
async fn ask_for_tls(socket: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Result<(), Fault> {
    let closed = |_| Fault::Closed;
    socket.write_all(&TLS_REQUEST).await.map_err(closed)?;
    socket.flush().await.map_err(closed)?;
    let mut answer = [0];
    socket.read_exact(&mut answer).await.map_err(closed)?;
    match answer {
        [b'S'] => Ok(()),
        [b'N'] => Err(Fault::NoTls),
        [b'E'] => Err(read_refusal(socket).await?),
        _ => Err(Fault::NotPostgres),
    }
}

/// Reads the rest of an error message.
async fn read_refusal(socket: &mut (impl AsyncRead + Unpin)) -> Result<Fault, Fault> {
    let mut length = [0; 4];
    socket.read_exact(&mut length).await.map_err(|_| Fault::Closed)?;
    let length = u32::from_be_bytes(length);
    // The length counts itself.
    let body = length.checked_sub(4).ok_or(Fault::NotPostgres)?;
    if length > MAX_STARTUP_MESSAGE {
        return Err(Fault::TooLong(length.into()));
    }
    let mut fields = vec![0; body as usize];
    socket.read_exact(&mut fields).await.map_err(|_| Fault::Closed)?;
    // Each field is a letter and a text that a zero ends; a zero alone ends them all.
    let field = |letter: u8| {
        let text = fields.split(|byte| *byte == 0).find_map(|field| field.strip_prefix(&[letter]));
        text.map(|text| String::from_utf8_lossy(text).into_owned())
    };
    match (field(b'C'), field(b'M')) {
        // Nobody has proved who says this: a network may have put it there.
        (Some(code), Some(message)) => Ok(of_server(&SqlState::from_code(&code), &one_line(&message))),
        _ => Err(Fault::NotPostgres),
    }
}

fn tls_refusal(error: &io::Error) -> Fault {
    // By a server that has read all, and by one that has not.
    let closings = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(_)) => Fault::Untrusted(error.to_string()),
        _ if error.kind() == io::ErrorKind::InvalidInput => Fault::Untrusted(error.to_string()),
        None if closings.contains(&error.kind()) => {
            Fault::TlsFailed("it closed the connection while TLS began".to_owned())
        }
        _ => Fault::TlsFailed(error.to_string()),
    }
}

/// Follows what a server sends, message by message, without keeping any of it.
#[derive(Debug, Default)]
struct MessageGuard {
    header: [u8; HEADER],
    header_length: usize,
    /// What of the present message is still to come.
    body_left: u64,
    /// All messages since the last one that ends an answer.
    answer: u64,
    has_begun: bool,
    /// The connection stands: the server has said that it is ready.
    is_ready: bool,
}

impl MessageGuard {
    /// Looks at bytes before they are passed on.
    fn check(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        while !bytes.is_empty() {
            if self.body_left > 0 {
                let passed =
                    usize::try_from(self.body_left).map_or(bytes.len(), |left| left.min(bytes.len()));
                self.body_left -= passed as u64;
                bytes = &bytes[passed..];
                continue;
            }
            self.header[self.header_length] = bytes[0];
            self.header_length += 1;
            bytes = &bytes[1..];
            // Whoever speaks another protocol is known by the first byte.
            if !self.has_begun && !b"RENv".contains(&self.header[0]) {
                return Err(Fault::NotPostgres);
            }
            self.has_begun = true;
            if self.header_length == HEADER {
                self.header_length = 0;
                self.begin_message()?;
            }
        }
        Ok(())
    }

    fn begin_message(&mut self) -> Result<(), Fault> {
        let [kind, length @ ..] = self.header;
        let length = u32::from_be_bytes(length);
        let (longest, most) =
            if self.is_ready { (MAX_MESSAGE, MAX_ANSWER) } else { (MAX_STARTUP_MESSAGE, MAX_STARTUP) };
        if length > longest {
            return Err(Fault::TooLong(length.into()));
        }
        self.body_left = length.checked_sub(4).ok_or(Fault::NotPostgres)?.into();
        self.answer += u64::from(length);
        if self.answer > most {
            return Err(Fault::TooLong(self.answer));
        }
        if kind == b'Z' {
            (self.is_ready, self.answer) = (true, 0);
        }
        Ok(())
    }
}

enum Inner {
    Plain(Socket),
    Tls(Box<RustlsStream>),
}

/// A stream whose messages are checked.
pub(crate) struct GuardedStream {
    inner: Inner,
    guard: MessageGuard,
}

impl GuardedStream {
    fn new(inner: Inner) -> GuardedStream {
        GuardedStream { inner, guard: MessageGuard::default() }
    }
}

impl TlsStream for GuardedStream {
    fn channel_binding(&self) -> ChannelBinding {
        match &self.inner {
            Inner::Plain(_) => ChannelBinding::none(),
            Inner::Tls(stream) => stream.channel_binding(),
        }
    }
}

impl AsyncRead for GuardedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(match &mut self.inner {
            Inner::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Inner::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, buffer),
        })?;
        Poll::Ready(self.guard.check(&buffer.filled()[before..]).map_err(io::Error::other))
    }
}

impl AsyncWrite for GuardedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.inner {
            Inner::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Inner::Tls(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Inner::Plain(stream) => Pin::new(stream).poll_flush(context),
            Inner::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Inner::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Inner::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, length: u32) -> Vec<u8> {
        [&[kind][..], &length.to_be_bytes()].concat()
    }

    #[test]
    fn a_length_is_refused_before_the_message_is_passed_on_however_it_arrives() {
        let ready = [message(b'R', 8), vec![0; 4], message(b'Z', 5), b"I".to_vec()].concat();
        let row = [message(b'D', 100), vec![7; 96]].concat();
        for (bytes, expected) in [
            (ready.clone(), Ok(())),
            ([ready.clone(), row.clone(), row].concat(), Ok(())),
            (message(b'R', 1 << 31), Err(Fault::TooLong(1 << 31))),
            (message(b'R', 3), Err(Fault::NotPostgres)),
            (message(b'R', MAX_STARTUP_MESSAGE + 1), Err(Fault::TooLong(u64::from(MAX_STARTUP_MESSAGE) + 1))),
            ([ready.clone(), message(b'D', MAX_MESSAGE)].concat(), Ok(())),
            ([ready.clone(), message(b'D', u32::MAX)].concat(), Err(Fault::TooLong(u32::MAX.into()))),
            (b"HTTP/1.1 400 Bad Request".to_vec(), Err(Fault::NotPostgres)),
            (b"SSH-2.0-x".to_vec(), Err(Fault::NotPostgres)),
        ] {
            assert_eq!(MessageGuard::default().check(&bytes), expected);
            let mut guard = MessageGuard::default();
            let in_pieces: Result<(), Fault> = bytes.iter().try_for_each(|byte| guard.check(&[*byte]));
            assert_eq!(in_pieces, expected, "a byte at a time");
        }
    }

    #[test]
    fn many_messages_of_one_answer_are_too_much_and_the_next_answer_begins_anew() {
        let notice =
            [message(b'N', MAX_STARTUP_MESSAGE), vec![b'x'; MAX_STARTUP_MESSAGE as usize - 4]].concat();
        let mut guard = MessageGuard::default();
        let taken = (0..100).take_while(|_| guard.check(&notice).is_ok()).count();
        assert_eq!(taken as u64, MAX_STARTUP / u64::from(MAX_STARTUP_MESSAGE));
        let mut guard = MessageGuard { has_begun: true, is_ready: true, ..MessageGuard::default() };
        for _ in 0..2 * MAX_ANSWER / u64::from(MAX_MESSAGE) {
            assert_eq!(guard.check(&message(b'D', MAX_MESSAGE)), Ok(()));
            guard.body_left = 0;
            assert_eq!(guard.check(&[message(b'Z', 5), b"I".to_vec()].concat()), Ok(()));
        }
    }
}
