package main

import (
	"context"
	"fmt"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// delivery lists where a policy written in zone-1 is expected.
type delivery struct {
	policy, role string
	where        []sighting
}

// sighting is a server, whether the policy should be there, and its name there; empty if it is not there.
type sighting struct {
	server string
	want   bool
	name   string
}

func (s sighting) ok() bool { return s.want == (s.name != "") }

// showDelivery applies the consumer's policy and then the producer's in zone-1. Both travel on the same stream, in the
// order in which they were written. So when the producer's has arrived, the consumer's will not arrive any more.
func (m *mesh) showDelivery(ctx context.Context) ([]delivery, error) {
	files := []applied{{"consumer-timeout.yaml", zone1}, {"producer-timeout.yaml", zone1}}
	for _, a := range files {
		if err := m.apply(ctx, a); err != nil {
			return nil, err
		}
	}
	err := cluster.Until(ctx, settleTimeout, "the producer's policy in zone-2", func(ctx context.Context) error {
		it, err := m.find(ctx, zone2, "producer-timeout")
		if err == nil && it == nil {
			err = fmt.Errorf("it is not there")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return m.sightings(ctx)
}

func (m *mesh) sightings(ctx context.Context) ([]delivery, error) {
	expected := []delivery{
		{policy: "producer-timeout", where: []sighting{{zone1, true, ""}, {globalServer, true, ""}, {zone2, true, ""}}},
		{policy: "consumer-timeout", where: []sighting{{zone1, true, ""}, {globalServer, true, ""}, {zone2, false, ""}}},
	}
	for i := range expected {
		for j := range expected[i].where {
			s := &expected[i].where[j]
			it, err := m.find(ctx, s.server, expected[i].policy)
			if err != nil {
				return nil, err
			}
			if it != nil {
				s.name = it.Name
				if s.server == zone1 {
					expected[i].role = it.Labels["kuma.io/policy-role"]
				}
			}
		}
	}
	return expected, nil
}

// find returns the MeshTimeout with that display name on a server, or nil.
func (m *mesh) find(ctx context.Context, server, displayName string) (*cluster.Item, error) {
	items, err := m.servers[server].API.List(ctx, "/meshes/"+meshName+"/meshtimeouts")
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		if it.Name == displayName || it.Labels["kuma.io/display-name"] == displayName {
			return &it, nil
		}
	}
	return nil, nil
}
