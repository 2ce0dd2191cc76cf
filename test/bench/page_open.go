package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// betweenLeaves is how often a zone leaves, and comes back, while pages are open.
const betweenLeaves = 15 * time.Second

// keepOpen has web/speed keep pages open while zones come and go, and collects what the pages hold from time to time.
func (b *bench) keepOpen(z *zones, g *cluster.Server, run pageRun) (*table, error) {
	ctx, cancel := context.WithCancel(z.ctx)
	left := 0
	var leaving sync.WaitGroup
	leaving.Go(func() { left = z.comeAndGo(ctx) })
	t := &table{title: fmt.Sprintf("Pages of a global that are open for %s: %s", run.open, run.mesh)}
	counts := map[string]float64{}
	err := b.click(ctx, g, run, func(f pageFigure) {
		if f.Moment == "" {
			counts[f.Title] = f.Sample
			return
		}
		t.addMoment(f.Moment, f.Title, f.Unit, f.Goal, f.Sample)
	})
	cancel()
	leaving.Wait()
	minutes := run.open.Minutes()
	t.note = fmt.Sprintf("Measured on %s. Meanwhile one page went %.0f times through the views (%.1f a minute), %.0f policies "+
		"were written (%.1f a minute), and a zone left and came back %d times (%.1f a minute).", time.Now().UTC().Format(time.DateOnly),
		counts["rounds"], counts["rounds"]/minutes, counts["writes"], counts["writes"]/minutes, left, float64(left)/minutes)
	return t, err
}

// comeAndGo has one zone after the other leave, and returns how many did.
func (z *zones) comeAndGo(ctx context.Context) int {
	for n := 0; ; n++ {
		if sleep(ctx, betweenLeaves) != nil {
			return n
		}
		z.leave(n % z.size)
	}
}
