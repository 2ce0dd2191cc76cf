package abuse

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	accesslogs "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
	"github.com/causeway-mesh/causeway/questions/questionspb"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// joinToken returns the token of a new zone's join string.
func (w *world) joinToken(t *testing.T) string {
	t.Helper()
	var offer struct {
		Join string `json:"join"`
	}
	w.newcomers++
	path := "/zones/" + w.newcomer() + "/_join"
	if err := w.global.admin.JSON(t.Context(), api.Request{Method: http.MethodPost, Path: path, Body: []byte(`{}`)},
		&offer); err != nil {
		t.Fatal(err)
	}
	parsed, err := enrolment.ParseJoinString(offer.Join)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Token
}

// newcomer returns the zone of the last join string.
func (w *world) newcomer() string { return fmt.Sprintf("newcomer-%d", w.newcomers) }

// signingRequest returns a request of that zone.
func (w *world) signingRequest() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	is := enrolment.ZoneIdentity{Zone: w.newcomer(), ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", w.newcomers)}
	return x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{is.URI()}}, key)
}

func enterHTTP(port, path string) func(context.Context, *world, *aServer, brought) (string, error) {
	return func(ctx context.Context, _ *world, s *aServer, b brought) (string, error) {
		base := s.url
		if port != "api" {
			base = "http://" + s.addresses[port]
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path+"?"+b.query, nil)
		if err != nil {
			return "", err
		}
		for _, v := range b.values {
			req.Header.Add("Authorization", v)
		}
		ended, says, err := send(s, credential{certificate: b.certificate}, req)
		switch {
		case err != nil && strings.Contains(err.Error(), "remote error: tls"):
			return "closed", nil
		case strings.Contains(says, `"anonymous"`):
			ended += " anonymous"
		}
		return ended, err
	}
}

// dialKDS presents the certificate, and the values as metadata.
func dialKDS(ctx context.Context, s *aServer, b brought) (context.Context, *grpc.ClientConn, error) {
	config := &tls.Config{RootCAs: s.tls().RootCAs, MinVersion: tls.VersionTLS13}
	if b.certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return b.certificate, nil }
	}
	conn, err := grpc.NewClient(s.addresses["kds"], grpc.WithTransportCredentials(credentials.NewTLS(config)))
	ctx = metadata.AppendToOutgoingContext(ctx, "client-id", "zone-1")
	for _, v := range b.values {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", v)
	}
	return ctx, conn, err
}

func enterHealth(ctx context.Context, _ *world, s *aServer, b brought) (string, error) {
	ctx, conn, err := dialKDS(ctx, s, b)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	err = conn.Invoke(ctx, "/kuma.mesh.v1alpha1.GlobalKDSService/HealthCheck", new(meshpb.ZoneHealthCheckRequest),
		new(meshpb.ZoneHealthCheckResponse))
	return codeOf(ctx, err)
}

func enterQuestions(ctx context.Context, _ *world, s *aServer, b brought) (string, error) {
	ctx, conn, err := dialKDS(ctx, s, b)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_, err = questionspb.NewQuestionServiceClient(conn).Take(ctx, &questionspb.TakeRequest{})
	return codeOf(ctx, err)
}

// enterSync opens a KDS stream and waits for the first message; asks makes it send the request for it.
func enterSync(method string, asks bool) func(context.Context, *world, *aServer, brought) (string, error) {
	return func(ctx context.Context, _ *world, s *aServer, b brought) (string, error) {
		ctx, conn, err := dialKDS(ctx, s, b)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
			"/kuma.mesh.v1alpha1.KDSSyncService/"+method)
		if err != nil {
			return codeOf(ctx, err)
		}
		if !asks {
			return codeOf(ctx, stream.RecvMsg(new(discovery.DeltaDiscoveryRequest)))
		}
		request := &discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "zone-1"}, TypeUrl: "Mesh"}
		if err := stream.SendMsg(request); err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		return codeOf(ctx, stream.RecvMsg(new(discovery.DeltaDiscoveryResponse)))
	}
}

// enterJoin presents the token as a join string does.
func enterJoin(ctx context.Context, w *world, s *aServer, b brought) (string, error) {
	b.values = nil // credentials beside a join string are checked too
	ctx, conn, err := dialKDS(ctx, s, b)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	csr, err := w.signingRequest()
	if err != nil {
		return "", err
	}
	_, err = enrolment.Membership{Conn: conn}.Join(ctx, &enrolmentpb.JoinRequest{Token: b.token, Csr: csr})
	return codeOf(ctx, err)
}

func enterXDS(via string) func(context.Context, *world, *aServer, brought) (string, error) {
	return func(ctx context.Context, w *world, s *aServer, b brought) (string, error) {
		for _, v := range b.values {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", v)
		}
		with := map[string]string{"node": "default.shop", "via": via}
		if via != "" {
			with["secret"] = "identity_cert:default/shop"
		}
		ended, _, err := xdsAttempt(ctx, w, s, side{With: with})
		return ended, err
	}
}

// enterAccessLogs sends the message that identifies a proxy; a server that accepts logs keeps reading.
func enterAccessLogs(ctx context.Context, _ *world, s *aServer, b brought) (string, error) {
	conn, err := grpc.NewClient(s.addresses["xds"], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	for _, v := range b.values {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", v)
	}
	stream, err := accesslogs.NewAccessLogServiceClient(conn).StreamAccessLogs(ctx)
	if err != nil {
		return codeOf(ctx, err)
	}
	first := &accesslogs.StreamAccessLogsMessage{Identifier: &accesslogs.StreamAccessLogsMessage_Identifier{Node: &corev3.Node{Id: "default.shop"}, LogName: "causeway"}}
	if err := stream.Send(first); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	_, err = stream.CloseAndRecv()
	return codeOf(ctx, err)
}

// codeOf returns the code of err, or an error if there was no answer.
func codeOf(ctx context.Context, err error) (string, error) {
	if err != nil && ctx.Err() != nil {
		return "", fmt.Errorf("no answer within %s", entranceTimeout)
	}
	return status.Code(err).String(), nil
}
