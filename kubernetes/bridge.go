package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/kubernetes/leader"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/server"
)

// Settings are the operator's settings.
type Settings struct {
	// Kubeconfig is a kubeconfig file. If it is empty, the server runs in a pod, and uses its service account.
	Kubeconfig string
	// WebhookAddress is where the webhook listens, host:port. If it is empty, there is no webhook, and invalid objects
	// are noticed only after they are stored.
	WebhookAddress string
	// WebhookConfiguration is the name of both webhook configurations, the mutating and the validating one.
	WebhookConfiguration string
	// AuthorityConfigMap is the name of a ConfigMap in the system namespace in which the server keeps the CA of its xDS
	// server, for proxies that start there; empty for none.
	AuthorityConfigMap string
	// RequestsPerSecond limits the requests to the API server; a default when zero.
	RequestsPerSecond float64
	// Lease is the Lease by which the replicas of a StatefulSet choose the one that serves; a server without replicas
	// has none. Pod is the name of this replica's pod, the host name when empty.
	Lease, Pod string
}

// Config configures New. All fields are required, unless they say otherwise.
type Config struct {
	Settings Settings
	Client   *apiserver.Client
	// Prompt is for requests that somebody waits for; Client when nil. They do not queue behind those of Client.
	Prompt *apiserver.Client
	// Home identifies the server.
	Home resources.Home
	// Store is read-only here. Only Routes writes it.
	Store store.Reader
	// Routes judges and stores what users write.
	Routes *api.Server
	// Rollout returns how far a stored resource has come.
	Rollout func(*resources.Resource) *tracker.Rollout
	// Pulse returns a text that changes when rollouts may have changed although the store has not: a peer or a proxy
	// connected, disconnected or answered.
	Pulse func() string
	// Serving is the certificate of the webhook; see OpenCertificate.
	Serving *Certificate
	// Injection returns the settings that the proxies of all pods share. Nil if pods get none.
	Injection func() *injection.Settings
	// Authority returns the CA of the xDS server in PEM; required with Settings.AuthorityConfigMap.
	Authority func() []byte
	// Term is this replica's lead; nil for a server without replicas.
	Term *leader.Term
	// Panics may be nil.
	Panics *panics.Guard
	Now    func() time.Time
	Log    *slog.Logger
}

// Bridge connects one server with one cluster.
type Bridge struct {
	Config
	// selfName is this server's user name at the API server; nil until it is known.
	selfName atomic.Pointer[string]
	// listener is the webhook's socket; nil without one.
	listener net.Listener

	// work wakes the feed, report the condition writer, project the projection.
	work, report, project chan struct{}

	mu    sync.Mutex
	kinds map[resources.Type]*kindState // guarded by mu, like everything in it
	// pending are the changes that the feed has not taken yet.
	pending map[objectID]*change
	// waiting holds documents that the store currently refuses; they may become acceptable.
	waiting map[objectID]*resources.Resource
	// due holds the objects whose conditions must be checked, with the time.
	due map[objectID]time.Time
	// unprojected holds the objects to compare with the resources that they copy.
	unprojected map[objectID]bool
	// lastHeld is when the held deletions were last checked.
	lastHeld time.Time
}

// New returns a bridge that listens for its webhook. Run starts it.
func New(c Config) (*Bridge, error) {
	c.Prompt = cmp.Or(c.Prompt, c.Client)
	b := &Bridge{
		Config: c, work: make(chan struct{}, 1), report: make(chan struct{}, 1), project: make(chan struct{}, 1),
		kinds: map[resources.Type]*kindState{}, pending: map[objectID]*change{},
		waiting: map[objectID]*resources.Resource{}, due: map[objectID]time.Time{}, unprojected: map[objectID]bool{},
	}
	for _, k := range Kinds() {
		if k.Type.Live() {
			continue
		}
		b.kinds[k.Type] = &kindState{Kind: k, objects: map[apiserver.Name]*objectState{}, held: map[resources.Key]*heldDelete{}}
	}
	if c.Settings.WebhookAddress == "" {
		return b, nil
	}
	var err error
	if b.listener, err = server.Listen(c.Settings.WebhookAddress); err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	c.Term.Fence(b.listener)
	return b, nil
}

// Run works until ctx ends. A nil bridge does nothing.
func (b *Bridge) Run(ctx context.Context) error {
	if b == nil {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, k := range b.kinds {
		group.Go(func() error {
			b.Client.Follow(ctx, k.Kind.Kind, "", &sink{bridge: b, kind: k})
			return nil
		})
	}
	for _, run := range []func(context.Context) error{b.feed, b.reports, b.projection, b.followStore,
		b.learnSelf, b.tendSchemas} {
		group.Go(func() error { return run(ctx) })
	}
	if b.Settings.AuthorityConfigMap != "" {
		group.Go(func() error { return b.publishAuthority(ctx) })
	}
	if b.listener != nil {
		group.Go(func() error { return b.serveWebhook(ctx) })
		group.Go(func() error { return b.tendConfigurations(ctx) })
	}
	return group.Wait()
}

// wake signals a loop that there is work, without waiting for it.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// objectID identifies an object.
type objectID struct {
	Type resources.Type
	apiserver.Name
}

// kindState is the known state of the objects of one kind.
type kindState struct {
	Kind
	// listed is set once there was a complete list. absent is set while the API server does not know the kind.
	listed, absent bool
	// differs is set while the definition is of another version than this server.
	differs bool
	// failed is why the API server cannot be followed now, and since when.
	failed error
	since  time.Time
	// compare is set after a complete list: store entries beyond it are gone.
	compare bool
	// spent means that an operator's acceptance was carried out but is still there: it does not apply to later
	// deletions.
	spent   bool
	objects map[apiserver.Name]*objectState
	held    map[resources.Key]*heldDelete
}

// objectState is one object.
type objectState struct {
	uid        string
	generation int64
	version    string // its resourceVersion
	// labels are those of a user's object: a change of them is no new generation.
	labels map[string]string
	// unjudged is set while nothing is known of this version of a user's object: it was read, and neither stored nor refused.
	unjudged bool
	copy     bool
	content  string // of a copy: annotationContent
	// key is the resource that it is, or was before it became invalid; zero if it never was one.
	key resources.Key
	// refused is why it is not in the store as written.
	refused error
	// conditions and observed, a generation, are those in its status, reported is when they were last written, wait the time until the next check.
	conditions []condition
	observed   int64
	reported   time.Time
	wait       time.Duration
}

// change is the feed's next task for one object.
type change struct {
	object *apiserver.Object // nil if it is gone
	uid    string            // of the deleted object
	at     time.Time
	unseen bool // it was deleted while the server did not watch
}
