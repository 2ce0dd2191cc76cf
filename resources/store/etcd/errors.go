package etcd

import "errors"

var (
	// ErrOldFormat reports that an older version wrote the keys below the prefix, and that no place for a backup is
	// configured.
	ErrOldFormat = errors.New("format is older")
	// ErrFormat reports that a newer version wrote the keys below the prefix.
	ErrFormat = errors.New("format is too new")
	// ErrRefused reports that etcd answers but denies this server access, or is not the one that this server trusts.
	ErrRefused = errors.New("etcd and this server refuse each other")
	// ErrNoteTooLarge reports a note of a size that etcd never accepts.
	ErrNoteTooLarge = errors.New("a note is larger than etcd takes")
	// ErrWentBack reports that the cluster has lost writes that this server has seen, as after a restore. The server
	// must restart.
	ErrWentBack = errors.New("etcd went back in time")
	// ErrReplaced reports that all contents were replaced, as by a restore, while this server followed them. The server
	// must restart.
	ErrReplaced = errors.New("the contents of the store in etcd were replaced")
	// ErrUnfinished reports that a Replace was interrupted. It has to be repeated.
	ErrUnfinished = errors.New("a restore into etcd was interrupted")
)
