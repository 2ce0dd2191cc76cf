package xds

import "errors"

var (
	// ErrNode reports that a stream did not name its proxy, or named two different ones.
	ErrNode = errors.New("xds node")
	// ErrConfig reports that a Dataplane cannot be turned into Envoy's resources; its proxy keeps its current
	// configuration.
	ErrConfig = errors.New("no config for the proxy")
)

// serving names this server in logs and metrics of panics.
const serving = "xds"
