package global_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
	"github.com/causeway-mesh/causeway/global"
)

// fuzzedGlobal is one global for all inputs, with two zones that have joined it: one whose credential the script has,
// and another.
type fuzzedGlobal struct {
	addresses   map[string]string
	roots       *x509.CertPool
	evil, sound *tls.Certificate
	// used is the token by which the evil zone joined.
	used string
	// requests are signing requests, valid ones first.
	requests [][]byte
}

const (
	evilID  = "01234567-89ab-cdef-0123-456789abcdef"
	soundID = "01234567-89ab-cdef-0123-456789abcde0"
)

func startFuzzedGlobal(f *testing.F) *fuzzedGlobal {
	f.Helper()
	must := func(err error) {
		f.Helper()
		if err != nil {
			f.Fatal(err)
		}
	}
	g := &fuzzedGlobal{}
	// No guard: a panic ends the process, so that the fuzzer finds it.
	c := global.Config{
		DataDir: f.TempDir(), APIAddress: "127.0.0.1:0", KDSAddress: "127.0.0.1:0", DiagnosticsAddress: "127.0.0.1:0",
		ReadyFile: filepath.Join(f.TempDir(), "ready"), KDSTLS: true, KDSZoneTokens: true, Log: slog.New(slog.DiscardHandler),
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- global.Run(ctx, c) }()
	f.Cleanup(func() {
		cancel()
		must(<-done)
	})
	for deadline := time.Now().Add(time.Minute); ; <-time.After(5 * time.Millisecond) {
		if raw, err := os.ReadFile(c.ReadyFile); err == nil && json.Unmarshal(raw, &g.addresses) == nil {
			break
		}
		if time.Now().After(deadline) {
			f.Fatal("the global is not ready")
		}
	}
	ca, err := os.ReadFile(filepath.Join(c.DataDir, "kds-tls", "ca.crt"))
	must(err)
	g.roots = x509.NewCertPool()
	g.roots.AppendCertsFromPEM(ca)
	g.evil, g.used = g.join(f, "evil", evilID)
	g.sound, _ = g.join(f, "sound", soundID)
	g.makeRequests(f)
	return g
}

// join creates a zone by a join string that the operator requests.
func (g *fuzzedGlobal) join(f *testing.F, zone, id string) (*tls.Certificate, string) {
	f.Helper()
	resp, err := http.Post("http://"+g.addresses["api"]+"/zones/"+zone+"/_join", "application/json",
		strings.NewReader(`{"rejoin":true}`))
	if err != nil {
		f.Fatal(err)
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	var offer struct{ Join string }
	if err := json.NewDecoder(resp.Body).Decode(&offer); err != nil {
		f.Fatal(err)
	}
	parsed, err := enrolment.ParseJoinString(offer.Join)
	if err != nil {
		f.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	conn := g.dial(f, nil)
	defer conn.Close()
	credential, err := enrolment.Membership{Conn: conn}.Join(f.Context(), &enrolmentpb.JoinRequest{Token: parsed.Token,
		Csr: csr(f, key, &x509.CertificateRequest{URIs: []*url.URL{enrolment.ZoneIdentity{Zone: zone, ID: id}.URI()}})})
	if err != nil {
		f.Fatal(err)
	}
	block, _ := pem.Decode([]byte(credential.Certificate))
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		f.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key, Leaf: leaf}, parsed.Token
}

func csr(t testing.TB, key crypto.Signer, template *x509.CertificateRequest) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// signed is the number of requests that the global signs for the evil zone: the first ones.
const signed = 3

// makeRequests returns signing requests of many kinds.
func (g *fuzzedGlobal) makeRequests(f *testing.F) {
	own := []*url.URL{enrolment.ZoneIdentity{Zone: "evil", ID: evilID}.URI()}
	other := []*url.URL{enrolment.ZoneIdentity{Zone: "sound", ID: soundID}.URI()}
	ec, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	large, _ := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	old, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		f.Fatal(err)
	}
	many := &x509.CertificateRequest{URIs: own}
	for i := range 800 {
		many.DNSNames = append(many.DNSNames, fmt.Sprintf("name-%d.example", i))
		many.IPAddresses = append(many.IPAddresses, net.IPv4(10, 0, byte(i>>8), byte(i)))
	}
	with := func(uris []*url.URL) *x509.CertificateRequest { return &x509.CertificateRequest{URIs: uris} }
	g.requests = [][]byte{
		csr(f, ec, with(own)), csr(f, ed, with(own)), csr(f, ec, many), // all but the key and the URI of it is ignored
		csr(f, ec, with(other)), csr(f, large, with(own)), csr(f, old, with(own)), csr(f, ec, with(nil)),
		csr(f, ec, with(append(own, other...))), csr(f, ec, with([]*url.URL{{Opaque: "x"}})), nil, {}, {0x30},
		{0x30, 0x84, 0xff, 0xff, 0xff, 0xff}, bytes.Repeat([]byte{0x30, 0x80}, 10_000),
	}
}

