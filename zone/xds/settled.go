package xds

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// SyncStatus reports whether a connected proxy has the configuration that it should have.
type SyncStatus struct {
	// Dataplane is the key of the proxy's Dataplane.
	Dataplane resources.Key
	// Behind means that it has not acknowledged everything. Reason is set if waiting does not resolve it.
	Behind bool
	Reason string
	// Problems holds all problems of the proxy, including those that affect only one policy.
	Problems matching.Problems
	// Unreported means that its insight does not show these problems yet. It does from revision ReportedAt of the status
	// store.
	Unreported bool
	ReportedAt uint64
}

// SyncStatuses returns the sync status of each connected proxy, ordered by key. While there are commits to apply, all
// proxies are behind.
func (x *Proxies) SyncStatuses() []SyncStatus {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.syncStatusesLocked()
}

// Behind reports whether a connected proxy of a Dataplane has not accepted everything that it was sent, with the
// reason. The reason is empty if waiting may resolve it.
func (x *Proxies) Behind(dataplane resources.Key) (reason string, is bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	latest := x.cfg.Store.Snapshot().Revision()
	for _, proxyless := range []bool{false, true} {
		p := x.proxies[proxyID{dataplane, proxyless}]
		if p == nil {
			continue
		}
		outstanding, why := p.record.outstanding(p.filtered(), x.cfg.Now())
		is = is || outstanding || why != "" || x.since < latest
		reason = cmp.Or(reason, why)
	}
	return reason, is
}

// Settled reports whether the proxy of a Dataplane is connected, asks for all that it should have, and has accepted all that
// it was sent.
func (x *Proxies) Settled(dataplane resources.Key) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.proxies[proxyID{dataplane, false}]
	if p == nil {
		return false
	}
	outstanding, why := p.record.outstanding(p.filtered(), x.cfg.Now())
	return !outstanding && why == ""
}

func (x *Proxies) syncStatusesLocked() []SyncStatus {
	latest := x.cfg.Store.Snapshot().Revision()
	out := make([]SyncStatus, 0, len(x.proxies))
	for id, p := range x.proxies {
		one := SyncStatus{Dataplane: id.Key, Behind: x.since < latest}
		if outstanding, reason := p.record.outstanding(p.filtered(), x.cfg.Now()); outstanding || reason != "" {
			one.Behind, one.Reason = true, reason
		}
		var reported bool
		one.Problems, one.ReportedAt, reported = p.record.reported()
		one.Unreported = !reported && x.cfg.Status != nil
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b SyncStatus) int {
		return cmp.Or(cmp.Compare(a.Dataplane.Mesh, b.Dataplane.Mesh),
			cmp.Compare(a.Dataplane.Namespace, b.Dataplane.Namespace), cmp.Compare(a.Dataplane.Name, b.Dataplane.Name))
	})
	return out
}

// Streams returns the number of streams that proxies have opened since the start. A DataplaneInsight has each stream's
// number as its generation.
func (x *Proxies) Streams() uint32 { return x.streams.Load() }

// IssuedBy counts the connected proxies of a mesh by the authority that signed their identities.
func (x *Proxies) IssuedBy(mesh string) map[string]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := map[string]int{}
	for id, p := range x.proxies {
		p.mu.Lock()
		if id.Mesh == mesh && p.svid != nil {
			out[p.svid.Authority]++
		}
		p.mu.Unlock()
	}
	return out
}

// filtered reports whether the proxy asks for filters by ECDS.
func (p *proxy) filtered() bool {
	state := p.state.Load()
	return state != nil && len(state.sets[kindExtension]) > 0
}

// answerWithin is how long a proxy may take to answer, or to ask, before that is a lasting problem.
const answerWithin = 30 * time.Second

