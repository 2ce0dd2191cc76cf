package global_test

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
)

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
