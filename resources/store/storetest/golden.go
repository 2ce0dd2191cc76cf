package storetest

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// GoldenRevision is the revision of a store with Golden.
const GoldenRevision = 42

// Golden returns the resources in the golden files of every durable format: keys, labels, specs, status and times of
// every form.
func Golden() []*resources.Resource {
	at := func(revision uint64, key resources.Key, labels map[string]string, spec, status,
		version string) *resources.Resource {
		s, err := resources.NewSpec(key.Type, []byte(spec))
		if err != nil {
			panic(err)
		}
		r := &resources.Resource{Key: key, Labels: labels, Spec: s, Revision: revision, Version: version}
		if status != "" {
			r.Status = []byte(status)
		}
		r.CreationTime = time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC)
		r.ModificationTime = r.CreationTime.Add(time.Duration(revision) * time.Second)
		return r
	}
	return []*resources.Resource{
		at(1, resources.Key{Type: resources.TypeMesh, Name: "default"}, map[string]string{}, `{}`, "", ""),
		at(7, resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "slow"},
			map[string]string{"kuma.io/origin": "global", "team": "a-b.c_d"},
			`{"targetRef":{"kind":"Mesh"},"to":[{"targetRef":{"kind":"Mesh"},"default":{"connectionTimeout":"10s","x-text":"<a&b> é \u2028 \"q\""}}]}`, "", ""),
		at(41, resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default", Namespace: "kuma-system",
			Name: "allow-x2v4d6"},
			map[string]string{"kuma.io/zone": "zone-1", "kuma.io/display-name": "allow"},
			`{"rules":[{"default":{"allow":[{"spiffeId":{"type":"Exact","value":"spiffe://a/b"}}]}}]}`,
			`{"conditions":[{"type":"Accepted","status":"True"}]}`, "1f2e"),
		at(GoldenRevision, resources.Key{Type: resources.TypeSecret, Name: "token-signing"}, map[string]string{},
			`{"data":"c2VhbGVk"}`, "", ""),
		at(2, resources.Key{Type: resources.TypeZone, Name: "zone-1"}, map[string]string{}, `{"enabled":true}`, "", ""),
	}
}

// Missing describes each difference of got from want, in every byte and field, or is empty if there is none. If a
// format does not keep versions, want should have none.
func Missing(got, want []*resources.Resource) string {
	byKey := map[resources.Key]*resources.Resource{}
	for _, r := range got {
		byKey[r.Key] = r
	}
	out := ""
	for _, r := range want {
		if g := byKey[r.Key]; g == nil {
			out += fmt.Sprintf("%s is not there\n", r.Key)
		} else if !Equal(g, r) || string(g.Spec.JSON()) != string(r.Spec.JSON()) || string(g.Status) != string(r.Status) {
			out += fmt.Sprintf("got\n%swant\n%s", Describe([]*resources.Resource{g}), Describe([]*resources.Resource{r}))
		}
		delete(byKey, r.Key)
	}
	for k := range byKey {
		out += fmt.Sprintf("%s is too much\n", k)
	}
	return out
}

// GoldenFile returns the path of the golden file of a format, testdata/format-N plus extension. With the test flag
// -update it calls write to create a missing file. It never overwrites an existing file, because released programs have
// written such files. A format that changes gets a new number.
func GoldenFile(t testing.TB, format int, extension string, write func(path string) error) string {
	t.Helper()
	path := filepath.Join("testdata", fmt.Sprintf("format-%d%s", format, extension))
	_, err := os.Stat(path)
	if update := flag.Lookup("update"); update == nil || update.Value.String() != "true" ||
		!errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			t.Fatalf("%v: write it with -update", err)
		}
		return path
	}
	if err := errors.Join(os.MkdirAll("testdata", 0o700), write(path)); err != nil {
		t.Fatal(err)
	}
	return path
}
