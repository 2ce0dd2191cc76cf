package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
)

// TestShapes checks the field names of responses that the servers write and the command line reads with the same types,
// because programs depend on them.
func TestShapes(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	yes, two := true, 2
	for name, tt := range map[string]struct {
		answer any
		want   string
	}{
		"replicas": {
			api.ReplicaList{Items: []api.Replica{{
				Instance: "i", Addresses: []string{"a:1"}, Version: "v", Started: at, Revision: 7, Zones: 3,
				Leads: true, Asked: true,
				Store: api.ReplicaStore{Kind: "etcd", Reachable: &yes, Error: "e"},
			}}},
			`{"items":[{"instance":"i","addresses":["a:1"],"version":"v","started":"2026-01-02T03:04:05Z","revision":7,"zones":3,"leads":true,"asked":true,` +
				`"store":{"kind":"etcd","reachable":true,"error":"e"}}]}`,
		},
		"a replica of which nothing is known": {
			api.Replica{Addresses: []string{}},
			`{"instance":"","addresses":[],"version":"","started":"0001-01-01T00:00:00Z","revision":0,"zones":0,"leads":false,"asked":false,"store":{"kind":""}}`,
		},
		"keys": {
			api.SigningKeyList{New: "n", Keys: []api.SigningKey{{
				Purpose: "p", ID: "i", State: "next", Algorithm: "a", Created: at, Expires: &at, Uses: &two,
				WaitsFor: []string{"w"}, Unaware: []string{"u"}, Provided: true,
			}}},
			`{"new":"n","keys":[{"purpose":"p","id":"i","state":"next","algorithm":"a","creationTime":"2026-01-02T03:04:05Z",` +
				`"expirationTime":"2026-01-02T03:04:05Z","uses":2,"waitsFor":["w"],"unaware":["u"],"provided":true}]}`,
		},
		"no key": {api.SigningKeyList{Keys: []api.SigningKey{}}, `{"keys":[]}`},
		"a key of which little is known": {
			api.SigningKey{}, `{"purpose":"","id":"","state":"","algorithm":"","creationTime":"0001-01-01T00:00:00Z"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(tt.answer)
			if err != nil || string(got) != tt.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}
