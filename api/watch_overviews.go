package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

// progress is how far a caller knows the changes of both stores: the revision of what is stored, and that of the live status.
// The latter begins anew with each process, so it counts from Server.liveFrom: that of one process says nothing to another.
// Callers have it as the text STORED.LIVE.
type progress struct{ stored, live uint64 }

func (p progress) String() string { return fmt.Sprintf("%d.%d", p.stored, p.live) }

// readProgress reads a progress, or 0 for what is there now.
func readProgress(text string) (p progress, err error) {
	if text == "0" {
		return progress{}, nil
	}
	if _, err := fmt.Sscanf(text, "%d.%d", &p.stored, &p.live); err != nil || p.String() != text {
		return progress{}, BadField(watchQuery, "want the revision of an earlier answer, such as 12.345, or 0 for what is there now, got %q", text)
	}
	return p, nil
}

// connectedAfter reports whether somebody that a list of overviews shows has connected, taken its first configuration,
// disconnected, refused something or taken it after all, after a revision of the live status, and if not, up to which
// revision nobody has. Other counters are no change, and with problems nothing is but the problems of proxies. now is the
// revision that the status has.
func (s *Server) connectedAfter(r *http.Request, t resources.Type, seen, now uint64, problems bool) (changed bool, until uint64, err error) {
	reader, err := s.mayReadSome(r, t)
	if err != nil {
		return false, seen, err
	}
	if seen < s.liveFrom || seen-s.liveFrom > now { // the server has started again, or the caller asked another one before
		return true, seen, nil
	}
	commits, ok := s.config.Status.Changes(seen - s.liveFrom)
	if !ok {
		return true, seen, nil
	}
	for _, commit := range commits {
		for _, change := range commit.Changes {
			if decidesPresence(change.Key(), t, r.PathValue("mesh")) && turned(&change, reader, problems) {
				return true, seen, nil
			}
		}
		seen = s.liveFrom + commit.Revision
	}
	return false, seen, nil
}

// decidesPresence reports whether an insight decides if resources of a type count as connected: proxies of a zone that is
// away do not.
func decidesPresence(insight resources.Key, t resources.Type, mesh string) bool {
	if insight.Type == resources.TypeZoneInsight {
		return true
	}
	return insight.Type == insightOf(t) && (mesh == "" || insight.Mesh == mesh)
}

// turned reports whether a change of an insight that the reader may read begins or ends a connection, a refusal or a
// problem, or with problems only the last.
func turned(change *store.Change, reader *Reader, problems bool) bool {
	if change.New != nil && !reader.May(change.New) || change.Old != nil && !reader.May(change.Old) {
		return false
	}
	if problems {
		return problemsIn(change.New) != problemsIn(change.Old)
	}
	return connectionIn(change.New) != connectionIn(change.Old)
}

// connection identifies the last connection of a subject, whether it has begun or ended, and what was refused in it or has
// no effect.
type connection struct {
	id              string
	settling, ended bool
	refused         string
}

// settlingTime is how long a connection may be shown while its first configuration is on its way. Until it is taken, a list
// that was read meanwhile says that the subject is behind.
const settlingTime = time.Minute

// settles reports whether a connection has begun, and is behind.
func settles(began, updated *timestamppb.Timestamp, sent, answered uint64) bool {
	age := updated.AsTime().Sub(began.AsTime())
	return sent > answered && 0 <= age && age < settlingTime
}

func connectionIn(insight *resources.Resource) connection {
	if insight == nil {
		return connection{}
	}
	if zone, err := resources.SpecAs[systempb.ZoneInsight](insight); err == nil && insight.Type == resources.TypeZoneInsight {
		last := lastConnection(zone.GetSubscriptions(), (*systempb.KDSSubscriptionStatus).GetTotal)
		last.refused = insight.Labels[resources.LabelRefused]
		return last
	}
	if proxy, err := resources.SpecAs[meshpb.DataplaneInsight](insight); err == nil && insight.Type == resources.TypeDataplaneInsight {
		last := lastConnection(proxy.GetSubscriptions(), (*meshpb.DiscoverySubscriptionStatus).GetTotal)
		last.refused = problemsText(problemsOf(proxy))
		return last
	}
	return connection{}
}

// problemsText changes when a problem of a proxy begins, ends, or is another one.
func problemsText(problems map[string]string) string {
	var out strings.Builder
	for _, source := range slices.Sorted(maps.Keys(problems)) {
		fmt.Fprintf(&out, "%s: %s\n", source, problems[source])
	}
	return out.String()
}

// subscription is what the sessions of zones and proxies have in common.
type subscription[Status any] interface {
	GetId() string
	GetConnectTime() *timestamppb.Timestamp
	GetDisconnectTime() *timestamppb.Timestamp
	GetStatus() Status
}

// responses is what both count of all types together.
type responses interface {
	GetResponsesSent() uint64
	GetResponsesAcknowledged() uint64
	GetResponsesRejected() uint64
}

// lastConnection reads the last of the sessions; total returns the counters of all its types.
func lastConnection[Status interface{ GetLastUpdateTime() *timestamppb.Timestamp }, Counters responses, S subscription[Status]](
	all []S, total func(Status) Counters) connection {
	if len(all) == 0 {
		return connection{}
	}
	last := all[len(all)-1]
	counters := total(last.GetStatus())
	return connection{id: last.GetId(), ended: last.GetDisconnectTime() != nil,
		settling: settles(last.GetConnectTime(), last.GetStatus().GetLastUpdateTime(), counters.GetResponsesSent(),
			counters.GetResponsesAcknowledged()+counters.GetResponsesRejected())}
}
