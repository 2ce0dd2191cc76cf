package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/spiffetls/tlsconfig"

	"github.com/causeway-mesh/causeway/test/cluster"
)

const (
	spireDomain     = "spire.example"
	identityOfSpire = `{type: MeshIdentity, mesh: default, name: spire, spec: {selector: {dataplane: {}}, spiffeID: {trustDomain: spire.example, path: '/app/{{ label "app" }}'},
  provider: {type: Spire, spire: {agent: {timeout: 2s}}}}}`
	shortConnections = `{type: MeshTimeout, mesh: default, name: short-connections, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {maxConnectionDuration: 100ms}}}]}}`
)

// spireMesh is a zone whose Dataplanes get their identities from a real SPIRE.
type spireMesh struct {
	*mesh
	spire *cluster.Spire
	zone  *cluster.Server
}

// TestSpireServerAndAgent uses a real SPIRE server and agent. Two Envoys, which SPIRE recognises by the paths of their
// programs, get their identities from the agent's socket, and the zone signs none. A permission by SPIRE's identity
// admits one of them and not the other. While SPIRE reissues both identities, with ever new connections, no request
// fails. A program that SPIRE does not know gets no identity, and so no answer, until it is registered.
func TestSpireServerAndAgent(t *testing.T) {
	bin, err := cluster.FindSpire()
	if err != nil {
		t.Logf("SPIRE is not there (%v): make test-spire installs it; TestIdentitiesBySpire stands in for its agent", err)
		return
	}
	m := newMesh(t, "zone-1")
	s := &spireMesh{mesh: m, zone: m.zones["zone-1"]}
	s.spire, err = m.StartSpireServer(t.Context(), bin, spireDomain)
	m.must(err)
	envoys := map[string]string{}
	for _, app := range []string{"frontend", "backend", "stranger"} {
		envoys[app] = s.envoy(app)
	}
	for _, app := range []string{"frontend", "backend"} {
		m.must(s.spire.Register(t.Context(), "/app/"+app, envoys[app]))
	}
	m.must(s.spire.StartAgent(t.Context()))
	m.apply(m.global, identityOfSpire)
	m.eventually("the MeshIdentity in the zone", func(ctx context.Context) error {
		all, err := byDisplayName(ctx, s.zone, "/meshes/default/meshidentities")
		if _, there := all["spire"]; err == nil && !there {
			err = errNotYet
		}
		return err
	})
	backend, frontend := s.workload("backend", "frontend", envoys["backend"]),
		s.workload("frontend", "backend", envoys["frontend"])

	s.gets(frontend, "backend", http.StatusForbidden)
	m.apply(m.global, fmt.Sprintf(allowIdentity, "frontend", s.spire.ID("/app/frontend")))
	s.gets(frontend, "backend", http.StatusOK)
	s.gets(backend, "frontend", http.StatusForbidden)
	if _, err := s.zone.SVID(t.Context(), "default", "backend-ns", "backend"); err == nil ||
		!strings.Contains(err.Error(), "SPIRE") {
		t.Errorf("asked for an identity, the zone says %v", err)
	}
	s.reissued(backend, frontend)

	stranger := s.workload("stranger", "backend", envoys["stranger"])
	s.gets(stranger, "backend", http.StatusServiceUnavailable)
	m.must(s.spire.Register(t.Context(), "/app/stranger", envoys["stranger"]))
	s.gets(stranger, "backend", http.StatusForbidden)
}

// envoy copies the Envoy to a separate path.
func (s *spireMesh) envoy(name string) string {
	s.t.Helper()
	raw, err := os.ReadFile(programs.envoy())
	s.must(err)
	path := filepath.Join(s.Dir(), "envoy-of-"+name)
	s.must(os.WriteFile(path, raw, 0o700)) //nolint:gosec // it is a program
	return path
}

// workload starts a Dataplane and a service of that name, which calls another.
func (s *spireMesh) workload(name, other, envoy string) *cluster.Workload {
	s.t.Helper()
	s.apply(s.zone, strings.ReplaceAll(serviceOfBackend, "backend", name))
	w, err := s.StartWorkload(s.t.Context(), cluster.WorkloadConfig{
		Zone: s.zone, Mesh: "default", Namespace: name + "-ns", Name: name, ServiceAccount: name,
		Labels:   map[string]string{"app": name},
		Inbounds: []cluster.InboundConfig{{Name: "http", Protocol: cluster.ProtocolHTTP}},
		Outbounds: []cluster.OutboundConfig{{Name: other, BackendRef: map[string]any{"kind": "MeshService",
			"labels": map[string]any{"kuma.io/display-name": other, "kuma.io/zone": s.zone.Name()}}}},
		SpireSocket: s.spire.Socket(), Envoy: envoy,
	})
	s.must(err)
	s.t.Cleanup(w.Close)
	return w
}

// gets waits until a call to the other workload is answered with a status.
func (s *spireMesh) gets(w *cluster.Workload, other string, want int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("calls of %s to %s to be answered with %d", w.Name, other, want),
		func(ctx context.Context) error {
			status, body, err := w.Call(ctx, other, "/")
			if err == nil && status != want {
				err = fmt.Errorf("got %d %.200s", status, body)
			}
			return err
		})
}

// reissued makes SPIRE reissue both identities while the frontend calls the backend on ever new connections.
func (s *spireMesh) reissued(backend, frontend *cluster.Workload) {
	s.t.Helper()
	s.apply(s.global, shortConnections)
	before := map[*cluster.Workload]*x509.Certificate{}
	for _, w := range []*cluster.Workload{backend, frontend} {
		before[w] = s.shows(w, nil)
	}
	load := startLoad(s.t.Context(), map[string]*cluster.Workload{"frontend": frontend})
	defer load.stop()
	load.more(s.t, 50)
	for i := range 3 {
		for _, w := range []*cluster.Workload{backend, frontend} {
			s.must(s.spire.Reissue(s.t.Context(), "/app/"+w.Name, w.Envoy, 2*time.Hour+time.Duration(i)*time.Second))
			before[w] = s.shows(w, before[w])
		}
		load.more(s.t, 50)
	}
	load.stop()
	if failures, sent := load.result(); len(failures) > 0 {
		s.t.Errorf("%d of %d calls failed, the first: %s", len(failures), sent, failures[0])
	} else {
		s.t.Logf("%d calls", sent)
	}
}

// shows waits until a workload's Envoy presents a certificate that differs from the given one, and that SPIRE's
// authority signed for the workload's SPIFFE ID.
func (s *spireMesh) shows(w *cluster.Workload, other *x509.Certificate) *x509.Certificate {
	s.t.Helper()
	bundle, err := s.spire.Bundle(s.t.Context())
	s.must(err)
	id, err := spiffeid.FromString(s.spire.ID("/app/" + w.Name))
	s.must(err)
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	tlsconfig.HookTLSClientConfig(config, bundle, tlsconfig.AuthorizeID(id))
	var shown *x509.Certificate
	s.eventually("another certificate of "+w.Name, func(ctx context.Context) error {
		conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp",
			net.JoinHostPort("127.0.0.1", fmt.Sprint(w.Inbound("http").Port)))
		if err != nil {
			return err
		}
		defer conn.Close()
		shown = conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
		if other != nil && shown.SerialNumber.Cmp(other.SerialNumber) == 0 {
			return errNotYet
		}
		return nil
	})
	return shown
}
