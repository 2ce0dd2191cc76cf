package kds

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// FuzzReportSession plays sequences of a zone's reports and questions, the lines of the input, to a real global: the
// zone's state can be shown, and another zone gets what is written. A line that begins with ? is a question; a line !
// makes the zone reconnect.
func FuzzReportSession(f *testing.F) {
	for _, seed := range saidJSON {
		if len(seed) < 1000 {
			f.Add([]byte(seed + "\n?" + seed + "\n!\n" + seed))
		}
	}
	f.Add([]byte(`{"applied":{"MeshTrafficPermission":3},"behind":[{"mesh":"default","name":"backend","reason":"no such filter"}],"held":{"Mesh":2}}` + "\n" +
		`?{"type":"MeshService","mesh":"default","namespace":"","name":"own","content":"x"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := newToll()
		playReports(t, raw)
		c.check(t)
	})
}

func playReports(t *testing.T, raw []byte) {
	s := store.NewMemory()
	put(t, s, written(t, zoneHome("evil"), resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "own"},
		`{}`))
	g := NewGlobal(GlobalConfig{Store: s, Log: testLog()}) // without a guard: a panic ends the process
	l, target := listenSomewhere(t)
	stop := serveOn(t, l, g.Register)
	honest := newHonestZone(t, target)
	z := &evilZone{t: t, global: g, store: s, target: target}
	z.connect(exchange.OwnFeatures())
	z.openDown()
	lines := bytes.Split(raw, []byte("\n"))
	for _, line := range lines[:min(len(lines), mostOps)] {
		ctx, cancel := context.WithTimeout(z.ctx, 5*time.Second)
		switch {
		case bytes.Equal(line, []byte("!")):
			z.connect(exchange.OwnFeatures())
			z.openDown()
		case bytes.HasPrefix(line, []byte("?")):
			_ = z.conn.Invoke(ctx, fullMethod(reportServiceName, methodReached), wrapperspb.Bytes(line[1:]),
				new(wrapperspb.BytesValue))
		default:
			_ = z.conn.Invoke(ctx, fullMethod(reportServiceName, methodReport), wrapperspb.Bytes(line), new(emptypb.Empty))
		}
		cancel()
		checkShown(t, g)
	}
	marker, spec := permission("marker")
	put(t, s, written(t, globalHome, marker, spec))
	honest.waitFor("marker-")
	honest.stop()
	z.hangUp()
	g.Drain()
	stop()
	g.Wait()
}
