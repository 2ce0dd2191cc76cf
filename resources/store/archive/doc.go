// Package archive owns backups: everything a server keeps, at one revision, in one file that can be checked, looked into and
// restored into any kind of store. It must not know what resources mean.
//
// A backup is gzip over lines of JSON: a Header; a line for each resource, in the order of the store's keys, with its key, labels,
// spec, status, revision and times; a line for each file beside the store (certificates and sealed keys); and a
// trailer with the number of resources and files and the SHA-256 of all lines before it. Secrets are in it sealed, as the
// store and the files have them: whoever restores it needs the key file or the passphrase, which are not in it.
package archive
