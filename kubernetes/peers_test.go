package kubernetes

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kubernetes/leader"
)

// TestListedReplicas checks the list of replicas: who leads and who waits, since when, and that nothing is said of those
// that are not known.
func TestListedReplicas(t *testing.T) {
	began, ready := time.Unix(200, 0), time.Unix(100, 0)
	self := &api.Replica{Instance: "z-1-abc", Leads: true, Asked: true, Lease: "z", Since: &began, Store: api.ReplicaStore{Kind: "bolt"}}
	peers := []leader.Peer{{Pod: "z-0", Ready: true, Since: ready}, {Pod: "z-1", Leads: true, Ready: true, Since: ready}, {Pod: "z-2"}}
	list := listed(self, peers, nil)
	if len(list.Items) != 3 || list.Unknown != "" {
		t.Fatalf("the list is %+v", list)
	}
	if one := list.Items[0]; one.Instance != "z-1-abc" || !one.Leads || !one.Ready || !one.Since.Equal(began) {
		t.Errorf("the leader is %+v", one)
	}
	if one := list.Items[1]; one.Instance != "z-0" || one.Leads || !one.Ready || one.Lease != "z" || !one.Since.Equal(ready) {
		t.Errorf("the one that waits is %+v", one)
	}
	if one := list.Items[2]; one.Instance != "z-2" || one.Ready || one.Since != nil {
		t.Errorf("the one that is not ready is %+v", one)
	}
	list = listed(self, nil, errors.New("no answer"))
	if len(list.Items) != 1 || !strings.Contains(list.Unknown, "unknown, because their pods cannot be listed: no answer") {
		t.Errorf("without an answer, the list is %+v", list)
	}
	if list := Replicas(nil, self); len(list.Items) != 1 || list.Unknown != "" {
		t.Errorf("a server without replicas lists %+v", list)
	}
}
