package discovery

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Config configures New. All fields are required, unless they say otherwise.
type Config struct {
	Client *apiserver.Client
	// Store receives the Dataplanes and MeshServices.
	Store store.Store
	// Home is the zone.
	Home resources.Home
	// Limits bound what namespaces may hold, as for users.
	Limits api.NamespaceLimits
	// Identities returns a function for the SPIFFE IDs of a mesh's Dataplanes, including upcoming ones. If it is nil,
	// MeshServices name nobody.
	Identities func(mesh string) func(dp *resources.Resource) []string
	// Authority returns the PEM text of the certificates that sign the zone's own, by which proxies verify it. If it is nil,
	// no pod is told that its proxy trusts others.
	Authority func() []byte
	// Settled reports whether the proxy of a Dataplane is connected and has taken all of its configuration. If it is nil, no
	// pod is said not to be captured by a plugin.
	Settled func(dataplane resources.Key) bool
	// Now is the clock; time.Now if it is nil.
	Now func() time.Time
	// Resolve returns the addresses of a load balancer's name; those of the system's resolver if it is nil.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	Log     *slog.Logger
}

const (
	// foldTime is the minimum interval between two passes over changes, so that a rollout is written in batches.
	foldTime = 50 * time.Millisecond
	// retryTime is the wait after a failed write.
	retryTime = time.Second
	// retellTime is how often problems become Events again: the API server forgets Events after an hour.
	retellTime = 30 * time.Minute
)

// Controller keeps the store's copy of a cluster equal to the cluster.
type Controller struct {
	Config
	work   chan struct{}
	events chan event
	// doubts signals that something is held, named that load balancers have other names.
	doubts, named chan struct{}

	mu sync.Mutex
	// spaces are the namespaces with their content, nodes the locations of pods; guarded by mu, like everything that
	// follows.
	spaces map[string]*space
	nodes  map[string]*Node
	// kinds are the followed kinds, some of them by name.
	kinds                      []*following
	pods, services, namespaces *following
	// compare is set after a list: store entries beyond it are gone.
	compare bool
	// compared is set after the first comparison.
	compared bool
	// meshes are those in which something was made, whether they exist or not.
	meshes map[string]bool
	// reported holds the problems that already have Events.
	reported map[object]string
	// reasons holds those of all current problems.
	reasons map[object][]string
	// known are the names of load balancers.
	known map[string]host
	// awaited are the pods whose capture is not proven yet.
	awaited map[apiserver.Name]*awaited
}

// space is one namespace.
type space struct {
	name      string
	namespace *Namespace // nil if there is none of this name, or not yet
	pods      map[string]*Pod
	services  map[string]*Service
	// changed are the pods whose Dataplanes must be checked; servicesChanged means all MeshServices.
	changed         map[string]bool
	servicesChanged bool
	// answered are the Services whose pods have changed.
	answered map[string]bool
	// crowded are the pods for which the namespace had no room.
	crowded map[string]bool
	// parting are the zone ingresses whose pods are being deleted, with the time until which other zones may use them.
	parting map[string]time.Time
}

// New returns a controller. Run starts it.
func New(c Config) *Controller {
	d := &Controller{Config: c, work: make(chan struct{}, 1), events: make(chan event, maxEvents),
		spaces: map[string]*space{}, nodes: map[string]*Node{}, reported: map[object]string{},
		meshes: map[string]bool{}, doubts: make(chan struct{}, 1), reasons: map[object][]string{},
		named: make(chan struct{}, 1), known: map[string]host{}, awaited: map[apiserver.Name]*awaited{}}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Resolve == nil {
		d.Resolve = lookUp
	}
	d.kinds = []*following{
		{c: d, kind: core("nodes", "Node", false), sees: handler(readNode, d.sawNode), known: d.knownNodes},
		{c: d, kind: core("namespaces", "Namespace", false), sees: handler(readNamespace, d.sawNamespace), known: d.knownNamespaces},
		{c: d, kind: core("services", "Service", true), sees: handler(readService, d.sawService), known: d.knownServices},
		{c: d, kind: core("pods", "Pod", true), sees: handler(readPod, d.sawPod), known: d.knownPods},
	}
	d.namespaces, d.services, d.pods = d.kinds[1], d.kinds[2], d.kinds[3]
	for _, f := range d.kinds {
		f.held, f.since = map[string]map[string]bool{}, time.Now()
	}
	return d
}

