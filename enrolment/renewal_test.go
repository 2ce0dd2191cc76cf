package enrolment

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
	"github.com/causeway-mesh/causeway/secrets"
)

const (
	lifeOfCredential = 30 * 24 * time.Hour
	renewingZones    = 20
)

// signingGlobal is a global as a renewal sees it: a connection to a server that signs. It belongs to one zone.
type signingGlobal struct {
	key *ecdsa.PrivateKey
	ca  *x509.Certificate

	mu        sync.Mutex
	away      func(now time.Time) bool // guarded by mu: calls fail while true
	lose      int                      // guarded by mu: answers still to lose after signing
	serial    int64
	issued    []time.Time // guarded by mu
	keys      [][]byte    // guarded by mu: signed public keys
	confirmed string      // guarded by mu
}

func newSigningGlobal(t *testing.T) *signingGlobal {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now(), NotAfter: time.Now().Add(100 * lifeOfCredential)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &signingGlobal{key: key, ca: ca, away: func(time.Time) bool { return false }, serial: 1}
}

// sign answers a request. It also signs when the answer is lost.
func (g *signingGlobal) sign(csr []byte) (*enrolmentpb.Credential, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if g.away(now) {
		return nil, status.Error(codes.Unavailable, "the global is away")
	}
	who, request, err := ParseSigningRequest(csr)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	g.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(g.serial), URIs: []*url.URL{who.URI()}, NotBefore: now.Add(-datedBack),
		NotAfter: now.Add(lifeOfCredential),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, g.ca, request.PublicKey, g.key)
	if err != nil {
		return nil, err
	}
	g.issued, g.keys = append(g.issued, now), append(g.keys, request.RawSubjectPublicKeyInfo)
	if g.lose > 0 {
		g.lose--
		return nil, status.Error(codes.Unavailable, "the connection broke")
	}
	pemOf := func(der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	return &enrolmentpb.Credential{Certificate: pemOf(der), Ca: pemOf(g.ca.Raw),
		Expires: timestamppb.New(template.NotAfter)}, nil
}

// Invoke implements grpc.ClientConnInterface.
func (g *signingGlobal) Invoke(_ context.Context, _ string, in, out any, _ ...grpc.CallOption) error {
	if r, ok := in.(*enrolmentpb.ConfirmRequest); ok {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.confirmed = r.GetSerial()
		return nil
	}
	credential, err := g.sign(in.(*enrolmentpb.RenewRequest).GetCsr())
	if err != nil {
		return err
	}
	proto.Merge(out.(proto.Message), credential)
	return nil
}

// NewStream implements grpc.ClientConnInterface: a stream of advice that never sends any.
func (g *signingGlobal) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string,
	_ ...grpc.CallOption) (grpc.ClientStream, error) {
	return silentStream{ctx}, nil
}

type silentStream struct{ ctx context.Context }

func (silentStream) Header() (metadata.MD, error) { return nil, nil }
func (silentStream) Trailer() metadata.MD         { return nil }
func (silentStream) CloseSend() error             { return nil }
func (s silentStream) Context() context.Context   { return s.ctx }
func (silentStream) SendMsg(any) error            { return nil }
func (s silentStream) RecvMsg(any) error          { <-s.ctx.Done(); return io.EOF }

// renewingZone returns the Holder of a zone that has joined its global.
func renewingZone(t *testing.T, name string, g *signingGlobal) *Holder {
	t.Helper()
	dir := t.TempDir()
	box, err := secrets.OpenBox(secrets.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenHolder(dir, box, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	next, csr, err := s.request(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	credential, err := g.sign(csr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.keep(next, origin{[]string{"127.0.0.1:1"}, "sum"}, credential, time.Now()); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRenewalAtHalfLife checks over 100 days that 20 zones renew their 30-day certificates at half of their life, each
// within the hour. An absent global, and lost answers, only delay them. No zone ever has an expired certificate.
func TestRenewalAtHalfLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		globals, zones := make([]*signingGlobal, renewingZones), make([]*Holder, renewingZones)
		var running sync.WaitGroup
		for i := range zones {
			name := fmt.Sprintf("zone-%d", i)
			globals[i] = newSigningGlobal(t)
			zones[i] = renewingZone(t, name, globals[i])
			switch i % 4 {
			case 1: // offline when the second renewal is due, for three days
				globals[i].away = func(now time.Time) bool {
					return now.Sub(start) > 29*24*time.Hour && now.Sub(start) < 33*24*time.Hour
				}
			case 2:
				globals[i].lose = 3
			}
			r := &Renewal{Holder: zones[i], Zone: name, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
			running.Go(func() {
				if err := r.Run(ctx, globals[i]); !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", name, err)
				}
			})
			time.Sleep(time.Minute)
		}
		for range 100 * 24 {
			time.Sleep(time.Hour)
			for i, z := range zones {
				if left := time.Until(z.current.Load().Expires); left < 7*24*time.Hour {
					t.Fatalf("zone-%d has a certificate for %s only", i, left)
				}
			}
		}
		cancel()
		running.Wait()
		for i, g := range globals {
			checkRenewals(t, i, g, zones[i])
		}
	})
}

func checkRenewals(t *testing.T, i int, g *signingGlobal, z *Holder) {
	t.Helper()
	kept := g.issued
	if i%4 == 2 { // three answers were lost: signed again within seconds, for the same key
		for n := 1; n <= 3; n++ {
			if string(g.keys[n]) != string(g.keys[n+1]) || g.issued[n+1].Sub(g.issued[n]) > time.Minute {
				t.Errorf("zone-%d asked again after %s, with the same key: %t", i, g.issued[n+1].Sub(g.issued[n]),
					string(g.keys[n]) == string(g.keys[n+1]))
			}
		}
		kept = append(g.issued[:1:1], g.issued[4:]...)
	}
	if len(kept) < 6 || len(kept) > 7 {
		t.Errorf("zone-%d had %d certificates in 100 days", i, len(kept))
	}
	for n := 1; n < len(kept); n++ {
		age := kept[n].Sub(kept[n-1])
		late := i%4 == 1 && n == 2
		if least, most := lifeOfCredential/2, lifeOfCredential/2+longestLook; age < least || age > most != late {
			t.Errorf("zone-%d renewed its certificate after %s, want %s to %s", i, age, least, most)
		}
	}
	if g.confirmed != z.current.Load().serial() {
		t.Errorf("zone-%d uses %s and has confirmed %s", i, z.current.Load().serial(), g.confirmed)
	}
}