func (g *fuzzedGlobal) dial(t testing.TB, pair *tls.Certificate) *grpc.ClientConn {
	t.Helper()
	config := &tls.Config{RootCAs: g.roots, MinVersion: tls.VersionTLS13}
	if pair != nil {
		config.Certificates = []tls.Certificate{*pair}
	}
	conn, err := grpc.NewClient(g.addresses["kds"], grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// scriptedMember runs a script.
type scriptedMember struct {
	t      *testing.T
	global *fuzzedGlobal
	conn   *grpc.ClientConn
	proven bool // the connection presented the evil zone's certificate
	ctx    context.Context
	cancel context.CancelFunc
	// following holds the calls that are open until the connection is closed.
	following []chan struct{}
}

var saidZones = []string{"evil", "sound", "", "x y", ".", strings.Repeat("z", 100), "nobody"}

func (m *scriptedMember) connect(proven bool, zone byte) {
	m.hangUp()
	m.proven = proven
	if proven {
		m.conn = m.global.dial(m.t, m.global.evil)
	} else {
		m.conn = m.global.dial(m.t, nil)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	m.ctx, m.cancel = metadata.AppendToOutgoingContext(ctx, "client-id", saidZones[int(zone)%len(saidZones)]), cancel
}

func (m *scriptedMember) hangUp() {
	if m.conn == nil {
		return
	}
	m.cancel()
	for _, done := range m.following {
		<-done
	}
	_ = m.conn.Close()
	m.conn, m.following = nil, nil
}

// request returns a signing request, whole or with one byte changed, and its index.
func (m *scriptedMember) request(a, b byte) (der []byte, which int) {
	n := int(a) % (2 * len(m.global.requests))
	der = m.global.requests[n/2]
	if n%2 == 1 && len(der) > 0 {
		der = bytes.Clone(der)
		der[int(b)*7%len(der)] ^= 1 << (b % 8)
	}
	return der, n / 2
}

func (m *scriptedMember) play(op, a, b byte) {
	if m.conn == nil {
		m.connect(a%2 == 0, 0)
	}
	service := enrolment.Membership{Conn: m.conn}
	// A stranger over its limit gets no answer and is disconnected after ten seconds, longer than an input may take.
	ctx, cancel := context.WithTimeout(m.ctx, 300*time.Millisecond)
	defer cancel()
	switch op % 8 {
	case 0:
		der, _ := m.request(a, b)
		token := []string{"", "x", "a.b.c", m.global.used, m.global.used + "x", strings.Repeat("t", 30_000),
			"eyJhbGciOiJub25lIn0.e30."}[int(b)%7]
		if _, err := service.Join(ctx, &enrolmentpb.JoinRequest{Token: token, Csr: der}); err == nil {
			m.t.Errorf("joined by %.100q", token)
		}
	case 1:
		der, which := m.request(a, b)
		if _, err := service.Renew(ctx, &enrolmentpb.RenewRequest{Csr: der}); err == nil && (!m.proven || which >= signed) {
			m.t.Errorf("request %d was signed, on a connection that has proven who it is: %v", which, m.proven)
		}
	case 2:
		_ = service.Confirm(ctx, &enrolmentpb.ConfirmRequest{Serial: []string{"", "0", "-1", strings.Repeat("f", 10_000),
			m.global.evil.Leaf.SerialNumber.Text(16), m.global.sound.Leaf.SerialNumber.Text(16)}[int(a)%6]})
	case 3:
		if len(m.following) < 8 {
			done := make(chan struct{})
			m.following = append(m.following, done)
			go func() {
				defer close(done)
				_ = service.Follow(m.ctx, func(*enrolmentpb.Advice) {})
			}()
		}
	case 4:
		method := []string{"Join", "Renew", "Confirm", "Nobody"}[int(a)%4]
		body := []string{"", "null", "[]", "{", `{"csr":"!"}`, `{"csr":null,"token":1}`, `{"serial":[]}`,
			strings.Repeat("[", 20_000), strings.Repeat(" ", 40_000)}[int(b)%9]
		_ = m.conn.Invoke(ctx, "/causeway.v1.MembershipService/"+method, wrapperspb.Bytes([]byte(body)),
			new(wrapperspb.BytesValue))
	case 5:
		ctx := metadata.AppendToOutgoingContext(ctx, "authorization",
			[]string{"Bearer x", "x", "Bearer a.b.c", "Bearer " + m.global.used, ""}[int(a)%5])
		if b%2 == 1 {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer y", "client-id", "sound")
		}
		_ = m.conn.Invoke(ctx, "/kuma.mesh.v1alpha1.GlobalKDSService/HealthCheck", new(emptypb.Empty), new(emptypb.Empty))
	case 6:
		m.connect(a%2 == 0, b)
	case 7:
		m.hangUp()
	}
	if ctx.Err() != nil {
		m.hangUp()
	}
}

// FuzzMembershipSession plays sequences of requests of a server that is, or wants to become, a zone, to a whole global
// over TLS. The global signs only what the zone may have, and the other zone is not affected.
func FuzzMembershipSession(f *testing.F) {
	g := startFuzzedGlobal(f)
	sound := g.dial(f, g.sound)
	f.Cleanup(func() { _ = sound.Close() })
	goesOn := func(t testing.TB) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		err := enrolment.Membership{Conn: sound}.Confirm(metadata.AppendToOutgoingContext(ctx, "client-id", "sound"),
			&enrolmentpb.ConfirmRequest{Serial: g.sound.Leaf.SerialNumber.Text(16)})
		if err != nil {
			t.Errorf("the zone beside it: %s, %v", status.Code(err), err)
		}
	}
	goesOn(f)
	f.Add([]byte{6, 0, 0, 1, 0, 0, 2, 4, 0, 3, 0, 0, 5, 0, 0})    // renews, confirms, follows
	f.Add([]byte{6, 1, 0, 0, 0, 3, 0, 10, 1, 4, 0, 2, 1, 0, 0})   // joins with a used token, without a certificate
	f.Add([]byte{6, 0, 1, 1, 0, 0, 2, 5, 0, 3, 0, 0, 7, 0, 0})    // as another zone
	f.Add([]byte{6, 0, 0, 1, 9, 40, 1, 10, 7, 1, 25, 3, 4, 2, 6}) // requests of many kinds
	f.Fuzz(func(t *testing.T, raw []byte) {
		before, began := runtime.NumGoroutine(), time.Now()
		m := &scriptedMember{t: t, global: g}
		for n := 0; n < 24 && len(raw) >= 3; n++ {
			m.play(raw[0], raw[1], raw[2])
			raw = raw[3:]
		}
		m.hangUp()
		goesOn(t)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %s", took)
		}
		// The server's own goroutines come and go.
		for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before+8; <-time.After(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d goroutines are left of %d", runtime.NumGoroutine(), before)
			}
		}
	})
}
