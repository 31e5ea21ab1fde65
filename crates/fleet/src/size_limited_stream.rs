//! The stream of a connection: starts TLS and limits how much memory a server can make us allocate.
//!
//! `tokio-postgres` allocates room for a whole message as soon as it has read its length, which the server chooses (up to
//! 2 GB), and treats every response to the TLS request other than `S` as "no TLS". This module checks each length before
//! it passes the bytes on, and keeps the text of an error. Connections without TLS also use this stream.
//!
//! Limitation: a connection through a Unix socket is not checked, because only the library itself can open one.

use crate::database_error::{DatabaseError, database_error_from_sqlstate};
use plimsoll_domain::text::to_safe_single_line;
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
/// Limits for the total of all messages before the connection is ready, and for one result. A fleet of 100,000 sessions needs less.
const MAX_STARTUP_TOTAL_BYTES: u64 = 1024 * 1024;
const MAX_RESULT_TOTAL_BYTES: u64 = 256 * 1024 * 1024;

/// The TLS request: a length, and a code that is not a protocol version.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
/// The size of a message header: type and length.
const HEADER_BYTES: usize = 5;

/// Connects to a server, with TLS or without.
#[derive(Clone)]
pub(crate) struct SizeLimitedConnector {
    /// `None` for a connection without TLS.
    pub(crate) tls: Option<MakeRustlsConnect>,
}

type RustlsConnect = <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect;
type RustlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

impl MakeTlsConnect<Socket> for SizeLimitedConnector {
    type Stream = SizeLimitedStream;
    type TlsConnect = SizeLimitedTlsConnect;
    type Error = DatabaseError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<SizeLimitedTlsConnect, DatabaseError> {
        let tls = self.tls.as_mut().map(|tls| MakeTlsConnect::<Socket>::make_tls_connect(tls, domain));
        let tls = tls.transpose().map_err(|error| DatabaseError::TlsFailed(error.to_string()))?;
        Ok(SizeLimitedTlsConnect { tls })
    }
}

/// The connector for one server.
pub(crate) struct SizeLimitedTlsConnect {
    tls: Option<RustlsConnect>,
}

impl TlsConnect<Socket> for SizeLimitedTlsConnect {
    type Stream = SizeLimitedStream;
    type Error = DatabaseError;
    type Future = Pin<Box<dyn Future<Output = Result<SizeLimitedStream, DatabaseError>> + Send>>;

    fn connect(self, mut socket: Socket) -> Self::Future {
        Box::pin(async move {
            let Some(tls) = self.tls else { return Ok(SizeLimitedStream::new(InnerStream::Plain(socket))) };
            request_tls(&mut socket).await?;
            let stream = tls.connect(socket).await.map_err(|error| classify_tls_error(&error))?;
            Ok(SizeLimitedStream::new(InnerStream::Tls(Box::new(stream))))
        })
    }
}

