package kds

import (
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestReasonOfAnEnd checks that the peer is named as who ended a stream only where that is known.
func TestReasonOfAnEnd(t *testing.T) {
	t.Parallel()
	for reason, closed := range map[error]bool{io.EOF: true, status.Error(codes.Canceled, "context canceled"): false} {
		err := ended(reason)
		if !errors.Is(err, ErrStreamEnded) || strings.Contains(err.Error(), "the peer") != closed {
			t.Errorf("%v: got %q", reason, err)
		}
	}
}
