package xds

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

func (e *egresses) sending(i int) *sending { return e.streams[i].s.proxy.state.Load().sending }

// newIn counts what now has and before has not.
func newIn[T comparable](before, now []T) (n int) {
	for _, one := range now {
		if !slices.Contains(before, one) {
			n++
		}
	}
	return n
}

// TestAChangeOfOneExternalServiceBuildsOneCluster: of a hundred services outside the mesh, the cluster of the one that
// changed is built, once for both egresses, and no listener: it has only names. A service that comes is one more chain,
// and a policy for one service one more cluster.
func TestAChangeOfOneExternalServiceBuildsOneCluster(t *testing.T) {
	t.Parallel()
	const services = 100
	e := newEgresses(t, 2, services)
	forOne := func() {
		putText(t, e.store, resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "one"}, nil,
			`{"to": [{"targetRef": {"kind": "MeshExternalService", "name": "s001"}, "default": {"connectionTimeout": "3s"}}]}`)
	}
	for _, step := range []struct {
		what                        string
		change                      func()
		clusters, chains, listeners int
		rules                       int
	}{
		{"another address", func() { e.put(t, 0, 1) }, 1, 0, 0, 0},
		{"one more service", func() { e.put(t, services, 1) }, 1, 1, 1, 5},
		{"a timeout of one service", forOne, 1, 0, 0, 1},
		{"another address, with the timeout", func() { e.put(t, 1, 2) }, 1, 0, 0, 0},
		{"a service less", func() {
			key := resources.Key{Type: resources.TypeMeshExternalService, Mesh: "default", Name: "s002"}
			if _, err := e.store.Apply(t.Context(), store.Batch{Ops: []store.Op{{Delete: key}}}); err != nil {
				t.Fatal(err)
			}
		}, 0, 0, 1, 5},
	} {
		before := []*sending{e.sending(0), e.sending(1)}
		step.change()
		if sent := e.settle(t); sent < 2 {
			t.Errorf("%s: %d responses, want some for both egresses", step.what, sent)
		}
		for i, was := range before {
			is := e.sending(i)
			if is.plan == was.plan || is.plan != e.sending(0).plan {
				t.Errorf("%s: egress %d has a plan of its own, or none for the change", step.what, i)
			}
			clusters, chains := newIn(was.plan.external, is.plan.external), newIn(was.led[0].chains, is.led[0].chains)
			listeners := newIn([]*resource{was.led[0].resource}, []*resource{is.led[0].resource})
			if n := newIn(was.plan.rules, is.plan.rules); n != step.rules {
				t.Errorf("%s: egress %d: the rules of %d types were computed, want %d", step.what, i, n, step.rules)
			}
			if clusters != step.clusters || chains != step.chains || listeners != step.listeners {
				t.Errorf("%s: egress %d: %d clusters, %d chains and %d listeners were built, want %d, %d and %d", step.what, i,
					clusters, chains, listeners, step.clusters, step.chains, step.listeners)
			}
		}
		e.asFromScratch(t, step.what)
	}
}

// asFromScratch fails unless each egress has what it would get from a server that starts now.
func (e *egresses) asFromScratch(t *testing.T, at string) {
	t.Helper()
	for i, a := range e.streams {
		alone := testProxies(e.store)
		alone.cfg.Sources, alone.cfg.Own = e.x.cfg.Sources, e.x.cfg.Own
		session := connectWhole(t, alone, fmt.Sprintf("out-%d", i))
		for k := range kinds {
			if !a.s.proxy.state.Load().served(k).equal(session.proxy.state.Load().served(k)) {
				t.Errorf("%s: egress %d: %s differs from a build from scratch", at, i, k)
			}
		}
		if is, want := a.s.proxy.record.problems[problemOutbounds], session.proxy.record.problems[problemOutbounds]; is != want {
			t.Errorf("%s: egress %d: the problems are %q, want %q", at, i, is, want)
		}
		session.end()
	}
}

// TestTheListenerOfAnEgressIsItsMessage: the bytes that the listener is put together from are those of the whole
// message.
func TestTheListenerOfAnEgressIsItsMessage(t *testing.T) {
	t.Parallel()
	e := newEgresses(t, 1, 3)
	r := e.sending(0).led[0].resource
	listener := &listenerv3.Listener{}
	if err := proto.Unmarshal(r.delta.GetResource().GetValue(), listener); err != nil {
		t.Fatal(err)
	}
	whole, err := newResource(kindListener, r.name, listener)
	if err != nil || !bytes.Equal(whole.delta.GetResource().GetValue(), r.delta.GetResource().GetValue()) {
		t.Errorf("it is not the message %v: %v", listener, err)
	}
	if n := len(listener.GetFilterChains()); n != 3 {
		t.Errorf("%d chains, want 3", n)
	}
}

