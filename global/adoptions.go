package global

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
)

const (
	// candidateMemory is how long a rejected server is remembered. Zones retry every 30 s or sooner.
	candidateMemory = 10 * time.Minute
	// Limits of what is remembered. All of it comes from certificates of our own CA.
	maxCandidateZones   = 10_000
	maxCandidatesOfZone = 8
)

// errUnrecorded reports a certificate of our zone CA that the store does not list. These are the certificates issued
// after the backup that the store was restored from, or all of them if the store was recreated. A revoked one differs
// only in its time.
var errUnrecorded = errors.New("the certificate is of this global's zone CA, but its store does not know of it: if the store was restored or recreated, causewayctl zone adopt lets it in; otherwise make a join string")

// candidate is a Candidate with the certificate that it presented.
type candidate struct {
	enrolment.Candidate
	held enrolment.Certificate
}

// lacks reports whether a valid certificate is newer than everything in the zone's record. m may be nil.
func lacks(m *enrolment.Record, held enrolment.Certificate) bool {
	if m == nil {
		return true
	}
	if m.Certificate(held.Serial) != nil || !m.Withdrawn().IsZero() && !held.Issued.After(m.Withdrawn()) {
		return false
	}
	return !slices.ContainsFunc(m.Certificates, func(c enrolment.IssuedCertificate) bool {
		return m.ID != held.ID && !held.Issued.After(c.Issued)
	})
}

// adoptions remembers candidates, and lets an operator adopt one. Safe for concurrent use.
type adoptions struct {
	now     func() time.Time
	started time.Time

	mu    sync.Mutex
	zones map[string][]candidate // guarded by mu; by zone, at most one for each serial
}

func newAdoptions(now func() time.Time) *adoptions {
	return &adoptions{now: now, started: now(), zones: map[string][]candidate{}}
}

// note remembers a rejected server.
func (a *adoptions) note(held enrolment.Certificate, why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.tidyLocked(held.Zone)
	of = slices.DeleteFunc(of, func(c candidate) bool { return c.Serial == held.Serial })
	if len(of) >= maxCandidatesOfZone || len(of) == 0 && len(a.zones) >= maxCandidateZones {
		return
	}
	a.zones[held.Zone] = append(of, candidate{held: held, Candidate: enrolment.Candidate{
		Zone: held.Zone, ID: held.ID, Serial: held.Serial, Issued: held.Issued.UTC(), Expires: held.Expires.UTC(),
		Seen: a.now().UTC(), Reason: why.Error(),
	}})
}

func (a *adoptions) tidyLocked(zone string) []candidate {
	of := slices.DeleteFunc(a.zones[zone], func(c candidate) bool { return a.now().Sub(c.Seen) > candidateMemory })
	if len(of) == 0 {
		delete(a.zones, zone)
	}
	return of
}

// since returns the start of the period for which candidates are remembered.
func (a *adoptions) since() time.Time {
	if since := a.now().Add(-candidateMemory); since.After(a.started) {
		return since.UTC()
	}
	return a.started.UTC()
}

// list returns the candidates, of one zone or, if zone is empty, of all, ordered by zone and serial.
func (a *adoptions) list(zone string) []candidate {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := []candidate{}
	for name := range a.zones {
		if zone == "" || zone == name {
			out = append(out, a.tidyLocked(name)...)
		}
	}
	slices.SortFunc(out, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Serial, b.Serial))
	})
	return out
}

func (a *adoptions) forget(zone string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.zones, zone)
}

// othersThatServe counts the replicas that can be asked too. One that waits for a Lease serves nobody, and rejected nobody.
func othersThatServe(all []api.Replica) (n int) {
	for i := range all {
		if !all[i].Asked && all[i].Lease == "" {
			n++
		}
	}
	return n
}

func (s *zoneAdmin) candidates(w http.ResponseWriter, r *http.Request) error {
	reader, all := s.routes.Reader(r), s.adoptions.list("")
	out := enrolment.Candidates{Items: []enrolment.Candidate{}, Since: s.adoptions.since(),
		Others: othersThatServe(s.zones.replicas.list().Items)}
	for _, c := range all {
		if !reader.Zone(c.Zone) {
			out.LeftOut++
			continue
		}
		out.Items = append(out.Items, c.Candidate)
	}
	return api.WriteJSON(w, http.StatusOK, out)
}

