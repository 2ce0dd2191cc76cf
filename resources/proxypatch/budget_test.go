package proxypatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

// TestWorkIsBounded: no policy lets the server change more than maxWork, whatever it matches.
func TestWorkIsBounded(t *testing.T) {
	t.Parallel()
	c := &Config{Clusters: map[string]*Resource{}}
	for i := range 2000 {
		name := fmt.Sprintf("cluster-%d", i)
		c.Clusters[name] = &Resource{Name: name, Origin: OriginOutbound, message: &clusterv3.Cluster{Name: name}}
	}
	big := `"` + strings.Repeat("x", 1900) + `"`
	from := "/metadata"
	grow, churn := &Conf{}, &Conf{}
	for i := range maxModifications {
		value := fmt.Sprintf("metadata: {filter_metadata: {a-%d: {b: %s}}}", i, big)
		grow.AppendModifications = append(grow.AppendModifications,
			Modification{Cluster: &ClusterChange{Change: Change{Operation: Patch, Value: &value}}})
		ops := []JSONPatch{{Op: "add", Path: "/metadata", Value: []byte(`{"filterMetadata":{"a":{"b":` + big + `}}}`)}}
		for range maxJSONPatches/2 - 1 {
			ops = append(ops, JSONPatch{Op: "copy", From: &from, Path: "/other"}, JSONPatch{Op: "remove", Path: "/other"})
		}
		ops = append(ops, JSONPatch{Op: "remove", Path: "/metadata"})
		churn.AppendModifications = append(churn.AppendModifications,
			Modification{Cluster: &ClusterChange{Change: Change{Operation: Patch, JSONPatches: ops}}})
	}
	small := "alt_stat_name: " + strings.Repeat("x", 1000)
	few := &Conf{}
	for range 8 {
		few.AppendModifications = append(few.AppendModifications,
			Modification{Cluster: &ClusterChange{Change: Change{Operation: Patch, Value: &small}}})
	}
	for name, conf := range map[string]*Conf{"a result that grows": grow, "copies that are removed": churn} {
		patch, wrong := conf.Read(true)
		if len(wrong) > 0 {
			t.Fatal(name, wrong)
		}
		_, err := c.Apply("p", patch)
		if err == nil || !strings.Contains(err.Error(), "changes more than 64 MiB") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	large := strings.Repeat("a", maxValueBytes)
	many := &Conf{AppendModifications: slices.Repeat([]Modification{{Cluster: &ClusterChange{Change: Change{Operation: Patch, Value: &large}}}}, 3)}
	if _, wrong := many.Read(true); len(wrong) != 1 || !strings.Contains(wrong[0].Error(), "the values have 196608 bytes, more than 131072") {
		t.Errorf("values of many bytes: %v", wrong)
	}
	patch, wrong := few.Read(true)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if _, err := c.Apply("p", patch); err != nil {
		t.Errorf("a kilobyte for each cluster is refused: %v", err)
	}
}
