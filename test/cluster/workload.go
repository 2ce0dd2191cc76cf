package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/app"
)

// Protocols of inbounds.
const (
	ProtocolHTTP  = "http"
	ProtocolHTTP2 = "http2"
	ProtocolTCP   = "tcp"
)

// loopback is the address that everything listens on.
const loopback = "127.0.0.1"

// WorkloadConfig describes a Dataplane and its applications.
type WorkloadConfig struct {
	Zone                  *Server
	Mesh, Namespace, Name string
	// ServiceAccount becomes part of the SPIFFE ID.
	ServiceAccount string
	Labels         map[string]string
	// Inbounds are names and protocols. Each inbound gets its own application and port.
	Inbounds []InboundConfig
	// Outbounds are what the applications may call, each on its own port. A client without a proxy has none.
	Outbounds []OutboundConfig
	// XDS, SpireSocket, Envoy and Bootstrap are those of ProxyConfig.
	XDS, SpireSocket, Envoy string
	Bootstrap               []string
}

// OutboundConfig is one outbound: a name for tests, and the backendRef of the Dataplane.
type OutboundConfig struct {
	Name       string
	BackendRef map[string]any
}

// InboundConfig is one inbound.
type InboundConfig struct {
	Name, Protocol string
	// ServicePort is the port of an application of the caller's own; 0 starts one.
	ServicePort int
}

// Workload is a Dataplane with its proxy and its applications.
type Workload struct {
	WorkloadConfig
	Proxy    *Proxy
	inbounds map[string]*Inbound
	outbound map[string]int
}

// Inbound is a port of a workload. Either HTTP or TCP is set, or neither if the application is the caller's own.
type Inbound struct {
	Name string
	Port int
	HTTP *app.HTTP
	TCP  *app.TCP
	// port is that of an application that the caller has.
	port int
}

// Count returns how many requests or connections have reached the application, which is not the caller's own.
func (in *Inbound) Count() int64 {
	if in.HTTP != nil {
		return in.HTTP.Count()
	}
	return in.TCP.Count()
}

// StartWorkload starts the applications, writes the Dataplane, starts its Envoy and waits until it listens. Close ends
// the applications; the cluster ends the Envoy.
func (c *Cluster) StartWorkload(ctx context.Context, cfg WorkloadConfig) (*Workload, error) {
	w := &Workload{WorkloadConfig: cfg, inbounds: map[string]*Inbound{}, outbound: map[string]int{}}
	err := w.start(ctx, c)
	if err != nil {
		w.Close()
	}
	return w, err
}

func (w *Workload) start(ctx context.Context, c *Cluster) error {
	var ports []int
	var fields []any
	for _, cfg := range w.WorkloadConfig.Inbounds {
		in, err := startInbound(cfg, w.Name+" in "+w.Zone.Name())
		if err != nil {
			return err
		}
		w.inbounds[cfg.Name] = in
		ports = append(ports, in.Port)
		fields = append(fields, map[string]any{
			"name": cfg.Name, "port": in.Port, "servicePort": in.servicePort(), "protocol": cfg.Protocol,
		})
	}
	outbounds, err := w.outbounds()
	if err != nil {
		return err
	}
	if err := writeDataplane(ctx, w.WorkloadConfig, map[string]any{"address": loopback, "inbound": fields,
		"outbound": outbounds}); err != nil {
		return err
	}
	w.Proxy, err = c.StartProxy(ctx, ProxyConfig{
		Zone: w.Zone, Mesh: w.Mesh, Namespace: w.Namespace, Dataplane: w.Name, XDS: w.XDS, SpireSocket: w.SpireSocket,
		Envoy: w.Envoy, Bootstrap: w.Bootstrap,
	})
	if err != nil {
		return err
	}
	return w.Proxy.WaitListeners(ctx, ports...)
}

func startInbound(cfg InboundConfig, service string) (*Inbound, error) {
	port, err := porttest.Free()
	if err != nil {
		return nil, err
	}
	in := &Inbound{Name: cfg.Name, Port: port, port: cfg.ServicePort}
	switch {
	case cfg.ServicePort != 0:
	case cfg.Protocol == ProtocolTCP:
		in.TCP, err = app.StartTCP()
	default:
		in.HTTP, err = app.StartHTTP(service)
	}
	return in, err
}

func (in *Inbound) servicePort() int {
	switch {
	case in.port != 0:
		return in.port
	case in.HTTP != nil:
		return in.HTTP.Port()
	}
	return in.TCP.Port()
}

// Close ends the applications.
func (w *Workload) Close() {
	for _, in := range w.inbounds {
		var err error
		switch {
		case in.HTTP != nil:
			err = in.HTTP.Close()
		case in.TCP != nil:
			err = in.TCP.Close()
		}
		_ = err // there is no one left to report it to
	}
}

// Inbound returns the inbound with that name. It panics if there is none, which is a mistake of the caller.
func (w *Workload) Inbound(name string) *Inbound {
	in, ok := w.inbounds[name]
	if !ok {
		panic(fmt.Sprintf("workload %s has no inbound %q", w.Name, name))
	}
	return in
}

// Path returns the Dataplane's path in the HTTP API, without a query.
func (w *WorkloadConfig) Path() string {
	return "/meshes/" + w.Mesh + "/dataplanes/" + w.Name
}

// Query returns the query for the namespace, if there is one: "?namespace=NS".
func (w *WorkloadConfig) Query() string {
	if w.Namespace == "" {
		return ""
	}
	return "?namespace=" + url.QueryEscape(w.Namespace)
}

// RegisterClient writes a Dataplane that has an identity and no proxy. It returns the identity once its bundles cover
// the trust domains of the zones.
func RegisterClient(ctx context.Context, cfg WorkloadConfig, zones ...string) (*Identity, error) {
	unused := []any{map[string]any{"name": "unused", "port": 1}}
	if err := writeDataplane(ctx, cfg, map[string]any{"address": loopback, "inbound": unused}); err != nil {
		return nil, err
	}
	return cfg.Zone.WaitTrust(ctx, cfg.Mesh, cfg.Namespace, cfg.Name, zones...)
}

// writeDataplane writes the Dataplane as soon as its mesh has reached the zone.
func writeDataplane(ctx context.Context, cfg WorkloadConfig, networking map[string]any) error {
	labels := map[string]string{"k8s.kuma.io/service-account": cfg.ServiceAccount}
	if cfg.ServiceAccount == "" {
		labels = map[string]string{}
	}
	for k, v := range cfg.Labels {
		labels[k] = v
	}
	doc := map[string]any{
		"type": "Dataplane", "mesh": cfg.Mesh, "name": cfg.Name, "labels": labels,
		"networking": networking,
	}
	if cfg.Namespace != "" {
		doc["namespace"] = cfg.Namespace
	}
	if err := cfg.Zone.WaitMesh(ctx, cfg.Mesh); err != nil {
		return err
	}
	return cfg.Zone.API.Put(ctx, cfg.Path()+cfg.Query(), doc)
}

// WaitMesh waits until the server has the mesh. A zone gets it from the global.
func (s *Server) WaitMesh(ctx context.Context, mesh string) error {
	return Until(ctx, readyTimeout, fmt.Sprintf("the mesh %s in %s", mesh, s.Name()), func(ctx context.Context) error {
		if err := s.Alive(); err != nil {
			return err
		}
		return s.API.Get(ctx, "/meshes/"+mesh, nil)
	})
}

// StatusOf returns the HTTP status in an error of API, or zero.
func StatusOf(err error) int {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Status
	}
	return 0
}
