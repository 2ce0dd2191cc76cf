package zone

import (
	"cmp"
	"net/http"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kubernetes"
	"github.com/causeway-mesh/causeway/kubernetes/leader"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/server"
)

// replicas tells which replica of the zone leads, and which wait.
type replicas struct {
	store *backend.Store
	// self is this server, as far as it stays the same.
	self api.Replica
	term *leader.Term
}

func newReplicas(cfg *Config, o *opened) *replicas {
	return &replicas{store: o.store, term: cfg.term, self: api.Replica{Instance: server.Instance(), Addresses: []string{},
		Version: server.Version(), Started: cfg.Now().UTC(), Leads: true, Asked: true,
		Store: api.ReplicaStore{Kind: cmp.Or(cfg.Store.Kind, backend.Bolt)}}}
}

func (r *replicas) serve(w http.ResponseWriter, _ *http.Request) error {
	self, refuses, away := r.self, r.store.Healthy(), r.store.Current()
	reachable, writable := away == nil, refuses == nil
	self.Revision = r.store.Snapshot().Revision()
	self.Store.Reachable, self.Store.Writable = &reachable, &writable
	if refuses != nil {
		self.Store.Error = refuses.Error()
	}
	return api.WriteJSON(w, http.StatusOK, kubernetes.Replicas(r.term, &self))
}
