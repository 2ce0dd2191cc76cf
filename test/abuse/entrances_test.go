package abuse

import (
	"bytes"
	"cmp"
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
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	accesslogs "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/golang-jwt/jwt/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
	"github.com/causeway-mesh/causeway/questions/questionspb"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// entrance is a way into a server. Enter tries it with a caller's credentials, and returns how that ended in a word: a
// status, a gRPC code, or OK.
type entrance struct {
	name  string
	on    string
	good  string // the credential that opens it
	enter func(ctx context.Context, w *world, s *aServer, b brought) (string, error)
}

// brought is what a caller presents: the values of the header "authorization", and a client certificate.
type brought struct {
	values      []string
	query       string
	certificate *tls.Certificate
	token       string
}

const entranceTimeout = 10 * time.Second

var entrances = []entrance{
	{"api", "global", "admin", enterHTTP("api", "/who-am-i")},
	{"diagnostics", "global", "none", enterHTTP("diagnostics", "/metrics")},
	{"health", "global", "zone-token", enterHealth},
	{"kds-down", "global", "zone-token", enterSync("GlobalToZoneSync", true)},
	{"kds-up", "global", "zone-token", enterSync("ZoneToGlobalSync", false)},
	{"join", "global", "", enterJoin},
	{"questions", "global", "zone-token", enterQuestions},
	{"api", "zone", "none", enterHTTP("api", "/who-am-i")},
	{"diagnostics", "zone", "none", enterHTTP("diagnostics", "/metrics")},
	{"xds-delta", "zone", "dp-shop", enterXDS("")},
	{"xds-sotw", "zone", "dp-shop", enterXDS("sotw")},
	{"access-logs", "zone", "dp-shop", enterAccessLogs},
}

// forms are wrong ways to present a valid credential. OK is expected only of those that are named whole.
var forms = []struct {
	name  string
	bring func(token string) brought
}{
	{"whole", func(t string) brought { return brought{values: []string{"Bearer " + t}, token: t} }},
	{"scheme in lower case", func(t string) brought { return brought{values: []string{"bearer " + t}, token: t} }},
	{"scheme Basic", func(t string) brought { return brought{values: []string{"Basic " + t}, token: t + "="} }},
	{"no scheme", func(t string) brought { return brought{values: []string{t}, token: " " + t} }},
	{"scheme alone", func(string) brought { return brought{values: []string{"Bearer "}, token: " "} }},
	{"twice", func(t string) brought {
		return brought{values: []string{"Bearer " + t, "Bearer " + t}, token: t + "," + t}
	}},
	{"before another", func(t string) brought {
		return brought{values: []string{"Bearer " + t, "Bearer garbage"}, token: t + " garbage"}
	}},
	{"behind another", func(t string) brought {
		return brought{values: []string{"Bearer garbage", "Bearer " + t}, token: "garbage " + t}
	}},
	{"two in one", func(t string) brought {
		return brought{values: []string{"Bearer " + t + ", Bearer " + t}, token: t + "\n" + t}
	}},
	{"quoted", func(t string) brought { return brought{values: []string{`Bearer "` + t + `"`}, token: `"` + t + `"`} }},
	{"with a tail", func(t string) brought { return brought{values: []string{"Bearer " + t + "."}, token: t + "."} }},
	{"in the query", func(t string) brought { return brought{query: "access_token=" + t + "&token=" + t} }},
}

// TestEntrances tries every entrance of both servers with every credential of the table, and with those that open it
// brought in every wrong form, and compares how each attempt ended with a table that a person can review. Each entrance
// opens for something, so that none is closed for another reason.
func TestEntrances(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.makeCredentials()
	w.zoneTokens()
	var out bytes.Buffer
	fmt.Fprintf(&out, "# How each entrance answers each credential: a status or a gRPC code. closed: the connection ends before an answer.\n\n%-26s", "credential")
	for _, e := range entrances {
		fmt.Fprintf(&out, "%-22s", e.on+":"+e.name)
	}
	opened := map[string]bool{}
	for _, name := range w.names() {
		fmt.Fprintf(&out, "\n%-26s", name)
		for _, e := range entrances {
			c := w.of(w.server(e.on), name)
			b := brought{certificate: c.certificate, token: c.token}
			if c.token != "" {
				b.values = []string{"Bearer " + c.token}
			}
			ended := w.enter(t, e, b)
			opened[e.on+e.name] = opened[e.on+e.name] || isOpen(ended)
			fmt.Fprintf(&out, "%-22s", ended)
		}
	}
	fmt.Fprintf(&out, "\n\n# How each answers what opens it, brought so:\n")
	for _, form := range forms {
		fmt.Fprintf(&out, "\n%-26s", form.name)
		for _, e := range entrances {
			good := w.of(w.server(e.on), cmp.Or(e.good, "none")).token
			if e.name == "join" {
				good = w.joinToken(t)
			}
			ended := w.enter(t, e, form.bring(good))
			opened[e.on+e.name] = opened[e.on+e.name] || isOpen(ended)
			fmt.Fprintf(&out, "%-22s", ended)
		}
	}
	for _, e := range entrances {
		if !opened[e.on+e.name] {
			t.Errorf("nothing opens %s of the %s: it may be closed for another reason", e.name, e.on)
		}
	}
	compareGolden(t, "testdata/golden/entrances.txt", trimmed(out.Bytes()))
}

// isOpen reports whether a caller got past its credential. Logs of a proxy without a session are NotFound.
func isOpen(ended string) bool { return ended == "OK" || ended == "200" || ended == "NotFound" }

func trimmed(table []byte) []byte {
	lines := bytes.Split(table, []byte("\n"))
	for i := range lines {
		lines[i] = bytes.TrimRight(lines[i], " ")
	}
	return append(bytes.Join(lines, []byte("\n")), '\n')
}

// names returns those of all credentials.
func (w *world) names() []string {
	seen := map[string]bool{}
	for name := range w.credentials {
		seen[strings.TrimPrefix(name, "zone/")] = true
	}
	var out []string
	for name := range seen {
		if _, both := w.credentials[name]; both {
			out = append(out, name)
			continue
		}
		w.credentials[name] = w.credentials["zone/"+name] // of a proxy: the global is tried with it too
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (w *world) enter(t *testing.T, e entrance, b brought) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), entranceTimeout)
	defer cancel()
	ended, err := e.enter(ctx, w, w.server(e.on), b)
	if err != nil {
		t.Errorf("%s of the %s: %v", e.name, e.on, err)
	}
	return ended
}

