package secrets

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/backend"
)

// sensitive has a spec for each type that can hold secrets, with "S3cret" in each place.
var sensitive = map[resources.Type]string{
	resources.TypeMeshExternalService: `{"match":{"port":443},"tls":{"enabled":true,"verification":{"clientCert":{"inlineString":"public"},"clientKey":{"inlineString":"S3cret"}}}}`,
	resources.TypeMeshIdentity:        `{"provider":{"type":"Bundled","bundled":{"ca":{"privateKey":{"type":"InsecureInline","insecureInline":{"value":"S3cret"}}}}}}`,
	resources.TypeMeshGateway:         `{"conf":{"listeners":[{"tls":{"certificates":[{"inline":"S3cretS3cret"}]}}]}}`,
	resources.TypeMesh:                `{"mtls":{"backends":[{"conf":{"key":{"inlineString":"S3cret"},"fromCp":{"auth":{"token":{"inline":"S3cret"}}}}}]}}`,
	resources.TypeMeshHTTPRoute:       `{"to":[{"rules":[{"default":{"filters":[{"requestHeaderModifier":{"set":[{"name":"Authorization","value":"S3cret"},{"name":"x-color","value":"public"}]}}]}}]}]}`,
	resources.TypeMeshProxyPatch:      `{"default":{"appendModifications":[{"cluster":{"value":"-----BEGIN PRIVATE KEY-----S3cret"}}]}}`,
	resources.TypeMeshTrace:           `{"default":{"backends":[{"api_key":"S3cret","openTelemetry":{"endpoint":"public"}}]}}`,
	resources.TypeMeshMetric:          `{"default":{"backends":[{"headers":{"token":"S3cret"},"password":"S3cret"}]}}`,
}

func made(t testing.TB, kind resources.Type, name, spec string) *resources.Resource {
	t.Helper()
	s, err := resources.NewSpec(kind, []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	r := &resources.Resource{Key: resources.Key{Type: kind, Name: name}, Spec: s, Labels: map[string]string{}}
	if d := r.Descriptor(); d.Scope == resources.ScopeMesh {
		r.Mesh = "default"
	}
	return r
}

// TestFieldsAreSealed checks for each type that secrets are sealed and open only for their resource, and that all other
// fields stay unchanged.
func TestFieldsAreSealed(t *testing.T) {
	fields := NewFields(open(t, Config{Dir: t.TempDir()}))
	for kind, spec := range sensitive {
		plain := made(t, kind, "one", spec)
		sealed, err := fields.Seal(plain, nil)
		if err != nil {
			t.Fatal(err)
		}
		raw := sealed.Spec.JSON()
		if bytes.Contains(raw, []byte("S3cret")) || !sealed.Spec.Sealed() ||
			strings.Contains(spec, "public") != bytes.Contains(raw, []byte("public")) {
			t.Errorf("%s: stored as %s", kind, raw)
		}
		if shown := string(resources.Redact(raw)); strings.Contains(shown, "causeway") ||
			!strings.Contains(shown, "sha256:") {
			t.Errorf("%s: shown as %s", kind, shown)
		}
		if opened, err := fields.Open(sealed); err != nil || !opened.Spec.Equal(plain.Spec) {
			t.Errorf("%s: opened: %v", kind, err)
		}
		if again, err := fields.Seal(plain, sealed); err != nil || !again.SameContent(sealed) {
			t.Errorf("%s: sealed anew although nothing changed: %v", kind, err)
		}
		if same, err := fields.Seal(sealed, sealed); err != nil || same != sealed {
			t.Errorf("%s: what is sealed was sealed: %v", kind, err)
		}
		moved := sealed.Clone()
		moved.Name = "two"
		if _, err := fields.Open(moved); err == nil {
			t.Errorf("%s: it opens for another resource", kind)
		}
		read := made(t, kind, "one", string(resources.Redact(raw)))
		if kept, err := resources.KeepShown(read, sealed); err != nil || !kept.SameContent(sealed) {
			t.Errorf("%s: what was read and applied is not what it was: %v", kind, err)
		}
		if _, err := resources.KeepShown(read, nil); err == nil {
			t.Errorf("%s: a hash was taken for a secret", kind)
		}
	}
}

// TestWhatHasNoSecretIsLeftAlone checks that a resource without secrets is not copied.
func TestWhatHasNoSecretIsLeftAlone(t *testing.T) {
	fields := NewFields(open(t, Config{Dir: t.TempDir()}))
	for _, r := range []*resources.Resource{
		made(t, resources.TypeMeshTimeout, "t", `{"to":[{"default":{"idleTimeout":"1s"}}]}`),
		made(t, resources.TypeMeshLoadBalancingStrategy, "l",
			`{"to":[{"default":{"hashPolicies":[{"type":"Header","header":{"name":"x-token"},"key":"user"}]}}]}`),
		made(t, resources.TypeMeshExternalService, "m", `{"tls":{"verification":{"clientKey":{"secret":"name"}}}}`),
		made(t, resources.TypeMeshExternalService, "f", `{"tls":{"verification":{"clientKey":{"file":{"path":"key.pem"}}}}}`),
	} {
		if sealed, err := fields.Seal(r, nil); err != nil || sealed != r {
			t.Errorf("%s: %v, %v", r.Key, sealed, err)
		}
	}
}

// TestStoresInTheClearAreSealed checks that the file no longer contains the plaintext secrets of an older version, and
// that the resources are the same.
func TestStoresInTheClearAreSealed(t *testing.T) {
	dir := t.TempDir()
	config := backend.Config{Path: filepath.Join(dir, "causeway.db"), Log: quiet}
	old, err := backend.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	for kind, spec := range sensitive {
		if _, err := old.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: made(t, kind, "one", spec)}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	fields := NewFields(open(t, Config{Dir: dir}))
	s, err := backend.OpenSealed(t.Context(), config, fields)
	if err != nil {
		t.Fatal(err)
	}
	opened := fields.Opened(s, nil)
	for kind, spec := range sensitive {
		want := made(t, kind, "one", spec)
		first, second := opened.Snapshot().Get(want.Key), opened.Snapshot().Get(want.Key)
		if first == nil || !first.Spec.Equal(want.Spec) || first != second {
			t.Errorf("%s: opened as %v", kind, first)
		}
	}
	revision := s.Snapshot().Revision()
	for kind, spec := range sensitive { // written again, as a peer does after a restart
		commit, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: made(t, kind, "one", spec)}}})
		if err != nil || len(commit.Changes) > 0 || commit.Revision != revision {
			t.Errorf("%s: %v, %v", kind, commit, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if bytes.Contains(fileOf(t, file), []byte("S3cret")) {
			t.Errorf("%s has a secret in the clear", file)
		}
	}
}

func fileOf(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
