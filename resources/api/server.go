package api

import (
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/causeway-mesh/causeway/access"
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
	// Tracer gets a span for each request, which goes on to what the request writes; nil for none.
	Tracer trace.Tracer
	// RevisionWait is how long a read with `?revision=` waits for it; 10 s by default.
	RevisionWait time.Duration
	// Version is shown by `GET /`, with ClusterID and InstanceID where they are set.
	Version, ClusterID, InstanceID string
}

// HandlerFunc answers a request, or returns an error that becomes the API's error object. One that returns an error must
// not have written anything.
type HandlerFunc func(http.ResponseWriter, *http.Request) error

// Server is the API as an http.Handler. All methods but Handle and AddConditions are safe for concurrent use.
type Server struct {
	config  Config
	mux     *http.ServeMux
	metrics *metrics
	// proofs are those of HandleProven, by pattern.
	proofs map[string]access.Proof
	// large has room for those large bodies that are being read.
	large chan struct{}
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
	s := &Server{config: c, mux: http.NewServeMux(), proofs: map[string]access.Proof{}, metrics: newMetrics(c.Registerer), large: make(chan struct{}, maxLargeBodies)}
	s.routes()
	return s
}

// Handle adds an endpoint of the owner: a pattern of http.ServeMux with its method, such as
// `GET /meshes/{mesh}/dataplanes/{name}/_rules`, and the permissions that it needs; without any, only who may do everything
// may do it. What needs more than reading is written to the audit log before it is answered. Call it before the server
// serves. It panics for a pattern that is taken. The metrics tell of every route from the start, and not only once it was asked.
func (s *Server) Handle(pattern string, h HandlerFunc, needs ...Need) {
	if len(needs) == 0 {
		needs = []Need{{Verb: resources.AccessAny, Type: resources.AccessAny}}
	}
	s.handle(pattern, func(w http.ResponseWriter, r *http.Request) error {
		for _, n := range needs {
			if err := s.meets(r, n); err != nil {
				return err
			}
		}
		return h(w, r)
	})
}

// HandleProven is Handle for an endpoint that also takes credentials of its own.
func (s *Server) HandleProven(pattern string, h HandlerFunc, proof access.Proof, needs ...Need) {
	s.proofs[pattern] = proof
	s.Handle(pattern, h, needs...)
}

// handle adds an endpoint that sees to permissions by itself.
func (s *Server) handle(pattern string, h HandlerFunc) {
	s.metrics.seconds.WithLabelValues(pattern)
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		var err error
		if changes(r.Method) {
			err = s.audited(w, r, h)
		} else if err = s.awaitRevision(r); err == nil {
			err = h(w, r)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
}

func (s *Server) routes() {
	s.Handle("GET /{$}", s.index, Anyone())
	s.Handle("GET /_resources", s.resourceTypes, Anyone())
	s.Handle("GET /policies", s.policyTypes, Anyone())
	s.Handle("GET /who-am-i", s.whoAmI, Anyone())
	s.Handle("POST /_can-i", s.canI, Anyone())
	s.handle("POST /tokens/user", s.issueUserToken)
	s.Handle("POST /tokens/user/{id}/_revoke", s.revokeUserToken, Need{Verb: resources.VerbRevoke, Type: resources.AccessUserToken, Name: "id"})
	s.Handle("POST /certificates/user/{serial}/_revoke", s.revokeUserCertificate,
		Need{Verb: resources.VerbRevoke, Type: resources.AccessUserCertificate, Name: "serial"})
	s.Handle("GET /_audit", s.auditLog, Need{Verb: resources.VerbRead, Type: resources.AccessAuditLog})
	s.Handle("GET /global-insight", s.globalInsight, Need{Verb: resources.VerbRead, Type: resources.AccessServer})
	s.handle("GET /_kri/{kri}", s.byKRI)
	s.handle("POST /_batch", s.batch)

	s.handle("GET /zones/_overview", s.overviews(resources.TypeZone))
	s.Handle("GET /zones/{name}/_overview", s.overview(resources.TypeZone), Need{Verb: resources.VerbRead, Type: string(resources.TypeZone)})
	s.handle("GET /meshes/{mesh}/dataplanes/_overview", s.overviews(resources.TypeDataplane))
	s.Handle("GET /meshes/{mesh}/dataplanes/{name}/_overview", s.overview(resources.TypeDataplane), Need{Verb: resources.VerbRead, Type: string(resources.TypeDataplane)})
	s.handle("GET /dataplanes/_overview", s.overviews(resources.TypeDataplane))

	for _, prefix := range []string{"", "/meshes/{mesh}"} {
		s.handle("GET "+prefix+"/{plural}", s.list)
		s.handle("GET "+prefix+"/{plural}/{name}", s.get)
		s.handle("PUT "+prefix+"/{plural}/{name}", s.put)
		s.handle("DELETE "+prefix+"/{plural}/{name}", s.delete)
	}
}
