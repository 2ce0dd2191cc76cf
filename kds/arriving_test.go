package kds

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
)

func TestWhatArrives(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range maxNames + 1 {
		many[fmt.Sprintf("n%d.default", i)] = "1"
	}
	for name, m := range map[string]*discovery.DeltaDiscoveryRequest{
		"a long type": {TypeUrl: strings.Repeat("a", maxWord+1)}, "a type with an escape": {TypeUrl: "a\x1b[2J"},
		"a long nonce":       {ResponseNonce: strings.Repeat("1", maxNonce+1)},
		"many names":         {InitialResourceVersions: many},
		"a long version":     {InitialResourceVersions: map[string]string{"a.b": strings.Repeat("1", maxWord+1)}},
		"many subscriptions": {ResourceNamesSubscribe: make([]string, maxSubscribed+1)},
	} {
		if err := checkRequest(m, newInventories()); !errors.Is(err, ErrRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, m := range map[string]*discovery.DeltaDiscoveryResponse{
		"a long type":    {TypeUrl: strings.Repeat("a", maxWord+1)},
		"a long version": {SystemVersionInfo: strings.Repeat("1", maxVersionInfo+1)},
		"nothing at all": {Resources: []*discovery.Resource{nil}},
		"many removals":  {RemovedResources: make([]string, maxNames+1)},
	} {
		if err := checkResponse(m); !errors.Is(err, ErrRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	removed := &discovery.DeltaDiscoveryResponse{RemovedResources: []string{"x", "a.b", "..", strings.Repeat(".", 1<<20)}}
	if err := checkResponse(removed); err != nil || len(removed.GetRemovedResources()) != 1 {
		t.Errorf("%v, %v", err, removed.GetRemovedResources())
	}
	for _, m := range []*discovery.DeltaDiscoveryRequest{
		{}, {TypeUrl: "Mesh", ResponseNonce: "a b", InitialResourceVersions: map[string]string{"default.": "",
			"a.b.c": "1"}, ErrorDetail: &status.Status{}},
	} {
		if err := checkRequest(m, newInventories()); err != nil {
			t.Error(err)
		}
	}
	if _, err := checked(func() (*discovery.DeltaDiscoveryRequest, error) { return nil, io.EOF },
		func(*discovery.DeltaDiscoveryRequest) error { return nil })(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
