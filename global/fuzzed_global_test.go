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
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

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
