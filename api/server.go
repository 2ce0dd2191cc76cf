package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Config configures a Server.
type Config struct {
	// Store holds the resources. Required.
	Store store.Store
	// Status holds resources that exist only while their subject is connected: ZoneInsights, DataplaneInsights. Nil
	// means none.
	Status store.Reader
	// Absent returns since when and why a zone's state is unknown, or nil while the zone has a session with this server
	// or, as far as is known, its replicas. Nil on a zone.
	Absent func(zone string) *Unknown
	// Refused returns how many resources a zone or this server refuses of the other now. Nil on a zone.
	Refused func(zone string) int
	// Outdated returns, as sentences, since when and why there may be newer resources than those that are shown. ofGlobal is
	// set if those include what a zone has of its global: resources of type of, or, if that is empty, of any. Nil means that
	// there never are.
	Outdated func(ofGlobal bool, of resources.Type) []string
	// Now is the wall clock. Default: time.Now.
	Now func() time.Time
	// Home identifies this server. It determines which resources users may write here and which labels they get.
	Home resources.Home
	// Log receives requests at level debug and failures at level error. Default: none.
	Log *slog.Logger
	// Registerer registers the metrics. If nil, they stay unregistered.
	Registerer prometheus.Registerer
	// Guard decides about access and keeps the audit log. If nil, every caller may do everything, for servers that only
	// this process reaches.
	Guard *access.Guard
	// Fields opens the secrets in specs for callers that may read them. Nil means that no values are sealed.
	Fields Fields
	// Tracer creates a span for each request, which continues in the writes of the request. Nil means none.
	Tracer trace.Tracer
	// Panics handles panics of handlers, and the response is a 500. If nil, a panic ends the process.
	Panics *panics.Guard
	// NamespaceLimits bound what namespaces may hold here.
	NamespaceLimits NamespaceLimits
	// Page is the web page; nil means none.
	Page Page
	// RevisionWait is the longest time that a read with `?revision=` waits. Default: 10 s.
	RevisionWait time.Duration
	// WatchWait is the longest time that a list with `?watch=` waits. Default: 20 s.
	WatchWait time.Duration
	// Version is in the response to `GET /`, with ClusterID and InstanceID if they are set.
	Version, ClusterID, InstanceID string
}

// Fields seals and opens the secrets in specs. secrets.Fields implements it.
type Fields interface {
	// Seal returns a resource as the store would hold it. old is the stored resource, or nil.
	Seal(r, old *resources.Resource) (*resources.Resource, error)
	// Open returns a resource with its secrets in plain text.
	Open(*resources.Resource) (*resources.Resource, error)
}

// HandlerFunc responds to a request, or returns an error that becomes the API's error object. If it returns an error,
// it must not have written anything.
type HandlerFunc func(http.ResponseWriter, *http.Request) error

// Server is the API as an http.Handler. All methods are safe for concurrent use, except Handle, HandleProven,
// SetObjects, AddConditions, AddStatus, AddPreview and AddWarnings.
type Server struct {
	config  Config
	mux     *http.ServeMux
	metrics *metrics
	// routes are the routes that Handle added.
	routes []Route
	// byPattern are the rows of routes, by pattern.
	byPattern map[string]*Row
	// proofs are the proofs that HandleProven added, by pattern.
	proofs map[string]access.Proof
	// large is a semaphore for reading large bodies.
	large chan struct{}
	// bodies tracks the bodies in progress.
	bodies bodies
	// inflight bounds the expensive requests of one user.
	inflight *inflightLimit
	// conditions, statuses, previews and warnings are the functions that AddConditions, AddStatus, AddPreview and
	// AddWarnings added.
	conditions []ConditionsFunc
	statuses   []StatusFunc
	previews   []PreviewFunc
	warnings   []WarnFunc
	// draining is closed, once, when the server starts to stop.
	draining chan struct{}
	drain    sync.Once
	watches  watches
	// liveFrom is where the revisions of the live status begin in a progress. It is a time, and differs between processes.
	liveFrom uint64
	// objects is nil if users write all resources here.
	objects Objects
}

