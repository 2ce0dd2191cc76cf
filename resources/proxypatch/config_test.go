package proxypatch

import (
	"fmt"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
)

// TestPatchesReadWhatTheyChange checks that a policy reads no message but those that it changes, and those that say
// whether it may: reading all of a proxy would be most of the cost.
func TestPatchesReadWhatTheyChange(t *testing.T) {
	var read []string
	config := func() *Config {
		read = nil
		c := &Config{Clusters: map[string]*Resource{}, Listeners: map[string]*Resource{}, Routes: map[string]*Resource{},
			Open: func(from any) (proto.Message, error) {
				read = append(read, nameOf(from.(proto.Message)))
				return from.(proto.Message), nil
			}}
		for _, name := range []string{"a", "b"} {
			c.Clusters["cluster-"+name] = &Resource{Name: "cluster-" + name, Origin: OriginOutbound, From: &clusterv3.Cluster{Name: "cluster-" + name}}
			c.Listeners["listener-"+name] = &Resource{Name: "listener-" + name, Origin: OriginOutbound, From: &listenerv3.Listener{Name: "listener-" + name}}
			c.Routes["routes-"+name] = &Resource{Name: "routes-" + name, Origin: OriginOutbound, From: &routev3.RouteConfiguration{Name: "routes-" + name}}
		}
		return c
	}
	text := func(s string) *string { return &s }
	added := text("{name: more, connect_timeout: 1s, type: STATIC}")
	for name, tt := range map[string]struct {
		change Modification
		read   []string
	}{
		"a new cluster": {Modification{Cluster: &ClusterChange{Change: Change{Operation: Add, Value: added}}}, nil},
		"a cluster that goes": {Modification{Cluster: &ClusterChange{Match: &ClusterMatch{Name: text("cluster-a")},
			Change: Change{Operation: Remove}}}, nil},
		"a cluster": {Modification{Cluster: &ClusterChange{Match: &ClusterMatch{Name: text("cluster-a")},
			Change: Change{Operation: Patch, Value: text("{connect_timeout: 7s}")}}}, []string{"cluster-a"}},
		"all listeners": {Modification{Listener: &ListenerChange{Match: &ListenerMatch{Origin: text(OriginOutbound)},
			Change: Change{Operation: Patch, Value: text("{stat_prefix: x}")}}}, []string{"listener-a", "listener-b"}},
	} {
		conf := Conf{AppendModifications: []Modification{tt.change}}
		edits, wrong := conf.Read(true)
		if len(wrong) > 0 {
			t.Fatalf("%s: %v", name, wrong)
		}
		before := config()
		after, err := before.Apply("p", edits)
		if err == nil {
			err = (&Guard{Original: before}).Check(before, after)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if slices.Sort(read); !slices.Equal(read, tt.read) {
			t.Errorf("%s: read %q, want %q", name, read, tt.read)
		}
		if after.Same(before) {
			t.Errorf("%s: changes nothing", name)
		}
	}
}

// fewest returns the fewest allocations of 30 calls of f, each counted alone. The runtime and pools that a collection has
// emptied, or that the race detector makes lose some of what they are given, only add to them.
func fewest(f func()) float64 {
	n := testing.AllocsPerRun(1, f)
	for range 29 {
		n = min(n, testing.AllocsPerRun(1, f))
	}
	return n
}

// TestAPatchLooksOnlyAtWhatItEdits: to check one cluster costs the same beside many.
func TestAPatchLooksOnlyAtWhatItEdits(t *testing.T) { // it counts allocations, so it runs alone
	cost := func(clusters int) float64 {
		before := &Config{Clusters: map[string]*Resource{}, Open: func(from any) (proto.Message, error) {
			return from.(proto.Message), nil
		}}
		for i := range clusters {
			name := fmt.Sprintf("cluster-%d", i)
			before.Clusters[name] = &Resource{Name: name, Origin: OriginOutbound, From: &clusterv3.Cluster{Name: name}}
		}
		name, value := "cluster-7", "{connect_timeout: 7s}"
		edits, wrong := (&Conf{AppendModifications: []Modification{{Cluster: &ClusterChange{Match: &ClusterMatch{Name: &name},
			Change: Change{Operation: Patch, Value: &value}}}}}).Read(true)
		if len(wrong) > 0 {
			t.Fatal(wrong)
		}
		after, err := before.Apply("p", edits)
		if err != nil || after.Same(before) {
			t.Fatal(after, err)
		}
		guard := &Guard{Original: before}
		return fewest(func() {
			if err := guard.Check(before, after); err != nil || after.Same(before) {
				t.Error(err)
			}
		})
	}
	if few, many := cost(10), cost(2000); many != few {
		t.Errorf("%v allocations beside 2000 clusters, %v beside 10", many, few)
	}
}
