//! The stream of a connection: starts TLS and limits how much memory a server can make us allocate.
//!
//! `tokio-postgres` allocates room for a whole message as soon as it has read its length, which the server chooses (up to 2 GB), and
//! takes every response to the TLS request other than `S` for "no TLS". Both are handled here instead: a length is checked before it
//! is passed on, and an error keeps its text. Connections without TLS also use this stream.
//!
//! Limit: a server behind a Unix socket is not checked, because the library opens sockets only by itself.

use crate::database_fault::{DatabaseFault, fault_from_sqlstate};
use plimsoll_domain::text::to_single_line;
use postgres::Socket;
use postgres::error::SqlState;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The longest message before the connection is ready. libpq's own limit for an error is half of it.
const MAX_STARTUP_MESSAGE_BYTES: u32 = 64 * 1024;
/// The longest message of a result, which is a row of a board: items, notes and events have a few kilobytes each.
const MAX_MESSAGE_BYTES: u32 = 16 * 1024 * 1024;
/// Limits of all messages before the connection is ready, and of one result. A fleet of 100,000 sessions needs less.
const MAX_STARTUP_TOTAL_BYTES: u64 = 1024 * 1024;
const MAX_ANSWER_TOTAL_BYTES: u64 = 256 * 1024 * 1024;

/// The TLS request: a length, and a code that is not a protocol version.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
/// The size of a message header: type and length.
const HEADER_BYTES: usize = 5;

/// Connects to a server, with TLS or without.
#[derive(Clone)]
pub(crate) struct GuardedConnector {
    /// `None` for a connection without TLS.
    pub(crate) tls: Option<MakeRustlsConnect>,
}

type RustlsConnect = <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect;
type RustlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

impl MakeTlsConnect<Socket> for GuardedConnector {
    type Stream = GuardedStream;
    type TlsConnect = GuardedTlsConnect;
    type Error = DatabaseFault;

    fn make_tls_connect(&mut self, domain: &str) -> Result<GuardedTlsConnect, DatabaseFault> {
        let tls = self.tls.as_mut().map(|tls| MakeTlsConnect::<Socket>::make_tls_connect(tls, domain));
        let tls = tls.transpose().map_err(|error| DatabaseFault::TlsFailed(error.to_string()))?;
        Ok(GuardedTlsConnect { tls })
    }
}

/// The connector for one server.
pub(crate) struct GuardedTlsConnect {
    tls: Option<RustlsConnect>,
}

impl TlsConnect<Socket> for GuardedTlsConnect {
    type Stream = GuardedStream;
    type Error = DatabaseFault;
    type Future = Pin<Box<dyn Future<Output = Result<GuardedStream, DatabaseFault>> + Send>>;

    fn connect(self, mut socket: Socket) -> Self::Future {
        Box::pin(async move {
            let Some(tls) = self.tls else { return Ok(GuardedStream::new(InnerStream::Plain(socket))) };
            request_tls(&mut socket).await?;
            let stream = tls.connect(socket).await.map_err(|error| classify_tls_error(&error))?;
            Ok(GuardedStream::new(InnerStream::Tls(Box::new(stream))))
        })
    }
}

