package kds

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/messages"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

var (
	// ErrNotConnected reports that there is no session with the global.
	ErrNotConnected = errors.New("not connected to the global")
	// ErrCannotTell reports that the global does not support the method: it is an older version or another
	// implementation.
	ErrCannotTell = errors.New("the global cannot tell how far resources of zones have come")
)

// contentOf returns a digest of a resource's spec.
func contentOf(r *resources.Resource) string {
	sum := sha256.Sum256(r.Spec.JSON())
	return hex.EncodeToString(sum[:])
}

// maxQuestion bounds a ReachedRequest, in bytes.
const maxQuestion = 32 << 10

// Reached implements kdspb.ReportServiceServer. It answers a zone only about resources that the zone wrote.
func (g *Global) Reached(ctx context.Context, ask *kdspb.ReachedRequest) (*kdspb.ReachedResponse, error) {
	zone, _, _, err := g.identify(ctx)
	if err != nil {
		return nil, ToStatus(err)
	}
	if messages.FormSize(ask) > maxQuestion {
		return nil, ToStatus(fmt.Errorf("%w: the question about a resource has more than %d bytes", ErrRequest, maxQuestion))
	}
	asJSON, err := messages.FromJSON(ask)
	if err != nil {
		return nil, ToStatus(fmt.Errorf("%w: the question about a resource is not JSON of its form", ErrRequest))
	}
	if _, known := resources.LookupStored(resources.Type(ask.GetType())); !known || !isWord(ask.GetMesh()) ||
		!isWord(ask.GetNamespace()) || !isWord(ask.GetName()) {
		return nil, ToStatus(fmt.Errorf("%w: a question about a resource: there is no %q called %q", ErrRequest,
			truncate(ask.GetType()), truncate(ask.GetName())))
	}
	out := reachedMessage(g.reached(zone, ask))
	if asJSON {
		err = messages.AddJSON(out)
	}
	return out, err
}

func (g *Global) reached(zone string, ask *kdspb.ReachedRequest) *tracker.Reached {
	out := &tracker.Reached{}
	query := store.Query{Type: resources.Type(ask.GetType()), Mesh: ask.GetMesh(),
		Labels: map[string]string{resources.LabelZone: zone}}
	for r := range g.config.Store.Snapshot().List(query) {
		if r.DisplayName() != ask.GetName() || r.HomeNamespace() != ask.GetNamespace() || contentOf(r) != ask.GetContent() {
			continue
		}
		zones := g.Rollout(r).Zones
		out.Stored, out.Pending, out.Offline = true, zones.Pending, zones.Offline
		out.Refused = slices.Concat(zones.Refused, zones.Unknown)
		for name := range zones.Acknowledgers() {
			if report := g.LastReport(name); report == nil && g.owesReport(name) || report != nil && report.WaitsFor(r) {
				out.Behind = append(out.Behind, name)
			}
		}
	}
	slices.Sort(out.Behind)
	return out
}

// owesReport reports whether a zone that has not reported on its proxies will: what they have is unknown. Other
// implementations never report.
func (g *Global) owesReport(zone string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.sessions[zone]
	return s != nil && s.features.Has(exchange.FeatureReports)
}

// Reached asks the global which other zones have applied a resource that this zone wrote. Errors wrap ErrNotConnected
// or ErrCannotTell.
func (z *Zone) Reached(ctx context.Context, r *resources.Resource) (*tracker.Reached, error) {
	conn := z.conn.Load()
	if conn == nil {
		return nil, ErrNotConnected
	}
	ask := &kdspb.ReachedRequest{Type: string(r.Type), Mesh: r.Mesh, Namespace: r.HomeNamespace(),
		Name: r.DisplayName(), Content: contentOf(r)}
	if err := messages.AddJSON(ask); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(z.outgoing(ctx), z.config.SendTimeout)
	defer cancel()
	answer, err := kdspb.NewReportServiceClient(conn).Reached(ctx, ask)
	switch {
	case status.Code(err) == codes.Unimplemented:
		return nil, ErrCannotTell
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	if _, err := messages.FromJSON(answer); err != nil {
		return nil, err
	}
	return parseReached(answer)
}
