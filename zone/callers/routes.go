package callers

import (
	"context"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// Config holds the sources of the answers.
type Config struct {
	// Store is the server's own. Status has the DataplaneInsights. Both are required.
	Store, Status store.Reader
	// Zone is a zone server's own zone; empty on the global.
	Zone string
	// SystemNamespace is the server's own; empty means resources.DefaultSystemNamespace.
	SystemNamespace string
	// Journal has the reports of the zone's proxies; nil on the global. Collecting means that they report there.
	Journal    *accesslog.Journal
	Collecting bool
	// Reported returns, on the global, what the proxies of a zone reported, or why that is unknown. It is nil in a zone.
	Reported func(ctx context.Context, zone, mesh string) (reported *accesslog.Record, unknown string)
	// Assignments returns, in a zone, the current assignments of its Dataplanes. Nil means those that apply when every
	// MeshIdentity is ready.
	Assignments func(mesh string) *identity.Assignments
	// Absent returns, on the global, why it does not know the state of a zone. Away reports whether a zone has no
	// session with its global, and since when. Outdated reports whether a global cannot reach its store, and since
	// when. Each may be nil.
	Absent func(zone string) *api.Unknown
	Away   func() (since time.Time, away bool)
	// Waiting reports whether changes of the global wait for a zone's store, which cannot write, and since when.
	Waiting  func() (since time.Time, waits bool)
	Outdated func() (since time.Time, is bool)
	// Comparing says what a zone's connected global has not sent yet, and since when; empty if nothing. It may be nil.
	Comparing func(resources.Type) (since time.Time, why string)
	// Lacking returns, on the global, why the proxies of a connected zone may use other permissions than the ones here.
	Lacking func(zone string) []api.Unknown
	// Behind reports whether the connected proxy of a Dataplane has not accepted everything that it was sent, and why.
	// It may be nil.
	Behind func(dataplane resources.Key, zone string) (reason string, is bool)
}

func (c *Config) assignments(snap store.Snapshot, mesh, zone string) *identity.Assignments {
	if c.Assignments != nil && zone == c.Zone {
		return c.Assignments(mesh)
	}
	return identity.AssignmentsIn(snap, mesh, zone, nil)
}

// Register adds GET /meshes/{mesh}/_access, and completes the answers to dry runs with the verdicts that would change.
func Register(server *api.Server, c Config) {
	if c.SystemNamespace == "" {
		c.SystemNamespace = resources.DefaultSystemNamespace
	}
	h := &handler{config: &c, meshes: &meshes{config: &c}, server: server}
	server.Handle(api.RouteAccess, h.serve)
	server.AddPreview(h.preview)
}

type handler struct {
	config *Config
	meshes *meshes
	// server authorizes the caller.
	server *api.Server
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuestion(r)
	if err != nil {
		return err
	}
	m := h.meshes.of(q.mesh)
	if m == nil {
		return h.server.MissingMesh(r, h.config.Store.Snapshot(), q.mesh)
	}
	about := access.Action{Verb: resources.VerbRead, Type: resources.AccessServer, Scope: access.ScopeServer}
	may := h.server.Authorize(r, about) == nil
	did, reader := h.pairs(q.known, may), h.server.Reader(r)
	if h.config.Reported != nil && q.reported && q.zone != "" {
		did = h.reported(r.Context(), q, reader, may)
	}
	return api.WriteLongJSON(w, h.answer(m, q, reader, did))
}

// seen holds proxies' reports, or why they are unknown.
type seen struct {
	accesslog.Pairs

	unknown string
}

// pairs returns the reports that the caller may read: as for other reports, only callers that may read the server.
func (h *handler) pairs(known rbac.Known, may bool) seen {
	switch {
	case h.config.Journal == nil:
		return seen{unknown: "each zone keeps what its own proxies report: name the zone, and ask for what it reported"}
	case !h.config.Collecting:
		return seen{unknown: notCollecting}
	case !may:
		return seen{unknown: mayNotRead}
	}
	return seen{Pairs: h.config.Journal.Pairs(known.Method, known.Path)}
}

const (
	notCollecting = "the zone runs without --access-log als"
	mayNotRead    = "you may not read what the proxies of this server reported"
)

// reported is pairs on a global, which asks the zone.
func (h *handler) reported(ctx context.Context, q *question, reader *api.Reader, may bool) seen {
	switch {
	case !may:
		return seen{unknown: mayNotRead}
	case !reader.Zone(q.zone):
		return seen{unknown: "there is no zone " + q.zone + ", or you may not read it"}
	}
	record, unknown := h.config.Reported(ctx, q.zone, q.mesh)
	switch {
	case unknown != "":
		return seen{unknown: unknown}
	case !record.Collecting:
		return seen{unknown: notCollecting}
	}
	return seen{Pairs: record.Pairs(q.known.Method, q.known.Path)}
}

func (h *handler) answer(m *mesh, q *question, reader *api.Reader, did seen) *Answer {
	rows := m.rowsFor(q, reader, h.config.Zone)
	columns := m.columnsFor(q, reader, rows.rows, did.Times)
	from, to := q.callers.of(len(columns))
	out := &Answer{Revision: m.revision, Services: []Service{}, Total: len(rows.rows), Callers: columns[from:to],
		TotalCallers: len(columns), Elsewhere: rows.elsewhere, LeftOut: rows.leftOut,
		Seen: Seen{Unknown: did.unknown, Since: did.Since.UTC(), Dropped: did.Dropped}}
	x := h.matrixOf(m, q.known, reader, out.Callers, did)
	x.kept = h.meshes.kept.begin(q.known, out.Callers)
	defer h.meshes.kept.end(x.kept)
	status := h.config.Status.Snapshot()
	from, to = q.services.of(len(rows.rows))
	for i := from; i < to; i++ {
		r := &rows.rows[i]
		s := r.service
		s.Cells, s.Proxies = x.cells(r), len(r.inbounds)
		s.Connected, s.Behind = h.connected(r, status)
		out.Services = append(out.Services, s)
	}
	out.Policies = append([]string{}, x.names...)
	out.Unknown = append(h.unsure(out.Services), h.patched(q.mesh, reader, rows.rows[from:to])...)
	return out
}

func (h *handler) matrixOf(m *mesh, known rbac.Known, reader *api.Reader, callers []Caller, did seen) *matrix {
	x := &matrix{mesh: m, numbers: &h.meshes.numbers, known: known, hidden: m.hidden(reader), pairs: did.Times, callers: callers,
		forecasters: map[string]*rbac.Forecaster{}, deciders: map[string]int{}, parts: map[rbac.Parts][]string{}}
	for i := range callers {
		x.clients = append(x.clients, rbac.NewClient(callers[i].SpiffeID))
	}
	return x
}

// connected counts the connected proxies of a service, if this server knows, and those of them that are behind.
func (h *handler) connected(r *row, status store.Snapshot) (connected *int, behind int) {
	if h.config.Absent != nil && h.config.Absent(r.service.Zone) != nil {
		return nil, 0
	}
	n := 0
	for _, in := range r.inbounds {
		key := in.dataplane.Key
		key.Type = resources.TypeDataplaneInsight
		if open, _ := matching.Connected(status.Get(key)); open == nil {
			continue
		}
		n++
		if h.config.Behind != nil {
			if _, is := h.config.Behind(in.dataplane.Key, r.service.Zone); is {
				behind++
			}
		}
	}
	return &n, behind
}

// hidden returns the KRIs of the policies that a reader may not read.
func (m *mesh) hidden(reader *api.Reader) map[string]bool {
	if reader == nil {
		return nil
	}
	out := map[string]bool{}
	for _, p := range m.policies {
		if !reader.May(p.Resource) {
			out[p.KRI.String()] = true
		}
	}
	return out
}
