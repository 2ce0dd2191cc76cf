package kds

import (
	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
)

// State returns what this server knows of a zone, or nil if it knows nothing.
func (g *Global) State(zone string) *tracker.ZoneState {
	data := g.data(zone)
	if data == nil {
		return nil
	}
	out := &tracker.ZoneState{Instance: g.instance(zone), Refusals: data.refusals.List(), Over: data.over.List(),
		Report: data.report.Load()}
	if out.Report != nil {
		out.Reported = out.Report.Received
	}
	data.ledger.Fill(out)
	return out
}

// instance returns the instance name that the zone's server gave in its session here, or "" if there is none.
func (g *Global) instance(zone string) string {
	g.mu.Lock()
	s := g.sessions[zone]
	g.mu.Unlock()
	if s == nil {
		return ""
	}
	if p := s.peer.Load(); p != nil {
		return p.Instance
	}
	return ""
}

// Adopt applies another replica's status of a zone, unless the zone has a session here.
func (g *Global) Adopt(zone string, s *tracker.ZoneState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions[zone] != nil {
		return
	}
	data := g.zoneDataLocked(zone)
	data.ledger.Replace(s)
	data.refusals.Replace(s.Refusals)
	data.over.Replace(s.Over)
	if s.Report != nil {
		report := *s.Report
		report.Received = s.Reported
		data.report.Store(&report)
		data.pulse.Beat()
	}
}

// zoneDataLocked returns the data of a zone, and creates it if there is none. The caller holds g.mu.
func (g *Global) zoneDataLocked(zone string) *zoneData {
	data := g.zones[zone]
	if data == nil {
		pulse := &tracker.Pulse{}
		data = &zoneData{zone: zone, allowance: newAllowance(g.config.Limits.filled().Changes, g.config.Now()),
			ledger: tracker.NewLedger(g.config.Now, pulse), versions: g.config.Versions.of(zone),
			refusals: tracker.NewRefusals(g.config.Now, pulse), over: tracker.NewOver(g.config.Now, pulse), pulse: pulse}
		data.met = &peerStore{store: g.config.Store, ledger: data.ledger, log: g.config.Log.With("zone", zone),
			from: exchange.ZoneToGlobal, now: g.config.Now, pulse: pulse}
		if g.config.StoreOf != nil {
			data.met.kept = g.config.StoreOf(zone)
		}
		g.zones[zone] = data
		g.first.Beat()
	}
	return data
}
