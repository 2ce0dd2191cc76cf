package global

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

const (
	// zoneDrainTimeout bounds how long a deleted zone may take to leave.
	zoneDrainTimeout = 20 * time.Second
	drainInterval    = 10 * time.Millisecond
)

// zoneAdmin serves an operator's decisions about an admitted zone.
type zoneAdmin struct {
	*admission
	store store.Store
	sync  *kds.Global
	zones *zones
	// routes authorises the caller.
	routes *api.Server
}

func (s *zoneAdmin) register(routes *api.Server, i *issuer) {
	s.routes = routes
	routes.Handle(api.RouteZoneJoin, i.serveJoin)
	routes.Handle(api.RouteZoneToken, i.serveToken)
	routes.Handle(api.RouteZoneTokenOfPeers, i.serveTokenOfPeers)
	routes.Handle(api.RouteZoneCredentials, s.credentials)
	routes.Handle(api.RouteZoneRevoke, s.revoke)
	routes.Handle(api.RouteAdoptions, s.candidates)
	routes.Handle(api.RouteZoneAdopt, s.serveAdopt)
	routes.Handle(api.RouteZoneEnable, s.enabler(true))
	routes.Handle(api.RouteZoneDisable, s.enabler(false))
	routes.Handle(api.RouteZoneDelete, s.delete)
}

// exists returns an error if the zone of a request does not exist.
func (s *zoneAdmin) exists(r *http.Request) (zone string, err error) {
	zone = r.PathValue("name")
	if key := kds.ZoneKey(zone); s.store.Snapshot().Get(key) == nil {
		return zone, api.NotFound(key.String())
	}
	return zone, nil
}

func (s *zoneAdmin) credentials(w http.ResponseWriter, r *http.Request) error {
	zone, err := s.exists(r)
	if err != nil {
		return err
	}
	m, _, err := s.registry.Get(r.Context(), zone)
	if err != nil {
		return err
	}
	m = m.Clone(zone)
	m.Tidy(s.now())
	out := enrolment.Credentials{Zone: zone, ID: m.ID, Certificates: []enrolment.IssuedCertificate{},
		Tokens: []enrolment.IssuedToken{}, Joins: []enrolment.Join{}}
	out.Certificates, out.Tokens = append(out.Certificates, m.Certificates...), append(out.Tokens, m.Tokens...)
	for _, j := range m.Joins {
		out.Joins = append(out.Joins, enrolment.Join{ID: j.ID, Expires: j.Expires, Used: j.UsedBy != ""})
	}
	if !m.RevokedAt.IsZero() {
		out.Revoked = &m.RevokedAt
	}
	return api.WriteJSON(w, http.StatusOK, out)
}

func (s *zoneAdmin) revoke(w http.ResponseWriter, r *http.Request) error {
	zone, err := s.exists(r)
	if err != nil {
		return err
	}
	out := enrolment.Revoked{Zone: zone}
	err = s.registry.Update(r.Context(), zone, func(m *enrolment.Record) error {
		out.Certificates, out.Tokens, out.Joins = m.Withdraw(s.now())
		return nil
	})
	if err != nil {
		return err
	}
	out.Session = s.sync.InSession(zone)
	s.sync.Recheck()
	return api.WriteJSON(w, http.StatusOK, out)
}

func (s *zoneAdmin) enabler(on bool) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		zone, err := s.exists(r)
		if err != nil {
			return err
		}
		changed, err := s.enable(r.Context(), zone, on)
		if err != nil {
			return err
		}
		return api.WriteJSON(w, http.StatusOK, enrolment.Enabled{Zone: zone, Enabled: on, Changed: changed})
	}
}

// enable writes the Zone resource. Sessions react to it.
func (s *zoneAdmin) enable(ctx context.Context, zone string, on bool) (changed bool, err error) {
	for {
		old := s.store.Snapshot().Get(kds.ZoneKey(zone))
		if old == nil {
			return false, api.NotFound(kds.ZoneKey(zone).String())
		}
		spec, err := resources.NewSpecOf(resources.TypeZone, &systempb.Zone{Enabled: wrapperspb.Bool(on)})
		if err != nil {
			return false, err
		}
		next := old.Clone()
		next.Spec = spec
		commit, err := s.store.Apply(ctx, store.Batch{Ops: []store.Op{{Put: next, If: store.IfRevision(old.Revision)}}})
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			return false, err
		}
		return len(commit.Changes) > 0, nil
	}
}

func (s *zoneAdmin) delete(w http.ResponseWriter, r *http.Request) error {
	zone, err := s.exists(r)
	if err != nil {
		return err
	}
	n, err := s.remove(r.Context(), zone)
	if err != nil {
		return err
	}
	return api.WriteJSON(w, http.StatusOK, enrolment.Deleted{Zone: zone, Withdrawn: n})
}

// remove lets the zone finish its writes and leave, buries its credentials, and then withdraws its resources: in this
// order, so that none comes back. Nothing remains of a zone without credentials where none are required.
func (s *zoneAdmin) remove(ctx context.Context, zone string) (withdrawn int, err error) {
	before, _, err := s.registry.Get(ctx, zone)
	if err != nil {
		return 0, err
	}
	unproven := before == nil && s.allowAnonymous && !s.allowTokens // a token that was issued elsewhere ends with what is buried
	err = s.registry.Update(ctx, zone, func(m *enrolment.Record) error {
		m.Draining, m.DrainingAt = true, s.now().UTC()
		return nil
	})
	if err != nil {
		return 0, err
	}
	if err := s.drain(ctx, zone); err != nil {
		return 0, errors.Join(err, s.stay(ctx, zone, before == nil))
	}
	if !unproven {
		if err := s.writeTombstone(ctx, zone); err != nil {
			return 0, err
		}
	}
	withdrawn = len(copiesOf(s.store.Snapshot(), zone))
	if _, err := s.store.Apply(ctx, store.Batch{Ops: []store.Op{{Delete: kds.ZoneKey(zone)}}}); err != nil {
		return 0, err
	}
	if err := s.zones.withdraw(ctx, zone); err != nil || !unproven {
		return withdrawn, err
	}
	return withdrawn, s.registry.Drop(ctx, zone)
}

// stay readmits a zone whose deletion failed. unknown means that it had no record before.
func (s *zoneAdmin) stay(ctx context.Context, zone string, unknown bool) error {
	if unknown {
		return s.registry.Drop(context.WithoutCancel(ctx), zone)
	}
	return s.registry.Update(context.WithoutCancel(ctx), zone, func(m *enrolment.Record) error {
		m.Draining, m.DrainingAt = false, time.Time{}
		return nil
	})
}

// drain ends the zone's session and waits for its end.
func (s *zoneAdmin) drain(ctx context.Context, zone string) error {
	ctx, cancel := context.WithTimeout(ctx, zoneDrainTimeout)
	defer cancel()
	tick := time.NewTicker(drainInterval)
	defer tick.Stop()
	for {
		s.sync.End(zone, fmt.Errorf("zone %s: %w", zone, kds.ErrZoneDeleted))
		if !s.sync.InSession(zone) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return api.NewError(http.StatusServiceUnavailable, "Service Unavailable",
				"the session of zone "+zone+" does not end; nothing was deleted, try again")
		}
	}
}