/// Requests TLS from the server. Reads only the one byte of the response: bytes after it may have been injected by an attacker.
async fn request_tls(socket: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Result<(), DatabaseError> {
    let to_closed_error = |_| DatabaseError::ClosedWhileConnecting;
    socket.write_all(&TLS_REQUEST).await.map_err(to_closed_error)?;
    socket.flush().await.map_err(to_closed_error)?;
    let mut response = [0];
    socket.read_exact(&mut response).await.map_err(to_closed_error)?;
    match response {
        [b'S'] => Ok(()),
        [b'N'] => Err(DatabaseError::NoTls),
        [b'E'] => Err(read_error_message_as_database_error(socket).await?),
        _ => Err(DatabaseError::NotPostgres),
    }
}

/// Reads an error message after its type byte and converts it to a [`DatabaseError`].
async fn read_error_message_as_database_error(
    socket: &mut (impl AsyncRead + Unpin),
) -> Result<DatabaseError, DatabaseError> {
    let mut length_bytes = [0; 4];
    socket.read_exact(&mut length_bytes).await.map_err(|_| DatabaseError::ClosedWhileConnecting)?;
    let length = u32::from_be_bytes(length_bytes);
    // The length includes its own four bytes.
    let body_length = length.checked_sub(4).ok_or(DatabaseError::NotPostgres)?;
    if length > MAX_STARTUP_MESSAGE_BYTES {
        return Err(DatabaseError::ResponseTooLong(length.into()));
    }
    let mut body = vec![0; body_length as usize];
    socket.read_exact(&mut body).await.map_err(|_| DatabaseError::ClosedWhileConnecting)?;
    // Each field is a type byte and a text that ends with a NUL byte; another NUL byte ends the message.
    let field_text = |field_type: u8| {
        let text = body.split(|byte| *byte == 0).find_map(|field| field.strip_prefix(&[field_type]));
        text.map(|text| String::from_utf8_lossy(text).into_owned())
    };
    match (field_text(b'C'), field_text(b'M')) {
        // The sender is not authenticated: somebody on the network may have inserted the message.
        (Some(code), Some(message)) => {
            Ok(database_error_from_sqlstate(&SqlState::from_code(&code), &to_safe_single_line(&message)))
        }
        _ => Err(DatabaseError::NotPostgres),
    }
}

fn classify_tls_error(error: &io::Error) -> DatabaseError {
    // The error kind depends on whether the server had read all data when it closed the connection.
    let closed_kinds =
        [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(_)) => DatabaseError::UntrustedCertificate(error.to_string()),
        _ if error.kind() == io::ErrorKind::InvalidInput => {
            DatabaseError::UntrustedCertificate(error.to_string())
        }
        None if closed_kinds.contains(&error.kind()) => {
            DatabaseError::TlsFailed("it closed the connection while TLS began".to_owned())
        }
        _ => DatabaseError::TlsFailed(error.to_string()),
    }
}

/// Checks the type and length in the headers of a server's messages. Does not store their bodies.
#[derive(Debug, Default)]
struct MessageHeaderValidator {
    header: [u8; HEADER_BYTES],
    header_length: usize,
    /// Number of bytes of the current message's body that have not arrived yet.
    remaining_body_bytes: u64,
    /// Total length of all messages since the last `ReadyForQuery`.
    bytes_since_ready: u64,
    has_received_bytes: bool,
    /// True once the server has sent `ReadyForQuery`.
    is_ready: bool,
}

impl MessageHeaderValidator {
    /// Checks received bytes before the library reads them. Fails if they are not PostgreSQL's protocol or exceed a size limit.
    fn validate_headers_in_received_bytes(&mut self, mut bytes: &[u8]) -> Result<(), DatabaseError> {
        while !bytes.is_empty() {
            if self.remaining_body_bytes > 0 {
                let body_bytes = usize::try_from(self.remaining_body_bytes)
                    .map_or(bytes.len(), |remaining_bytes| remaining_bytes.min(bytes.len()));
                self.remaining_body_bytes -= body_bytes as u64;
                bytes = &bytes[body_bytes..];
                continue;
            }
            self.header[self.header_length] = bytes[0];
            self.header_length += 1;
            bytes = &bytes[1..];
            // Another protocol is recognized by its first byte.
            if !self.has_received_bytes && !b"RENv".contains(&self.header[0]) {
                return Err(DatabaseError::NotPostgres);
            }
            self.has_received_bytes = true;
            if self.header_length == HEADER_BYTES {
                self.header_length = 0;
                self.check_message_and_total_size_and_start_body()?;
            }
        }
        Ok(())
    }

    fn check_message_and_total_size_and_start_body(&mut self) -> Result<(), DatabaseError> {
        let [message_type, length_bytes @ ..] = self.header;
        let length = u32::from_be_bytes(length_bytes);
        let (max_message_bytes, max_total_bytes) = if self.is_ready {
            (MAX_MESSAGE_BYTES, MAX_RESULT_TOTAL_BYTES)
        } else {
            (MAX_STARTUP_MESSAGE_BYTES, MAX_STARTUP_TOTAL_BYTES)
        };
        if length > max_message_bytes {
            return Err(DatabaseError::ResponseTooLong(length.into()));
        }
        self.remaining_body_bytes = length.checked_sub(4).ok_or(DatabaseError::NotPostgres)?.into();
        self.bytes_since_ready += u64::from(length);
        if self.bytes_since_ready > max_total_bytes {
            return Err(DatabaseError::ResponseTooLong(self.bytes_since_ready));
        }
        if message_type == b'Z' {
            (self.is_ready, self.bytes_since_ready) = (true, 0);
        }
        Ok(())
    }
}

