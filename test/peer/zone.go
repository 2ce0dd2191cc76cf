package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"
)

// ZoneConfig describes how a foreign zone behaves.
type ZoneConfig struct {
	Name string
	// KDS is the global's host:port. CA verifies its certificate.
	KDS string
	CA  *x509.CertPool
	// Certificate, if set, is the zone's client certificate. Without one, the global must admit strangers.
	Certificate *tls.Certificate
	// Types are the types that the zone requests.
	Types []string
	// Refuse, if set, returns why the zone refuses a resource, or "".
	Refuse func(Resource) string
}

// Zone is a connected foreign zone. Its methods may be called concurrently.
type Zone struct {
	cfg  ZoneConfig
	conn *grpc.ClientConn
	stop context.CancelFunc
	wait sync.WaitGroup

	mu       sync.Mutex // guards all fields below, and sending on both streams
	copies   map[string]map[string]Resource
	answered map[string]bool // types whose first response has arrived
	offered  map[string]map[string]Resource
	asked    map[string]bool // types that the global has requested
	refusals []string
	nonce    int
	up       grpc.ClientStream
	failed   error
}

const (
	service      = "/kuma.mesh.v1alpha1.KDSSyncService/"
	envelopeType = "type.googleapis.com/kuma.mesh.v1alpha1.KumaResource"
)

// Connect opens both streams. Err returns later errors.
func Connect(ctx context.Context, cfg ZoneConfig) (*Zone, error) {
	config := &tls.Config{RootCAs: cfg.CA, MinVersion: tls.VersionTLS12}
	if cfg.Certificate != nil {
		config.Certificates = []tls.Certificate{*cfg.Certificate}
	}
	conn, err := grpc.NewClient(cfg.KDS,
		grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(10<<20), grpc.UseCompressor(gzip.Name)))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	z := &Zone{
		cfg: cfg, conn: conn, stop: stop, copies: map[string]map[string]Resource{}, answered: map[string]bool{},
		offered: map[string]map[string]Resource{}, asked: map[string]bool{},
	}
	if err := z.open(ctx); err != nil {
		return nil, errors.Join(err, z.Close())
	}
	return z, nil
}

func (z *Zone) open(ctx context.Context) error {
	ctx = metadata.AppendToOutgoingContext(ctx, "client-id", z.cfg.Name, "kds-version", "v3",
		"features", "zone-ping-health", "features", "hash-suffix", "version", "2.14.3")
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	down, err := z.conn.NewStream(ctx, desc, service+"GlobalToZoneSync")
	if err != nil {
		return err
	}
	if z.up, err = z.conn.NewStream(ctx, desc, service+"ZoneToGlobalSync"); err != nil {
		return err
	}
	node, err := z.node()
	if err != nil {
		return err
	}
	for _, t := range z.cfg.Types {
		request := &discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: t, ResourceNamesSubscribe: []string{"*"}}
		if err := down.SendMsg(request); err != nil {
			return err
		}
	}
	z.wait.Go(func() { z.fail(z.receive(down)) })
	z.wait.Go(func() { z.fail(z.serve()) })
	return nil
}

// node returns the node of such a zone in the first request of each type.
func (z *Zone) node() (*corev3.Node, error) {
	meta, err := structpb.NewStruct(map[string]any{
		"control-plane-id": z.cfg.Name + "-1",
		"config":           `{"store":{"type":"memory"}}`,
		"features": []any{"zone-token", "hash-suffix", "hg-mz-selector", "producer-policy-flow",
			"optional-top-level-target-ref"},
		"version": map[string]any{"kumaCp": map[string]any{"version": "2.14.3"}},
	})
	return &corev3.Node{Id: z.cfg.Name, Metadata: meta}, err
}

