//! The scenes: how often what may happen in each. All of them are explored to the end.

use crate::state::Budget;

const NONE: Budget = Budget {
    operations: 0,
    changes: 0,
    connects: 0,
    cuts: 0,
    ends: 0,
    crashes: 0,
    restores: 0,
    compactions: 0,
    noises: 0,
    accepts: 0,
    backups: 0,
};

/// A scene, and what it is about.
pub struct Scene {
    pub name: &'static str,
    pub about: &'static str,
    pub budget: Budget,
}

pub const SCENES: [Scene; 5] = [
    Scene {
        name: "crashes",
        about: "both replicas and both zones crash once each, while a link is cut, and zones move",
        budget: Budget {
            operations: 1,
            changes: 1,
            connects: 2,
            cuts: 1,
            crashes: 4,
            ..NONE
        },
    },
    Scene {
        name: "moves",
        about: "zones move to and fro between replicas of which one lags",
        budget: Budget {
            operations: 1,
            changes: 2,
            connects: 3,
            cuts: 1,
            ..NONE
        },
    },
    Scene {
        name: "store",
        about: "watches end and lag, etcd forgets, and is restored while a replica is away",
        budget: Budget {
            operations: 3,
            cuts: 1,
            ends: 1,
            restores: 1,
            compactions: 1,
            noises: 2,
            ..NONE
        },
    },
    Scene {
        name: "restore",
        about: "etcd is restored under sessions",
        budget: Budget {
            operations: 1,
            changes: 1,
            connects: 2,
            cuts: 1,
            restores: 1,
            ..NONE
        },
    },
    Scene {
        name: "backup",
        about: "the store is filled from a backup; removals are held, and accepted",
        budget: Budget {
            operations: 1,
            changes: 1,
            connects: 3,
            accepts: 1,
            backups: 1,
            ..NONE
        },
    },
];

/// What is taken out to see that it is missed, and the scene that must find that.
pub const WITHOUT: [(&str, &str); 12] = [
    ("confirm", "store"),
    ("events,continuity", "store"),
    ("recognise,chain", "store"),
    ("chain", "store"),
    ("compare", "store"),
    ("value", "store"),
    ("durable", "moves"),
    ("fence", "moves"),
    ("confirmclaim", "moves"),
    ("guard", "backup"),
    ("epoch", "backup"),
    ("lineage", "restore"),
];
