//! Sessions of zones with replicas: claims, what goes up, what comes down. Source: kds.

use crate::promises::{DELETION, DURABLE, FENCED, VIEW};
use crate::rules::Rules;
use crate::state::{Content, Message, Session, State, REPLICAS};
use crate::store::Answer;

impl State {
    /// A zone connects to a replica, which makes it its own. A session of it there is fenced in the same process, and so gone.
    pub fn connect(&mut self, rules: &Rules, z: usize, r: usize) -> bool {
        let view = self.replicas[r].view;
        let ours = view.claim[z] == r as u8 + 1;
        if !self.replicas[r].up || (rules.confirmclaim || !ours) && self.ask(rules, r) != Answer::Current {
            return false;
        }
        self.drop_session(z);
        if !ours {
            let mut claim = view.claim;
            claim[z] = r as u8 + 1;
            self.write(r, Content { claim, ..view });
        }
        self.sessions[r][z] = Session {
            open: true,
            live: true,
            ..Session::default()
        };
        self.zones[z].session = r as u8 + 1;
        true
    }

    /// The zone's session ends at its end. What has arrived at the replica may still be written.
    pub fn drop_session(&mut self, z: usize) {
        let zone = &mut self.zones[z];
        let Some(r) = (zone.session as usize).checked_sub(1) else { return };
        (zone.session, zone.listed, zone.answered) = (0, false, 0);
        let s = &mut self.sessions[r][z];
        *s = match s.arrived {
            0 => Session::default(),
            arrived => Session {
                open: true,
                arrived,
                ..Session::default()
            },
        };
    }

    /// The replica ends a session.
    fn end_session(&mut self, r: usize, z: usize) {
        if self.zones[z].session == r as u8 + 1 {
            self.drop_session(z);
        }
        self.sessions[r][z] = Session::default();
    }

    /// A replica ends, with all its sessions, and starts again.
    pub fn restart(&mut self, r: usize) {
        for z in 0..self.zones.len() {
            self.end_session(r, z);
        }
        self.start(r);
    }

    fn has_claim(&self, r: usize, z: usize) -> bool {
        self.replicas[r].view.claim[z] == r as u8 + 1
    }

    /// A session ends: another replica has the zone now, as this one sees, or the zone's end is known to be gone.
    pub fn lose(&mut self, r: usize, z: usize) -> bool {
        let s = &self.sessions[r][z];
        if !s.open || s.live && self.has_claim(r, z) {
            return false;
        }
        self.end_session(r, z);
        true
    }

    /// The zone sends what it has of its own: a complete list at first, then what changed.
    pub fn send_up(&mut self, z: usize) -> bool {
        let zone = &self.zones[z];
        let Some(r) = (zone.session as usize).checked_sub(1) else {
            return false;
        };
        let s = &mut self.sessions[r][z];
        if !s.open || s.arrived != 0 || zone.listed && zone.answered == zone.service {
            return false;
        }
        s.arrived = zone.service + 1;
        true
    }

    /// The replica stores what arrived, and answers.
    pub fn take_up(&mut self, rules: &Rules, r: usize, z: usize) -> bool {
        let session = self.sessions[r][z];
        let Some(service) = session.arrived.checked_sub(1) else {
            return false;
        };
        let (replica, view) = (&self.replicas[r], self.replicas[r].view);
        let changes = view.service[z] != service;
        let current = self.ask(rules, r) == Answer::Current;
        if !replica.up || changes && !current && rules.durable {
            return false; // It waits.
        }
        let changes = changes && current;
        if changes && rules.fence && !self.has_claim(r, z) {
            self.end_session(r, z);
            return true;
        }
        if changes {
            // A session whose zone has another one now, on another replica that has claimed it, may write no more.
            if self.etcd.last().new.claim[z] != r as u8 + 1 {
                self.break_promise(FENCED);
            }
            let mut content = view;
            content.service[z] = service;
            self.write(r, content);
        }
        if !session.live {
            self.sessions[r][z] = Session::default();
            return true;
        }
        if !self.restored && self.etcd.last().new.service[z] != service {
            self.break_promise(DURABLE);
        }
        self.sessions[r][z].arrived = 0;
        let zone = &mut self.zones[z];
        (zone.listed, zone.answered) = (true, service);
        true
    }

