package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Config is what a Server needs of its owner.
type Config struct {
	// Store holds the resources. Required.
	Store store.Store
	// Status holds what is only known while it lasts: ZoneInsights, DataplaneInsights. Nil means none.
	Status store.Reader
	// Home says which server this is; it decides what may be written here and which labels it gets.
	Home resources.Home
	// Log gets requests at level debug and failures at level error. Default: none.
	Log *slog.Logger
	// Registerer gets the metrics. Nil keeps them unregistered.
	Registerer prometheus.Registerer
	// Guard says who may do what, and keeps the audit log. Nil lets everybody do everything, for servers that only this process
	// reaches.
	Guard *access.Guard
	// Fields opens the secrets in specs for those who may read them; nil where nothing is sealed.
	Fields Fields
	// Tracer gets a span for each request, which goes on to what the request writes; nil for none.
	Tracer trace.Tracer
	// Panics is told of handlers that panicked; they are answered with 500. Nil ends the process.
	Panics *panics.Guard
	// RevisionWait is how long a read with `?revision=` waits for it; 10 s by default.
	RevisionWait time.Duration
	// Version is shown by `GET /`, with ClusterID and InstanceID where they are set.
	Version, ClusterID, InstanceID string
}

// Fields seals and opens the secrets in specs. It is implemented by secrets.Fields.
type Fields interface {
	// Seal returns a resource as the store would have it, old being what is there now, or nil.
	Seal(r, old *resources.Resource) (*resources.Resource, error)
	// Open returns a resource with its secrets in the clear.
	Open(*resources.Resource) (*resources.Resource, error)
}

// HandlerFunc answers a request, or returns an error that becomes the API's error object. One that returns an error must
// not have written anything.
type HandlerFunc func(http.ResponseWriter, *http.Request) error

// Server is the API as an http.Handler. All methods but Handle and AddConditions are safe for concurrent use.
type Server struct {
	config  Config
	mux     *http.ServeMux
	metrics *metrics
	// routes are those of Handle.
	routes []Route
	// proofs are those of HandleProven, by pattern.
	proofs map[string]access.Proof
	// large has room for those large bodies that are being read.
	large chan struct{}
	// bodies are what is being read of requests.
	bodies bodies
	// conditions are the hooks of AddConditions, previews those of AddPreview, warnings those of AddWarnings.
	conditions []ConditionsFunc
	previews   []PreviewFunc
	warnings   []WarnFunc
}

// New returns a server with the endpoints that both servers share.
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
	if c.InstanceID == "" {
		c.InstanceID, _ = os.Hostname()
	}
	s := &Server{config: c, mux: http.NewServeMux(), proofs: map[string]access.Proof{}, metrics: newMetrics(c.Registerer), bodies: bodies{held: map[string]*held{}}, large: make(chan struct{}, maxLargeBodies)}
	s.addRoutes()
	return s
}

// Handle adds an endpoint: the route's row says what it needs, and to which servers it belongs. What needs more than reading is
// written to the audit log before it is answered. Call it before the server serves. It panics for a route that is taken, and for
// one without a row. The metrics tell of every route from the start, and not only once it was asked.
func (s *Server) Handle(route Route, h HandlerFunc) {
	row := &rows[route]
	if row.Pattern == "" {
		panic(fmt.Sprintf("route %d has no row in the table", route))
	}
	s.routes = append(s.routes, route)
	s.metrics.seconds.WithLabelValues(row.Pattern)
	judged := func(w http.ResponseWriter, r *http.Request) error {
		if err := s.meets(r, row); err != nil {
			return err
		}
		if err := checkNames(r, row); err != nil {
			return err
		}
		if err := s.intend(r, row); err != nil {
			return err
		}
		return h(w, r)
	}
	s.mux.HandleFunc(row.Pattern, func(w http.ResponseWriter, r *http.Request) {
		var err error
		if changes(r.Method) {
			err = s.audited(w, r, judged)
		} else if err = s.awaitRevision(r); err == nil {
			err = judged(w, r)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
}

// HandleProven is Handle for an endpoint that also takes credentials of its own.
func (s *Server) HandleProven(route Route, h HandlerFunc, proof access.Proof) {
	s.proofs[rows[route].Pattern] = proof
	s.Handle(route, h)
}

// Routes are those that the server has, in the order in which they were added. The slice is the caller's.
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
		{RouteList, RouteGet, RoutePut, RouteDelete, RouteReveal}, {RouteListInMesh, RouteGetInMesh, RoutePutInMesh, RouteDeleteInMesh, RouteRevealInMesh},
	} {
		s.Handle(of[0], s.list)
		s.Handle(of[1], s.get)
		s.Handle(of[2], s.put)
		s.Handle(of[3], s.delete)
		s.Handle(of[4], s.reveal)
	}
}
