package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// authored is what users have written: the last value of each policy.
type authored map[authoredID]int

// authoredID identifies a policy where it was written: in the cluster of zone-1, or in zone-2 over HTTP.
type authoredID struct{ kind, zone, name string }

// authoredKind is a type of policies, with its spec of a value.
type authoredKind struct {
	kind, plural string
	spec         func(value int) string
	// producer is the same of the producer's role, which goes to the other zone, too.
	producer func(namespace string, value int) string
}

func authoredKinds() []authoredKind {
	own := func(conf string) func(int) string {
		return func(value int) string { return fmt.Sprintf(`{"rules": [{"default": `+conf+`}]}`, value) }
	}
	to := func(conf string) func(string, int) string {
		return func(namespace string, value int) string {
			return fmt.Sprintf(`{"to": [{"targetRef": {"kind": "MeshService", "labels": {"app": "web", "k8s.kuma.io/namespace": %q}}, "default": `+
				conf+`}]}`, namespace, value)
		}
	}
	timeout, retry := `{"http": {"requestTimeout": "%dms"}}`, `{"http": {"perTryTimeout": "%dms"}}`
	return []authoredKind{
		{"MeshTimeout", "meshtimeouts", own(timeout), to(timeout)},
		{"MeshRetry", "meshretries", nil, to(retry)},
		{"MeshTrafficPermission", "meshtrafficpermissions",
			own(`{"deny": [{"spiffeId": {"type": "Exact", "value": "spiffe://a/%d"}}]}`), nil},
	}
}

func (id authoredID) namespace() string {
	return map[string]string{"zone-1": "backend-ns", "zone-2": "frontend-ns"}[id.zone]
}

// is returns the type of a policy, and whether its role is the producer's.
func (id authoredID) is() (k authoredKind, producer bool) {
	all := authoredKinds()
	k = all[slices.IndexFunc(all, func(k authoredKind) bool { return k.kind == id.kind })]
	even := (id.name[len(id.name)-1]-'0')%2 == 0
	return k, k.producer != nil && (k.spec == nil || even)
}

func (id authoredID) spec(value int) string {
	k, producer := id.is()
	if producer {
		return k.producer(id.namespace(), value)
	}
	return k.spec(value)
}

// object is a policy for kubectl.
func (id authoredID) object(value int) string {
	return fmt.Sprintf("{\"apiVersion\": \"kuma.io/v1alpha1\", \"kind\": %q, \"metadata\": {\"name\": %q, \"namespace\": %q}, \"spec\": %s}\n",
		id.kind, id.name, id.namespace(), id.spec(value))
}

// elsewhere writes and deletes policies in the other zone.
func (k *killing) elsewhere(puts []authoredID, values map[authoredID]int, deletes []authoredID) error {
	call := func(method string, id authoredID, body string) error {
		kind, _ := id.is()
		path := "/meshes/default/" + kind.plural + "/" + id.name + "?namespace=" + id.namespace()
		status, text, err := k.other.call(k.t.Context(), method, path, body)
		if err != nil || status >= http.StatusMultipleChoices {
			return fmt.Errorf("%s %s: %d %s %w", method, path, status, text, err)
		}
		return nil
	}
	for _, id := range puts {
		body := fmt.Sprintf(`{"type": %q, "mesh": "default", "namespace": %q, "name": %q, "spec": %s}`, id.kind, id.namespace(), id.name, id.spec(values[id]))
		if err := call(http.MethodPut, id, body); err != nil {
			return err
		}
	}
	for _, id := range deletes {
		if err := call(http.MethodDelete, id, ""); err != nil {
			return err
		}
	}
	return nil
}

// at returns what a server must have: the spec of each policy, by who wrote it.
func (a authored) at(server string) map[string]string {
	out := map[string]string{}
	for id, value := range a {
		if _, producer := id.is(); producer || server == "global" || server == id.zone {
			out[keyOf(id.kind, id.zone, id.namespace(), id.name)] = canonical([]byte(id.spec(value)))
		}
	}
	return out
}

