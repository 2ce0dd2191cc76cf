//go:build !linux

package kds

import (
	"net"
	"time"
)

// pingTimeout is how long gRPC waits for the answer to a ping.
const pingTimeout = 15 * time.Second

func trafficOf(net.Conn) (traffic, bool) { return traffic{}, false }

func quietFor(net.Conn) (time.Duration, bool) { return 0, false }
