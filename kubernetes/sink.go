package kubernetes

import (
	"encoding/json"
	"fmt"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

// sink receives the objects of one kind.
type sink struct {
	bridge *Bridge
	kind   *kindState
}

// Replace implements apiserver.Sink. It forgets objects whose deletion was not seen; compare judges and removes their
// resources together.
func (s *sink) Replace(all []*apiserver.Object) {
	b, k := s.bridge, s.kind
	b.mu.Lock()
	defer b.mu.Unlock()
	there := make(map[apiserver.Name]bool, len(all))
	for _, o := range all {
		there[o.ID()] = true
		s.changedLocked(o)
	}
	for name, o := range k.objects {
		if !there[name] {
			b.pending[objectID{k.Type, name}] = &change{uid: o.uid, at: b.Now(), unseen: true}
		}
	}
	for id, c := range b.pending { // the feed has not reached it yet
		if id.Type == k.Type && c.object != nil && !there[id.Name] {
			b.pending[id] = &change{uid: c.object.Meta.UID, at: b.Now(), unseen: true}
		}
	}
	k.listed, k.absent, k.failed, k.compare = true, false, nil, true
	wake(b.work)
}

// Changed implements apiserver.Sink.
func (s *sink) Changed(o *apiserver.Object) {
	s.bridge.mu.Lock()
	defer s.bridge.mu.Unlock()
	s.changedLocked(o)
	wake(s.bridge.work)
}

// changedLocked notes an object, unless it is the known version: only its status may differ, which only this server
// writes.
func (s *sink) changedLocked(o *apiserver.Object) {
	b, k := s.bridge, s.kind
	id := objectID{k.Type, o.ID()}
	if known := k.objects[o.ID()]; known != nil && b.pending[id] == nil && known.uid == o.Meta.UID &&
		known.version == o.Meta.ResourceVersion {
		return
	}
	b.pending[id] = &change{object: o, at: b.Now()}
}

// Deleted implements apiserver.Sink.
func (s *sink) Deleted(o *apiserver.Object) {
	b := s.bridge
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending[objectID{s.kind.Type, o.ID()}] = &change{uid: o.Meta.UID, at: b.Now()}
	wake(b.work)
}

// Failed implements apiserver.Sink. A kind that the API server does not know has no objects there, which says nothing
// about the store.
func (s *sink) Failed(err error) {
	b, k := s.bridge, s.kind
	b.mu.Lock()
	defer b.mu.Unlock()
	if k.failed == nil {
		k.since = b.Now()
		if apiserver.IsNotFound(err) {
			err = fmt.Errorf("it has no CustomResourceDefinition of the type: install the chart causeway-crds, or what causewayctl install crds prints: %w", err)
		}
		b.Log.Warn("cannot follow the Kubernetes API server; the server continues with its last state", "type", k.Type,
			"error", err)
	}
	k.failed, k.absent = err, apiserver.IsNotFound(err)
	wake(b.work)
}

// Resumed implements apiserver.Sink.
func (s *sink) Resumed() {
	b, k := s.bridge, s.kind
	b.mu.Lock()
	defer b.mu.Unlock()
	if k.failed != nil {
		b.Log.Info("the Kubernetes API server is followed again", "type", k.Type)
	}
	k.failed, k.absent = nil, false
}

// condition is one of status.conditions, with the fields that Kubernetes adds to resources.Condition.
type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	LastTransitionTime string `json:"lastTransitionTime"`
}

// statusIn returns the conditions in the status of an object, and the generation that it says to be about.
func statusIn(o *apiserver.Object) (list []condition, observed int64) {
	var read struct {
		Status struct {
			Observed   int64       `json:"observedGeneration"`
			Conditions []condition `json:"conditions"`
		} `json:"status"`
	}
	_ = json.Unmarshal(o.Raw, &read) // a status of another form has none, and is replaced
	return read.Status.Conditions, read.Status.Observed
}
