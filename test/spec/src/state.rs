//! The state: etcd, two replicas of the global, two zones, and the sessions between them.

pub const REPLICAS: usize = 2;
pub const ZONES: usize = 2;
/// The most writes that etcd's log ever holds; the bounds of every scene keep below it.
pub const WRITES: usize = 12;

/// What the store holds: a policy that the global writes, a service of each zone, and which replica has which zone. 0 is absent, or nobody.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Default)]
pub struct Content {
    pub policy: u8,
    pub service: [u8; ZONES],
    pub claim: [u8; ZONES],
}

/// One write of the store: where etcd has it, which of all writes that ever were it is, and what the store was like before and is since.
/// `before` names the write before by what it is, `after` by where it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Default)]
pub struct Write {
    pub at: u8,
    pub id: u8,
    pub after: u8,
    pub before: u8,
    pub old: Content,
    pub new: Content,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Default)]
pub struct Etcd {
    /// The cluster's revision; others than the store write too.
    pub rev: u8,
    /// Up to which revision the history is forgotten.
    pub compacted: u8,
    /// The writes there ever were, those included that a restore has lost.
    pub ids: u8,
    /// The first and the last write that a restore has lost; 0 for none.
    pub lost: [u8; 2],
    /// The name of the store: another one when it was filled from a backup.
    pub epoch: u8,
    pub len: u8,
    pub log: [Write; WRITES],
}

impl Etcd {
    pub fn last(&self) -> &Write {
        &self.log[self.len as usize - 1]
    }

    pub fn writes(&self) -> &[Write] {
        &self.log[..self.len as usize]
    }

    /// Whether a restore has lost a write.
    pub fn has_lost(&self, id: u8) -> bool {
        id > 0 && self.lost[0] <= id && id <= self.lost[1]
    }

    pub fn push(&mut self, content: Content) {
        let last = *self.last();
        self.rev += 1;
        self.ids += 1;
        self.log[self.len as usize] = Write {
            at: self.rev,
            id: self.ids,
            after: last.at,
            before: last.id,
            old: last.new,
            new: content,
        };
        self.len += 1;
    }
}

/// A replica of the global: a view of the store in memory, and a watch that brings it what others write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Default)]
pub struct Replica {
    pub up: bool,
    /// No link to etcd.
    pub cut: bool,
    /// It knows that this is not the store that it followed, and says and writes nothing any more until it is started again.
    pub ended: bool,
    pub crashed: bool,
    pub view: Content,
    /// The write that the view shows: where it is, and which it is.
    pub at: u8,
    pub id: u8,
    /// Where a new watch begins; where the one under way is in etcd's log.
    pub next: u8,
    pub pos: u8,
    pub watching: bool,
    /// The name of the store when the replica started.
    pub epoch: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Default)]
pub struct Zone {
    /// Its own service, and its copies of the policy and of the other zone's service.
    pub service: u8,
    pub policy: u8,
    pub other: u8,
    /// Of which write the newest state is that it was sent; for the promises only.
    pub seen: u8,
    /// The replica that it has a session with, plus 1.
    pub session: u8,
    /// The sender of this session: whether the complete list was answered, and what the replica has answered for.
    pub listed: bool,
    pub answered: u8,
    /// Removals that wait for an operator: of the policy, of the other zone's service.
    pub held: [bool; 2],
    /// The epoch of the store that it has come to terms with.
    pub epoch: u8,
    /// It has seen writes that the store behind the global has lost, and has not come to terms with that.
    pub ahead: bool,
    pub crashed: bool,
}

/// A message to a zone: a complete list, or what changed since the cursor. It carries what the view had.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Default)]
pub struct Message {
    pub there: bool,
    pub list: bool,
    pub policy: u8,
    pub other: u8,
    pub of: u8,
    /// It shows a write that a restore has lost.
    pub lost: bool,
}

/// A replica's end of a zone's session. It may outlive the zone's: then it is not live, and what arrived may still be written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Default)]
pub struct Session {
    pub open: bool,
    pub live: bool,
    /// The zone's message that waits to be stored: the service, plus 1; 0 for none.
    pub arrived: u8,
    /// Whether the zone has answered the complete list, and up to which policy and service it has answered.
    pub listed: bool,
    pub cursor: [u8; 2],
    pub inflight: Message,
}

/// What may still happen, by choice of users, operators, or fate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Default)]
pub struct Budget {
    pub operations: u8,
    pub changes: u8,
    pub connects: u8,
    pub cuts: u8,
    pub ends: u8,
    pub crashes: u8,
    pub restores: u8,
    pub compactions: u8,
    pub noises: u8,
    pub accepts: u8,
    pub backups: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Default)]
pub struct State {
    pub etcd: Etcd,
    pub replicas: [Replica; REPLICAS],
    pub zones: [Zone; ZONES],
    /// By replica, then by zone.
    pub sessions: [[Session; ZONES]; REPLICAS],
    pub budget: Budget,
    /// Whether a user ever removed the policy, and whether the zone ever removed its service: for the promises only.
    pub removed: [bool; 1 + ZONES],
    pub restored: bool,
    /// The promises that the last step broke, one bit each.
    pub broken: u8,
}

impl State {
    /// Everything in sync, with the policy or without, no sessions, zone-1's last one on replica A and zone-2's on B.
    pub fn initial(budget: Budget, policy: u8) -> State {
        let content = Content {
            policy,
            service: [1; ZONES],
            claim: [1, 2],
        };
        let mut s = State {
            budget,
            ..State::default()
        };
        s.etcd.rev = 1;
        s.etcd.ids = 1;
        s.etcd.len = 1;
        s.etcd.log[0] = Write {
            at: 1,
            id: 1,
            new: content,
            old: content,
            ..Write::default()
        };
        for r in &mut s.replicas {
            *r = Replica {
                up: true,
                watching: true,
                view: content,
                at: 1,
                id: 1,
                next: 2,
                pos: 2,
                ..Replica::default()
            };
        }
        for z in &mut s.zones {
            *z = Zone {
                service: 1,
                policy,
                other: 1,
                seen: 1,
                ..Zone::default()
            };
        }
        s
    }

    pub fn break_promise(&mut self, promise: usize) {
        self.broken |= 1 << promise;
    }

    pub fn is_broken(&self, promise: usize) -> bool {
        self.broken & (1 << promise) != 0
    }
}
