package kds

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/lineage"
	"github.com/causeway-mesh/causeway/resources"
)

const (
	// maxBehind bounds the proxies that a report names.
	maxBehind = 10_000
	// reportDelay collects events into one report, and gives proxies time to answer.
	reportDelay = 100 * time.Millisecond
	// shortestLook and longestLook bound the interval, which doubles each time, at which a zone with proxies behind
	// reports again.
	shortestLook, longestLook = 200 * time.Millisecond, 10 * time.Second
)

// Report implements kdspb.ReportServiceServer.
func (g *Global) Report(ctx context.Context, in *kdspb.ReportRequest) (*kdspb.ReportResponse, error) {
	zone, _, _, err := g.identify(ctx)
	if err != nil {
		return nil, ToStatus(err)
	}
	report, err := parseReport(in)
	if err == nil {
		err = checkReport(report)
	}
	if err != nil {
		return nil, ToStatus(fmt.Errorf("%w: the report: %w", ErrRequest, err))
	}
	report.Received = g.config.Now()
	if data := g.data(zone); data != nil {
		data.report.Store(report)
		data.pulse.Beat()
		g.config.Observer.Observe(Event{Kind: Reported, Time: report.Received, Zone: zone})
	}
	return &kdspb.ReportResponse{}, nil
}

// Limits of a peer's report. A newer peer may know more types.
const (
	maxReportTypes  = 256
	maxBehindReason = 1 << 10
	maxHeldCount    = 1 << 30
)

// checkReport checks a peer's report and truncates its texts for people.
func checkReport(r *tracker.Report) error {
	if len(r.Applied) > maxReportTypes || len(r.Held) > maxReportTypes {
		return fmt.Errorf("it names %d and %d types, want at most %d", len(r.Applied), len(r.Held), maxReportTypes)
	}
	for t := range r.Applied {
		if !isWord(string(t)) {
			return fmt.Errorf("applied: %q is not a type", truncate(string(t)))
		}
	}
	for t, n := range r.Held {
		if !isWord(string(t)) || n < 0 || n > maxHeldCount {
			return fmt.Errorf("held: %d removals of %q", n, truncate(string(t)))
		}
	}
	if len(r.Behind) > maxBehind || r.More < 0 || r.More > maxHeldCount {
		return fmt.Errorf("it names %d proxies and %d more, want at most %d", len(r.Behind), r.More, maxBehind)
	}
	for i := range r.Behind {
		p := &r.Behind[i]
		if !isWord(p.Mesh) || !isWord(p.Namespace) || !isWord(p.Name) {
			return fmt.Errorf("behind: %q in %q is not the name of a proxy", truncate(p.Name), truncate(p.Mesh))
		}
		if len(p.Reason) > maxBehindReason {
			p.Reason = strings.ToValidUTF8(p.Reason[:maxBehindReason], "")
		}
	}
	if r.Replaced != nil && (r.Replaced.Count < 0 || r.Replaced.Count > maxHeldCount || len(r.Replaced.Names) > 0) {
		return fmt.Errorf("replaced: %d resources with %d names", r.Replaced.Count, len(r.Replaced.Names))
	}
	if !validStore(r.NewStore) {
		return fmt.Errorf("newStore: an epoch is longer than %d bytes", lineage.MaxEpoch)
	}
	return nil
}

// LastReport returns a zone's last report on its proxies; nil if it has sent none, or cannot.
func (g *Global) LastReport(zone string) *tracker.Report {
	if data := g.data(zone); data != nil {
		return data.report.Load()
	}
	return nil
}

// Covers reports whether a zone's report is about proxies that have everything of a type that the zone wrote itself, as
// far as that has arrived here.
func (g *Global) Covers(zone string, report *tracker.Report, t resources.Type) bool {
	data := g.data(zone)
	if data == nil || report == nil || report.Own == 0 {
		return false
	}
	return report.Own >= data.ledger.Line(exchange.ZoneToGlobal, t, false).Newest()
}

// wakeReports is an Observer that notices the events that change a report.
type wakeReports chan struct{}

// Observe implements Observer.
func (w wakeReports) Observe(e Event) {
	if e.Kind != Received && e.Kind != Acknowledged && e.Kind != Rejected {
		return
	}
	w.wake()
}

func (w wakeReports) wake() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// report reports to the global on the proxies whenever something was applied, and while some are behind. It does not
// repeat a report that fails, but makes a new one: reports are news, not data.
func (z *Zone) report(ctx context.Context, s *session, conn *grpc.ClientConn) error {
	if z.config.Proxies == nil || !s.features.Has(exchange.FeatureReports) {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	look := longestLook
	timer := time.NewTimer(0)
	defer timer.Stop()
	for again := true; ; {
		var due <-chan time.Time
		if again {
			due = timer.C
		}
		select {
		case <-due:
		case <-z.news:
			look = shortestLook
			timer.Reset(reportDelay)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		behind, err := z.sendReport(ctx, s, conn)
		if err != nil {
			z.config.Log.Warn("cannot report the state of the proxies to the global", "zone", z.config.Zone, "error", err)
		}
		if again = behind > 0 || err != nil; again {
			timer.Reset(look)
			look = min(2*look, longestLook)
		}
	}
}

// sendReport returns the number of proxies that are behind.
func (z *Zone) sendReport(ctx context.Context, s *session, conn *grpc.ClientConn) (int, error) {
	applied := z.ledger.Applied() // read it first: the proxies have at least this
	own := z.config.Store.Snapshot().Revision()
	behind, streams := z.config.Proxies(z.reported)
	named := min(len(behind), maxBehind)
	report := &tracker.Report{
		Applied: applied, Own: own, Behind: behind[:named], More: len(behind) - named, Streams: streams,
		Held: z.ledger.HeldCounts(exchange.GlobalToZone), NewStore: z.met.status(), Replaced: z.met.replacement(),
	}
	if report.Replaced != nil {
		report.Replaced.Names = nil
	}
	message, err := reportMessage(report, s.features.Has(exchange.FeatureReportFields))
	if err != nil {
		return len(behind), err
	}
	ctx, cancel := z.heard.While(ctx, z.config.SendTimeout)
	defer cancel()
	_, err = kdspb.NewReportServiceClient(conn).Report(ctx, message)
	return len(behind), err
}
