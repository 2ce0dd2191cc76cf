package abuse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	secretservice "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/api"
)

// proxiesOfTheTable are the resources in the zone when proxies connect.
const proxiesOfTheTable = `
{type: Dataplane, mesh: default, name: shop, networking: {address: 127.0.0.1, inbound: [{name: http, port: 18090, servicePort: 18091, protocol: http}]}}
---
{type: Dataplane, mesh: default, name: till, networking: {address: 127.0.0.1, inbound: [{name: http, port: 18092, servicePort: 18093, protocol: http}]}}
---
{type: Dataplane, mesh: default, namespace: payments, name: shop, networking: {address: 127.0.0.1, inbound: [{name: http, port: 18094, servicePort: 18095, protocol: http}]}}
`

const identitySecrets = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

// proxyTokens creates the credentials of the Dataplane shop, and of others, good and bad.
func (w *world) proxyTokens() {
	s, t := w.zone, w.t
	if _, err := s.admin.ApplyDocuments(t.Context(), []byte(proxiesOfTheTable), "application/yaml"); err != nil {
		t.Fatal(err)
	}
	w.keep(s, "dp-shop", w.dataplaneToken("default", "", `{"dataplane": "shop"}`))
	w.keep(s, "dp-till", w.dataplaneToken("default", "", `{"dataplane": "till"}`))
	w.keep(s, "dp-shop-payments", w.dataplaneToken("default", "payments", `{"dataplane": "shop"}`))
	w.keep(s, "dp-workload", w.dataplaneToken("default", "", `{"workload": "till"}`))
	w.keep(s, "dp-labels", w.dataplaneToken("default", "", `{"labels": {"app": "shop"}}`))
	good := w.dataplaneToken("default", "", `{"dataplane": "shop"}`)
	parts := strings.Split(good, ".")
	var claims map[string]any
	decode(t, parts[1], &claims)
	claims["dataplane"] = "till"
	w.keep(s, "dp-altered", parts[0]+"."+encode(t, claims)+"."+parts[2])
	var header map[string]string
	decode(t, parts[0], &header)
	header["alg"] = "none"
	w.keep(s, "dp-none", encode(t, header)+"."+parts[1]+".")
	revoked := w.dataplaneToken("default", "", `{"dataplane": "shop"}`)
	var of struct {
		ID string `json:"jti"`
	}
	decode(t, strings.Split(revoked, ".")[1], &of)
	body, err := json.Marshal(map[string]string{"id": of.ID})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.admin.JSON(t.Context(), api.Request{Method: http.MethodPost, Path: "/_dataplane-tokens/_revoke",
		Body: body}, nil); err != nil {
		t.Fatal(err)
	}
	w.keep(s, "dp-revoked", revoked)
	expired := w.dataplaneToken("default", "", `{"dataplane": "shop", "validFor": "1s"}`)
	w.keep(s, "dp-expired", expired)
	eventually(t, "the proxy's token to expire", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), attemptTimeout)
		defer cancel()
		code, _, err := xdsAttempt(ctx, w, s, side{As: "dp-expired", With: map[string]string{"node": "default.shop"}})
		return err == nil && code != "OK"
	})
}

func (w *world) dataplaneToken(mesh, namespace, body string) string {
	w.t.Helper()
	path := "/meshes/" + mesh + "/_dataplane-tokens"
	if namespace != "" {
		path += "?namespace=" + namespace
	}
	var answer struct{ Token string }
	if err := w.zone.admin.JSON(w.t.Context(), api.Request{Method: http.MethodPost, Path: path, Body: []byte(body)},
		&answer); err != nil {
		w.t.Fatal(err)
	}
	return answer.Token
}

// xdsAttempt opens a stream for a node, and requests the secret in `with`, or all clusters. It ends with OK if there is
// an answer. An answer without the secret ends with NotThere.
func xdsAttempt(ctx context.Context, w *world, s *aServer, one side) (code, says string, err error) {
	conn, err := grpc.NewClient(s.addresses["xds"], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", "", err
	}
	defer conn.Close()
	if token := w.of(s, one.As).token; token != "" {
		scheme := one.With["scheme"]
		if scheme == "" {
			scheme = "Bearer"
		}
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", scheme+" "+token)
	}
	node := &corev3.Node{Id: one.With["node"]}
	if namespace := one.With["namespace"]; namespace != "" {
		node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{"namespace": structpb.NewStringValue(namespace)}}
	}
	request := &discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster"}
	secret := one.With["secret"]
	if secret != "" {
		request.TypeUrl, request.ResourceNamesSubscribe = identitySecrets, []string{secret, "identity_cert:default/shop"} // what is not there alone is not answered
	}
	switch one.With["via"] {
	case "sotw":
		return sotwAttempt(ctx, conn, request)
	case "sds":
		_, err := secretservice.NewSecretDiscoveryServiceClient(conn).FetchSecrets(ctx,
			&discovery.DiscoveryRequest{Node: node, TypeUrl: identitySecrets, ResourceNames: []string{secret}})
		return status.Code(err).String(), fmt.Sprint(err), nil
	}
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		return status.Code(err).String(), err.Error(), nil
	}
	if err := stream.Send(request); err != nil && !errors.Is(err, io.EOF) {
		return "", "", err
	}
	answer, err := stream.Recv()
	if err != nil {
		if ctx.Err() != nil {
			return "", "", errors.New("no answer within " + attemptTimeout.Round(time.Second).String())
		}
		return status.Code(err).String(), err.Error(), nil
	}
	for _, r := range answer.GetResources() {
		if secret == "" || r.GetName() == secret {
			return "OK", "", nil
		}
	}
	if secret == "" {
		return "OK", "", nil
	}
	return "NotThere", "", nil
}

// sotwAttempt sends the equivalent of a delta request on a state-of-the-world stream, and looks for the first of its
// secrets.
func sotwAttempt(ctx context.Context, conn *grpc.ClientConn, asked *discovery.DeltaDiscoveryRequest) (code, says string,
	err error) {
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return status.Code(err).String(), err.Error(), nil
	}
	if err := stream.Send(&discovery.DiscoveryRequest{Node: asked.GetNode(), TypeUrl: asked.GetTypeUrl(),
		ResourceNames: asked.GetResourceNamesSubscribe()}); err != nil && !errors.Is(err, io.EOF) {
		return "", "", err
	}
	answer, err := stream.Recv()
	if err != nil {
		return status.Code(err).String(), err.Error(), nil
	}
	for _, raw := range answer.GetResources() {
		var secret tlsv3.Secret
		if err := raw.UnmarshalTo(&secret); err != nil {
			return "", "", err
		}
		if secret.GetName() == asked.GetResourceNamesSubscribe()[0] {
			return "OK", "", nil
		}
	}
	return "NotThere", "", nil
}