// receive reads what the global sends, and acknowledges or refuses it.
func (z *Zone) receive(down grpc.ClientStream) error {
	for {
		response := &discovery.DeltaDiscoveryResponse{}
		if err := down.RecvMsg(response); err != nil {
			return err
		}
		refused, err := z.keep(response)
		if err != nil {
			return err
		}
		answer := &discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: z.cfg.Name}, TypeUrl: response.TypeUrl,
			ResponseNonce: response.Nonce}
		if refused != "" {
			answer.ErrorDetail = &rpcstatus.Status{Message: refused}
			answer.ResourceNamesSubscribe = []string{"*"}
		}
		if err := down.SendMsg(answer); err != nil {
			return err
		}
	}
}

// keep stores a response: the first of a type is the whole list, later ones are changes.
func (z *Zone) keep(response *discovery.DeltaDiscoveryResponse) (refused string, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	t := response.TypeUrl
	if !z.answered[t] {
		z.copies[t] = map[string]Resource{}
		z.answered[t] = true
	}
	for _, name := range response.RemovedResources {
		delete(z.copies[t], name)
	}
	for _, wire := range response.Resources {
		r, err := decode(t, wire)
		if err != nil {
			return "", err
		}
		if z.cfg.Refuse != nil {
			if reason := z.cfg.Refuse(r); reason != "" {
				refused += r.wireName() + ": " + reason + "\n"
				continue
			}
		}
		z.copies[t][r.wireName()] = r
	}
	return refused, nil
}

// Copies returns the zone's resources of a type, by wire name, and whether the zone has received the type's list.
func (z *Zone) Copies(t string) (map[string]Resource, bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	all := map[string]Resource{}
	for name, r := range z.copies[t] {
		all[name] = r
	}
	return all, z.answered[t]
}

// serve answers the global's first request of each type with all offered resources, and records refusals.
func (z *Zone) serve() error {
	for {
		request := &discovery.DeltaDiscoveryRequest{}
		if err := z.up.RecvMsg(request); err != nil {
			return err
		}
		z.mu.Lock()
		if d := request.GetErrorDetail(); d != nil {
			z.refusals = append(z.refusals, d.GetMessage())
		}
		var err error
		if !z.asked[request.TypeUrl] {
			z.asked[request.TypeUrl] = true
			err = z.send(request.TypeUrl, z.offered[request.TypeUrl], nil)
		}
		z.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// Offer adds or changes resources of one type, and sends them in one response if the global has asked.
func (z *Zone) Offer(resources ...Resource) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	changed := map[string]Resource{}
	var t string
	for _, r := range resources {
		t = r.Type
		if z.offered[t] == nil {
			z.offered[t] = map[string]Resource{}
		}
		z.offered[t][r.wireName()], changed[r.wireName()] = r, r
	}
	if !z.asked[t] {
		return nil
	}
	return z.send(t, changed, nil)
}

// Withdraw removes a resource.
func (z *Zone) Withdraw(r Resource) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	delete(z.offered[r.Type], r.wireName())
	return z.send(r.Type, nil, []string{r.wireName()})
}

// Refusals returns the reasons of all refusals by the global so far.
func (z *Zone) Refusals() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return append([]string(nil), z.refusals...)
}

// send sends a response. The caller holds mu.
func (z *Zone) send(t string, resources map[string]Resource, removed []string) error {
	z.nonce++
	response := &discovery.DeltaDiscoveryResponse{
		TypeUrl: t, Nonce: fmt.Sprint(z.nonce), RemovedResources: removed,
		ControlPlane: &corev3.ControlPlane{Identifier: z.cfg.Name},
	}
	for _, r := range resources {
		item, err := r.Wire(response.Nonce)
		if err != nil {
			return err
		}
		response.Resources = append(response.Resources, item)
	}
	return z.up.SendMsg(response)
}

func (z *Zone) fail(err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.failed == nil {
		z.failed = err
	}
}

// Err returns why a stream ended, or nil while both are open.
func (z *Zone) Err() error {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.failed
}

// Close ends the connection and waits for the streams.
func (z *Zone) Close() error {
	z.stop()
	err := z.conn.Close()
	z.wait.Wait()
	return err
}
