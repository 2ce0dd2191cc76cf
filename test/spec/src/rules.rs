//! The rules of the code that can be taken out, to see that the model finds what each of them prevents.

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident: $what:literal,)*) => {
        /// Which rules hold. All of them do in the code.
        #[derive(Clone, Copy, Debug)]
        pub struct Rules { $($(#[$doc])* pub $name: bool,)* }

        impl Rules {
            pub const ALL: Rules = Rules { $($name: true,)* };

            /// The rules and what they say.
            pub const LIST: &'static [(&'static str, &'static str)] = &[$((stringify!($name), $what),)*];

            /// Takes a rule out; false when there is no such rule.
            pub fn remove(&mut self, name: &str) -> bool {
                match name {
                    $(stringify!($name) => self.$name = false,)*
                    _ => return false,
                }
                true
            }
        }
    };
}

rules! {
    /// committer.go, confirm.
    confirm: "what changes nothing, and refusals, are answered only when etcd confirms the view",
    /// claims.go, claim.
    confirmclaim: "a session begins only when etcd confirms that the zone is the replica's",
    /// health.go, recognise.
    recognise: "before a watch goes on, etcd is asked for what it has at the revision that the view shows",
    /// health.go and committer.go: the value of head beside its revision.
    value: "the last write is compared by what it says, not by its revision alone",
    /// follow.go, one.
    chain: "each write says which one it follows by what that one said, not by its revision alone",
    /// follow.go, take.
    events: "how far a watch has come is what its events say, not the header of a batch",
    /// follow.go, one.
    continuity: "a write that does not follow the last that was seen is a gap",
    /// follow.go, compare.
    compare: "a comparison that finds the same revision finds the same write",
    /// receiver.go, apply.
    durable: "a zone's message is answered when it is stored, and waits while it cannot be",
    /// receiver.go, check.
    fence: "what a session brings is stored only if the zone is the replica's in the state that it applies to",
    /// changeset.go, guard.
    guard: "lists that remove most of a type, or come from another store than was known, are held",
    /// epoch.go.
    epoch: "a store that was restored has another name",
    /// lineage.go; epoch.go, see.
    lineage: "what was seen of a store is stored with what it brought, and a store that has lost it is a strange one",
}
