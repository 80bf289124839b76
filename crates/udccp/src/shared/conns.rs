//! The socket layer's state of connections.

use udccp_proto::ConnectionId;

use super::waiters::Conn;

/// The state of each connection, at the index of its id: one look-up, and little memory.
#[derive(Debug, Default)]
pub(crate) struct Conns {
    places: Vec<Option<(ConnectionId, Conn)>>,
    count: usize,
}

impl Conns {
    /// How many connections there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The state of a connection.
    #[inline]
    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Conn> {
        let (owner, conn) = self.places.get(id.place())?.as_ref()?;
        (*owner == id).then_some(conn)
    }

    /// The state of a connection, mutably.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Conn> {
        let (owner, conn) = self.places.get_mut(id.place())?.as_mut()?;
        (*owner == id).then_some(conn)
    }

    /// Adds a connection of the endpoint. If its index is in use, the earlier connection is over.
    pub(crate) fn insert(&mut self, id: ConnectionId, conn: Conn) {
        let place = id.place();
        if place >= self.places.len() {
            self.grow(place + 1);
        }
        let before = self.places[place].replace((id, conn));
        self.count += usize::from(before.is_none());
    }

    /// Extends the table to this length, in steps of an eighth: doubling would leave up to half
    /// unused.
    fn grow(&mut self, places: usize) {
        if places > self.places.capacity() {
            let more = places - self.places.len();
            self.places.reserve_exact(more.max(self.places.len() / 8).max(4));
        }
        self.places.resize_with(places, || None);
    }

    /// Removes a connection, and frees unused entries at the end.
    pub(crate) fn remove(&mut self, id: ConnectionId) -> Option<Conn> {
        self.get(id)?;
        let (_, conn) = self.places[id.place()].take()?;
        self.count -= 1;
        let used = self.places.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        self.places.truncate(used);
        if used < self.places.capacity() / 4 {
            self.places.shrink_to(used * 2);
        }
        Some(conn)
    }

    /// Removes the connections for which `keep` returns false.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Conn) -> bool) {
        for id in self.ids() {
            if self.get(id).is_some_and(|conn| !keep(conn)) {
                self.remove(id);
            }
        }
    }

    /// All ids.
    pub(crate) fn ids(&self) -> Vec<ConnectionId> {
        self.places.iter().flatten().map(|(id, _)| *id).collect()
    }

    /// All connections.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Conn> {
        self.places.iter().flatten().map(|(_, conn)| conn)
    }

    /// All connections, mutably.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Conn> {
        self.places.iter_mut().flatten().map(|(_, conn)| conn)
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::{Instant, Machine as _};
    use udccp_proto::{ConnectOptions, ConnectionConfig, Endpoint, EndpointConfig};
    use udccp_wire::ServiceCode;

    use super::*;

    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    fn connect(endpoint: &mut Endpoint) -> ConnectionId {
        let [local, remote] = ["10.0.0.1:6511", "10.0.0.2:6511"].map(|at| at.parse().unwrap());
        let (local_port, remote_port, service) = (None, 5001, ServiceCode(42));
        let config = ConnectionConfig::default().into();
        let options = ConnectOptions { local, local_port, remote, remote_port, service, config };
        endpoint.connect(NOW, options).unwrap()
    }

    #[test]
    fn stale_ids_are_not_found() {
        let (mut endpoint, mut conns) =
            (Endpoint::new(EndpointConfig::new([1; 32])), Conns::default());
        let old = connect(&mut endpoint);
        conns.insert(old, Conn::default());
        endpoint.abort(NOW, old);
        endpoint.release(NOW, old);
        while endpoint.poll_transmit(NOW).is_some() {}
        let new = connect(&mut endpoint);
        assert!(old != new && old.place() == new.place());
        assert!(conns.get(new).is_none() && conns.get_mut(new).is_none());
        assert!(conns.remove(new).is_none());
        conns.insert(new, Conn::default());
        assert!(conns.get(old).is_none() && conns.get_mut(old).is_none());
        assert!(conns.remove(old).is_none());
        assert_eq!((conns.len(), conns.ids()), (1, vec![new]));
    }

    #[test]
    fn room_follows_the_number_of_connections() {
        let (mut endpoint, mut conns) =
            (Endpoint::new(EndpointConfig::new([1; 32])), Conns::default());
        let ids: Vec<_> = (0..1000).map(|_| connect(&mut endpoint)).collect();
        for (n, id) in ids.iter().enumerate() {
            conns.insert(*id, Conn { connected: n % 2 == 0, ..Conn::default() });
            assert!(conns.places.capacity() <= (n + 1) * 9 / 8 + 4);
        }
        conns.retain(|conn| conn.connected);
        assert_eq!((conns.len(), conns.all().count(), conns.all_mut().count()), (500, 500, 500));
        for id in &ids[8..] {
            conns.remove(*id);
        }
        assert_eq!(conns.ids(), [0, 2, 4, 6].map(|n| ids[n]));
        assert!(conns.places.capacity() < 64);
    }

    /// Many connections have nothing waiting on them, so their entries should be small.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn an_empty_place_takes_eight_bytes_more_than_a_connection() {
        assert_eq!(size_of::<Option<(ConnectionId, Conn)>>(), size_of::<Conn>() + 8);
    }
}
