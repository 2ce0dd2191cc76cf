//! Replicas and etcd: writes, watches, comparisons, restores. Source: resources/store/etcd.

use crate::promises::{REGISTER, RESTORED, VIEW};
use crate::rules::Rules;
use crate::state::{Content, Replica, State};

/// What etcd says to a replica that asks whether its view is current, or writes.
#[derive(PartialEq, Eq)]
pub enum Answer {
    Current,
    Late,
    WentBack,
    None,
}

impl State {
    /// Asks etcd for the last write, as committer.go's confirm and the condition of each write do.
    pub fn ask(&self, rules: &Rules, r: usize) -> Answer {
        let (replica, last) = (&self.replicas[r], self.etcd.last());
        if !replica.up || replica.cut || replica.ended {
            return Answer::None;
        }
        match () {
            _ if last.at > replica.at => Answer::Late,
            _ if last.at < replica.at => Answer::WentBack,
            _ if rules.value && last.id != replica.id => Answer::WentBack,
            _ => Answer::Current,
        }
    }

    /// Writes content, which was judged on the view of r while etcd says that it is current.
    pub fn write(&mut self, r: usize, content: Content) {
        if self.etcd.last().new != self.replicas[r].view {
            self.break_promise(if self.restored { RESTORED } else { VIEW });
        }
        // Only what changes is written.
        let new = changed(self.etcd.last().new, self.replicas[r].view, content);
        self.etcd.push(new);
        let last = *self.etcd.last();
        let replica = &mut self.replicas[r];
        (replica.view, replica.at, replica.id) = (content, last.at, last.id);
        replica.skip();
    }

    /// A user's request to a replica: the policy becomes what is wanted, 0 to remove it.
    pub fn operate(&mut self, rules: &Rules, r: usize, policy: u8) -> bool {
        let (there, now) = (self.replicas[r].view.policy, self.etcd.last().new.policy);
        if there != policy {
            if self.ask(rules, r) != Answer::Current {
                return false;
            }
            self.removed[0] |= policy == 0;
            let view = self.replicas[r].view;
            self.write(r, Content { policy, ..view });
            return true;
        }
        let replica = &self.replicas[r];
        if !replica.up || replica.ended || rules.confirm && self.ask(rules, r) != Answer::Current {
            return false;
        }
        // "Unchanged", or "not found".
        if now != policy {
            self.break_promise(REGISTER);
        }
        self.broken != 0 // otherwise nothing came of it
    }

    /// The watch brings the next event.
    pub fn deliver(&mut self, rules: &Rules, r: usize) -> bool {
        let replica = &self.replicas[r];
        if !replica.follows() || !replica.watching || replica.pos > self.etcd.rev {
            return false;
        }
        if replica.pos <= self.etcd.compacted {
            return self.compare(rules, r);
        }
        let Some(e) = self.etcd.writes().iter().find(|e| e.at >= replica.pos).copied() else {
            return false;
        };
        let replica = &mut self.replicas[r];
        replica.pos = e.at + 1;
        replica.next = if rules.events { e.at + 1 } else { self.etcd.rev + 1 };
        if e.at <= replica.at {
            return true;
        }
        if rules.continuity && e.after != replica.at {
            return self.compare(rules, r);
        }
        if rules.chain && e.after == replica.at && e.before != replica.id {
            replica.end();
            return true;
        }
        let follows = e.before == replica.id;
        replica.view = changed(replica.view, e.old, e.new);
        (replica.at, replica.id) = (e.at, e.id);
        if !follows || replica.view != e.new {
            self.break_promise(if self.restored { RESTORED } else { VIEW });
        }
        true
    }

    /// A watch that ended goes on: first the store is recognised.
    pub fn watch(&mut self, rules: &Rules, r: usize) -> bool {
        let replica = self.replicas[r];
        if !replica.follows() || replica.watching {
            return false;
        }
        if rules.recognise && !self.recognises(r) {
            self.replicas[r].end();
            return true;
        }
        let replica = &mut self.replicas[r];
        replica.watching = true;
        replica.pos = replica.next;
        replica.skip();
        true
    }

    /// Whether etcd has the write that the view shows, where it was; where it has forgotten that, it is taken to.
    fn recognises(&self, r: usize) -> bool {
        let (replica, etcd) = (&self.replicas[r], &self.etcd);
        let then = etcd.writes().iter().rfind(|e| e.at <= replica.at);
        replica.at <= etcd.compacted || etcd.rev >= replica.at && then.is_some_and(|e| e.at == replica.at && e.id == replica.id)
    }

