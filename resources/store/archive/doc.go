// Package archive reads and writes backups: everything that a server keeps, at one revision, in one file that can be
// verified, inspected and restored to any kind of store. It must not depend on what resources mean.
//
// A backup is gzip over lines of JSON: a Header; a line for each resource, in the order of the store's keys, with its
// key, labels, spec, status, revision and times; a line for each file beside the store (certificates and sealed keys);
// and a trailer with the number of resources and files and the SHA-256 of all previous lines. Secrets in it are sealed,
// as in the store and the files: a restore needs the key file or the passphrase, which the backup does not contain.
package archive