enum InnerStream {
    Plain(Socket),
    Tls(Box<RustlsStream>),
}

/// A stream that fails if the server sends too much or does not use PostgreSQL's protocol.
pub(crate) struct SizeLimitedStream {
    inner: InnerStream,
    validator: MessageHeaderValidator,
}

impl SizeLimitedStream {
    fn new(inner: InnerStream) -> SizeLimitedStream {
        SizeLimitedStream { inner, validator: MessageHeaderValidator::default() }
    }
}

impl TlsStream for SizeLimitedStream {
    fn channel_binding(&self) -> ChannelBinding {
        match &self.inner {
            InnerStream::Plain(_) => ChannelBinding::none(),
            InnerStream::Tls(stream) => stream.channel_binding(),
        }
    }
}

impl AsyncRead for SizeLimitedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let length_before_read = buffer.filled().len();
        ready!(match &mut self.inner {
            InnerStream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            InnerStream::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, buffer),
        })?;
        Poll::Ready(
            self.validator
                .validate_headers_in_received_bytes(&buffer.filled()[length_before_read..])
                .map_err(io::Error::other),
        )
    }
}

impl AsyncWrite for SizeLimitedStream {
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
            (message_header(b'R', 1 << 31), Err(DatabaseError::ResponseTooLong(1 << 31))),
            (message_header(b'R', 3), Err(DatabaseError::NotPostgres)),
            (
                message_header(b'R', MAX_STARTUP_MESSAGE_BYTES + 1),
                Err(DatabaseError::ResponseTooLong(u64::from(MAX_STARTUP_MESSAGE_BYTES) + 1)),
            ),
            ([ready.clone(), message_header(b'D', MAX_MESSAGE_BYTES)].concat(), Ok(())),
            (
                [ready.clone(), message_header(b'D', u32::MAX)].concat(),
                Err(DatabaseError::ResponseTooLong(u32::MAX.into())),
            ),
            (b"HTTP/1.1 400 Bad Request".to_vec(), Err(DatabaseError::NotPostgres)),
            (b"SSH-2.0-x".to_vec(), Err(DatabaseError::NotPostgres)),
        ] {
            assert_eq!(
                MessageHeaderValidator::default().validate_headers_in_received_bytes(&bytes),
                expected
            );
            let mut guard = MessageHeaderValidator::default();
            let result_by_byte: Result<(), DatabaseError> =
                bytes.iter().try_for_each(|byte| guard.validate_headers_in_received_bytes(&[*byte]));
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
        let mut guard = MessageHeaderValidator::default();
        let accepted_count =
            (0..100).take_while(|_| guard.validate_headers_in_received_bytes(&notice).is_ok()).count();
        assert_eq!(accepted_count as u64, MAX_STARTUP_TOTAL_BYTES / u64::from(MAX_STARTUP_MESSAGE_BYTES));
        let mut guard = MessageHeaderValidator {
            has_received_bytes: true,
            is_ready: true,
            ..MessageHeaderValidator::default()
        };
        for _ in 0..2 * MAX_RESULT_TOTAL_BYTES / u64::from(MAX_MESSAGE_BYTES) {
            assert_eq!(
                guard.validate_headers_in_received_bytes(&message_header(b'D', MAX_MESSAGE_BYTES)),
                Ok(())
            );
            guard.remaining_body_bytes = 0;
            assert_eq!(
                guard.validate_headers_in_received_bytes(&[message_header(b'Z', 5), b"I".to_vec()].concat()),
                Ok(())
            );
        }
    }
}
