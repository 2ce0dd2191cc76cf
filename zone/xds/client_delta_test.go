package xds_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// deltaClient is a proxy that speaks delta ADS and acknowledges by itself.
type deltaClient struct {
	received[*discovery.DeltaDiscoveryResponse]
	stream   discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	refuse   bool   // answer with an error from now on
	refuses  string // answer so to what contains a resource with this in its name
	versions map[string]map[string]string
}

func (z *zoneServer) dial() (discovery.AggregatedDiscoveryServiceClient, func()) {
	z.t.Helper()
	conn, err := grpc.NewClient(z.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(z.t, err)
	return discovery.NewAggregatedDiscoveryServiceClient(conn), func() { _ = conn.Close() }
}

func (z *zoneServer) delta() *deltaClient {
	z.t.Helper()
	api, closeConn := z.dial()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := api.DeltaAggregatedResources(ctx)
	must(z.t, err)
	c := &deltaClient{stream: stream, versions: map[string]map[string]string{}}
	c.follow(z.t, stream.Recv, cancel, closeConn)
	return c
}

// received is what arrives on a client's stream, until its test closes it.
type received[R any] struct {
	t         *testing.T
	responses chan R
	err       chan error
	close     func()
}

// follow takes in what arrives. To close, end ends the stream and after is called behind it.
func (r *received[R]) follow(t *testing.T, receive func() (R, error), end, after func()) {
	r.t, r.responses, r.err = t, make(chan R, 100), make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			response, err := receive()
			if err != nil {
				r.err <- err
				return
			}
			r.responses <- response
		}
	}()
	r.close = sync.OnceFunc(func() {
		end()
		<-ended
		after()
	})
	t.Cleanup(r.close)
}

func (c *deltaClient) send(r *discovery.DeltaDiscoveryRequest) {
	c.t.Helper()
	must(c.t, c.stream.Send(r))
}

// subscribe asks for names of a type; the node goes with it.
func (c *deltaClient) subscribe(node *corev3.Node, typeURL string, names ...string) {
	c.t.Helper()
	c.send(&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: typeURL, ResourceNamesSubscribe: names})
}

// next is the next response, answered, and its resources by name.
func (c *deltaClient) next(typeURL string) *discovery.DeltaDiscoveryResponse {
	c.t.Helper()
	r := c.any()
	if r.TypeUrl != typeURL {
		c.t.Fatalf("got a response of type %s: %v, removed %v; want type %s", r.TypeUrl, names(r),
			r.RemovedResources, typeURL)
	}
	return r
}

// any is the next response of whatever type, answered.
func (c *deltaClient) any() *discovery.DeltaDiscoveryResponse {
	c.t.Helper()
	select {
	case r := <-c.responses:
		c.answer(r)
		return r
	case err := <-c.err:
		c.t.Fatalf("the stream ended: %v", err)
	case <-time.After(patience):
		c.t.Fatal("no response")
	}
	return nil
}

// answer takes a response, or refuses it.
func (c *deltaClient) answer(r *discovery.DeltaDiscoveryResponse) {
	c.t.Helper()
	answer := &discovery.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce}
	if c.refuse || c.refuses != "" && slices.ContainsFunc(names(r), func(name string) bool { return strings.Contains(name, c.refuses) }) {
		answer.ErrorDetail = &status.Status{Code: 3, Message: "no, thank you"}
	}
	c.send(answer)
	if c.versions[r.TypeUrl] == nil {
		c.versions[r.TypeUrl] = map[string]string{}
	}
	for _, x := range r.Resources {
		c.versions[r.TypeUrl][x.Name] = x.Version
	}
	for _, name := range r.RemovedResources {
		delete(c.versions[r.TypeUrl], name)
	}
}

// nothing says that no response came until now.
func (c *deltaClient) nothing() {
	c.t.Helper()
	select {
	case r := <-c.responses:
		c.t.Fatalf("got a response of type %s: %v, removed %v; want none", r.TypeUrl, names(r), r.RemovedResources)
	default:
	}
}

// fails waits for the stream's end.
func (c *deltaClient) fails() error {
	c.t.Helper()
	select {
	case err := <-c.err:
		return err
	case <-time.After(patience):
		c.t.Fatal("the stream goes on")
		return nil
	}
}

func names(r *discovery.DeltaDiscoveryResponse) []string {
	var out []string
	for _, x := range r.Resources {
		out = append(out, x.Name)
	}
	return out
}
