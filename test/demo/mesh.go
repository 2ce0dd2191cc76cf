package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// manifests are what the demo applies.
//
//go:embed *.yaml
var manifests embed.FS

const meshName = "default"

// mesh is everything that the demo starts.
type mesh struct {
	*cluster.Cluster
	out       io.Writer
	dir       string // the manifests, as files
	servers   map[string]*cluster.Server
	workloads map[string]*cluster.Workload
	clients   map[string]*cluster.Client
	spans     *spans
	told      bool // everything was shown, and was as expected
}

// step prints what is about to happen, and afterwards how long it took if that was long.
func (m *mesh) step(what string, do func() error) error {
	start := time.Now()
	fmt.Fprintf(m.out, "· %s", what)
	err := do()
	if took := time.Since(start); took > time.Second {
		fmt.Fprintf(m.out, " (%.1f s)", took.Seconds())
	}
	fmt.Fprintln(m.out)
	return err
}

func (m *mesh) start(ctx context.Context) (err error) {
	if m.spans, err = startSpans(); err != nil {
		return err
	}
	if err := m.writeManifests(); err != nil {
		return err
	}
	return run(
		func() error {
			return m.step("starting the global and the zones zone-1 and zone-2", func() error { return m.startServers(ctx) })
		},
		func() error {
			return m.step("starting an Envoy with an application in each zone", func() error { return m.startWorkloads(ctx) })
		},
		func() error {
			return m.step("starting an ingress in zone-1 and two callers in zone-2", func() error { return m.startCallers(ctx) })
		},
		func() error {
			return m.step("getting identities for the clients", func() error { return m.startClients(ctx) })
		},
	)
}

// run calls each step until one fails.
func run(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (m *mesh) writeManifests() error {
	entries, err := manifests.ReadDir(".")
	if err != nil {
		return err
	}
	m.dir = filepath.Join(m.Dir(), "policies")
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		raw, err := manifests.ReadFile(e.Name())
		if err != nil {
			return err
		}
		raw = bytes.ReplaceAll(raw, []byte(spansAddress), []byte(m.spans.address()))
		if err := os.WriteFile(filepath.Join(m.dir, e.Name()), raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (m *mesh) startServers(ctx context.Context) error {
	global, err := m.StartGlobal(ctx, cluster.GlobalConfig{})
	if err != nil {
		return err
	}
	m.servers[globalServer] = global
	for _, zone := range []string{zone1, zone2} {
		s, err := m.StartZone(ctx, cluster.ZoneConfig{Name: zone, Global: global, Args: []string{"--access-log", "als"}})
		if err != nil {
			return err
		}
		m.servers[zone] = s
	}
	return nil
}

func (m *mesh) startWorkloads(ctx context.Context) error {
	for _, key := range []string{backend1, backend2} {
		zone, name := m.split(key)
		w, err := m.StartWorkload(ctx, cluster.WorkloadConfig{
			Zone: zone, Mesh: meshName, Namespace: "backend-ns", Name: name, ServiceAccount: name,
			Labels: map[string]string{"app": name},
			Inbounds: []cluster.InboundConfig{
				{Name: httpPort, Protocol: cluster.ProtocolHTTP}, {Name: adminPort, Protocol: cluster.ProtocolHTTP},
			},
		})
		if err != nil {
			return err
		}
		m.workloads[key] = w
	}
	return nil
}

// startClients gets an identity for each client from its zone, as causewayctl svid does.
func (m *mesh) startClients(ctx context.Context) error {
	namespaces := map[string]string{
		frontend: "default", gateway: "default", malicious: "default",
		prometheus1: "observability", prometheus2: "observability",
	}
	for key, namespace := range namespaces {
		zone, name := m.split(key)
		id, err := cluster.RegisterClient(ctx, cluster.WorkloadConfig{
			Zone: zone, Mesh: meshName, Namespace: namespace, Name: name, ServiceAccount: name,
		}, zone1, zone2)
		if err != nil {
			return err
		}
		m.clients[key] = cluster.NewClient(id, false)
	}
	return nil
}

// split splits "zone/name".
func (m *mesh) split(key string) (*cluster.Server, string) {
	zone, name, _ := strings.Cut(key, "/")
	return m.servers[zone], name
}

// apply runs causewayctl apply, as a user does.
func (m *mesh) apply(ctx context.Context, a applied) error {
	_, err := m.CTL(ctx, m.servers[a.on], nil, "apply", "-f", filepath.Join(m.dir, a.file))
	return err
}

func (m *mesh) remove(ctx context.Context, a applied) error {
	_, err := m.CTL(ctx, m.servers[a.on], nil, "delete", "-f", filepath.Join(m.dir, a.file))
	return err
}

// close ends applications and clients; the cluster ends the processes.
func (m *mesh) close() error {
	for _, c := range m.clients {
		c.Close()
	}
	for _, w := range m.workloads {
		w.Close()
	}
	err := m.Close() // the Envoys before what they send to
	if m.spans != nil {
		err = errors.Join(err, m.spans.close())
	}
	return err
}
