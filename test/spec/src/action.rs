//! What can happen, and how it reads.

use crate::state::State;
use std::fmt::{Display, Formatter, Result};

/// One step. Replicas come before zones; numbers count from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    // By choice: each takes of the budget.
    Operate(usize, u8),
    Change(usize, u8),
    Connect(usize, usize),
    Cut(usize),
    EndWatch(usize),
    CrashReplica(usize),
    CrashZone(usize),
    Restore(u8),
    Fill(u8),
    Compact,
    Noise,
    Accept(usize),
    // What the programs do by themselves.
    Deliver(usize),
    Watch(usize),
    Look(usize),
    Mend(usize),
    Start(usize),
    Lose(usize, usize),
    TakeUp(usize, usize),
    SendDown(usize, usize),
    TakeDown(usize, usize),
    /// Nothing is left to do.
    Rest,
}

const REPLICA: [&str; 2] = ["A", "B"];

impl Display for Action {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        use Action::*;
        match *self {
            Operate(r, 0) => write!(f, "a user has {} remove the policy, and is answered", REPLICA[r]),
            Operate(r, _) => write!(f, "a user has {} put the policy, and is answered", REPLICA[r]),
            Change(z, 0) => write!(f, "zone-{} loses its service", z + 1),
            Change(z, _) => write!(f, "zone-{} gets its service", z + 1),
            Connect(z, r) => write!(f, "zone-{} connects to {}", z + 1, REPLICA[r]),
            Cut(r) => write!(f, "{} loses its link to etcd", REPLICA[r]),
            EndWatch(r) => write!(f, "the watch of {} ends", REPLICA[r]),
            CrashReplica(r) => write!(f, "{} crashes, and starts again", REPLICA[r]),
            CrashZone(z) => write!(f, "zone-{} crashes, and starts again", z + 1),
            Restore(n) => write!(f, "etcd is put back to a snapshot from before its last {n} writes"),
            Fill(n) => write!(
                f,
                "all replicas are stopped, the store is filled from a backup from before its last {n} writes, and they start again"
            ),
            Compact => write!(f, "etcd forgets its history but for the last revision"),
            Noise => write!(f, "somebody else writes to etcd"),
            Accept(z) => write!(f, "an operator accepts what zone-{} holds", z + 1),
            Deliver(r) => write!(f, "the watch brings {} what is next", REPLICA[r]),
            Watch(r) => write!(f, "{} watches again", REPLICA[r]),
            Look(r) => write!(f, "{} looks at the head of the store", REPLICA[r]),
            Mend(r) => write!(f, "the link of {} to etcd is there again", REPLICA[r]),
            Start(r) => write!(f, "{}, which had ended, is started again", REPLICA[r]),
            Lose(r, z) => write!(f, "{} ends its session of zone-{}", REPLICA[r], z + 1),
            TakeUp(r, z) => write!(f, "{} takes in what zone-{} sent, and answers", REPLICA[r], z + 1),
            SendDown(r, z) => write!(f, "{} sends zone-{} what it lacks", REPLICA[r], z + 1),
            TakeDown(r, z) => write!(f, "zone-{} takes in what {} sent, and answers", z + 1, REPLICA[r]),
            Rest => write!(f, "nothing is left to do"),
        }
    }
}

/// A state in a few lines.
pub struct Shown<'a>(pub &'a State);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let s = self.0;
        write!(f, "     etcd at {}, forgotten up to {}:", s.etcd.rev, s.etcd.compacted)?;
        for w in s.etcd.writes() {
            write!(f, " [{} write {}: {}]", w.at, w.id, shown(&w.new))?;
        }
        for (r, replica) in s.replicas.iter().enumerate() {
            write!(
                f,
                "\n     {}: write {} at {}, {}",
                REPLICA[r],
                replica.id,
                replica.at,
                shown(&replica.view)
            )?;
            let said = [
                (replica.cut, "cut off"),
                (replica.ended, "knows that the store went back"),
                (!replica.watching, "no watch"),
            ];
            said.iter().filter(|(is, _)| *is).try_for_each(|(_, what)| write!(f, ", {what}"))?;
            for (z, session) in s.sessions[r].iter().enumerate().filter(|(_, session)| session.open) {
                write!(f, "; {}session of zone-{}", if session.live { "" } else { "left-over " }, z + 1)?;
                if session.arrived > 0 {
                    write!(f, " with a message (service {})", session.arrived - 1)?;
                }
            }
        }
        for (z, zone) in s.zones.iter().enumerate() {
            write!(
                f,
                "\n     zone-{}: service {}, copies: policy {}, other service {}",
                z + 1,
                zone.service,
                zone.policy,
                zone.other
            )?;
            if zone.held != [false; 2] {
                write!(f, ", removals held")?;
            }
        }
        Ok(())
    }
}

fn shown(c: &crate::state::Content) -> String {
    let name = |claim: u8| if claim == 0 { "nobody" } else { REPLICA[claim as usize - 1] };
    format!(
        "policy {} services {} {} zones {} {}",
        c.policy,
        c.service[0],
        c.service[1],
        name(c.claim[0]),
        name(c.claim[1])
    )
}
