package xds

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	xdscore "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcher "github.com/cncf/xds/go/xds/type/matcher/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// allowed returns the filter of a rule that allows n identities.
func allowed(n int) message {
	var conf resources.PermissionConf
	for i := range n {
		conf.Allow = append(conf.Allow, resources.PermissionMatch{SpiffeID: &resources.SpiffeIDMatch{
			Type: resources.MatchExact, Value: fmt.Sprintf("spiffe://default.zone-1.mesh.local/ns/n/sa/s%d", i)}})
	}
	return rbac.Compiled.HTTPFilter(matching.Rules{Items: []matching.Rule{{Conf: conf}}})
}

func TestExtensionsAreWrittenAsProtobufDoes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"f", "self_inbound_dp_main_rbac_http", strings.Repeat("n", 127), strings.Repeat("n", 128), "\u00e9"} {
		for i, filter := range []message{&httprbac.RBAC{}, rbac.DenyAllHTTP(), rbac.DenyAllNetwork("main."), allowed(1), allowed(40), allowed(3000)} {
			inner, err := pack(filter)
			if err != nil {
				t.Fatal(err)
			}
			want, err := newResource(kindExtension, name, &corev3.TypedExtensionConfig{Name: name, TypedConfig: inner})
			if err != nil {
				t.Fatal(err)
			}
			got, err := newExtension(name, filter)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.delta.Resource.Value, want.delta.Resource.Value) || got.version != want.version ||
				got.name != want.name || got.delta.Resource.TypeUrl != want.delta.Resource.TypeUrl {
				t.Errorf("filter %d of the name %.10q: %x, want %x", i, name, got.delta.Resource.Value, want.delta.Resource.Value)
			}
			if cap(got.delta.Resource.Value) != len(want.delta.Resource.Value) {
				t.Errorf("filter %d holds %d bytes for %d", i, cap(got.delta.Resource.Value), len(want.delta.Resource.Value))
			}
		}
	}
}

func TestExtensionsThatEnvoyRefusesAreNotMade(t *testing.T) {
	t.Parallel()
	bad := rbac.DenyAllHTTP()
	bad.Matcher.OnNoMatch = &xdsmatcher.Matcher_OnMatch{OnMatch: &xdsmatcher.Matcher_OnMatch_Action{Action: &xdscore.TypedExtensionConfig{}}}
	for what, err := range map[string]error{
		"no name":                 second(newExtension("", rbac.DenyAllHTTP())),
		"a name that is no text":  second(newExtension("\xff", rbac.DenyAllHTTP())),
		"an action without name":  second(newExtension("f", bad)),
		"a value that is no text": second(newExtension("f", rbac.DenyAllNetwork("\xff"))),
	} {
		if !errors.Is(err, ErrConfig) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
