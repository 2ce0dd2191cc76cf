package abuse

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/global"
	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/test/peer"
)

// zoneResources is the limit of resources of a type per zone on the global of these tests.
const zoneResources = 20

func startBoundedGlobal(t *testing.T) *aServer {
	t.Helper()
	s := &aServer{name: "global", dataDir: t.TempDir()}
	c := global.Config{
		DataDir: s.dataDir, ReadyFile: filepath.Join(s.dataDir, "ready.json"), Log: slog.New(slog.DiscardHandler),
		KDSTLS: true, KDSInsecureAnonymous: true,
		APIAddress: "127.0.0.1:0", KDSAddress: "127.0.0.1:0", DiagnosticsAddress: "127.0.0.1:0", Access: settingsOf(),
		KDSZoneLimits: kds.Limits{Resources: zoneResources},
	}
	s.run(t, c.ReadyFile, func(ctx context.Context) error { return global.Run(ctx, c) })
	s.url = "http://" + s.addresses["api"]
	s.admin = s.client(t, "")
	return s
}

func (s *aServer) join(t *testing.T, name string) *peer.Zone {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(read(t, filepath.Join(s.dataDir, "kds-tls", "ca.crt")))
	z, err := peer.Connect(t.Context(), peer.ZoneConfig{Name: name, KDS: s.addresses["kds"], CA: pool,
		Types: []string{"MeshService"}})
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// syncStatus is the part of GET /zones/{name}/_sync that the tests read.
type syncStatus struct {
	Types []struct {
		Type    string
		Refused []struct{ Name, Reason string }
	}
	Over []struct {
		Limit string
		Count int
	}
}

func (s *aServer) syncStatus(t *testing.T, zone string) (refused int, over map[string]int) {
	t.Helper()
	var said syncStatus
	if err := s.admin.JSON(t.Context(), api.Request{Path: "/zones/" + zone + "/_sync"}, &said); err != nil {
		return 0, nil
	}
	over = map[string]int{}
	for _, o := range said.Over {
		over[o.Limit] = o.Count
	}
	for i := range said.Types {
		refused += len(said.Types[i].Refused)
	}
	return refused, over
}

func service(zone, name string) peer.Resource {
	return peer.Resource{
		Type: "MeshService", Mesh: "default", Name: hashing.Name("default", name, zone),
		Spec: `{"state":"Available","selector":{"dataplaneTags":{"app":"x"}},"ports":[{"port":80,"appProtocol":"http"}]}`,
		Labels: map[string]string{"kuma.io/origin": "zone", "kuma.io/zone": zone, "kuma.io/mesh": "default",
			"kuma.io/display-name": name},
	}
}

func offer(t *testing.T, z *peer.Zone, all ...peer.Resource) {
	t.Helper()
	if err := z.Offer(all...); err != nil {
		t.Fatal(err)
	}
}

func (s *aServer) services(t *testing.T, zone string) (n int) {
	t.Helper()
	var list struct {
		Items []struct{ Labels map[string]string }
	}
	if err := s.admin.JSON(t.Context(), api.Request{Path: "/meshes/default/meshservices"}, &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Labels["kuma.io/zone"] == zone {
			n++
		}
	}
	return n
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestAZoneWithManyRefusedNames checks that 120,000 refused names are counted, that another zone is served meanwhile,
// and that the memory is free once the zone is gone. Each name used to cost 430 bytes for as long as the global ran.
func TestAZoneWithManyRefusedNames(t *testing.T) {
	s := startBoundedGlobal(t)
	before := heapInUse()
	const sessions, messages, names = 3, 10, 4000
	for i := range sessions { // each session frees the memory of this test's client
		z := s.join(t, "evil")
		for j := range messages {
			var all []peer.Resource
			for k := range names {
				one := service("evil", fmt.Sprintf("junk-%d-%d-%d", i, j, k))
				one.Spec = "no json"
				all = append(all, one)
			}
			offer(t, z, all...)
			eventually(t, "an answer", func() bool { return len(z.Refusals()) > j })
		}
		if refused, over := s.syncStatus(t, "evil"); refused == 0 || refused > 10_000 || over["refusals"] == 0 {
			t.Errorf("%d refusals are kept, over %v", refused, over)
		}
		if i == 0 {
			good := s.join(t, "good")
			offer(t, good, service("good", "shop"))
			eventually(t, "another zone to be served", func() bool { return s.services(t, "good") == 1 })
			if err := errors.Join(good.Err(), good.Close()); err != nil {
				t.Error(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "what the zone cost to go", func() bool { return heapInUse()-before < 8<<20 })
}

// TestAZoneWithManyResources checks that resources beyond a zone's limit are refused by name, and that nothing else is
// lost.
func TestAZoneWithManyResources(t *testing.T) {
	s := startBoundedGlobal(t)
	good, evil := s.join(t, "good"), s.join(t, "evil")
	defer good.Close()
	defer evil.Close()
	offer(t, evil, servicesOf("evil", zoneResources+7)...)
	eventually(t, "those that are too many to be refused", func() bool {
		refused, over := s.syncStatus(t, "evil")
		return refused == 7 && over["resources"] == 7
	})
	eventually(t, "the zone to be told of them",
		func() bool { return strings.Count(strings.Join(evil.Refusals(), "\n"), "over the limit") == 7 })
	if n := s.services(t, "evil"); n != zoneResources {
		t.Errorf("%d are stored", n)
	}
	offer(t, good, servicesOf("good", zoneResources)...)
	eventually(t, "all of the other zone to be stored", func() bool { return s.services(t, "good") == zoneResources })
	if refusals := good.Refusals(); len(refusals) > 0 {
		t.Errorf("the other zone was refused %q", refusals)
	}
	if text := s.metrics(t); !strings.Contains(text, `causeway_kds_over_limit{limit="resources",type="MeshService",zone="evil"} 7`) || strings.Contains(text, `zone="good"} 7`) {
		t.Error("the metrics do not say which zone is over its limit")
	}
}

func servicesOf(zone string, n int) (out []peer.Resource) {
	for i := range n {
		out = append(out, service(zone, fmt.Sprintf("s-%d", i)))
	}
	return out
}

func (s *aServer) metrics(t *testing.T) string {
	t.Helper()
	resp, err := http.Get("http://" + s.addresses["diagnostics"] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
