//! The promises of docs/reliability.md that the model checks, by the very names that they have there. A test compares the names.

/// How many promises there are.
pub const COUNT: usize = 7;

pub const DURABLE: usize = 0;
pub const REGISTER: usize = 1;
pub const VIEW: usize = 2;
pub const RESTORED: usize = 3;
pub const DELETION: usize = 4;
pub const STALL: usize = 5;
pub const FENCED: usize = 6;

/// The promises, in the order of the constants.
pub const NAMES: [&str; COUNT] = [
    "1. Nothing is acknowledged before it is durable",
    "A store on etcd behaves as a single register, no-ops and refusals included",
    "A view has every write, or reports that it does not",
    "A restored store is not mistaken for the one that was followed",
    "3. No deletion without the peer's confirmation; mass deletions are held",
    "7. No silent stall",
    "9. A session is fenced",
];
