package etcd

import "errors"

var (
	// ErrOldFormat: the keys below the prefix were written by an older version, and nobody said where a backup is to be kept.
	ErrOldFormat = errors.New("format is older")
	// ErrFormat: the keys below the prefix were written by a newer version.
	ErrFormat = errors.New("format is too new")
	// ErrRefused: etcd is there, and does not let this server in, or is not the one that it was told to trust.
	ErrRefused = errors.New("etcd and this server refuse each other")
	// ErrNoteTooLarge: etcd takes no note of that size, now or later.
	ErrNoteTooLarge = errors.New("a note is larger than etcd takes")
	// ErrWentBack: the cluster knows less than it once told this server, as after a restore. The server must start again.
	ErrWentBack = errors.New("etcd went back in time")
)
