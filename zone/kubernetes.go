package zone

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/kubernetes"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/kubernetes/discovery"
	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/kubernetes/podtoken"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// Injection holds the operator's settings for the proxies that the zone injects into pods. Without an image, it injects
// none.
type Injection struct {
	// Image contains causeway-zone, EnvoyImage the proxy.
	Image, EnvoyImage string
	// XDSAddress is the zone's xDS server as pods reach it: host:port.
	XDSAddress string
	// CNI means that a plugin on each node captures pods, and no container of a pod.
	CNI bool
	// Requests and Limits are the resources of a pod's proxy, such as cpu and memory; those of injection.Requests and
	// injection.Limits where they are nil.
	Requests, Limits map[string]string
}

// validate returns an error for invalid settings; connected reports whether the zone has a cluster and a webhook.
func (i *Injection) validate(connected bool) error {
	switch {
	case i.Image == "" && i.EnvoyImage == "" && i.XDSAddress == "" && !i.CNI:
		return nil
	case !connected:
		return errors.New("--injection-image: needs --kubernetes with a webhook, which the API server calls for each pod")
	case i.Image == "" || i.EnvoyImage == "" || i.XDSAddress == "":
		return errors.New("--injection-image, --injection-envoy-image and --injection-xds-address: want all of them, or none")
	}
	_, _, secure, err := xdsAddress(i.XDSAddress)
	if err == nil && !secure {
		err = errors.New("pods do not reach loopback")
	}
	if err != nil {
		return fmt.Errorf("--injection-xds-address %q: %w", i.XDSAddress, err)
	}
	if err := injection.CheckResources(i.Requests, i.Limits); err != nil {
		return fmt.Errorf("--injection-%w", err)
	}
	return nil
}

// injectionOf returns the settings that the proxies of all pods share; nil if the zone injects none.
func injectionOf(cfg *Config, p *ports) func() *injection.Settings {
	if cfg.Injection.Image == "" {
		return nil
	}
	return func() *injection.Settings {
		s := &injection.Settings{Image: cfg.Injection.Image, Envoy: cfg.Injection.EnvoyImage, XDSAddress: cfg.Injection.XDSAddress,
			Audience: podtoken.Audience, SystemNamespace: cmp.Or(cfg.SystemNamespace, resources.DefaultSystemNamespace)}
		s.ClusterDNS, s.CNI, s.IPv6, s.Bootstrap = cfg.DNSAddress != "", cfg.Injection.CNI, apiserver.PrefersIPv6(), PodBootstrap
		s.Requests, s.Limits, s.XDSCA = cfg.Injection.Requests, cfg.Injection.Limits, string(p.authority())
		return s
	}
}

// PodBootstrap returns the bootstrap of the proxy of a pod, as JSON without spaces: as YAML, it is half as long again.
func PodBootstrap(b *injection.Bootstrap) ([]byte, error) {
	cfg := BootstrapConfig{Mesh: b.Mesh, Namespace: b.Namespace, Dataplane: b.Name, XDSAddress: b.XDSAddress, XDSCA: b.XDSCA,
		RenewedTokenFile: b.TokenFile, AdminAddress: b.AdminAddress, ReadyAddress: b.ReadyAddress, DrainTime: b.Drain, ClusterDNS: b.ClusterDNS,
		Probes: b.Probes, ProbeAddress: b.ProbeAddress, ApplicationAddress: b.Application, ApplicationLater: true, ApplicationIPv6: b.IPv6}
	text, err := cfg.render()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Compact(&out, text)
	return out.Bytes(), err
}

// newBridge returns the connection to a Kubernetes cluster, which also tells the HTTP API what users write there; nil
// without a cluster.
func newBridge(cfg *Config, o *opened, p *ports, spread *rollout, diagnostics *server.Diagnostics) (*kubernetes.Bridge, error) {
	if cfg.Kubernetes == nil {
		return nil, nil
	}
	return kubernetes.Open(kubernetes.Config{
		Settings: *cfg.Kubernetes, Injection: injectionOf(cfg, p), Authority: p.authority, Home: o.home, Store: o.store, Routes: spread.routes,
		Rollout: func(r *resources.Resource) *tracker.Rollout { return spread.of(r, nil) },
		Pulse: func() string {
			return fmt.Sprint(spread.status.Snapshot().Revision(), spread.link != nil && spread.link.Connected())
		},
		Term: cfg.term, Panics: cfg.Panics, Now: cfg.Now, Log: cfg.Log,
	}, kubernetes.Host{DataDir: cfg.DataDir, Box: o.box, Agent: "causeway-zone"}, diagnostics)
}

// newDiscovery returns the controller that makes Dataplanes and MeshServices of the cluster's pods and Services; nil
// without a cluster.
func newDiscovery(cfg *Config, o *opened, p *ports, bridge *kubernetes.Bridge, authorities *identity.Authorities, proxies *xds.Proxies,
	diagnostics *server.Diagnostics) *discovery.Controller {
	if bridge == nil {
		return nil
	}
	d := discovery.New(discovery.Config{Client: bridge.Client, Store: o.store, Home: o.home, Limits: cfg.NamespaceLimits,
		Authority: p.authority, Settled: proxies.Settled, Now: cfg.Now,
		Identities: func(mesh string) func(*resources.Resource) []string {
			return identitiesIn(o.store, o.home, authorities, mesh)
		}, Log: cfg.Log})
	diagnostics.Registry.MustRegister(cfg.Panics.Collector("metrics", d))
	return d
}

// identitiesIn returns a function for the SPIFFE IDs of a mesh's Dataplanes: the current ones, and those that take
// effect once the authorities of new MeshIdentities sign. Other zones thus know an ID before a proxy presents it.
func identitiesIn(known store.Reader, home resources.Home, authorities *identity.Authorities,
	mesh string) func(*resources.Resource) []string {
	all := []*identity.Assignments{authorities.Assignments(mesh), identity.AssignmentsIn(known.Snapshot(), mesh, home.Zone, nil)}
	return func(dp *resources.Resource) (out []string) {
		for _, who := range all {
			if it, err := who.Of(dp); err == nil {
				out = append(out, it.ID.String())
			}
		}
		return out
	}
}
