//! The model: which actions there are, and what is checked after each.

use crate::action::Action;
use crate::promises;
use crate::rules::Rules;
use crate::state::{Budget, State, REPLICAS, ZONES};
use stateright::{Model, Property};

pub struct Spec {
    pub rules: Rules,
    pub budget: Budget,
    /// Takes one state for all that differ only in names and numbers. Without it, traces are readable.
    pub canonical: bool,
    /// Messages to zones take a step of their own to arrive.
    pub delayed: bool,
}

impl Spec {
    /// What the programs do by themselves, where something comes of it.
    fn steps(&self, s: &State, out: &mut Vec<(Action, State)>) {
        let mut add = |action: Action, happened: &dyn Fn(&mut State) -> bool| {
            let mut next = *s;
            next.broken = 0;
            if happened(&mut next) {
                out.push((action, next));
            }
        };
        let rules = &self.rules;
        for r in 0..REPLICAS {
            add(Action::Deliver(r), &|s| s.deliver(rules, r));
            add(Action::Watch(r), &|s| s.watch(rules, r));
            add(Action::Look(r), &|s| s.look(rules, r));
            add(Action::Mend(r), &|s| std::mem::take(&mut s.replicas[r].cut));
            add(Action::Start(r), &|s| {
                let again = s.replicas[r].ended && !s.replicas[r].cut;
                if again {
                    s.restart(r);
                }
                again
            });
            for z in 0..ZONES {
                add(Action::Lose(r, z), &|s| s.lose(r, z));
                add(Action::TakeUp(r, z), &|s| s.take_up(rules, r, z));
                add(Action::SendDown(r, z), &|s| {
                    s.send_down(r, z) && (self.delayed || s.take_down(rules, r, z))
                });
                add(Action::TakeDown(r, z), &|s| s.take_down(rules, r, z));
            }
        }
    }

    fn chosen(&self, s: &State, out: &mut Vec<(Action, State)>) {
        let b = &s.budget;
        let mut add = |left: bool, action: Action, happens: &dyn Fn(&mut State) -> bool| {
            let mut next = *s;
            next.broken = 0;
            if left && happens(&mut next) {
                out.push((action, next));
            }
        };
        let rules = &self.rules;
        for r in 0..REPLICAS {
            let replica = &s.replicas[r];
            for policy in 0..=1 {
                add(b.operations > 0, Action::Operate(r, policy), &|s| {
                    s.budget.operations -= 1;
                    s.operate(rules, r, policy)
                });
            }
            add(b.cuts > 0 && replica.up && !replica.cut, Action::Cut(r), &|s| {
                s.budget.cuts -= 1;
                s.replicas[r].cut = true;
                true
            });
            add(b.ends > 0 && replica.watching, Action::EndWatch(r), &|s| {
                s.budget.ends -= 1;
                s.replicas[r].watching = false;
                true
            });
            add(b.crashes > 0 && replica.up && !replica.crashed, Action::CrashReplica(r), &|s| {
                s.budget.crashes -= 1;
                s.replicas[r].crashed = true;
                s.restart(r);
                true
            });
            for z in 0..ZONES {
                add(b.connects > 0 && replica.up, Action::Connect(z, r), &|s| {
                    s.budget.connects -= 1;
                    s.connect(rules, z, r)
                });
            }
        }
        for z in 0..ZONES {
            let zone = &s.zones[z];
            add(b.changes > 0, Action::Change(z, 1 - zone.service), &|s| {
                s.budget.changes -= 1;
                s.zones[z].service = 1 - s.zones[z].service;
                s.removed[1 + z] |= s.zones[z].service == 0;
                true
            });
            add(b.crashes > 0 && !zone.crashed, Action::CrashZone(z), &|s| {
                s.budget.crashes -= 1;
                s.crash_zone(z);
                true
            });
            add(b.accepts > 0 && zone.held != [false; 2], Action::Accept(z), &|s| {
                s.budget.accepts -= 1;
                s.accept(z);
                true
            });
        }
        for lost in 1..=2 {
            add(b.restores > 0 && s.etcd.len > lost, Action::Restore(lost), &|s| {
                s.budget.restores -= 1;
                s.restore(lost);
                true
            });
            add(b.backups > 0 && s.etcd.len > lost, Action::Fill(lost), &|s| {
                s.budget.backups -= 1;
                s.fill(rules, lost)
            });
        }
        add(b.compactions > 0 && s.etcd.rev > s.etcd.compacted + 1, Action::Compact, &|s| {
            s.budget.compactions -= 1;
            s.etcd.compacted = s.etcd.rev - 1;
            true
        });
        add(b.noises > 0, Action::Noise, &|s| {
            s.budget.noises -= 1;
            s.etcd.rev += 1;
            true
        });
    }

    /// Every step from a state, with what it comes to.
    pub fn next(&self, s: &State) -> Vec<(Action, State)> {
        let mut out = Vec::new();
        if s.broken != 0 {
            return out; // Once is enough.
        }
        self.steps(s, &mut out);
        let quiet = out.is_empty();
        self.chosen(s, &mut out);
        for (_, next) in &mut out {
            for z in 0..ZONES {
                next.send_up(z);
            }
            for (r, z) in (0..REPLICAS).flat_map(|r| (0..ZONES).map(move |z| (r, z))) {
                // At once, unless something waits to be judged.
                if next.sessions[r][z].live && next.sessions[r][z].arrived == 0 {
                    next.lose(r, z);
                }
            }
            if !next.restored && (0..REPLICAS).any(|r| next.is_stuck(r)) {
                next.break_promise(promises::VIEW);
            }
        }
        if quiet && !s.agrees() {
            let mut stalled = *s;
            stalled.break_promise(promises::STALL);
            out.push((Action::Rest, stalled));
        }
        if self.canonical {
            for (_, next) in &mut out {
                *next = next.canonical();
            }
        }
        out
    }
}

impl Model for Spec {
    type State = State;
    type Action = (Action, State);

    fn init_states(&self) -> Vec<State> {
        [0, 1].map(|policy| State::initial(self.budget, policy)).to_vec()
    }

    fn actions(&self, s: &State, actions: &mut Vec<Self::Action>) {
        actions.extend(self.next(s));
    }

    fn next_state(&self, _: &State, action: Self::Action) -> Option<State> {
        Some(action.1)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        macro_rules! promise {
            ($($p:ident),*) => { vec![$(Property::always(promises::NAMES[promises::$p], |_: &Spec, s: &State| !s.is_broken(promises::$p))),*] };
        }
        promise!(DURABLE, REGISTER, VIEW, RESTORED, DELETION, STALL, FENCED)
    }
}
