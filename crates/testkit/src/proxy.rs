//! A TCP proxy on this computer that can delay or pause data and cut connections mid-stream.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// A proxy for a port of this computer. It runs until the test process exits.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: Arc<ProxyState>,
}

/// The limits and delays that the proxy applies to connections. `u64::MAX` means no limit.
#[derive(Debug)]
struct ProxyState {
    /// Bytes that all connections together may still send to the server.
    bytes_left_to_server: AtomicU64,
    bytes_left_to_client: AtomicU64,
    is_paused: AtomicBool,
    /// Delay of each response, in milliseconds.
    response_delay_ms: AtomicU64,
    /// Number of bytes in one direction after which each connection is cut, approximately.
    cut_after_bytes: AtomicU64,
    accepted_count: AtomicU64,
    cut_count: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToServer,
    ToClient,
}

impl Proxy {
    /// Starts a proxy on 127.0.0.1 for a server on this port of 127.0.0.1.
    pub fn start_for_port(server_port: u16) -> Proxy {
        Proxy::start_for_port_at_address("127.0.0.1", server_port)
    }

    /// Starts a proxy that listens on another address of this computer, such as one in a network namespace of the test.
    /// The server is on 127.0.0.1.
    pub fn start_for_port_at_address(listen_address: &str, server_port: u16) -> Proxy {
        let listener = TcpListener::bind((listen_address, 0)).expect("a port");
        let listen_port = listener.local_addr().expect("its number").port();
        let state = Arc::new(ProxyState {
            bytes_left_to_server: AtomicU64::new(u64::MAX),
            bytes_left_to_client: AtomicU64::new(u64::MAX),
            is_paused: AtomicBool::new(false),
            response_delay_ms: AtomicU64::new(0),
            cut_after_bytes: AtomicU64::new(u64::MAX),
            accepted_count: AtomicU64::new(0),
            cut_count: AtomicU64::new(0),
        });
        let shared_state = Arc::clone(&state);
        spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)) else { continue };
                spawn_forwarding_threads(&client, &server, &shared_state);
            }
        });
        Proxy { port: listen_port, state }
    }

    /// Returns the port on which the proxy listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sets how many more bytes all connections together may send to the server and to the client.
    pub fn limit_remaining_bytes(&self, bytes_to_server: u64, bytes_to_client: u64) {
        self.state.bytes_left_to_server.store(bytes_to_server, Ordering::SeqCst);
        self.state.bytes_left_to_client.store(bytes_to_client, Ordering::SeqCst);
    }

    /// Pauses or resumes forwarding.
    pub fn set_paused(&self, is_paused: bool) {
        self.state.is_paused.store(is_paused, Ordering::SeqCst);
    }

    /// Delays every response and cuts every connection after about `cut_after_bytes` bytes. The direction alternates:
    /// one connection is cut on the way to the server, the next on the way to the client.
    pub fn delay_and_cut(&self, response_delay: Duration, cut_after_bytes: u64) {
        self.state
            .response_delay_ms
            .store(u64::try_from(response_delay.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
        self.state.cut_after_bytes.store(cut_after_bytes, Ordering::SeqCst);
    }

    /// Returns the number of connections that were cut.
    pub fn cut_count(&self) -> u64 {
        self.state.cut_count.load(Ordering::SeqCst)
    }
}

/// Starts two threads that forward the data of one connection, one for each direction.
fn spawn_forwarding_threads(client: &TcpStream, server: &TcpStream, state: &Arc<ProxyState>) {
    let connection_number = state.accepted_count.fetch_add(1, Ordering::SeqCst);
    let cut_direction =
        if connection_number.is_multiple_of(2) { Direction::ToServer } else { Direction::ToClient };
    let clone_stream = |stream: &TcpStream| stream.try_clone().expect("a handle");
    for (direction, source, destination) in
        [(Direction::ToServer, client, server), (Direction::ToClient, server, client)]
    {
        let (source, destination, state) =
            (clone_stream(source), clone_stream(destination), Arc::clone(state));
        spawn(move || {
            forward_direction(
                direction,
                source,
                destination,
                (direction == cut_direction).then_some(connection_number),
                &state,
            );
        });
    }
}

/// Returns the byte count after which a connection is cut, or `u64::MAX` if it is not cut. It differs between connections.
fn cut_position_or_max(state: &ProxyState, connection_number: Option<u64>) -> u64 {
    match (connection_number, state.cut_after_bytes.load(Ordering::SeqCst)) {
        (None, _) | (_, u64::MAX) => u64::MAX,
        (Some(connection_number), cut_after_bytes) => {
            cut_after_bytes + connection_number * 337 % cut_after_bytes.max(1)
        }
    }
}

/// Forwards one direction of a connection. `connection_number_if_cuttable` is `None` if the connection
/// may not be cut in this direction.
fn forward_direction(
    direction: Direction,
    mut source: TcpStream,
    mut destination: TcpStream,
    connection_number_if_cuttable: Option<u64>,
    state: &ProxyState,
) {
    let shared_bytes_left = match direction {
        Direction::ToServer => &state.bytes_left_to_server,
        Direction::ToClient => &state.bytes_left_to_client,
    };
    let (mut buffer, mut forwarded_byte_count) = ([0; 4096], 0);
    let _ = destination.set_nodelay(true);
    while let Ok(read_count @ 1..) = source.read(&mut buffer) {
        while state.is_paused.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(5));
        }
        if direction == Direction::ToClient {
            sleep(Duration::from_millis(state.response_delay_ms.load(Ordering::SeqCst)));
        }
        let (shared_limit, connection_limit) = (
            shared_bytes_left.load(Ordering::SeqCst),
            cut_position_or_max(state, connection_number_if_cuttable).saturating_sub(forwarded_byte_count),
        );
        let allowed_byte_count =
            usize::try_from(shared_limit.min(connection_limit)).unwrap_or(usize::MAX).min(read_count);
        if destination.write_all(&buffer[..allowed_byte_count]).is_err() {
            break;
        }
        if allowed_byte_count < read_count {
            state.cut_count.fetch_add(1, Ordering::SeqCst);
            break;
        }
        if shared_limit != u64::MAX {
            shared_bytes_left.fetch_sub(read_count as u64, Ordering::SeqCst);
        }
        forwarded_byte_count += read_count as u64;
    }
    let _ = source.shutdown(Shutdown::Both);
    let _ = destination.shutdown(Shutdown::Both);
}