/// Asks whether the server has TLS. Reads only the one byte of the response: bytes after it may have been injected by an attacker.
async fn request_tls(socket: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Result<(), DatabaseFault> {
    let to_closed_fault = |_| DatabaseFault::ClosedWhileConnecting;
    socket.write_all(&TLS_REQUEST).await.map_err(to_closed_fault)?;
    socket.flush().await.map_err(to_closed_fault)?;
    let mut response = [0];
    socket.read_exact(&mut response).await.map_err(to_closed_fault)?;
    match response {
        [b'S'] => Ok(()),
        [b'N'] => Err(DatabaseFault::NoTls),
        [b'E'] => Err(read_error_message(socket).await?),
        _ => Err(DatabaseFault::NotPostgres),
    }
}

/// Reads the rest of an error message and converts it.
async fn read_error_message(socket: &mut (impl AsyncRead + Unpin)) -> Result<DatabaseFault, DatabaseFault> {
    let mut length = [0; 4];
    socket.read_exact(&mut length).await.map_err(|_| DatabaseFault::ClosedWhileConnecting)?;
    let length = u32::from_be_bytes(length);
    // The length includes its own four bytes.
    let body_length = length.checked_sub(4).ok_or(DatabaseFault::NotPostgres)?;
    if length > MAX_STARTUP_MESSAGE_BYTES {
        return Err(DatabaseFault::AnswerTooLong(length.into()));
    }
    let mut fields = vec![0; body_length as usize];
    socket.read_exact(&mut fields).await.map_err(|_| DatabaseFault::ClosedWhileConnecting)?;
    // Each field is a letter and a text with a final zero byte; another zero byte ends the message.
    let field = |field_type: u8| {
        let text = fields.split(|byte| *byte == 0).find_map(|field| field.strip_prefix(&[field_type]));
        text.map(|text| String::from_utf8_lossy(text).into_owned())
    };
    match (field(b'C'), field(b'M')) {
        // The sender is not authenticated: somebody on the network may have inserted the message.
        (Some(code), Some(message)) => {
            Ok(fault_from_sqlstate(&SqlState::from_code(&code), &to_single_line(&message)))
        }
        _ => Err(DatabaseFault::NotPostgres),
    }
}

fn classify_tls_error(error: &io::Error) -> DatabaseFault {
    // The kind depends on whether the server had read everything when it closed the connection.
    let closed_kinds =
        [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(_)) => DatabaseFault::UntrustedCertificate(error.to_string()),
        _ if error.kind() == io::ErrorKind::InvalidInput => {
            DatabaseFault::UntrustedCertificate(error.to_string())
        }
        None if closed_kinds.contains(&error.kind()) => {
            DatabaseFault::TlsFailed("it closed the connection while TLS began".to_owned())
        }
        _ => DatabaseFault::TlsFailed(error.to_string()),
    }
}

/// Parses the headers of a server's messages and keeps nothing else of them.
#[derive(Debug, Default)]
struct MessageGuard {
    header: [u8; HEADER_BYTES],
    header_length: usize,
    /// Number of bytes of the current message that are still to come.
    remaining_body_bytes: u64,
    /// Total length of all messages since the last `ReadyForQuery`.
    answer_bytes: u64,
    has_received_bytes: bool,
    /// True once the server has sent `ReadyForQuery`.
    is_ready: bool,
}

impl MessageGuard {
    /// Checks bytes before they are passed on.
    fn check_bytes(&mut self, mut bytes: &[u8]) -> Result<(), DatabaseFault> {
        while !bytes.is_empty() {
            if self.remaining_body_bytes > 0 {
                let passed_bytes = usize::try_from(self.remaining_body_bytes)
                    .map_or(bytes.len(), |remaining_bytes| remaining_bytes.min(bytes.len()));
                self.remaining_body_bytes -= passed_bytes as u64;
                bytes = &bytes[passed_bytes..];
                continue;
            }
            self.header[self.header_length] = bytes[0];
            self.header_length += 1;
            bytes = &bytes[1..];
            // Another protocol is recognized by its first byte.
            if !self.has_received_bytes && !b"RENv".contains(&self.header[0]) {
                return Err(DatabaseFault::NotPostgres);
            }
            self.has_received_bytes = true;
            if self.header_length == HEADER_BYTES {
                self.header_length = 0;
                self.check_message_header()?;
            }
        }
        Ok(())
    }

    fn check_message_header(&mut self) -> Result<(), DatabaseFault> {
        let [message_type, length @ ..] = self.header;
        let length = u32::from_be_bytes(length);
        let (max_message_bytes, max_total_bytes) = if self.is_ready {
            (MAX_MESSAGE_BYTES, MAX_ANSWER_TOTAL_BYTES)
        } else {
            (MAX_STARTUP_MESSAGE_BYTES, MAX_STARTUP_TOTAL_BYTES)
        };
        if length > max_message_bytes {
            return Err(DatabaseFault::AnswerTooLong(length.into()));
        }
        self.remaining_body_bytes = length.checked_sub(4).ok_or(DatabaseFault::NotPostgres)?.into();
        self.answer_bytes += u64::from(length);
        if self.answer_bytes > max_total_bytes {
            return Err(DatabaseFault::AnswerTooLong(self.answer_bytes));
        }
        if message_type == b'Z' {
            (self.is_ready, self.answer_bytes) = (true, 0);
        }
        Ok(())
    }
}

