package xds

import (
	"fmt"
	"iter"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// target is a Dataplane prepared for building. It changes only with the Dataplane itself.
type target struct {
	dataplane *resources.Resource
	match     *matching.Proxy
	secrets   secretNames
	inbounds  []inbound
	// bare holds the inbounds without the effect of policies. listeners holds their last listeners, which successors of the
	// target share; both are empty for a target without a proxy.
	bare      []inbound
	listeners []inboundListener
	form      rbac.Form
	outbounds []outbound
	// gateway describes the listeners of a MeshGateway's proxy; nil for others.
	gateway *gateway
	// unserved names the outbounds that get no listener, and why.
	unserved []string
	// egresses are its listeners for traffic to services outside the mesh.
	egresses []inbound
	// proxyless means that the state is for a gRPC server.
	proxyless bool
	// measured describes how the proxy's metrics are available.
	measured measured
	// own reports which addresses may lead to this server.
	own OwnFunc
	// adminPin is Config.AdminPin.
	adminPin string
	// dns is where the proxy answers DNS queries for service names; nil if it does not.
	dns *dnsServer
	// logFiles are the proxy's log files; nil for a target without a proxy.
	logFiles *logFiles
	// capture describes how its application's connections reach the proxy. closedMesh means that the mesh allows none
	// of them out unless a policy does.
	capture    capture
	closedMesh bool
	// patches reads MeshProxyPatches; nil for a target without a proxy.
	patches *patchReader
	// observed holds what the policies of wholeTypes configure.
	observed observed
	// reachable limits what the proxy has listeners for. outboundsID identifies the parts of the Dataplane that
	// determine what it sends.
	reachable   reachable
	outboundsID string
	// shared holds what it has in common with other proxies.
	shared *shared
}

// newTarget prepares a Dataplane. services may be all MeshServices of the mesh; they set the protocols of inbounds that
// have none.
func newTarget(dp *resources.Resource, services iter.Seq[*resources.Resource], proxyless bool) (*target, error) {
	match, err := matching.NewProxy(dp)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if slices.ContainsFunc(match.Inbounds, func(in matching.InboundPort) bool { return in.AppProtocol == "" }) {
		match = match.WithServices(slices.Collect(services))
	}
	t := &target{dataplane: dp, match: match, proxyless: proxyless, secrets: secretsOf(dp.Key, &identity.Assigned{}),
		shared: &shared{}}
	if t.inbounds, err = inboundsOf(dp, match, proxyless); err != nil {
		return t, err
	}
	if !proxyless {
		if t.egresses, err = egressesOf(dp, match); err != nil {
			return t, err
		}
	}
	if t.outbounds, t.unserved, err = outboundsOf(dp); err != nil {
		return t, err
	}
	spec, err := resources.SpecAs[meshpb.Dataplane](dp)
	if err != nil {
		return t, err
	}
	if !proxyless {
		t.capture = captureOf(spec.GetNetworking())
	}
	t.reachable = reachableOf(spec)
	t.outboundsID, err = t.outboundsText()
	return t, err
}
