package kds

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/kdspb"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// FuzzReportSession plays sequences of a zone's reports and questions, the lines of the input, to a real global: the
// zone's state can be shown, and another zone gets what is written. A line that begins with ? is a question, one that
// begins with # a report, and one that begins with $ a question, in fields; all others are JSON. A line ! makes the zone
// reconnect.
func FuzzReportSession(f *testing.F) {
	for _, seed := range saidJSON {
		if len(seed) < 1000 {
			f.Add([]byte(seed + "\n?" + seed + "\n!\n" + seed))
		}
	}
	f.Add([]byte(`{"applied":{"MeshTrafficPermission":3},"behind":[{"mesh":"default","name":"backend","reason":"no such filter"}],"held":{"Mesh":2}}` + "\n" +
		`?{"type":"MeshService","mesh":"default","namespace":"","name":"own","content":"x"}`))
	f.Add([]byte("#\"\x14\x0a\x07default\x1a\x04dp-1\"\x03no!\n#B\x06\x1a\x04\x08\xff\xff\x7f\n$\x12\x0bMeshService\x1a\x07default*\x03own"))
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
	g := NewGlobal(GlobalConfig{Store: s, Log: testLog(), inspect: checkInvariants(t)}) // without a guard: a panic ends the process
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
			_ = z.conn.Invoke(ctx, kdspb.ReportService_Reached_FullMethodName, wrapperspb.Bytes(line[1:]),
				new(wrapperspb.BytesValue))
		case bytes.HasPrefix(line, []byte("#")):
			_ = z.conn.Invoke(ctx, kdspb.ReportService_Report_FullMethodName, inFields(line[1:]), new(emptypb.Empty))
		case bytes.HasPrefix(line, []byte("$")):
			_ = z.conn.Invoke(ctx, kdspb.ReportService_Reached_FullMethodName, inFields(line[1:]), new(emptypb.Empty))
		default:
			_ = z.conn.Invoke(ctx, kdspb.ReportService_Report_FullMethodName, wrapperspb.Bytes(line), new(emptypb.Empty))
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

// inFields returns a message that is sent as these bytes.
func inFields(raw []byte) proto.Message {
	m := new(emptypb.Empty)
	m.ProtoReflect().SetUnknown(raw)
	return m
}
