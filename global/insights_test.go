package global

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// BenchmarkAcknowledgedWhileStatusIsWritten measures the longest wait of an acknowledgement of one zone while the
// status of 1,000 zones is written: worst-ms.
func BenchmarkAcknowledgedWhileStatusIsWritten(b *testing.B) {
	i := newInsights(store.NewMemory(), "instance", nil, slog.New(slog.DiscardHandler))
	var worst time.Duration
	touch := func(kind kds.EventKind) {
		for n := range 1000 {
			i.Observe(kds.Event{Kind: kind, Zone: fmt.Sprint("zone-", n), Session: uint64(n + 1), Time: time.Now(),
				Type: resources.TypeMeshTimeout})
		}
	}
	touch(kds.SessionStarted)
	for b.Loop() {
		touch(kds.Acknowledged)
		done := make(chan struct{})
		go func() {
			defer close(done)
			i.flush(b.Context())
		}()
		for flushing := true; flushing; {
			began := time.Now()
			i.Observe(kds.Event{Kind: kds.Acknowledged, Zone: "zone-0", Session: 1, Time: began,
				Type: resources.TypeMeshTimeout})
			worst = max(worst, time.Since(began))
			select {
			case <-done:
				flushing = false
			default:
			}
		}
	}
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
}