// New returns a server with the endpoints that the global and zones share.
func New(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Status == nil {
		c.Status = store.NewMemory()
	}
	if c.Home.SystemNamespace == "" {
		c.Home.SystemNamespace = resources.DefaultSystemNamespace
	}
	if c.RevisionWait <= 0 {
		c.RevisionWait = revisionWait
	}
	if c.WatchWait <= 0 {
		c.WatchWait = watchWait
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.InstanceID == "" {
		c.InstanceID, _ = os.Hostname()
	}
	s := &Server{config: c, mux: http.NewServeMux(), byPattern: map[string]*Row{}, proofs: map[string]access.Proof{},
		metrics: newMetrics(c.Registerer), bodies: bodies{held: map[string]*held{}}, inflight: newInflightLimit(),
		large: make(chan struct{}, maxLargeBodies), draining: make(chan struct{}), watches: watches{users: map[string]int{}},
		liveFrom: uint64(time.Now().UnixMicro())} //nolint:gosec // after 1970
	s.addRoutes()
	s.addElsewhere()
	return s
}

// Handle adds an endpoint. The route's row defines the permission that it needs and the servers that have it. Requests
// that need more than reading are in the audit log before they are handled. Call Handle before the server serves. It
// panics if the route already has a handler, or has no row. The metrics include every route from the start, even before
// its first request.
func (s *Server) Handle(route Route, h HandlerFunc) {
	row := &rows[route]
	if row.Pattern == "" {
		panic(fmt.Sprintf("route %d has no row in the table", route))
	}
	s.routes = append(s.routes, route)
	s.byPattern[row.Pattern] = row
	s.metrics.seconds.WithLabelValues(row.Pattern)
	judged := func(w http.ResponseWriter, r *http.Request) error {
		if err := s.meets(r, row); err != nil {
			return err
		}
		if err := checkNames(r, row); err != nil {
			return err
		}
		if err := checkUnconditional(r, row); err != nil {
			return err
		}
		if err := s.intend(r, row); err != nil {
			return err
		}
		return s.limited(w, r, row, h)
	}
	s.mux.HandleFunc(row.Pattern, func(w http.ResponseWriter, r *http.Request) {
		var err error
		s.rejudging(r, row)
		if changes(r.Method) {
			err = s.audited(w, r, row, judged)
		} else if err = s.awaitRevision(r); err == nil {
			if err = again(r.Context()); err == nil {
				err = judged(w, r)
			}
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
}

// HandleProven is Handle for an endpoint that also accepts credentials of its own.
func (s *Server) HandleProven(route Route, h HandlerFunc, proof access.Proof) {
	s.proofs[rows[route].Pattern] = proof
	s.Handle(route, h)
}

// Routes returns the routes of the server, in the order in which they were added. The caller owns the slice.
func (s *Server) Routes() []Route { return slices.Clone(s.routes) }

func (s *Server) addRoutes() {
	s.Handle(RouteIndex, s.index)
	s.Handle(RouteResourceTypes, s.resourceTypes)
	s.Handle(RoutePolicyTypes, s.policyTypes)
	s.Handle(RouteWhoAmI, s.whoAmI)
	s.Handle(RouteCanI, s.canI)
	s.Handle(RouteIssueUserToken, s.issueUserToken)
	s.Handle(RouteRevokeUserToken, s.revokeUserToken)
	s.Handle(RouteRevokeUserCertificate, s.revokeUserCertificate)
	s.Handle(RouteAudit, s.auditLog)
	s.Handle(RouteGlobalInsight, s.globalInsight)
	s.Handle(RouteKRI, s.byKRI)
	s.Handle(RouteBatch, s.batch)

	s.Handle(RouteZoneOverviews, s.overviews(resources.TypeZone))
	s.Handle(RouteZoneOverview, s.overview(resources.TypeZone))
	s.Handle(RouteDataplaneOverviewsInMesh, s.overviews(resources.TypeDataplane))
	s.Handle(RouteDataplaneOverview, s.overview(resources.TypeDataplane))
	s.Handle(RouteDataplaneOverviews, s.overviews(resources.TypeDataplane))

	for _, of := range [][5]Route{
		{RouteList, RouteGet, RoutePut, RouteDelete, RouteReveal}, {RouteListInMesh, RouteGetInMesh, RoutePutInMesh,
			RouteDeleteInMesh, RouteRevealInMesh},
	} {
		s.Handle(of[0], s.list)
		s.Handle(of[1], s.get)
		s.Handle(of[2], s.put)
		s.Handle(of[3], s.delete)
		s.Handle(of[4], s.reveal)
	}
}