// TestEgressesFollowACertificate: another text of the secret that a service outside the mesh refers to reaches both
// egresses, though the service is the same, and a text that is no certificate ends what they send there.
func TestEgressesFollowACertificate(t *testing.T) {
	t.Parallel()
	e := newEgresses(t, 2, 3)
	text := pair(t)
	e.x.cfg.Sources = func(*resources.Resource, *resources.DataSource) ([]byte, error) { return text, nil }
	putText(t, e.store, resources.Key{Type: resources.TypeMeshExternalService, Mesh: "default", Name: "s000"}, nil,
		`{"match": {"port": 80, "protocol": "http"}, "endpoints": [{"address": "127.77.0.1", "port": 10001}], "tls": {"enabled": true,
		"verification": {"mode": "SkipAll", "clientCert": {"secret": "of-us"}, "clientKey": {"secret": "of-us"}}}}`)
	e.settle(t)
	presented := func(i int) (text string, dialled bool) {
		for _, c := range e.sending(i).plan.external {
			cluster := &clusterv3.Cluster{}
			if err := proto.Unmarshal(c.delta.GetResource().GetValue(), cluster); err != nil {
				t.Fatal(err)
			}
			if cluster.GetTransportSocket() != nil {
				return string(cluster.GetTransportSocket().GetTypedConfig().GetValue()), len(cluster.GetLoadAssignment().GetEndpoints()) > 0
			}
		}
		t.Fatal("no cluster has TLS")
		return "", false
	}
	for _, next := range [][]byte{text, pair(t), []byte("none"), text} {
		before := e.sending(0).plan.external
		changed := !bytes.Equal(next, text)
		text = next
		if e.x.SourcesChanged("default"); changed && newIn(before, e.sending(0).plan.external) != 1 {
			t.Errorf("another certificate of one service builds %d clusters", newIn(before, e.sending(0).plan.external))
		}
		for i := range e.streams {
			certificate := string(next) != "none"
			socket, dialled := presented(i)
			if strings.Contains(socket, string(next)) != certificate || dialled != certificate {
				t.Errorf("egress %d presents %q, and dials the service: %v", i, socket, dialled)
			}
		}
		e.asFromScratch(t, string(next))
	}
}

// TestALogThatOneEgressCannotOpen: that egress gets clusters without the log, and the other one keeps it.
func TestALogThatOneEgressCannotOpen(t *testing.T) {
	t.Parallel()
	e := newEgresses(t, 2, 3)
	putText(t, e.store, resources.Key{Type: resources.TypeMeshHealthCheck, Mesh: "default", Name: "logged"}, nil,
		`{"to": [{"targetRef": {"kind": "Mesh"}, "default": {"interval": "7s", "timeout": "1s", "http": {"path": "/"}, "eventLogPath": "/var/log/checks"}}]}`)
	e.settle(t)
	logs := func(i int) (n int) {
		for _, r := range e.sending(i).sets[kindCluster] {
			if bytes.Contains(r.delta.GetResource().GetValue(), []byte("/var/log/checks")) {
				n++
			}
		}
		return n
	}
	if logs(0) != 3 || logs(1) != 3 {
		t.Fatalf("%d and %d clusters log, want 3", logs(0), logs(1))
	}
	e.x.configRefused(e.streams[1].s.proxy, kindCluster, "unable to open file '/var/log/checks': Permission denied")
	if logs(0) != 3 || logs(1) != 0 {
		t.Errorf("%d and %d clusters log, want 3 and none", logs(0), logs(1))
	}
	if problems := e.sending(1).problems; !slices.ContainsFunc(problems, func(text string) bool { return strings.Contains(text, "Permission denied") }) {
		t.Errorf("the problems are %q", problems)
	}
	e.put(t, 0, 1)
	if e.settle(t); logs(0) != 3 || logs(1) != 0 {
		t.Errorf("after a change %d and %d clusters log, want 3 and none", logs(0), logs(1))
	}
}
