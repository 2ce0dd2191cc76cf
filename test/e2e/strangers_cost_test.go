package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/strangers"
)

const (
	// strangersBudget limits the growth of a server's memory, whatever strangers do.
	strangersBudget = 64 << 20
	// strangersAtOnce is the number of connections of one attempt, strangersFor their duration.
	strangersAtOnce = 400
	strangersFor    = 3 * time.Second
)

// TestStrangersCostLittle checks that real servers grow by at most the budget under each attempt, and serve
// authenticated callers meanwhile.
func TestStrangersCostLittle(t *testing.T) {
	m := newCluster(t)
	var err error
	m.global, err = m.StartGlobal(t.Context(), cluster.GlobalConfig{})
	m.must(err)
	zone, err := m.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: m.global,
		Args: []string{"--xds-require-credentials"}})
	m.must(err)
	m.must(zone.WaitMesh(t.Context(), "default"))
	m.must(zone.API.Put(t.Context(), "/meshes/default/dataplanes/honest", map[string]any{
		"type": "Dataplane", "mesh": "default", "name": "honest",
		"networking": map[string]any{"address": "127.0.0.1",
			"inbound": []any{map[string]any{"port": 18080, "servicePort": 18081}}},
	}))
	var token struct{ Token string }
	m.must(zone.API.Do(t.Context(), http.MethodPost, "/meshes/default/_dataplane-tokens",
		map[string]string{"dataplane": "honest"}, &token))
	t.Run("global", func(t *testing.T) {
		t.Parallel()
		for i, attempt := range attemptsAt("kds", "api") {
			attack(t, m.global, attempt, func(ctx context.Context) error {
				if attempt.Port == "kds" {
					return joinAndLeave(ctx, m, fmt.Sprintf("twin-%d", i))
				}
				return m.global.API.Do(ctx, http.MethodGet, "/zones", nil, nil)
			})
		}
	})
	t.Run("zone", func(t *testing.T) {
		t.Parallel()
		for _, attempt := range attemptsAt("xds") {
			attack(t, zone, attempt, func(ctx context.Context) error {
				// Like an Envoy, it reconnects if it lost its place before it could authenticate.
				return cluster.Until(ctx, time.Minute, "the honest proxy to be served", func(ctx context.Context) error {
					return honestStream(ctx, zone.Address("xds"), token.Token)
				})
			})
		}
	})
}

// attemptsAt returns the attempts at some ports.
func attemptsAt(ports ...string) (out []strangers.Attempt) {
	for _, a := range strangers.Attempts() {
		if slices.Contains(ports, a.Port) {
			out = append(out, a)
		}
	}
	return out
}

// attack checks that s stays within the budget under one attempt, while the honest twin succeeds.
func attack(t *testing.T, s *cluster.Server, attempt strangers.Attempt, twin func(context.Context) error) {
	t.Helper()
	t.Run(strings.ReplaceAll(attempt.Name, " ", "-"), func(t *testing.T) {
		grown := underAttack(t, s, attempt, twin)
		t.Logf("%s grew by %d MiB", s.Name(), grown>>20)
		if grown > strangersBudget {
			t.Errorf("%s grew by %d MiB, at most %d", s.Name(), grown>>20, strangersBudget>>20)
		}
	})
}

// underAttack returns the largest growth of a server while strangers were connected and an honest client called it.
func underAttack(t *testing.T, s *cluster.Server, attempt strangers.Attempt, twin func(context.Context) error) int64 {
	t.Helper()
	before := residentOf(t, s)
	crowd := &strangers.Crowd{
		Attempts: []strangers.Attempt{attempt}, Connections: strangersAtOnce, TLS: map[string]bool{"kds": true},
		Addresses: map[string]string{attempt.Port: s.Address(attempt.Port)},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); crowd.Run(ctx) }()
	served := make(chan error, 1)
	go func() {
		within, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		<-time.After(strangersFor / 4) // once they are connected
		served <- twin(within)
	}()
	var most int64
	var done bool
	for end := time.Now().Add(strangersFor); !done || time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		most = max(most, residentOf(t, s))
		select {
		case err := <-served:
			done = true
			if err != nil {
				t.Errorf("the honest client was not served: %v", err)
			}
		default:
		}
	}
	cancel()
	<-ended
	return most - before
}

func residentOf(t *testing.T, s *cluster.Server) int64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(raw), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}

// joinAndLeave starts a new zone: it joins, and connects.
func joinAndLeave(ctx context.Context, m *mesh, name string) error {
	z, err := m.StartZone(ctx, cluster.ZoneConfig{Name: name, Global: m.global})
	if err != nil {
		return err
	}
	defer z.Kill()
	return cluster.Until(ctx, time.Minute, name+" to be online", func(ctx context.Context) error {
		var overview struct {
			ZoneInsight struct{ Subscriptions []any }
		}
		if err := m.global.API.Do(ctx, http.MethodGet, "/zones/"+name+"/_overview", nil, &overview); err != nil {
			return err
		}
		if len(overview.ZoneInsight.Subscriptions) == 0 {
			return fmt.Errorf("%s has no subscription", name)
		}
		return nil
	})
}

// honestStream connects a proxy with its token, which receives its clusters.
func honestStream(ctx context.Context, address, token string) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx,
		grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	err = stream.Send(&discovery.DeltaDiscoveryRequest{
		Node: &corev3.Node{Id: "default.honest"}, TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster",
	})
	if err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}
