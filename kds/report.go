package kds

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/messages"
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

// ReportService carries what Causeway's servers tell each other beside KDS. A report is JSON, so that it can grow.
const (
	reportServiceName = "causeway.v1.ReportService"
	methodReport      = "Report"
)

// reportServer implements ReportService.
type reportServer interface {
	Report(context.Context, *wrapperspb.BytesValue) (*emptypb.Empty, error)
	// Reached answers a zone's question about the rollout of its own resource.
	Reached(context.Context, *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error)
}

var reportServiceDesc = grpc.ServiceDesc{
	ServiceName: reportServiceName, HandlerType: (*reportServer)(nil),
	Methods: []grpc.MethodDesc{{MethodName: methodReport, Handler: handleReport},
		{MethodName: methodReached, Handler: handleReached}},
}

//nolint:revive // the order of arguments is gRPC's
func handleReport(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	ctx, err := judgedBy(srv, ctx)
	if err != nil {
		return nil, err
	}
	in := new(wrapperspb.BytesValue)
	if err := decode(in); err != nil {
		return nil, err
	}
	return srv.(reportServer).Report(ctx, in)
}

// Report implements reportServer.
func (g *Global) Report(ctx context.Context, in *wrapperspb.BytesValue) (*emptypb.Empty, error) {
	zone, _, _, err := g.identify(ctx)
	if err != nil {
		return nil, ToStatus(err)
	}
	report := &tracker.Report{Received: time.Now()}
	if err := messages.CheckJSON(in.GetValue(), maxReportValues, maxReportDepth); err != nil {
		return nil, ToStatus(fmt.Errorf("%w: the report: %w", ErrRequest, err))
	}
	if err := json.Unmarshal(in.GetValue(), report); err != nil {
		return nil, ToStatus(fmt.Errorf("%w: the report is not the JSON that was expected", ErrRequest))
	}
	if err := checkReport(report); err != nil {
		return nil, ToStatus(fmt.Errorf("%w: the report: %w", ErrRequest, err))
	}
	if data := g.data(zone); data != nil {
		data.report.Store(report)
		g.config.Observer.Observe(Event{Kind: Reported, Time: report.Received, Zone: zone})
	}
	return &emptypb.Empty{}, nil
}

// Limits of a peer's report. A newer peer may know more types.
const (
	maxReportTypes  = 256
	maxBehindReason = 1 << 10
	maxHeldCount    = 1 << 30
	// maxReportValues and maxReportDepth leave room for what a newer peer reports of each proxy.
	maxReportValues, maxReportDepth = 10 * maxBehind, 16
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
		return fmt.Errorf("newStore: an incarnation is longer than %d bytes", maxIncarnation)
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
		behind, err := z.sendReport(ctx, conn)
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
func (z *Zone) sendReport(ctx context.Context, conn *grpc.ClientConn) (int, error) {
	applied := z.ledger.Applied() // read it first: the proxies have at least this
	own := z.config.Store.Snapshot().Revision()
	behind, streams := z.config.Proxies()
	named := min(len(behind), maxBehind)
	report := tracker.Report{
		Applied: applied, Own: own, Behind: behind[:named], More: len(behind) - named, Streams: streams,
		Held: z.ledger.HeldCounts(exchange.GlobalToZone), NewStore: z.met.status(), Replaced: z.met.replacement(),
	}
	if report.Replaced != nil {
		report.Replaced.Names = nil
	}
	raw, err := json.Marshal(report)
	if err != nil {
		return len(behind), err
	}
	ctx, cancel := z.heard.While(ctx, z.config.SendTimeout)
	defer cancel()
	return len(behind), conn.Invoke(ctx, fullMethod(reportServiceName, methodReport), wrapperspb.Bytes(raw),
		new(emptypb.Empty))
}
