package xds

import (
	"log/slog"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// pinned returns Proxies that show their admin interfaces, and are identified by MeshIdentities.
func pinned(s store.Store) *Proxies {
	return New(Config{
		Store: s, Status: store.NewMemory(), Home: testHome, Log: slog.New(slog.DiscardHandler),
		AdminPin: "NNSZDPwlZmkS3gJRYLWRN/Ja8OQ5T1Ufj4Sdn/cVZY0=",
		Authorities: identity.NewAuthorities(identity.Config{Keeper: secrets.NewKeeper(store.NewMemory(), testBox()),
			Zone: testHome.Zone, Store: s}),
	})
}

// trusts writes that the mesh trusts an authority of the zone.
func (c *changing) trusts(name string) {
	c.t.Helper()
	authority, err := identity.NewAuthorities(identity.Config{Keeper: secrets.NewKeeper(store.NewMemory(), testBox()),
		Zone: testHome.Zone}).For("default")
	if err != nil {
		c.t.Fatal(err)
	}
	c.put(resources.Key{Type: resources.TypeMeshTrust, Mesh: "default", Name: name}, nil, map[string]any{
		"trustDomain": authority.TrustDomain().Name(),
		"caBundles":   []any{map[string]any{"type": "Pem", "pem": map[string]any{"value": string(authority.PEM())}}}})
}

// belief changes whom the mesh trusts beside the authority that it trusts all the time, or how proxies are identified.
func (c *changing) belief() {
	if c.chance(3) {
		if c.chance(2) {
			c.trusts("another")
			return
		}
		c.apply(store.Op{Delete: resources.Key{Type: resources.TypeMeshTrust, Mesh: "default", Name: "another"}})
		return
	}
	key := resources.Key{Type: resources.TypeMeshIdentity, Mesh: "default", Name: c.one("p", "q").(string)}
	if c.chance(3) {
		c.apply(store.Op{Delete: key})
		return
	}
	c.put(key, nil, map[string]any{
		"selector": map[string]any{"dataplane": map[string]any{"matchLabels": map[string]any{"app": c.one("backend", "other")}}},
		"spiffeID": map[string]any{"trustDomain": "spire.zone-1.mesh.local", "path": "/" + c.one("a", "b").(string) + "/{{ .Workload }}"},
		"provider": map[string]any{"type": "Spire", "spire": map[string]any{"agent": map[string]any{"timeout": c.one("5s", "9s")}}}})
}
