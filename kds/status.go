package kds

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/resources/store"
)

// ended returns the reason for the session's end, given that of a stream. Only the end of the file is certainly the
// peer's doing: gRPC says canceled of a peer that no longer answers, too.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: the peer closed it", ErrStreamEnded)
	}
	return fmt.Errorf("%w: %w", ErrStreamEnded, err)
}

// ToStatus converts all errors to gRPC statuses: the wrapped error decides the code, unknown ones are Internal. Nil
// stays nil.
func ToStatus(err error) error {
	code := codes.Internal
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNoClientID), errors.Is(err, ErrZoneName), errors.Is(err, ErrTooManyTypes),
		errors.Is(err, ErrRequest), errors.Is(err, ErrFrame):
		code = codes.InvalidArgument
	case errors.Is(err, ErrUnauthenticated):
		code = codes.Unauthenticated
	case errors.Is(err, ErrNotAllowed):
		code = codes.PermissionDenied
	case errors.Is(err, ErrZoneDisabled), errors.Is(err, ErrZoneDeleted):
		code = codes.FailedPrecondition
	case errors.Is(err, ErrFenced), errors.Is(err, ErrPastWindow):
		code = codes.Aborted
	case errors.Is(err, ErrDraining), errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrClosed):
		code = codes.Unavailable
	case errors.Is(err, ErrTooManyStreams):
		code = codes.ResourceExhausted
	case errors.Is(err, ErrSendTimeout), errors.Is(err, ErrNoAnswer):
		code = codes.DeadlineExceeded
	case errors.Is(err, ErrStreamEnded), errors.Is(err, context.Canceled):
		code = codes.Canceled
	}
	return status.Error(code, err.Error())
}
