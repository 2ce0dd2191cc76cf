package kds

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

const methodReached = "Reached"

var (
	// ErrNotConnected reports that there is no session with the global.
	ErrNotConnected = errors.New("not connected to the global")
	// ErrCannotTell reports that the global does not support the method: it is an older version or another
	// implementation.
	ErrCannotTell = errors.New("the global cannot tell how far resources of zones have come")
)

// reachedRequest is a zone's question about its own resource, under the names that it has there. Content is a digest of
// its spec: only equal content on the global counts.
type reachedRequest struct {
	Type      resources.Type `json:"type"`
	Mesh      string         `json:"mesh"`
	Namespace string         `json:"namespace,omitempty"`
	Name      string         `json:"name"`
	Content   string         `json:"content"`
}

func contentOf(r *resources.Resource) string {
	sum := sha256.Sum256(r.Spec.JSON())
	return hex.EncodeToString(sum[:])
}

//nolint:revive // the order of arguments is gRPC's
func handleReached(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	ctx, err := judgedBy(srv, ctx)
	if err != nil {
		return nil, err
	}
	in := new(wrapperspb.BytesValue)
	if err := decode(in); err != nil {
		return nil, err
	}
	return srv.(reportServer).Reached(ctx, in)
}

// maxQuestion bounds a reachedRequest, in bytes.
const maxQuestion = 32 << 10

// Reached implements reportServer. It answers a zone only about resources that the zone wrote.
func (g *Global) Reached(ctx context.Context, in *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
	zone, _, _, err := g.identify(ctx)
	if err != nil {
		return nil, ToStatus(err)
	}
	var ask reachedRequest
	if len(in.GetValue()) > maxQuestion || json.Unmarshal(in.GetValue(), &ask) != nil {
		return nil, ToStatus(fmt.Errorf("%w: a question about a resource: not the JSON that was expected", ErrRequest))
	}
	if _, known := resources.LookupStored(ask.Type); !known || !isWord(ask.Mesh) || !isWord(ask.Namespace) ||
		!isWord(ask.Name) {
		return nil, ToStatus(fmt.Errorf("%w: a question about a resource: there is no %q called %q", ErrRequest,
			truncate(string(ask.Type)), truncate(ask.Name)))
	}
	raw, err := json.Marshal(g.reached(zone, &ask))
	if err != nil {
		return nil, err
	}
	return wrapperspb.Bytes(raw), nil
}

func (g *Global) reached(zone string, ask *reachedRequest) *tracker.Reached {
	out := &tracker.Reached{}
	query := store.Query{Type: ask.Type, Mesh: ask.Mesh, Labels: map[string]string{resources.LabelZone: zone}}
	for r := range g.config.Store.Snapshot().List(query) {
		if r.DisplayName() != ask.Name || r.HomeNamespace() != ask.Namespace || contentOf(r) != ask.Content {
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
	raw, err := json.Marshal(reachedRequest{Type: r.Type, Mesh: r.Mesh, Namespace: r.HomeNamespace(),
		Name: r.DisplayName(), Content: contentOf(r)})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(z.outgoing(ctx), z.config.SendTimeout)
	defer cancel()
	answer := new(wrapperspb.BytesValue)
	err = conn.Invoke(ctx, fullMethod(reportServiceName, methodReached), wrapperspb.Bytes(raw), answer)
	switch {
	case status.Code(err) == codes.Unimplemented:
		return nil, ErrCannotTell
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	out := &tracker.Reached{}
	return out, json.Unmarshal(answer.GetValue(), out)
}
