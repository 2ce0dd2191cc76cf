// Package secrets keeps small secrets, such as the keys of certificate authorities, sealed at rest: in files (Box) and,
// by name, in the store (Keeper).
//
// What is sealed can be copied, backed up and synced between replicas of a server without being read by whoever holds the
// copy: the key is a file or a passphrase that is not among the data.
package secrets
