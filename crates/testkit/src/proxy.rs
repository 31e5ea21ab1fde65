//! A proxy on this computer that delays what passes, holds it back, or cuts connections in the middle of it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// A proxy before a port of this computer. It ends with the test's process.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    terms: Arc<Terms>,
}

/// What is done to connections. Numbers that are the largest possible do nothing.
#[derive(Debug)]
struct Terms {
    /// Bytes that are still passed on, of all connections together, to the server and to the client.
    to_server: AtomicU64,
    to_client: AtomicU64,
    is_held: AtomicBool,
    /// So long each answer is on its way, in milliseconds.
    delay: AtomicU64,
    /// Every connection is cut after about so many bytes in one direction.
    most: AtomicU64,
    accepted: AtomicU64,
    cuts: AtomicU64,
}

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    ToServer,
    ToClient,
}

impl Proxy {
    /// A proxy before this port of 127.0.0.1.
    pub fn before(port: u16) -> Proxy {
        Proxy::at("127.0.0.1", port)
    }

    /// The same at another address of this computer, in a network of the test's own.
    pub fn at(address: &str, port: u16) -> Proxy {
        let listener = TcpListener::bind((address, 0)).expect("a port");
        let own = listener.local_addr().expect("its number").port();
        let terms = Arc::new(Terms {
            to_server: AtomicU64::new(u64::MAX),
            to_client: AtomicU64::new(u64::MAX),
            is_held: AtomicBool::new(false),
            delay: AtomicU64::new(0),
            most: AtomicU64::new(u64::MAX),
            accepted: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
        });
        let shared = Arc::clone(&terms);
        spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                join(&client, &server, &shared);
            }
        });
        Proxy { port: own, terms }
    }

    /// Its own port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// So many bytes are still passed on to the server and to the client, of all connections together.
    pub fn let_pass(&self, to_server: u64, to_client: u64) {
        self.terms.to_server.store(to_server, Ordering::SeqCst);
        self.terms.to_client.store(to_client, Ordering::SeqCst);
    }

    /// Passes nothing on for as long as it is held.
    pub fn hold(&self, is_held: bool) {
        self.terms.is_held.store(is_held, Ordering::SeqCst);
    }

    /// From now on every answer is late by this, and every connection is cut after about so many bytes: one on the way to the server,
    /// the next on the way back.
    pub fn disturb(&self, delay: Duration, most: u64) {
        self.terms.delay.store(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
        self.terms.most.store(most, Ordering::SeqCst);
    }

    /// How many connections were cut in the middle.
    pub fn cuts(&self) -> u64 {
        self.terms.cuts.load(Ordering::SeqCst)
    }
}

/// Passes on what one connection says, both ways.
fn join(client: &TcpStream, server: &TcpStream, terms: &Arc<Terms>) {
    let number = terms.accepted.fetch_add(1, Ordering::SeqCst);
    let cut_way = if number.is_multiple_of(2) { Way::ToServer } else { Way::ToClient };
    let clone = |stream: &TcpStream| stream.try_clone().expect("a handle");
    for (way, from, to) in [(Way::ToServer, client, server), (Way::ToClient, server, client)] {
        let (from, to, terms) = (clone(from), clone(to), Arc::clone(terms));
        spawn(move || pass(way, from, to, (way == cut_way).then_some(number), &terms));
    }
}

/// Where a connection is cut, no two of them at the same place.
fn own_end(terms: &Terms, number: Option<u64>) -> u64 {
    match (number, terms.most.load(Ordering::SeqCst)) {
        (None, _) | (_, u64::MAX) => u64::MAX,
        (Some(number), most) => most + number * 337 % most.max(1),
    }
}

/// `number` is that of a connection that may be cut in this direction.
fn pass(way: Way, mut from: TcpStream, mut to: TcpStream, number: Option<u64>, terms: &Terms) {
    let left = match way {
        Way::ToServer => &terms.to_server,
        Way::ToClient => &terms.to_client,
    };
    let (mut bytes, mut said) = ([0; 4096], 0);
    let _ = to.set_nodelay(true);
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        while terms.is_held.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(5));
        }
        if way == Way::ToClient {
            sleep(Duration::from_millis(terms.delay.load(Ordering::SeqCst)));
        }
        let (of_all, own) = (left.load(Ordering::SeqCst), own_end(terms, number).saturating_sub(said));
        let passed = usize::try_from(of_all.min(own)).unwrap_or(usize::MAX).min(count);
        if to.write_all(&bytes[..passed]).is_err() {
            break;
        }
        if passed < count {
            terms.cuts.fetch_add(1, Ordering::SeqCst);
            break;
        }
        if of_all != u64::MAX {
            left.fetch_sub(count as u64, Ordering::SeqCst);
        }
        said += count as u64;
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
