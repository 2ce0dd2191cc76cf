package kds

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestHeardPeersAreWaitedFor checks that a peer that sends a byte now and then is waited for, up to a minute, and a
// silent one is not.
func TestHeardPeersAreWaitedFor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ every, want time.Duration }{
		"silent": {time.Hour, 10 * time.Second},
		"slow":   {time.Second, longestHandshake},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				defer near.Close()
				defer far.Close()
				heard := &Activity{}
				ctx, cancel := heard.While(t.Context(), 10*time.Second)
				defer cancel()
				begun := time.Now()
				go func() {
					for ctx.Err() == nil {
						select {
						case <-time.After(tt.every):
							_, _ = far.Write([]byte{0})
						case <-ctx.Done():
						}
					}
				}()
				go func() {
					for b := make([]byte, 1); ; {
						if _, err := (activityConn{near, heard, &transport{}}).Read(b); err != nil {
							return
						}
					}
				}()
				<-ctx.Done()
				_ = far.Close()
				if got := time.Since(begun); got != tt.want || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
					t.Errorf("waited %s (%v), want %s", got, context.Cause(ctx), tt.want)
				}
			})
		})
	}
}
