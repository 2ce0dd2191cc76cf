package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

func TestHalfLife(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: begin, NotAfter: begin.Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	got, err := halfLife(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	if want := begin.Add(12 * time.Hour); err != nil || !got.Equal(want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if _, err := halfLife([]byte(bad)); err == nil {
			t.Errorf("%q has a half life", bad)
		}
	}
}

// TestWatchTellsOfAProblemOnce checks that a zone's absence for a day costs two lines, not thousands.
func TestWatchTellsOfAProblemOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := &svidWatch{dir: "id", refresh: time.Second, log: &log}
	for _, err := range []error{nil, errors.New("away"), errors.New("away"), nil, nil} {
		w.note(err)
	}
	if want := "away; trying again every 1s\nid/svid.pem is fresh again\n"; log.String() != want {
		t.Errorf("got %q, want %q", log.String(), want)
	}
}

// shortLived stands for a zone with certificates so short-lived that a test sees several of them. It can be away.
type shortLived struct {
	key  *ecdsa.PrivateKey
	life time.Duration
	away atomic.Bool
	// issued counts certificates, turned the requests refused while away.
	issued, turned atomic.Int64
}

func (z *shortLived) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if z.away.Load() {
		z.turned.Add(1)
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	if r.Method == http.MethodGet {
		_, _ = io.WriteString(w, `{"total":0,"items":[],"next":null}`)
		return
	}
	var request api.SVIDRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	certificate, err := z.sign(request.CSR)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	z.issued.Add(1)
	_ = json.NewEncoder(w).Encode(api.SVID{SpiffeID: "spiffe://a/b", Certificate: certificate,
		Bundles: map[string]string{"a": certificate}})
}

func (z *shortLived) sign(csr string) (string, error) {
	block, _ := pem.Decode([]byte(csr))
	if block == nil {
		return "", errors.New("no PEM")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return "", err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(z.issued.Load() + 1), NotBefore: now, NotAfter: now.Add(z.life)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, z.key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), err
}

// TestWatchRenewsAtHalfLife checks that certificates are replaced while they are valid, that key and certificate match
// at the end, and that a zone's absence is only reported.
func TestWatchRenewsAtHalfLife(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	zone := &shortLived{key: key, life: 4 * time.Second} // dates are in whole seconds: half of the life is 1 to 2 s
	listening := httptest.NewServer(posing(zone))
	defer listening.Close()
	client, err := api.NewClient(api.ClientConfig{Address: listening.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	var log bytes.Buffer
	w := &svidWatch{
		client: client, dataplane: resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "b"},
		dir: t.TempDir(), refresh: 10 * time.Millisecond, timeout: 5 * time.Second, log: &log,
	}
	told := 0
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- w.run(ctx, func(string, *api.SVID) error { told++; return nil })
	}()
	waitUntil(t, func() bool { return zone.issued.Load() == 1 })
	zone.away.Store(true)
	waitUntil(t, func() bool { return zone.turned.Load() >= 2 })
	zone.away.Store(false)
	waitUntil(t, func() bool { return zone.issued.Load() >= 2 })
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the watch ended with %v", err)
	}
	if told < 1 || !strings.Contains(log.String(), "away") || !strings.Contains(log.String(), "is fresh again") {
		t.Errorf("told %d times, log %q", told, log.String())
	}
	if _, err := tls.LoadX509KeyPair(filepath.Join(w.dir, svidFile), filepath.Join(w.dir, svidKeyFile)); err != nil {
		t.Error(err)
	}
}

func waitUntil(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("not within 20 s")
		}
	}
}
