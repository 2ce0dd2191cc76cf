package global

import (
	"testing"

	"github.com/causeway-mesh/causeway/api"
)

// TestReplicasThatWaitAreNotAsked counts the replicas that know of servers of their own that they rejected: those that share a
// store, and not those that wait for a Lease.
func TestReplicasThatWaitAreNotAsked(t *testing.T) {
	for name, tt := range map[string]struct {
		all  []api.Replica
		want int
	}{
		"alone":   {[]api.Replica{{Asked: true, Leads: true}}, 0},
		"sharing": {[]api.Replica{{Instance: "first", Leads: true}, {Asked: true}, {Instance: "third"}}, 2},
		"waiting": {[]api.Replica{{Asked: true, Leads: true, Lease: "g"}, {Instance: "g-1", Lease: "g"}}, 0},
	} {
		if got := othersThatServe(tt.all); got != tt.want {
			t.Errorf("%s: %d others are to be asked, want %d", name, got, tt.want)
		}
	}
}
