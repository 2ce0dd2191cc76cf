package kds

import (
	"bytes"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/causeway-mesh/causeway/resources"
)

// TestSecretsOnTheWire checks that a zone gets the value, and so does a Kuma peer; that a global that supports hidden
// secrets gets a hash; and that the version, which peers keep in the clear, is not derived from the value.
func TestSecretsOnTheWire(t *testing.T) {
	t.Parallel()
	spec, err := resources.NewSpec(resources.TypeMeshExternalService,
		[]byte(`{"match":{"port":443},"tls":{"verification":{"clientKey":{"inlineString":"S3cret"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	plain := &resources.Resource{Key: resources.Key{Type: resources.TypeMeshExternalService, Mesh: "default",
		Name: "out"}, Spec: spec, Labels: map[string]string{}}
	edited := func(r *resources.Resource, to string) (*resources.Resource, error) {
		spec, err := resources.EditSecrets(r, func(_, _ string) (string, error) { return to, nil })
		return r.WithSpec(spec), err
	}
	open := func(r *resources.Resource) (*resources.Resource, error) { return edited(r, "S3cret") }
	r, err := edited(plain, resources.SealedText([]byte("sealed")))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name  string
		to    exchange.Audience
		clear bool
	}{
		{"a zone", exchange.Audience{Direction: exchange.GlobalToZone, Zone: "zone-1",
			Features: exchange.OwnFeatures()}, true},
		{"a foreign zone", exchange.Audience{Direction: exchange.GlobalToZone, Zone: "zone-1"}, true},
		{"a global", exchange.Audience{Direction: exchange.ZoneToGlobal, Zone: "zone-1",
			Features: exchange.OwnFeatures()}, false},
		{"a foreign global", exchange.Audience{Direction: exchange.ZoneToGlobal, Zone: "zone-1"}, true},
	} {
		c := newEncoder(exchange.NewMapping(), open).encode(r, &row.to)
		if c.err != nil {
			t.Errorf("%s: %v", row.name, c.err)
			continue
		}
		if got := bytes.Contains(c.bytes(), []byte("S3cret")); got != row.clear {
			t.Errorf("%s: the value is sent: %v, want %v", row.name, got, row.clear)
		}
		if bytes.Contains(c.bytes(), []byte("causewaySealed")) {
			t.Errorf("%s gets the sealed form", row.name)
		}
		ofValue := newEncoder(exchange.NewMapping(), nil).encode(plain, &row.to)
		if c.version == ofValue.version {
			t.Errorf("%s: the version is that of the value", row.name)
		}
	}
}