    /// The replica sends a complete list, or what changed since the zone last answered.
    pub fn send_down(&mut self, r: usize, z: usize) -> bool {
        let claimed = self.has_claim(r, z);
        let (s, replica) = (&mut self.sessions[r][z], &self.replicas[r]);
        let now = [replica.view.policy, replica.view.service[1 - z]];
        if !replica.up || !s.open || !s.live || s.inflight.there || !claimed || s.listed && s.cursor == now {
            return false;
        }
        s.inflight = Message {
            there: true,
            list: !s.listed,
            policy: now[0],
            other: now[1],
            of: replica.id,
            lost: self.etcd.has_lost(replica.id),
        };
        true
    }

    /// The zone stores what it was sent, and its answer moves the cursor.
    pub fn take_down(&mut self, rules: &Rules, r: usize, z: usize) -> bool {
        let s = self.sessions[r][z];
        if !s.live || !s.inflight.there {
            return false;
        }
        let mut m = s.inflight;
        if !self.etcd.writes().iter().any(|w| w.id == m.of) {
            m.of = 0; // of a write that is forgotten, or that a restore has lost: there is no telling which is older
        }
        let zone = self.zones[z];
        let (copies, brought) = ([zone.policy, zone.other], [m.policy, m.other]);
        // A change carries only what is not as the zone has answered for.
        let carried = [0, 1].map(|i| m.list || s.cursor[i] != brought[i]);
        let gone = [0, 1].map(|i| carried[i] && brought[i] == 0 && copies[i] != 0);
        let strange = zone.epoch != self.replicas[r].epoch || rules.lineage && zone.ahead && !m.lost;
        let held = rules.guard && m.list && (strange && gone != [false; 2] || gone == [true; 2]);
        if m.of != 0 && m.of < zone.seen {
            self.break_promise(VIEW);
        }
        for (i, gone) in gone.into_iter().enumerate() {
            let said = self.removed[if i == 0 { 0 } else { 2 - z }];
            if gone && !held && (!self.restored && m.of != 0 && m.of < zone.seen || !said) {
                self.break_promise(DELETION);
            }
        }
        let kept = |i: usize| if !carried[i] || held && gone[i] { copies[i] } else { brought[i] };
        let (policy, other) = (kept(0), kept(1));
        let zone = &mut self.zones[z];
        (zone.policy, zone.other, zone.seen) = (policy, other, zone.seen.max(m.of));
        for i in 0..2 {
            if m.list {
                zone.held[i] = held && gone[i];
            } else if carried[i] {
                zone.held[i] = false;
            }
        }
        zone.come_to_terms(self.replicas[r].epoch, m.lost);
        let s = &mut self.sessions[r][z];
        (s.cursor, s.listed, s.inflight) = (brought, true, Message::default());
        true
    }

    /// An operator accepts the removals that a zone holds.
    pub fn accept(&mut self, z: usize) {
        let zone = &mut self.zones[z];
        if zone.held[0] {
            zone.policy = 0;
        }
        if zone.held[1] {
            zone.other = 0;
        }
        zone.held = [false; 2];
        if let Some(r) = (zone.session as usize).checked_sub(1) {
            let (epoch, lost) = (self.replicas[r].epoch, self.etcd.has_lost(self.replicas[r].id));
            if self.sessions[r][z].listed {
                self.zones[z].come_to_terms(epoch, lost);
            }
        }
    }

    /// A zone ends and starts again: what is in its store stays.
    pub fn crash_zone(&mut self, z: usize) {
        self.drop_session(z);
        self.zones[z].held = [false; 2];
        self.zones[z].crashed = true;
    }

    /// Whether everybody who may has everything, once nothing is left to do. Views, and zones with their replicas.
    pub fn agrees(&self) -> bool {
        let now = self.etcd.last().new;
        for r in 0..REPLICAS {
            let replica = &self.replicas[r];
            if !replica.up || replica.ended {
                continue;
            }
            if replica.view != now {
                return false;
            }
            for (z, zone) in self.zones.iter().enumerate() {
                let session = &self.sessions[r][z];
                if !session.open || !session.live {
                    continue;
                }
                let same = |copy: u8, there: u8, held: bool| held || copy == there;
                if now.service[z] != zone.service
                    || !same(zone.policy, now.policy, zone.held[0])
                    || !same(zone.other, now.service[1 - z], zone.held[1])
                {
                    return false;
                }
            }
        }
        true
    }
}

impl crate::state::Zone {
    /// With the store behind the global, once nothing of it is held. A replica may still show what that store has lost.
    fn come_to_terms(&mut self, epoch: u8, lost: bool) {
        if self.held == [false; 2] {
            self.epoch = epoch;
            self.ahead = lost;
        } else {
            self.ahead |= lost;
        }
    }
}