enum InnerStream {
    Plain(Socket),
    Tls(Box<RustlsStream>),
}

/// A stream whose messages are checked.
pub(crate) struct GuardedStream {
    inner: InnerStream,
    guard: MessageGuard,
}

impl GuardedStream {
    fn new(inner: InnerStream) -> GuardedStream {
        GuardedStream { inner, guard: MessageGuard::default() }
    }
}

impl TlsStream for GuardedStream {
    fn channel_binding(&self) -> ChannelBinding {
        match &self.inner {
            InnerStream::Plain(_) => ChannelBinding::none(),
            InnerStream::Tls(stream) => stream.channel_binding(),
        }
    }
}

impl AsyncRead for GuardedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled_before = buffer.filled().len();
        ready!(match &mut self.inner {
            InnerStream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            InnerStream::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, buffer),
        })?;
        Poll::Ready(self.guard.check_bytes(&buffer.filled()[filled_before..]).map_err(io::Error::other))
    }
}

impl AsyncWrite for GuardedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.inner {
            InnerStream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            InnerStream::Tls(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            InnerStream::Plain(stream) => Pin::new(stream).poll_flush(context),
            InnerStream::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            InnerStream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            InnerStream::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message_header(message_type: u8, length: u32) -> Vec<u8> {
        [&[message_type][..], &length.to_be_bytes()].concat()
    }

    #[test]
    fn an_oversized_length_is_refused_before_the_message_is_passed_on() {
        let ready = [message_header(b'R', 8), vec![0; 4], message_header(b'Z', 5), b"I".to_vec()].concat();
        let row = [message_header(b'D', 100), vec![7; 96]].concat();
        for (bytes, expected) in [
            (ready.clone(), Ok(())),
            ([ready.clone(), row.clone(), row].concat(), Ok(())),
            (message_header(b'R', 1 << 31), Err(DatabaseFault::AnswerTooLong(1 << 31))),
            (message_header(b'R', 3), Err(DatabaseFault::NotPostgres)),
            (
                message_header(b'R', MAX_STARTUP_MESSAGE_BYTES + 1),
                Err(DatabaseFault::AnswerTooLong(u64::from(MAX_STARTUP_MESSAGE_BYTES) + 1)),
            ),
            ([ready.clone(), message_header(b'D', MAX_MESSAGE_BYTES)].concat(), Ok(())),
            (
                [ready.clone(), message_header(b'D', u32::MAX)].concat(),
                Err(DatabaseFault::AnswerTooLong(u32::MAX.into())),
            ),
            (b"HTTP/1.1 400 Bad Request".to_vec(), Err(DatabaseFault::NotPostgres)),
            (b"SSH-2.0-x".to_vec(), Err(DatabaseFault::NotPostgres)),
        ] {
            assert_eq!(MessageGuard::default().check_bytes(&bytes), expected);
            let mut guard = MessageGuard::default();
            let result_by_byte: Result<(), DatabaseFault> =
                bytes.iter().try_for_each(|byte| guard.check_bytes(&[*byte]));
            assert_eq!(result_by_byte, expected, "a byte at a time");
        }
    }

    #[test]
    fn many_messages_of_one_answer_are_too_much_but_each_answer_counts_anew() {
        let notice = [
            message_header(b'N', MAX_STARTUP_MESSAGE_BYTES),
            vec![b'x'; MAX_STARTUP_MESSAGE_BYTES as usize - 4],
        ]
        .concat();
        let mut guard = MessageGuard::default();
        let accepted_count = (0..100).take_while(|_| guard.check_bytes(&notice).is_ok()).count();
        assert_eq!(accepted_count as u64, MAX_STARTUP_TOTAL_BYTES / u64::from(MAX_STARTUP_MESSAGE_BYTES));
        let mut guard = MessageGuard { has_received_bytes: true, is_ready: true, ..MessageGuard::default() };
        for _ in 0..2 * MAX_ANSWER_TOTAL_BYTES / u64::from(MAX_MESSAGE_BYTES) {
            assert_eq!(guard.check_bytes(&message_header(b'D', MAX_MESSAGE_BYTES)), Ok(()));
            guard.remaining_body_bytes = 0;
            assert_eq!(guard.check_bytes(&[message_header(b'Z', 5), b"I".to_vec()].concat()), Ok(()));
        }
    }
}
