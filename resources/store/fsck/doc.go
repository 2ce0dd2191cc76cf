// Package fsck checks a server's data folder while the server does not run: the file of the store, the contents of its
// resources, and the files beside it. It explains each finding and its remedy. It must not change anything unless asked
// to repair. A repair makes only safe changes and keeps the originals.
package fsck
