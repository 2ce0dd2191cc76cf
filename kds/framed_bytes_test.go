package kds

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// countingLink forwards connections and counts what passes, in bytes.
type countingLink struct {
	address  string
	down, up atomic.Int64
}

func countBytes(t *testing.T, target string) *countingLink {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	link := &countingLink{address: l.Addr().String()}
	var wait sync.WaitGroup
	pass := func(to, from net.Conn, count *atomic.Int64) {
		defer func() { _ = to.Close(); _ = from.Close() }()
		for b := make([]byte, 64<<10); ; {
			n, err := from.Read(b)
			count.Add(int64(n))
			if _, failed := to.Write(b[:n]); err != nil || failed != nil {
				return
			}
		}
	}
	wait.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				_ = near.Close()
				continue
			}
			wait.Go(func() { pass(far, near, &link.up) })
			wait.Go(func() { pass(near, far, &link.down) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wait.Wait() })
	return link
}

// fiveMatchers returns a policy of five matchers.
func fiveMatchers(t testing.TB, i, last int) *resources.Resource {
	t.Helper()
	var allow []string
	for k := range 4 {
		allow = append(allow, fmt.Sprintf(
			`{"spiffeID":{"type":"Prefix","value":"spiffe://default.zone.mesh.local/ns/n%d/sa/s%d"}}`, i, k))
	}
	allow = append(allow, fmt.Sprintf(
		`{"spiffeID":{"type":"Exact","value":"spiffe://default.zone.mesh.local/ns/x/sa/seed-%d"}}`, last))
	return written(t, globalHome, resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default",
		Name: fmt.Sprintf("policy-%d", i)}, `{"targetRef":{"kind":"Mesh"},"rules":[{"default":{"allow":[`+
		strings.Join(allow, ",")+`]}}]}`)
}

// TestBytesOnTheWire counts what a zone's connection carries, everything included: the first state, and one change. Of
// several changes it takes the median: some share a moment with what does not belong to them, a status or a ping.
func TestBytesOnTheWire(t *testing.T) {
	t.Parallel()
	const policies = 2000
	g := startGlobal(t, store.NewMemory())
	var all []*resources.Resource
	for i := range policies {
		all = append(all, fiveMatchers(t, i, i))
	}
	put(t, g.store, all...)
	type cost struct{ first, change, answer int64 }
	measure := func(zone string, features exchange.Features) (c cost) {
		link, s := countBytes(t, g.address), store.NewMemory()
		z := startZoneWith(t, zone, link.address, s, features)
		settled := func() (down, up int64) { // what is under way beside the policies is over
			eventually(t, "the link to be quiet", func() bool {
				down, up = link.down.Load(), link.up.Load()
				time.Sleep(100 * time.Millisecond)
				return link.down.Load() == down && link.up.Load() == up
			})
			return down, up
		}
		eventually(t, "the policies", func() bool { return count(s, all[0].Type) == policies })
		down, up := settled()
		c.first = down
		const changes = 11
		var downs, ups []int64
		for i := range changes {
			changed := fiveMatchers(t, i, 5000+i+len(zone))
			put(t, g.store, changed)
			eventually(t, "the change", func() bool {
				got := find(s, changed.Type, changed.Name)
				return got != nil && got.Spec.Equal(changed.Spec)
			})
			downAfter, upAfter := settled()
			downs, ups = append(downs, downAfter-down), append(ups, upAfter-up)
			down, up = downAfter, upAfter
		}
		slices.Sort(downs)
		slices.Sort(ups)
		c.change, c.answer = downs[changes/2], ups[changes/2]
		z.stop()
		return c
	}
	features := exchange.OwnFeatures() &^ exchange.FeatureTraces
	plain, framed := measure("plain", features&^exchange.FeatureFrames), measure("framed", features)
	t.Logf("plain %+v, framed %+v", plain, framed)
	if framed.first*100 > plain.first*8 {
		t.Errorf("the first state takes %d bytes, %d without frames: want 8 %%", framed.first, plain.first)
	}
	if framed.change > 200 {
		t.Errorf("a change takes %d bytes, %d without frames: want 200", framed.change, plain.change)
	}
	if framed.change+framed.answer > 250 {
		t.Errorf("a change and its answer take %d and %d bytes: want 250", framed.change, framed.answer)
	}
}

// TestSizesOfFramedMessages checks that the limit of a message is on what is sent: a list that compresses goes in one
// message where it took several, and one that does not is cut as ever.
func TestSizesOfFramedMessages(t *testing.T) {
	t.Parallel()
	const limit = 8 << 10
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.MaxMessageSize = limit })
	random := rand.NewChaCha8([32]byte{})
	var same, noise []*resources.Resource
	for i := range 30 {
		same = append(same, fiveMatchers(t, i, i))
		b := make([]byte, 500)
		_, _ = random.Read(b)
		noise = append(noise, written(t, globalHome, resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default",
			Name: fmt.Sprintf("noise-%d", i)}, `{"targetRef":{"kind":"Dataplane","labels":{"a":"`+hex.EncodeToString(b)+`"}}}`))
	}
	put(t, g.store, append(same, noise...)...)
	p := dialPeer(t, "zone-1", g.address, exchange.OwnFeatures())
	p.openDown()
	for _, c := range []struct {
		list []*resources.Resource
		want func(messages int) bool
	}{
		{same, func(messages int) bool { return messages == 1 }},
		{noise, func(messages int) bool { return messages >= 30*500/limit }},
	} {
		p.subscribe(c.list[0].Type, nil)
		got, messages := 0, 0
		for got < len(c.list) {
			m, err := p.down.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if size := proto.Size(m); size > limit+200 {
				t.Errorf("%s: a message of %d bytes, want %d", c.list[0].Type, size, limit)
			}
			if err := openFrame(m, true); err != nil {
				t.Fatal(err)
			}
			got += len(m.GetResources())
			messages++
			p.ack(m)
		}
		if !c.want(messages) {
			t.Errorf("%s: %d messages", c.list[0].Type, messages)
		}
	}
}

// TestWhatDoesNotCompressIsTriedOnce checks that zones do not each pay for the attempt to put more of what does not
// compress into a message. They resume, so that the list is made for each of them.
func TestWhatDoesNotCompressIsTriedOnce(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // as if a stream still held what the one before was sent
	const policies = 1000
	g := startGlobal(t, store.NewMemory())
	var all []*resources.Resource
	dice, noise := rand.New(rand.NewPCG(1, 2)), make([]byte, 1000)
	for i := range policies {
		for j := range noise {
			noise[j] = byte(dice.Uint32())
		}
		all = append(all, written(t, globalHome, resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default",
			Name: fmt.Sprintf("policy-%d", i)}, fmt.Sprintf(`{"targetRef":{"kind":"Mesh"},"rules":[{"default":{"allow":[{"spiffeID":`+
			`{"type":"Prefix","value":"spiffe://default.zone.mesh.local/%s"}}]}}]}`, hex.EncodeToString(noise))))
	}
	put(t, g.store, all...)
	var first uint64
	for i := range 3 {
		s := store.NewMemory()
		startZoneWith(t, fmt.Sprintf("zone-%d", i), g.address, s, exchange.OwnFeatures())
		eventually(t, "the policies", func() bool { return count(s, all[0].Type) == policies })
		if made := g.encoder.frames.Load(); i == 0 {
			first = made
		} else if made != first {
			t.Errorf("zone %d: %d frames were made for all, %d for the first", i, made, first)
		}
	}
}