    /// Reads everything and adopts the difference.
    fn compare(&mut self, rules: &Rules, r: usize) -> bool {
        let (last, rev) = (*self.etcd.last(), self.etcd.rev);
        let stranger = rules.compare && rules.recognise && !self.recognises(r);
        let replica = &mut self.replicas[r];
        if stranger || last.at < replica.at || rules.compare && last.at == replica.at && last.id != replica.id {
            replica.end();
            return true;
        }
        if last.at > replica.at {
            (replica.view, replica.at, replica.id) = (last.new, last.at, last.id);
        } else if last.id != replica.id {
            self.break_promise(RESTORED);
            return true;
        }
        let replica = &mut self.replicas[r];
        (replica.next, replica.pos, replica.watching) = (rev + 1, rev + 1, true);
        true
    }

    /// The look at the head of the store, each second. A view that is behind, and to which the watch brings nothing, is compared.
    pub fn look(&mut self, rules: &Rules, r: usize) -> bool {
        match self.ask(rules, r) {
            Answer::WentBack => self.replicas[r].end(),
            Answer::Late if self.is_stuck(r) => return self.compare(rules, r),
            _ => return false,
        }
        true
    }

    /// Whether etcd has a write that the view of r lacks, and no watch that it has under way is going to bring.
    pub fn is_stuck(&self, r: usize) -> bool {
        let (replica, last) = (&self.replicas[r], self.etcd.last());
        replica.follows() && replica.watching && last.at > replica.at && last.at < replica.pos && replica.pos > self.etcd.compacted
    }

    /// Etcd is put back to a snapshot, some writes ago, which keeps the name of the store. Connections break, and clients make them again by
    /// themselves.
    pub fn restore(&mut self, lost: u8) {
        self.etcd.len -= lost;
        let first = self.etcd.log[self.etcd.len as usize].id;
        self.etcd.lost = [first, self.etcd.ids];
        self.etcd.log[self.etcd.len as usize..].fill(Default::default());
        self.etcd.rev = self.etcd.last().at;
        self.etcd.compacted = self.etcd.compacted.min(self.etcd.rev - 1);
        self.restored = true;
        for z in &mut self.zones {
            z.ahead = z.seen >= first;
            z.seen = 0;
        }
        for sessions in &mut self.sessions {
            for s in sessions {
                s.inflight.lost = s.inflight.of >= first;
                s.inflight.of = 0;
            }
        }
    }

    /// All replicas are stopped, the store is filled from a backup, and they start again.
    pub fn fill(&mut self, rules: &Rules, ago: u8) -> bool {
        let content = self.etcd.log[(self.etcd.len - 1 - ago) as usize].new;
        if content == self.etcd.last().new {
            return false;
        }
        self.etcd.push(content);
        self.etcd.epoch = u8::from(rules.epoch);
        for r in 0..self.replicas.len() {
            self.restart(r);
        }
        true
    }

    /// A replica starts, and loads the store.
    pub fn start(&mut self, r: usize) {
        let (last, rev) = (*self.etcd.last(), self.etcd.rev);
        self.replicas[r] = Replica {
            up: true,
            crashed: self.replicas[r].crashed,
            cut: false,
            ended: false,
            view: last.new,
            at: last.at,
            id: last.id,
            next: rev + 1,
            pos: rev + 1,
            watching: true,
            epoch: self.etcd.epoch,
        };
    }
}

impl Replica {
    fn follows(&self) -> bool {
        self.up && !self.cut && !self.ended
    }

    fn end(&mut self) {
        self.ended = true;
        self.watching = false;
    }

    /// Passes over what this replica wrote itself, which the watch takes no notice of.
    fn skip(&mut self) {
        self.pos = self.pos.max(self.at + 1);
    }
}

/// What a change from old to new makes of now: it carries only what changed.
fn changed(now: Content, old: Content, new: Content) -> Content {
    let pick = |now, old, new| if old == new { now } else { new };
    Content {
        policy: pick(now.policy, old.policy, new.policy),
        service: std::array::from_fn(|z| pick(now.service[z], old.service[z], new.service[z])),
        claim: std::array::from_fn(|z| pick(now.claim[z], old.claim[z], new.claim[z])),
    }
}
