package leader

import "errors"

// ErrLost reports that this replica no longer leads. Its process starts again, as one that waits.
var ErrLost = errors.New("this replica no longer leads")

// ErrShared reports a data folder that may be older than what replicas share.
var ErrShared = errors.New("replicas have shared the content of this data folder, which may be out of date")

// errGone reports Secrets that should exist. No replica begins anew in their place: the authorities' keys were in them.
var errGone = errors.New("a Secret that the replicas share is gone")

// errNotFirst reports that nothing is stored yet, and that another replica begins.
var errNotFirst = errors.New("nothing is stored yet: the first replica, whose name ends with -0, begins")
