package xds_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/kubernetes/podtoken"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/tokens"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// podAnswer is what the API server says of a token.
type podAnswer struct {
	pod podtoken.Pod
	err error
}

// Check implements xds.PodTokens.
func (g *gatedServer) Check(_ context.Context, token string) (podtoken.Pod, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a, ok := g.pods[token]
	if !ok {
		return podtoken.Pod{}, podtoken.ErrRefused
	}
	return a.pod, a.err
}

// says sets what the API server says of the token of a pod of namespace shop, and returns what its proxy shows.
func (g *gatedServer) says(token, pod, account string, err error) showing {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pods == nil {
		g.pods = map[string]podAnswer{}
	}
	g.pods[token] = podAnswer{podtoken.Pod{Namespace: "shop", Name: pod, UID: "uid-" + pod, ServiceAccount: account,
		Expires: time.Now().Add(time.Hour).Truncate(time.Hour).Add(time.Hour)}, err}
	return bearer(token)
}

// inShop stores a Dataplane of namespace shop with a service account; none if that is empty.
func (g *gatedServer) inShop(name, account string) {
	g.t.Helper()
	labels := map[string]string{"k8s.kuma.io/namespace": "shop"}
	if account != "" {
		labels[resources.LabelServiceAccount] = account
	}
	g.putIn("shop", resources.TypeDataplane, name,
		`{"networking": {"address": "127.0.0.1", "inbound": [`+httpInbound+`]}}`, labels)
}

// TestPodsOpenTheirOwnStreams: a pod's token is for the Dataplane of that pod, with the service account of that pod.
func TestPodsOpenTheirOwnStreams(t *testing.T) {
	t.Parallel()
	g := newGatedServerWith(t, func(g *gatedServer, c *xds.AdmissionConfig) { c.Pods = g })
	strangers := newGatedServer(t)
	for name, account := range map[string]string{"backend": "backend", "frontend": "frontend", "admin": "admin", "nobody": ""} {
		g.inShop(name, account)
	}
	good := g.says("pod.backend.token", "backend", "backend", nil)
	for _, row := range []struct {
		name   string
		show   showing
		node   string
		ns     string
		want   codes.Code
		reason string
	}{
		{"its own", good, "backend", "shop", codes.OK, ""},
		{"another's Dataplane", good, "frontend", "shop", codes.PermissionDenied, "pod another-proxy"},
		{"without its namespace", good, "backend", "", codes.PermissionDenied, "pod another-proxy"},
		{"another namespace", good, "backend", "payments", codes.PermissionDenied, "pod another-proxy"},
		{"a Dataplane of another account", g.says("a.b.c", "admin", "backend", nil), "admin", "shop", codes.PermissionDenied,
			"pod another-proxy"},
		{"a Dataplane without an account", g.says("a.b.d", "nobody", "backend", nil), "nobody", "shop", codes.PermissionDenied,
			"pod another-proxy"},
		{"a pod that is gone", bearer("pod.deleted.token"), "backend", "shop", codes.Unauthenticated, "token no-pod"},
		{"nobody who says", g.says("a.b.e", "backend", "backend", podtoken.ErrUnknown), "backend", "shop", codes.Unavailable,
			"token unavailable"},
		{"an expired token", g.says("a.b.f", "backend", "backend", podtoken.ErrExpired), "backend", "shop", codes.Unauthenticated, "token expired"},
		{"a token of a clock ahead", g.says("a.b.g", "backend", "backend", podtoken.ErrNotYet), "backend", "shop", codes.Unauthenticated, "token not-yet"},
		{"beside another's SVID", showing{authorization: good.authorization, certificate: g.svid("frontend")}, "backend", "shop",
			codes.PermissionDenied, "pod another-proxy"},
		{"a stranger's token", bearer(strangers.token(tokens.Claims{Mesh: "default", Dataplane: "shop/backend"}, time.Hour)),
			"backend", "shop", codes.Unauthenticated, "token no-pod"},
	} {
		for _, sotw := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/sotw=%t", row.name, sotw), func(t *testing.T) {
				secret := "identity_cert:default/shop/backend"
				got, err := g.ask(sotw, row.show, nodeOf(row.node, row.ns), sds, secret)
				if status.Code(err) != row.want {
					t.Fatalf("got %v, %v; want %s", got, err, row.want)
				}
				if row.want == codes.OK && (len(got) != 1 || got[0] != secret) {
					t.Errorf("got %v", got)
				}
				if row.want != codes.OK && g.lastRefused() != row.reason {
					t.Errorf("told of %q, want %q", g.lastRefused(), row.reason)
				}
			})
		}
	}
	ingress := nodeOf("backend", "shop")
	ingress.Id = xds.NodeID("", "backend")
	if _, err := g.ask(false, good, ingress, sds, "x"); status.Code(err) != codes.PermissionDenied {
		t.Errorf("an ingress: %v", err)
	}
}

