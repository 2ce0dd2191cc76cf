package zone_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/svid/x509svid"

	"github.com/causeway-mesh/causeway/zone"
)

// runningZone is zone.Run, alone, on loopback.
type runningZone struct {
	t         *testing.T
	cfg       zone.Config
	addresses map[string]string
	stop      func()
}

func runZone(t *testing.T, changes ...func(*zone.Config)) *runningZone {
	t.Helper()
	dir := t.TempDir()
	z := &runningZone{t: t, cfg: zone.Config{
		Zone: "zone-1", DataDir: filepath.Join(dir, "data"), ReadyFile: filepath.Join(dir, "ready"), Log: discardLog(),
		APIAddress: "127.0.0.1:0", XDSAddress: fmt.Sprintf("127.0.0.1:%d", freePort(t)), DiagnosticsAddress: "127.0.0.1:0",
	}}
	for _, change := range changes {
		change(&z.cfg)
	}
	z.start()
	t.Cleanup(func() { z.stop() })
	return z
}

func (z *runningZone) start() {
	z.t.Helper()
	_ = os.Remove(z.cfg.ReadyFile)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- zone.Run(ctx, z.cfg) }()
	z.stop = func() {
		z.t.Helper()
		cancel()
		must(z.t, <-done)
		z.stop = func() {}
	}
	eventually(z.t, "the ready file", func() bool {
		b, err := os.ReadFile(z.cfg.ReadyFile)
		return err == nil && json.Unmarshal(b, &z.addresses) == nil
	})
}

// call sends a request to the HTTP API and returns status and body.
func (z *runningZone) call(method, path, body string) (int, string) {
	z.t.Helper()
	req, err := http.NewRequest(method, "http://"+z.addresses["api"]+path, strings.NewReader(body))
	must(z.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	must(z.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(z.t, err)
	return resp.StatusCode, string(b)
}

func (z *runningZone) apply(path, body string) {
	z.t.Helper()
	if code, answer := z.call(http.MethodPut, "/meshes/default/"+path, body); code/100 != 2 {
		z.t.Fatalf("PUT %s: %d %s", path, code, answer)
	}
}

func (z *runningZone) dataplane(port, servicePort int) {
	z.t.Helper()
	z.apply("dataplanes/backend", fmt.Sprintf(`{"type": "Dataplane", "mesh": "default", "name": "backend", "labels": {"app": "backend"}, "networking": {"address": "127.0.0.1",
		"inbound": [{"name": "main", "port": %d, "servicePort": %d, "protocol": "http"}]}}`, port, servicePort))
}

// svid requests an identity, as causewayctl does.
func (z *runningZone) svid(dataplane string) (*x509svid.SVID, map[string]string) {
	z.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(z.t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	must(z.t, err)
	body, err := json.Marshal(
		map[string]string{"csr": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))})
	must(z.t, err)
	code, answer := z.call(http.MethodPost, "/meshes/default/dataplanes/"+dataplane+"/_svid", string(body))
	if code != http.StatusOK {
		z.t.Fatalf("%d %s", code, answer)
	}
	var signed struct {
		SpiffeID, Certificate string
		Bundles               map[string]string
		ExpirationTime        time.Time
	}
	must(z.t, json.Unmarshal([]byte(answer), &signed))
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(z.t, err)
	svid, err := x509svid.Parse([]byte(signed.Certificate),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
	must(z.t, err)
	if svid.ID.String() != signed.SpiffeID || !svid.Certificates[0].NotAfter.Equal(signed.ExpirationTime) {
		z.t.Errorf("answer %s %s, certificate %s", signed.SpiffeID, signed.ExpirationTime, svid.ID)
	}
	return svid, signed.Bundles
}

// metrics returns the metrics of the zone's diagnostics.
func (z *runningZone) metrics() string {
	z.t.Helper()
	answer, err := http.Get("http://" + z.addresses["diagnostics"] + "/metrics")
	must(z.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(z.t, err)
	return string(text)
}
