package global_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
	"github.com/causeway-mesh/causeway/global"
)

// clock is a clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time // guarded by mu
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// gated is a global that admits only authenticated zones.
type gated struct {
	*running
	t     *testing.T
	dir   string
	clock *clock
	roots *x509.CertPool
}

func startGated(t *testing.T, change ...func(*global.Config)) *gated {
	t.Helper()
	g := &gated{t: t, dir: t.TempDir(), clock: &clock{now: time.Now()}}
	g.running = start(t, g.dir, append([]func(*global.Config){func(c *global.Config) {
		c.KDSInsecureAnonymous, c.KDSZoneTokens = false, true
		c.Now = g.clock.Now
	}}, change...)...)
	t.Cleanup(func() {
		if err := g.stop(); err != nil {
			t.Error(err)
		}
	})
	ca, err := os.ReadFile(filepath.Join(g.dir, "kds-tls", "ca.crt"))
	g.must(err)
	g.roots = x509.NewCertPool()
	if !g.roots.AppendCertsFromPEM(ca) {
		t.Fatal("the CA file has no certificate")
	}
	return g
}

func (g *gated) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// post makes a request that must succeed, and reads the answer.
func (g *gated) post(path, body string, into any) {
	g.t.Helper()
	code, answer := g.call("POST", path, body)
	if code != 200 {
		g.t.Fatalf("POST %s: %d %s", path, code, answer)
	}
	if into != nil {
		g.must(json.Unmarshal([]byte(answer), into))
	}
}

// joinToken returns the token of a new join string.
func (g *gated) joinToken(zone string) string {
	g.t.Helper()
	var offer struct{ Join string }
	g.post("/zones/"+zone+"/_join", `{"rejoin":true}`, &offer)
	parsed, err := enrolment.ParseJoinString(offer.Join)
	g.must(err)
	return parsed.Token
}

// zoneToken returns a bearer token of a zone.
func (g *gated) zoneToken(zone string, scopes ...string) string {
	g.t.Helper()
	var offer struct{ Token string }
	body, err := json.Marshal(map[string][]string{"scopes": scopes})
	g.must(err)
	g.post("/zones/"+zone+"/_token", string(body), &offer)
	return offer.Token
}

// dial connects; pair is the client's certificate, nil for none.
func (g *gated) dial(pair *tls.Certificate) *grpc.ClientConn {
	g.t.Helper()
	config := &tls.Config{RootCAs: g.roots, MinVersion: tls.VersionTLS12}
	if pair != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil }
	}
	conn, err := grpc.NewClient(g.addresses["kds"], grpc.WithTransportCredentials(credentials.NewTLS(config)))
	g.must(err)
	g.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// joiner is a server that is, or wants to become, a zone.
type joiner struct {
	zone, id string
	key      crypto.Signer
	pair     *tls.Certificate
}

func newServer(t *testing.T, zone string) *joiner {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &joiner{zone: zone, id: newID(t), key: key}
}

// newID returns a random UUID.
func newID(t *testing.T) string {
	t.Helper()
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// request returns a signing request for the zone that the server claims to be.
func (s *joiner) request(t *testing.T) []byte {
	t.Helper()
	return requestOf(t, s.key, enrolment.ZoneIdentity{Zone: s.zone, ID: s.id}.URI())
}

func requestOf(t *testing.T, key crypto.Signer, uris ...*url.URL) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: uris}, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func (s *joiner) take(t *testing.T, c *enrolmentpb.Credential) *joiner {
	t.Helper()
	block, _ := pem.Decode([]byte(c.Certificate))
	if block == nil {
		t.Fatalf("no certificate in %q", c.Certificate)
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	s.pair = &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: s.key, Leaf: leaf}
	return s
}

// join makes a server a zone.
func (g *gated) join(zone string) *joiner {
	g.t.Helper()
	s := newServer(g.t, zone)
	c, err := enrolment.Membership{Conn: g.dial(nil)}.Join(g.t.Context(),
		&enrolmentpb.JoinRequest{Token: g.joinToken(zone), Csr: s.request(g.t)})
	g.must(err)
	return s.take(g.t, c)
}

// as returns a context with the metadata of a zone's calls, with a bearer token if there is one.
func as(ctx context.Context, zone string, token ...string) context.Context {
	pairs := []string{"client-id", zone}
	for _, one := range token {
		pairs = append(pairs, "authorization", one)
	}
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}

// enter calls HealthCheck, as a zone does first, and returns the result.
func (g *gated) enter(conn *grpc.ClientConn, zone string, token ...string) error {
	ctx, cancel := context.WithTimeout(g.t.Context(), 20*time.Second)
	defer cancel()
	return conn.Invoke(as(ctx, zone, token...), "/kuma.mesh.v1alpha1.GlobalKDSService/HealthCheck", new(emptypb.Empty),
		new(emptypb.Empty))
}

// open opens the stream on which the global sends to a zone, and returns its error once it ends.
func (g *gated) open(conn *grpc.ClientConn, zone string, token ...string) <-chan error {
	g.t.Helper()
	ended := make(chan error, 1)
	stream, err := conn.NewStream(as(g.t.Context(), zone, token...), &grpc.StreamDesc{ServerStreams: true,
		ClientStreams: true}, "/kuma.mesh.v1alpha1.KDSSyncService/GlobalToZoneSync")
	g.must(err)
	g.must(stream.SendMsg(&discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: zone}, TypeUrl: "Mesh",
		ResourceNamesSubscribe: []string{"*"}}))
	if err := stream.RecvMsg(new(discovery.DeltaDiscoveryResponse)); err != nil {
		g.t.Fatalf("zone %s was not let in: %v", zone, err)
	}
	go func() {
		for {
			if err := stream.RecvMsg(new(discovery.DeltaDiscoveryResponse)); err != nil {
				ended <- err
				return
			}
		}
	}()
	return ended
}

// audited returns the lines of the audit log about refusals.
func (g *gated) audited() []string {
	g.t.Helper()
	files, err := filepath.Glob(filepath.Join(g.dir, "audit", "refused*"))
	g.must(err)
	var lines []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		g.must(err)
		lines = append(lines, strings.Split(strings.TrimSpace(string(raw)), "\n")...)
	}
	return lines
}

// refused checks for an error with a code and, if there are words, a line in the audit log, after the first before
// lines, that has all of them.
func (g *gated) refused(err error, code codes.Code, before int, words ...string) {
	g.t.Helper()
	if status.Code(err) != code {
		g.t.Errorf("got %v, want %s", err, code)
	}
	if len(words) == 0 {
		return
	}
	found := false
	wait(g.t, fmt.Sprintf("an audit line with %q", words), func() bool {
		for _, line := range g.audited()[before:] {
			all := strings.Contains(line, `"outcome":"denied"`)
			for _, word := range words {
				all = all && strings.Contains(line, word)
			}
			found = found || all
		}
		return found
	})
}
