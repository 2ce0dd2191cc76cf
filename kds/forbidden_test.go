package kds

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestWhatDoesNotTravelIsRefused sends each type that does not travel in a direction, secrets among them, to both
// sides. Each is refused by name, nothing of it is stored, what it removes stays, and the observer gets an event.
func TestWhatDoesNotTravelIsRefused(t *testing.T) {
	t.Parallel()
	for _, direction := range []exchange.Direction{exchange.GlobalToZone, exchange.ZoneToGlobal} {
		seen := 0
		for _, d := range resources.Stored() {
			if direction.Carries(d) {
				continue
			}
			seen++
			s, heard := store.NewMemory(), &events{}
			own := &resources.Resource{Key: resources.Key{Type: d.Type, Name: "own"}, Labels: map[string]string{}}
			if d.Scope == resources.ScopeMesh {
				own.Mesh = "default"
			}
			var err error
			if own.Spec, err = resources.NewSpec(d.Type, []byte(`{}`)); err != nil {
				t.Fatal(err)
			}
			put(t, s, own, written(t, globalHome, ZoneKey("zone-1"), `{}`))
			before := s.Snapshot().Revision()
			v := testReceiver(direction, s)
			v.session.observer = heard
			value, err := proto.Marshal(&meshpb.KumaResource{Meta: &meshpb.KumaResource_Meta{Name: "own",
				Mesh: own.Mesh}, Spec: &anypb.Any{Value: []byte(`{}`)}})
			if err != nil {
				t.Fatal(err)
			}
			item := &discovery.Resource{Name: exchange.WireName("own", own.Mesh), Version: "1",
				Resource: &anypb.Any{TypeUrl: resourceTypeURL, Value: value}}
			answer, err := v.handle(t.Context(), &discovery.DeltaDiscoveryResponse{
				TypeUrl: string(d.Type), Nonce: "1", Resources: []*discovery.Resource{item},
				RemovedResources: []string{"own", exchange.WireName("own", "default")},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := answer.GetErrorDetail().GetMessage(); !strings.HasPrefix(got, item.GetName()+": ") ||
				!strings.Contains(got, "does not travel") {
				t.Errorf("%s %s: the answer is %q", d.Type, direction, got)
			}
			if now := s.Snapshot(); now.Revision() != before || now.Get(own.Key) == nil {
				t.Errorf("%s %s: the store is at %d, was at %d", d.Type, direction, now.Revision(), before)
			}
			if n := heard.count(Forbidden, d.Type); n != 1 {
				t.Errorf("%s %s: told %d times", d.Type, direction, n)
			}
		}
		if seen < 5 {
			t.Errorf("%s: only %d types do not travel", direction, seen)
		}
	}
}