func keyOf(kind, zone, namespace, name string) string {
	return kind + " " + zone + " " + namespace + "/" + name
}

// canonical returns a JSON document in one form.
func canonical(raw []byte) string {
	var document any
	if err := json.Unmarshal(raw, &document); err != nil {
		return string(raw)
	}
	out, _ := json.Marshal(document)
	return string(out)
}

// agree waits until every server, and the API server, has what users wrote, and nothing else of theirs.
func (k *killing) agree(round int) {
	k.t.Helper()
	for _, one := range []struct {
		name string
		at   string
		have func(context.Context) (map[string]string, error)
	}{
		{"the API server", "zone-1", k.objects},
		{"zone-1", "zone-1", k.zone.authored},
		{"the global", "global", k.global.authored},
		{"zone-2", "zone-2", k.other.authored},
	} {
		want := k.last.at(one.at)
		k.eventually(fmt.Sprintf("%s to have what was written until round %d", one.name, round), func(ctx context.Context) error {
			got, err := one.have(ctx)
			if err != nil {
				return err
			}
			return difference(got, want)
		})
	}
	k.kubectl("wait", "--for=condition=Programmed", "-n", "backend-ns", "meshtimeouts,meshretries,meshtrafficpermissions", "--all", "--timeout=60s")
}

// difference returns an error that names some of what differs.
func difference(got, want map[string]string) error {
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got[key] != want[key] {
			wrong = append(wrong, fmt.Sprintf("%s is %q, want %s", key, got[key], want[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if want[key] == "" {
			wrong = append(wrong, key+" should not be there")
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d are wrong: %s", len(wrong), strings.Join(wrong[:min(5, len(wrong))], ", "))
	}
	return nil
}

// note adds a policy of users to what a server has. Everything is there once.
func note(all map[string]string, key string, spec []byte) error {
	if all[key] != "" {
		return fmt.Errorf("%s is there twice", key)
	}
	all[key] = canonical(spec)
	return nil
}

// authored returns the policies in the server's store that users of the namespaces wrote.
func (z *zone) authored(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	for _, kind := range authoredKinds() {
		status, text, err := z.call(ctx, http.MethodGet, "/"+kind.plural+"?size=1000", "")
		if err != nil || status != http.StatusOK {
			return nil, fmt.Errorf("%d %s %w", status, text, err)
		}
		var list struct {
			Items []struct {
				Labels map[string]string
				Spec   json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, err
		}
		for _, one := range list.Items {
			namespace := one.Labels["k8s.kuma.io/namespace"]
			if namespace != "backend-ns" && namespace != "frontend-ns" {
				continue // nobody of this test wrote it
			}
			if err := note(out, keyOf(kind.kind, one.Labels["kuma.io/zone"], namespace, one.Labels["kuma.io/display-name"]), one.Spec); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// objects returns the policies in the API server: those that users wrote there, and copies of those of other zones.
func (w *world) objects(ctx context.Context) (map[string]string, error) {
	text, err := w.tryKubectl(ctx, admin, "get", "meshtimeouts,meshretries,meshtrafficpermissions", "-A", "-o", "json")
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	var list struct {
		Items []struct {
			Kind     string
			Metadata struct {
				Name, Namespace string
				Labels          map[string]string
			}
			Spec json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, one := range list.Items {
		m := &one.Metadata
		zone, namespace, name := "zone-1", m.Namespace, m.Name
		if m.Labels["causeway.io/copy"] == "true" {
			zone, namespace, name = m.Labels["kuma.io/zone"], m.Labels["k8s.kuma.io/namespace"], m.Labels["kuma.io/display-name"]
		}
		if namespace != "backend-ns" && namespace != "frontend-ns" {
			continue
		}
		if err := note(out, keyOf(one.Kind, zone, namespace, name), one.Spec); err != nil {
			return nil, err
		}
	}
	return out, nil
}
