package etcd

import "errors"

var (
	// ErrFormat: the keys below the prefix were written by a newer version.
	ErrFormat = errors.New("format is too new")
	// ErrWentBack: the cluster knows less than it once told this server, as after a restore. The server must start again.
	ErrWentBack = errors.New("etcd went back in time")
)