// TestPodsOfTheOperatorAreIngresses: the token of a pod in the system namespace is for the ZoneIngress that the zone has
// made of that pod, and for no other; nobody else's pod is an ingress.
func TestPodsOfTheOperatorAreIngresses(t *testing.T) {
	t.Parallel()
	g := newGatedServerWith(t, func(g *gatedServer, c *xds.AdmissionConfig) {
		c.Pods, c.Home = g, resources.Home{Zone: home.Zone, SystemNamespace: "shop"}
	})
	elsewhere := newGatedServerWith(t, func(g *gatedServer, c *xds.AdmissionConfig) { c.Pods, c.Home = g, home })
	ofPods := map[string]string{resources.LabelManagedBy: resources.ManagedByDiscovery}
	for _, g := range []*gatedServer{g, elsewhere} {
		g.dataplane("web", httpInbound)
		g.put(resources.TypeMeshService, "web", `{"selector": {"dataplaneLabels": {"matchLabels": {"app": "web"}}}, "ports": [{"port": 80}]}`, nil)
		for name, labels := range map[string]map[string]string{"in-1": ofPods, "in-2": ofPods, "users": nil} {
			g.put(resources.TypeZoneIngress, name, `{"networking": {"address": "192.0.2.1", "port": 10001}}`, labels)
		}
	}
	for name, c := range map[string]struct {
		server       *gatedServer
		pod, ingress string
		want         codes.Code
	}{
		"its own":                      {g, "in-1", "in-1", codes.OK},
		"another's":                    {g, "in-1", "in-2", codes.PermissionDenied},
		"one that a user has written":  {g, "users", "users", codes.PermissionDenied},
		"a pod of another namespace":   {elsewhere, "in-1", "in-1", codes.PermissionDenied},
		"a pod, and no ZoneIngress":    {elsewhere, "late", "late", codes.PermissionDenied},
		"a pod of the operator's, too": {g, "late", "in-1", codes.PermissionDenied},
	} {
		node := nodeOf(c.ingress, "")
		node.Id = xds.NodeID("", c.ingress)
		got, err := c.server.ask(false, c.server.says("pod."+c.pod+".token", c.pod, "ingress", nil), node,
			"type.googleapis.com/envoy.config.cluster.v3.Cluster")
		if status.Code(err) != c.want || c.want == codes.OK && len(got) == 0 {
			t.Errorf("%s: %v, %v; want %s", name, got, err, c.want)
		}
	}
}

// TestStreamsEndWithTheirPod: when its Dataplane gets another account, and when it is deleted; not while nobody says.
func TestStreamsEndWithTheirPod(t *testing.T) {
	t.Parallel()
	g := newGatedServerWith(t, func(g *gatedServer, c *xds.AdmissionConfig) { c.Pods = g })
	g.inShop("backend", "backend")
	g.inShop("frontend", "frontend")
	open := func(pod string) *deltaClient {
		return g.streamOf(g.says("pod."+pod+".token", pod, pod, nil), nodeOf(pod, "shop"), "identity_cert:default/shop/"+pod)
	}
	backend, frontend := open("backend"), open("frontend")
	g.inShop("backend", "another")
	if err := backend.fails(); status.Code(err) != codes.PermissionDenied || g.lastRefused() != "pod another-proxy" {
		t.Errorf("another account: %v, told %q", err, g.lastRefused())
	}
	g.inShop("backend", "backend")
	backend = open("backend")
	g.says("pod.backend.token", "backend", "backend", podtoken.ErrUnknown)
	g.mu.Lock()
	delete(g.pods, "pod.frontend.token")
	g.later = 3 * time.Minute // what is open is due
	g.mu.Unlock()
	if err := frontend.fails(); status.Code(err) != codes.Unauthenticated || g.lastRefused() != "pod no-pod" {
		t.Errorf("deleted: %v, told %q", err, g.lastRefused())
	}
	select {
	case err := <-backend.err:
		t.Errorf("a stream of which nobody says anything ended: %v", err)
	default:
	}
}