// zoneTokens creates credentials of zones, good and bad.
func (w *world) zoneTokens() {
	t := w.t
	token := func(zone, validFor string, scope ...string) string {
		body := fmt.Sprintf(`{"zone": %q, "validFor": %q, "scope": ["%s"]}`, zone, validFor, strings.Join(scope, `","`))
		raw, err := w.global.admin.Do(t.Context(), api.Request{Method: http.MethodPost, Path: "/tokens/zone",
			Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(raw))
	}
	w.keep(w.global, "zone-token", token("zone-1", "1h", "cp"))
	w.keep(w.global, "zone-token-other", token("zone-2", "1h", "cp"))
	w.keep(w.global, "zone-token-ingress", token("zone-1", "1h", "ingress"))
	expired := token("zone-1", "1s", "cp")
	w.keep(w.global, "zone-token-expired", expired)
	good := strings.Split(w.credentials["zone-token-other"].token, ".")
	var claims jwt.MapClaims
	decode(t, good[1], &claims)
	for key, value := range claims {
		if value == "zone-2" {
			claims[key] = "zone-1"
		}
	}
	w.keep(w.global, "zone-token-altered", good[0]+"."+encode(t, claims)+"."+good[2])
	w.keep(w.global, "zone-token-none", encode(t, map[string]string{"alg": "none", "typ": "JWT"})+"."+encode(t,
		claims)+".")
	w.keep(w.global, "zone-token-stranger", signed(t, jwt.SigningMethodEdDSA, "1", claims, strangersKey(t)))
	eventually(t, "the zone's token to expire", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), entranceTimeout)
		defer cancel()
		ended, err := enterHealth(ctx, w, w.global, brought{values: []string{"Bearer " + expired}})
		return err == nil && ended != "OK"
	})
}

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

// compareGolden compares with a file; -update rewrites it.
func compareGolden(t *testing.T, file string, have []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, have, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines, golden := strings.Split(string(have), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(lines), len(golden)) {
		if i >= len(lines) || i >= len(golden) || lines[i] != golden[i] {
			t.Fatalf("line %d of %s differs (-update rewrites it, for you to review):\nhave %s\nwant %s", i+1, file,
				lineOf(lines, i), lineOf(golden, i))
		}
	}
}
