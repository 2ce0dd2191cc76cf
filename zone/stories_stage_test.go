package zone_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/explain"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// stage is a backend with an inbound of each kind behind a real Envoy, and clients of two trust domains.
type stage struct {
	*world
	ports        map[string]int
	authorities  map[string]*testCA
	certificates map[string]*tls.Certificate
}

func newStage(t *testing.T, form rbac.Form) *stage {
	t.Helper()
	s := &stage{world: newWorldOf(t, form), ports: map[string]int{}, authorities: map[string]*testCA{},
		certificates: map[string]*tls.Certificate{}}
	s.home.Zone = "" // from the global: any trust domain
	for i, domain := range []string{"trust-domain.mesh", "legacy.mesh"} {
		s.authorities[domain] = newTestCA(t)
		quoted, err := json.Marshal(s.authorities[domain].pem())
		must(t, err)
		s.apply(fmt.Sprintf(`{type: MeshTrust, mesh: default, name: trust-%d, spec: {trustDomain: %s, caBundles: [{type: Pem, pem: {value: %s}}]}}`, i, domain, quoted))
	}
	s.home.Zone = "zone-1"
	web, _ := application(t)
	echo, _ := speaksFirst(t)
	var inbounds []string
	for _, in := range []struct {
		name, protocol string
		service        int
	}{{"http-port", "http", web}, {"admin-port", "http", web}, {"grpc-port", "grpc", grpcApplication(t)},
		{"tcp-port", "tcp", echo}} {
		s.ports[in.name] = freePort(t)
		inbounds = append(inbounds, fmt.Sprintf("{name: %s, port: %d, servicePort: %d, protocol: %s}", in.name,
			s.ports[in.name], in.service, in.protocol))
	}
	s.apply(fmt.Sprintf("{type: Dataplane, mesh: default, name: backend, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [%s]}}", strings.Join(inbounds, ", ")))
	s.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	s.ports[overGRPCGo] = freePort(t)
	s.apply(fmt.Sprintf("{type: Dataplane, mesh: default, name: backend-2, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [{name: grpc-port, port: %d, protocol: grpc}]}}", s.ports[overGRPCGo]))
	s.startGRPC("backend-2", fmt.Sprintf("127.0.0.1:%d", s.ports[overGRPCGo]), withBundleMaps).serving(1)
	return s
}

// overGRPCGo is the additional way to send a gRPC request: to a grpc-go server without a proxy.
const overGRPCGo = "grpc-go"

// grpcApplication answers every method.
func grpcApplication(t *testing.T) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		return stream.SendMsg(&emptypb.Empty{})
	}))
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		must(t, <-done)
	})
	return l.Addr().(*net.TCPAddr).Port
}

func (r *storyRequest) inboundFor(over string) string {
	switch {
	case r.Inbound != "":
		return r.Inbound
	case over == "grpc":
		return "grpc-port"
	case over == overGRPCGo:
		return overGRPCGo
	case over == "tcp":
		return "tcp-port"
	}
	return "http-port"
}

func (s *stage) checkEvaluator(t *testing.T, r *storyRequest) {
	t.Helper()
	for _, over := range r.Over {
		q := explain.Query{To: "backend", Inbound: r.inboundFor(over), From: r.From, Method: r.Method, Path: r.Path}
		if over == "grpc" {
			q.Method = http.MethodPost
		}
		a, err := explain.FromSnapshot(s.store.Snapshot(), explain.Options{Zone: "zone-1"}).Explain(q)
		must(t, err)
		by := a.Policy
		if kri, err := resources.ParseKRI(by); err == nil {
			by = kri.Name
		}
		shadow := a.Verdict
		if a.Shadow != nil {
			shadow = a.Shadow.Verdict
		}
		if a.Verdict != r.Want || by != r.By || shadow != cmp.Or(r.Shadow, r.Want) {
			t.Errorf("%s %+v: evaluator says %s by %s, in the shadow %s", over, *r, a.Verdict, by, shadow)
		}
	}
}

// firstWrong returns the first request whose answer differs from the story's.
func (s *stage) firstWrong(t *testing.T, y *story) string {
	t.Helper()
	for i := range y.Requests {
		r := &y.Requests[i]
		ways := r.Over
		if slices.Contains(ways, "grpc") {
			ways = append(slices.Clone(ways), overGRPCGo)
		}
		for _, over := range ways {
			if got := s.send(t, r, over); got != r.Want {
				return fmt.Sprintf("%s %+v: got %s", over, *r, got)
			}
		}
	}
	return ""
}

func (s *stage) certificateOf(id string) *tls.Certificate {
	if s.certificates[id] == nil {
		domain, _, _ := strings.Cut(strings.TrimPrefix(id, "spiffe://"), "/")
		s.certificates[id] = s.authorities[domain].certificate(id)
	}
	return s.certificates[id]
}

// send returns allow, deny, or any other result.
func (s *stage) send(t *testing.T, r *storyRequest, over string) string {
	t.Helper()
	certificate, port := s.certificateOf(r.From), s.ports[r.inboundFor(over)]
	switch over {
	case "h1", "h2":
		client := httpClient(certificate)
		if over == "h2" {
			client = h2Client(certificate)
			defer client.CloseIdleConnections()
		}
		return sendHTTP(client, cmp.Or(r.Method, http.MethodGet),
			fmt.Sprintf("https://127.0.0.1:%d%s", port, cmp.Or(r.Path, "/")))
	case "grpc", overGRPCGo:
		return sendGRPC(certificate, port, cmp.Or(r.Path, "/any.Service/Method"))
	case "tcp":
		got, err := converse(certificate, port, "hello", 2*time.Second)
		switch {
		case err == nil && got == banner+"echo hello\n":
			return explain.Allow
		case got == "" && err != nil:
			return explain.Deny
		}
		return fmt.Sprintf("%q %v", got, err)
	}
	t.Fatalf("over %q", over)
	return ""
}

func sendHTTP(c *http.Client, method, url string) string {
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		return err.Error()
	}
	resp, err := c.Do(req)
	if err != nil {
		return err.Error()
	}
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return explain.Allow
	case http.StatusForbidden:
		return explain.Deny
	}
	return resp.Status
}

func sendGRPC(certificate *tls.Certificate, port int, method string) string {
	config := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate}}
	conn, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", port),
		grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
	switch grpcstatus.Code(err) {
	case codes.OK:
		return explain.Allow
	case codes.PermissionDenied:
		return explain.Deny
	}
	return err.Error()
}
