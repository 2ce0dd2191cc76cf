package xds

import "errors"

var (
	// ErrNode: a stream did not say, or said twice differently, which proxy it is for.
	ErrNode = errors.New("xds node")
	// ErrConfig: a Dataplane cannot be turned into Envoy's resources; its proxy keeps what it has.
	ErrConfig = errors.New("no config for the proxy")
)

// serving is what is served, in logs and metrics of panics.
const serving = "xds"