// outstanding reports whether a response is unanswered, or the proxy asks for nothing that covers what it should have.
// The text is the proxy's lasting problem. filtered is the result of proxy.filtered.
func (r *record) outstanding(filtered bool, now time.Time) (bool, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var reasons []string
	for source, text := range r.problemsLocked() {
		if source != problemIdentity && source != problemUnsupported && source != problemPolicies &&
			source != problemGateway && source != problemOutbounds {
			reasons = append(reasons, text)
		}
	}
	slices.Sort(reasons)
	unanswered, asks := false, false
	var connected time.Time // the oldest open stream
	for _, s := range r.subscriptions {
		if !s.ended.IsZero() {
			continue
		}
		if connected.IsZero() {
			connected = s.connected
		}
		unanswered = unanswered || s.unanswered()
		asks = asks || s.asksForAll(filtered)
		if what, since := s.oldest(); !since.IsZero() && now.Sub(since) >= answerWithin {
			reasons = append(reasons, "it does not answer about "+nouns[what]+" since "+since.UTC().Format(time.RFC3339))
		}
	}
	if !asks && !connected.IsZero() && now.Sub(connected) >= answerWithin {
		reasons = append(reasons, "it is connected since "+connected.UTC().Format(time.RFC3339)+
			" and has not asked for all that it should have")
	}
	return unanswered || !asks, strings.Join(reasons, "; ")
}

// unanswered reports whether the stream has not answered everything, or there is something to send on it. Its record's
// mu is held.
func (s *subscription) unanswered() bool {
	for k, n := range s.stats {
		if n.sent > n.acknowledged+n.rejected || s.withheld[k] {
			return true
		}
	}
	return false
}

// oldest returns the kind of the oldest response without an answer, and when it was sent; zero if there is none. Its
// record's mu is held.
func (s *subscription) oldest() (what kind, since time.Time) {
	for k := range s.awaited {
		if len(s.awaited[k]) > 0 && (since.IsZero() || s.awaited[k][0].at.Before(since)) {
			what, since = kind(k), s.awaited[k][0].at
		}
	}
	return what, since
}

// asksForAll reports whether the stream asks for listeners and for their filters and routes. A stream that was just
// opened does not yet, and gets no changes, whatever its proxy had before. Its record's mu is held.
func (s *subscription) asksForAll(filtered bool) bool {
	return s.asked[kindListener] && (!filtered || s.inlined || s.asked[kindExtension])
}

// The states of a proxy, in metrics.
const (
	stateSettled = "settled" // it has acknowledged everything
	stateBehind  = "behind"  // not yet
	stateFailing = "failing" // it refused a response, does not answer, or its config cannot be built
	stateOffline = "offline" // a Dataplane, or a ZoneIngress of this zone, whose proxy is not connected
)

var descByState = prometheus.NewDesc("causeway_xds_proxies_by_state",
	"Proxies, those of the zone's ingresses among them, that are settled, behind, failing (they refuse something, do not answer for half a minute, or their config cannot be built) or offline; no series while changes wait to be applied.",
	[]string{"state"}, nil)

// While changes are applied, a scrape waits for at most scrapePatience, and checks every scrapePause.
const (
	scrapePatience = 250 * time.Millisecond
	scrapePause    = time.Millisecond
)

// byState counts the proxies by state when metrics are scraped.
type byState struct{ proxies *Proxies }

// Describe implements prometheus.Collector.
func (byState) Describe(out chan<- *prometheus.Desc) { out <- descByState }

// Collect implements prometheus.Collector.
func (c byState) Collect(out chan<- prometheus.Metric) {
	for deadline := time.Now().Add(scrapePatience); !c.proxies.mu.TryLock(); <-time.After(scrapePause) {
		if time.Now().After(deadline) {
			return // applying changes takes long: the states are unknown
		}
	}
	statuses := c.proxies.syncStatusesLocked()
	c.proxies.mu.Unlock()
	counts := map[string]int{stateSettled: 0, stateBehind: 0, stateFailing: 0, stateOffline: 0}
	connected := map[resources.Key]bool{}
	for _, one := range statuses {
		connected[one.Dataplane] = true
		switch {
		case one.Reason != "":
			counts[stateFailing]++
		case one.Behind:
			counts[stateBehind]++
		default:
			counts[stateSettled]++
		}
	}
	snapshot := c.proxies.cfg.Store.Snapshot()
	for _, t := range []resources.Type{resources.TypeDataplane, resources.TypeZoneIngress} {
		for one := range snapshot.List(store.Query{Type: t}) {
			if of := one.Zone(); (of == "" || of == c.proxies.cfg.Home.Zone) && !connected[one.Key] {
				counts[stateOffline]++
			}
		}
	}
	for state, n := range counts {
		out <- prometheus.MustNewConstMetric(descByState, prometheus.GaugeValue, float64(n), state)
	}
}