func core(plural, name string, namespaced bool) apiserver.Kind {
	return apiserver.Kind{Version: "v1", Plural: plural, Name: name, Namespaced: namespaced}
}

// Run follows the cluster until ctx ends. A nil controller does nothing.
func (d *Controller) Run(ctx context.Context) error {
	if d == nil {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range d.kinds {
		group.Go(func() error { d.Client.Follow(ctx, f.kind, "", f); return nil })
	}
	for _, run := range []func(context.Context) error{d.write, d.followStore, d.writeEvents, d.confirm, d.resolve} {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}

// wake signals that there is work, without waiting for it.
func (d *Controller) wake() {
	select {
	case d.work <- struct{}{}:
	default:
	}
}

// write writes differences until ctx ends.
func (d *Controller) write(ctx context.Context) error {
	retell, proofs := time.NewTicker(retellTime), time.NewTicker(proofsEach)
	defer retell.Stop()
	defer proofs.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.work:
		case <-retell.C:
			d.reportAgain()
		case <-proofs.C:
			if !d.checkProofs() {
				continue
			}
		}
		wait := foldTime
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = d.writeOnce(ctx); err != nil && !errors.Is(err, store.ErrConflict) && ctx.Err() == nil {
				d.Log.Error("cannot store pods and Services of the cluster; trying again", "error", err)
				wait = retryTime
				break
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		if wait == retryTime {
			d.wake()
		}
	}
}

// followStore notices changes by others in the store: a mesh that appears or disappears, and resources that users write
// under the name of a pod or a Service.
func (d *Controller) followStore(ctx context.Context) error {
	since, next := d.Store.Changed()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next:
		}
		revision, then := d.Store.Changed()
		commits, ok := d.Store.Changes(since)
		d.mu.Lock()
		if !ok {
			d.allLocked()
		}
		for _, commit := range commits {
			for _, change := range commit.Changes {
				d.changedLocked(change)
			}
		}
		d.mu.Unlock()
		since, next = revision, then
	}
}

// changedLocked notes a change of the store, unless this controller made it.
func (d *Controller) changedLocked(change store.Change) {
	key := change.Key()
	switch {
	case key.Type == resources.TypeMesh && (change.Old == nil || change.New == nil):
		d.allLocked()
	case key.Type == resources.TypeMeshIdentity || key.Type == resources.TypeSecret: // a secret has an authority's key
		d.identitiesLocked()
	case key.Type == resources.TypeZoneIngress:
		if change.New == nil || !d.Home.Discovered(change.New) {
			d.spaceLocked(d.Home.OperatorsNamespace()).changed[key.Name] = true
			d.wake()
		}
	case key.Type != resources.TypeDataplane && key.Type != resources.TypeMeshService, key.Namespace == "",
		change.New != nil && d.Home.Discovered(change.New):
	default:
		d.markLocked(key)
		if before := cmp.Or(change.New, change.Old); key.Type == resources.TypeDataplane && !d.Home.Discovered(before) {
			d.spaceLocked(key.Namespace).servicesChanged = true // it may be behind a Service
		}
	}
}

// markLocked marks the pod or the Services that a resource may come from.
func (d *Controller) markLocked(key resources.Key) {
	s := d.spaceLocked(key.Namespace)
	if key.Type == resources.TypeDataplane {
		s.changed[key.Name] = true
		s.retry()
	} else {
		s.servicesChanged = true
	}
	d.wake()
}

// identitiesLocked marks everything whose identities may change.
func (d *Controller) identitiesLocked() {
	if d.Identities == nil {
		return
	}
	for _, s := range d.spaces {
		s.servicesChanged = true
	}
	d.wake()
}

// retry marks the pods for which the namespace had no room.
func (s *space) retry() {
	for name := range s.crowded {
		s.changed[name] = true
	}
	clear(s.crowded)
}

// allLocked marks everything.
func (d *Controller) allLocked() {
	for _, s := range d.spaces {
		s.servicesChanged = true
		for name := range s.pods {
			s.changed[name] = true
		}
	}
	d.compare = true
	d.wake()
}

func (d *Controller) spaceLocked(name string) *space {
	s := d.spaces[name]
	if s == nil {
		s = &space{name: name, pods: map[string]*Pod{}, services: map[string]*Service{}, changed: map[string]bool{},
			answered: map[string]bool{}, crowded: map[string]bool{}, parting: map[string]time.Time{}}
		d.spaces[name] = s
	}
	return s
}
