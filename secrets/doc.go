// Package secrets keeps small secrets, such as the keys of certificate authorities, sealed at rest: in files (Box) and,
// by name, in the store (Keeper).
//
// Sealed secrets can be copied, backed up and synced between replicas of a server, and a holder of the copy cannot read
// them: the key is a file or a passphrase that is not stored with the data.
package secrets
