//! How many sockets there may be: over all, and of one address before they prove themselves.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::limits::{MAX_SOCKETS, PREAUTH_PER_ADDRESS};

#[derive(Debug, Default)]
struct Counts {
    sockets: u32,
    authenticated: u64,
    strangers: BTreeMap<IpAddr, u32>,
}

/// The counts. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seats(Arc<Mutex<Counts>>);

/// Why a socket is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSeat {
    /// Too many over all.
    Full,
    /// Too many of this address that have not proved themselves.
    Strangers,
}

/// A socket's place. Dropping it frees it.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Seats,
    stranger: Option<IpAddr>,
}

impl Seats {
    /// Takes a place for a new socket.
    pub fn take(&self, address: IpAddr) -> Result<Seat, NoSeat> {
        let address = address.to_canonical();
        let mut counts = self.lock();
        if counts.sockets >= MAX_SOCKETS {
            return Err(NoSeat::Full);
        }
        let strangers = counts.strangers.entry(address).or_default();
        if *strangers >= PREAUTH_PER_ADDRESS {
            return Err(NoSeat::Strangers);
        }
        *strangers += 1;
        counts.sockets += 1;
        Ok(Seat {
            seats: self.clone(),
            stranger: Some(address),
        })
    }

    /// How many sockets have proved themselves.
    pub fn authenticated(&self) -> u64 {
        self.lock().authenticated
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Counts> {
        // Counts are whole after every statement, so a panic elsewhere left nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn stranger_left(&mut self, address: IpAddr) {
        if let Some(count) = self.strangers.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.strangers.remove(&address);
            }
        }
    }
}

impl Seat {
    /// The socket has proved itself and counts as a stranger no more.
    pub fn proved(&mut self) {
        if let Some(address) = self.stranger.take() {
            let mut counts = self.seats.lock();
            counts.stranger_left(address);
            counts.authenticated += 1;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self.seats.lock();
        counts.sockets -= 1;
        match self.stranger {
            Some(address) => counts.stranger_left(address),
            None => counts.authenticated -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(n: u32) -> IpAddr {
        IpAddr::from(n.to_be_bytes())
    }

    /// Law 9: strangers of one address are bounded, those who prove themselves make room
    #[test]
    fn a_proved_socket_makes_room_for_a_stranger() {
        let seats = Seats::default();
        let mut held: Vec<Seat> = (0..PREAUTH_PER_ADDRESS)
            .map(|_| seats.take(ip(1)).unwrap())
            .collect();
        assert_eq!(seats.take(ip(1)).unwrap_err(), NoSeat::Strangers);
        assert!(seats.take(ip(2)).is_ok());
        held[0].proved();
        assert_eq!(seats.authenticated(), 1);
        held.push(seats.take(ip(1)).unwrap());
        drop(held);
        let counts = seats.lock();
        assert_eq!(
            (counts.sockets, counts.authenticated, counts.strangers.len()),
            (0, 0, 0)
        );
    }

    /// Law 9: sockets are bounded over all
    #[test]
    fn sockets_are_bounded_over_all_addresses() {
        let seats = Seats::default();
        let held: Vec<Seat> = (0..MAX_SOCKETS)
            .map(|n| seats.take(ip(n)).unwrap())
            .collect();
        assert_eq!(seats.take(ip(MAX_SOCKETS)).unwrap_err(), NoSeat::Full);
        drop(held);
        assert!(seats.take(ip(0)).is_ok());
    }
}
