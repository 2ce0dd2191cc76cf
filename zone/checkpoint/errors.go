package checkpoint

import "errors"

var (
	// errFormat reports that a line is malformed or incomplete.
	errFormat = errors.New("not an entry")
	// errFuture reports that the file has a format that this program does not know.
	errFuture = errors.New("its format is unknown to this program")
)
