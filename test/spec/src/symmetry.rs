//! Replicas are alike, and so are zones: of the up to four states that differ only in which is called what, one stands for all.

use crate::state::{Content, Replica, State, Write, REPLICAS, WRITES, ZONES};

impl State {
    /// The least of the states that are this one under other names.
    pub fn canonical(&self) -> State {
        let mut least = *self;
        least.forget();
        let this = least;
        for (replicas, zones) in [(true, false), (false, true), (true, true)] {
            let mut other = this;
            if replicas {
                other.swap_replicas();
            }
            if zones {
                other.swap_zones();
            }
            least = least.min(other);
        }
        least
    }

    /// Forgets what nothing depends on any more, and counts revisions and writes from the oldest that something does.
    fn forget(&mut self) {
        for r in &mut self.replicas {
            if !r.up || r.ended {
                *r = Replica {
                    up: r.up,
                    cut: r.cut,
                    ended: r.ended,
                    crashed: r.crashed,
                    ..Replica::default()
                };
            }
        }
        let followers = || self.replicas.iter().filter(|r| r.up && !r.ended);
        let etcd = &self.etcd;
        let keep = if self.budget.restores + self.budget.backups > 0 { 2 } else { 0 };
        let oldest = followers().map(|r| r.at).min().unwrap_or(etcd.last().at);
        let first = etcd.writes().iter().rposition(|w| w.at <= oldest).unwrap_or(0);
        let first = first.min((etcd.len as usize - 1).saturating_sub(keep));
        let revisions = etcd.log[first].at.min(oldest) - 1;
        let messages = self.sessions.iter().flatten().filter(|s| s.inflight.there).map(|s| s.inflight.of);
        let ids = followers()
            .map(|r| r.id)
            .chain(messages)
            .chain([etcd.log[first].id])
            .filter(|id| *id > 0)
            .min()
            .unwrap_or(1)
            - 1;
        self.renumber(first, revisions, ids);
    }

    fn renumber(&mut self, first: usize, revisions: u8, ids: u8) {
        let etcd = &mut self.etcd;
        etcd.log.copy_within(first.., 0);
        etcd.log[WRITES - first..].fill(Write::default());
        etcd.len -= first as u8;
        let down = |n: &mut u8, by: u8| *n = n.saturating_sub(by);
        down(&mut etcd.rev, revisions);
        down(&mut etcd.compacted, revisions);
        down(&mut etcd.ids, ids);
        for n in &mut etcd.lost {
            down(n, ids);
        }
        for w in &mut etcd.log[..etcd.len as usize] {
            down(&mut w.at, revisions);
            down(&mut w.after, revisions);
            down(&mut w.id, ids);
            down(&mut w.before, ids);
        }
        (etcd.log[0].after, etcd.log[0].before, etcd.log[0].old) = (0, 0, etcd.log[0].new);
        for r in &mut self.replicas {
            for n in [&mut r.at, &mut r.next, &mut r.pos] {
                down(n, revisions);
            }
            down(&mut r.id, ids);
        }
        for z in &mut self.zones {
            down(&mut z.seen, ids);
        }
        for s in self.sessions.iter_mut().flatten() {
            down(&mut s.inflight.of, ids);
        }
    }

    fn each_content(&mut self, f: impl Fn(&mut Content)) {
        for w in &mut self.etcd.log[..self.etcd.len as usize] {
            f(&mut w.old);
            f(&mut w.new);
        }
        for r in &mut self.replicas {
            f(&mut r.view);
        }
    }

    fn swap_replicas(&mut self) {
        let renamed = |n: u8| if n == 0 { 0 } else { REPLICAS as u8 + 1 - n };
        self.each_content(|c| c.claim = c.claim.map(renamed));
        for z in &mut self.zones {
            z.session = renamed(z.session);
        }
        self.replicas.swap(0, 1);
        self.sessions.swap(0, 1);
    }

    fn swap_zones(&mut self) {
        debug_assert_eq!(ZONES, 2);
        self.each_content(|c| {
            c.service.swap(0, 1);
            c.claim.swap(0, 1);
        });
        self.zones.swap(0, 1);
        self.removed.swap(1, 2);
        for sessions in &mut self.sessions {
            sessions.swap(0, 1);
        }
    }
}
