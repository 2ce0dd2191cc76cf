package zone_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// story is one of testdata/stories.yaml.
type story struct {
	Name     string
	Policies []struct {
		Name string
		Spec map[string]any
	}
	Requests []storyRequest
}

type storyRequest struct {
	Over                        []string
	Inbound, From, Method, Path string
	Want, By, Shadow            string
}

func readStories(t *testing.T) []story {
	t.Helper()
	raw, err := os.ReadFile("testdata/stories.yaml")
	must(t, err)
	var file struct{ Stories []story }
	must(t, yaml.UnmarshalStrict(raw, &file))
	for i := range file.Stories {
		for n := range file.Stories[i].Requests {
			r := &file.Stories[i].Requests[n]
			if len(r.Over) == 0 {
				r.Over = []string{"h1", "h2", "grpc", "tcp"}
			}
			if r.From[0] == '/' {
				r.From = "spiffe://trust-domain.mesh" + r.From
			}
		}
	}
	return file.Stories
}

// TestStories plays the user stories over HTTP/1.1, HTTP/2, gRPC and TCP. The reference evaluator (through explain), a
// real Envoy with the list form and one with the compiled form must all give the story's answer. For gRPC, so must a
// grpc-go server without a proxy.
func TestStories(t *testing.T) {
	t.Parallel()
	stories := readStories(t)
	for _, form := range []rbac.Form{rbac.List, rbac.Compiled} {
		t.Run(string(form), func(t *testing.T) {
			s := newStage(t, form)
			for i := range stories {
				t.Run(stories[i].Name, func(t *testing.T) { s.play(t, &stories[i]) })
			}
		})
	}
}

// play replaces all other policies with the story's, waits until Envoy has them, and sends every request once more.
func (s *stage) play(t *testing.T, y *story) {
	var batch store.Batch
	for r := range s.store.Snapshot().List(store.Query{Type: resources.TypeMeshTrafficPermission}) {
		batch.Ops = append(batch.Ops, store.Op{Delete: r.Key})
	}
	for _, p := range y.Policies {
		raw, err := json.Marshal(map[string]any{"type": "MeshTrafficPermission", "mesh": "default", "name": p.Name,
			"spec": p.Spec})
		must(t, err)
		s.home.Zone = "" // policies of the mesh operator come from the global
		batch.Ops = append(batch.Ops, store.Op{Put: s.resource(string(raw))})
		s.home.Zone = "zone-1"
	}
	_, err := s.store.Apply(context.Background(), batch)
	must(t, err)
	for i := range y.Requests {
		s.checkEvaluator(t, &y.Requests[i])
	}
	var wrong string
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if wrong = s.firstWrong(t, y); wrong == "" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", patience, wrong)
		}
	}
	if wrong = s.firstWrong(t, y); wrong != "" {
		t.Errorf("and then: %s", wrong)
	}
}

// TestStoriesAreAllThere: the nine stories of seed 000 are present, each with requests over every protocol, and so is
// one without policies.
func TestStoriesAreAllThere(t *testing.T) {
	t.Parallel()
	stories := readStories(t)
	for _, prefix := range []string{"operator 1", "operator 2", "operator 3", "operator 4", "owner 1", "owner 2",
		"owner 3", "owner 4", "owner 5"} {
		asked := map[string]int{}
		for i := range stories {
			if !strings.HasPrefix(stories[i].Name, prefix) {
				continue
			}
			for _, r := range stories[i].Requests {
				for _, over := range r.Over {
					asked[over]++
				}
			}
		}
		for _, over := range []string{"h1", "h2", "grpc", "tcp"} {
			if asked[over] == 0 {
				t.Errorf("%s: nothing is asked over %s", prefix, over)
			}
		}
	}
	if !slices.ContainsFunc(stories, func(y story) bool { return len(y.Policies) == 0 }) {
		t.Error("no story without policies")
	}
}
