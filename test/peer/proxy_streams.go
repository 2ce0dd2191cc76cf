package peer

import (
	"context"
	"slices"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

const ads = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"

// asker requests resources of a type, unless the stream has sent the same request. Without names, it requests all.
type asker func(t string, names ...string) error

// askFirst requests clusters and listeners. If again is set, the proxy announces what it has, and requests routes last.
// Their answer follows all others.
func (p *Proxy) askFirst(again bool, ask asker) error {
	first := []string{ClusterType, ListenerType}
	if again {
		if err := p.askReferred(ask); err != nil {
			return err
		}
		first = append(first, routeType)
	}
	for _, t := range first {
		if err := ask(t); err != nil {
			return err
		}
	}
	return nil
}

// askReferred requests what the listeners leave to discovery.
func (p *Proxy) askReferred(ask asker) error {
	referred := p.referred()
	for _, t := range []string{SecretType, ExtensionType} {
		if names := referred[t]; len(names) > 0 {
			if err := ask(t, names...); err != nil {
				return err
			}
		}
	}
	return nil
}

// delta follows a stream of the newer form.
func (p *Proxy) delta(ctx context.Context, again bool) error {
	stream, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		ads+"DeltaAggregatedResources")
	if err != nil {
		return err
	}
	asked := map[string]map[string]bool{}
	ask := func(t string, names ...string) error {
		if len(names) == 0 {
			names = []string{"*"}
		}
		request := &discovery.DeltaDiscoveryRequest{Node: p.node(), TypeUrl: t}
		if asked[t] == nil {
			asked[t] = map[string]bool{}
			if t != routeType { // so that there is an answer
				request.InitialResourceVersions = p.versionsOf(t)
			}
		}
		for _, name := range names {
			if !asked[t][name] {
				asked[t][name] = true
				request.ResourceNamesSubscribe = append(request.ResourceNamesSubscribe, name)
			}
		}
		if len(request.ResourceNamesSubscribe) == 0 {
			return nil
		}
		return stream.SendMsg(request)
	}
	if err := p.askFirst(again, ask); err != nil {
		return err
	}
	for {
		response := &discovery.DeltaDiscoveryResponse{}
		if err := stream.RecvMsg(response); err != nil {
			return err
		}
		if p.cfg.Refuses != "" {
			if err := stream.SendMsg(&discovery.DeltaDiscoveryRequest{TypeUrl: response.TypeUrl,
				ResponseNonce: response.Nonce, ErrorDetail: &status.Status{Code: int32(codes.InvalidArgument), Message: p.cfg.Refuses}}); err != nil {
				return err
			}
			continue
		}
		changed := map[string]held{}
		for _, r := range response.Resources {
			changed[r.Name] = held{r.Version, r.Resource.GetValue()}
		}
		p.keep(response.TypeUrl, changed, response.RemovedResources)
		if p.cfg.Pace != nil {
			p.cfg.Pace(ctx)
		}
		if err := stream.SendMsg(&discovery.DeltaDiscoveryRequest{TypeUrl: response.TypeUrl,
			ResponseNonce: response.Nonce}); err != nil {
			return err
		}
		if err := p.askReferred(ask); err != nil {
			return err
		}
	}
}

// stateOfTheWorld follows a stream of the older form.
func (p *Proxy) stateOfTheWorld(ctx context.Context, again bool) error {
	stream, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		ads+"StreamAggregatedResources")
	if err != nil {
		return err
	}
	nonces, asked := map[string]string{}, map[string][]string{}
	send := func(t string) error {
		return stream.SendMsg(&discovery.DiscoveryRequest{Node: p.node(), TypeUrl: t, ResourceNames: asked[t],
			ResponseNonce: nonces[t], VersionInfo: p.versionOf(t)})
	}
	ask := func(t string, names ...string) error {
		if before, ok := asked[t]; ok && slices.Equal(names, before) {
			return nil
		}
		asked[t] = names
		return send(t)
	}
	if err := p.askFirst(again, ask); err != nil {
		return err
	}
	for {
		response := &discovery.DiscoveryResponse{}
		if err := stream.RecvMsg(response); err != nil {
			return err
		}
		if err := p.replace(response); err != nil {
			return err
		}
		if p.cfg.Pace != nil {
			p.cfg.Pace(ctx)
		}
		nonces[response.TypeUrl] = response.Nonce
		if err := send(response.TypeUrl); err != nil {
			return err
		}
		if err := p.askReferred(ask); err != nil {
			return err
		}
	}
}