// serveAdopt answers POST /zones/{name}/_adopt.
func (s *zoneAdmin) serveAdopt(w http.ResponseWriter, r *http.Request) error {
	zone := r.PathValue("name")
	if err := kds.CheckZoneName(zone); err != nil {
		return api.NewError(http.StatusBadRequest, "Bad Request", err.Error())
	}
	var order enrolment.AdoptOrder
	if err := readBody(r, &order); err != nil {
		return err
	}
	chosen, err := s.choose(zone, order.ID)
	if err != nil {
		return err
	}
	if err := s.adopt(r.Context(), chosen, order.ID != ""); err != nil {
		return err
	}
	s.adoptions.forget(zone)
	return api.WriteJSON(w, http.StatusOK, chosen.Candidate)
}

// choose returns the newest certificate of the given ID, or of the only ID.
func (s *zoneAdmin) choose(zone, id string) (candidate, error) {
	of := s.adoptions.list(zone)
	var ids []string
	for _, c := range of {
		if !slices.Contains(ids, c.ID) {
			ids = append(ids, c.ID)
		}
	}
	if id == "" && len(ids) > 1 {
		return candidate{}, api.NewError(http.StatusConflict, "Conflict",
			fmt.Sprintf("several servers ask to be zone %s: say which one with id: %s", zone, strings.Join(ids, ", ")))
	}
	of = slices.DeleteFunc(of, func(c candidate) bool { return id != "" && c.ID != id })
	if len(of) == 0 {
		return candidate{}, api.NewError(http.StatusConflict, "Conflict",
			fmt.Sprintf("no server with a certificate of this global's zone CA has asked to be zone %s in the last %s: wait until it tries, or make a join string with rejoin", zone, candidateMemory))
	}
	return slices.MaxFunc(of, func(a, b candidate) int { return a.Issued.Compare(b.Issued) }), nil
}

// adopt admits a server by its certificate and registers its zone. Certificates from before the last revocation of the
// zone's credentials stay invalid. A server that replaces another must be named. The zone is registered first: if the
// global stops in between, the server is still a candidate and can be adopted.
func (s *zoneAdmin) adopt(ctx context.Context, c candidate, named bool) error {
	before, _, err := s.registry.Get(ctx, c.Zone)
	if err == nil {
		err = s.adoptable(before.Clone(c.Zone), c, named)
	}
	if err == nil {
		err = s.sync.EnsureZone(ctx, c.Zone)
	}
	if err != nil {
		return err
	}
	return s.registry.Update(ctx, c.Zone, func(m *enrolment.Record) error {
		if err := s.adoptable(m, c, named); err != nil {
			return err
		}
		if m.ID != c.ID {
			m.Certificates = nil
		}
		m.ID, m.DeletedAt = c.ID, time.Time{}
		m.Certificates = append(m.Certificates, enrolment.IssuedCertificate{
			Serial: c.Serial, Authority: c.held.Authority, Issued: c.Issued, Expires: c.Expires, Stored: true,
		})
		m.Tidy(s.registry.Forget())
		return nil
	})
}

// adoptable returns the reason why a server cannot be adopted.
func (s *zoneAdmin) adoptable(m *enrolment.Record, c candidate, named bool) error {
	refused := func(why string) error {
		return api.NewError(http.StatusConflict, "Conflict", fmt.Sprintf("zone %s: %s", c.Zone, why))
	}
	withdrawn := m.Withdrawn()
	switch {
	case m.Leaving(s.now()):
		return refused("it is being deleted")
	case !withdrawn.IsZero() && !c.Issued.After(withdrawn):
		return refused("its certificate is older than the revocation of " + withdrawn.Format(time.RFC3339) +
			": make a join string for it")
	case m.Joined() && m.ID != c.ID && !named:
		return refused("another server, " + m.ID +
			", has joined as this zone: name the one that shall take its place with id: " + c.ID)
	}
	return nil
}
