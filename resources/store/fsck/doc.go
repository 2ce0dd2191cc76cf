// Package fsck owns the check of a server's data folder while the server does not run: the store's file, what its resources say, and the
// files beside it. It explains what it finds and says what to do. It must not change anything unless it is told to repair, and
// then only what is safe, with what was there kept beside.
package fsck
