package global

import "errors"

var (
	// errKeyring: the keys do not allow it.
	errKeyring = errors.New("not possible")
	// errNoKey: there is no such key.
	errNoKey = errors.New("no such key")
)
