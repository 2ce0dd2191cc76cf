package holdings

import "errors"

var (
	// errFormat: a line is not what Book writes, or not all of it.
	errFormat = errors.New("not an entry")
	// errFuture: the file was written by a program that keeps them in another form.
	errFuture = errors.New("it is of a format that this program does not know")
)
