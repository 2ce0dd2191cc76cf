package server_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/causeway-mesh/causeway/server"
)

// TestReadyAmongMetrics checks the metrics for passing readiness checks and expiry of certificates.
func TestReadyAmongMetrics(t *testing.T) {
	d := server.NewDiagnostics()
	d.AddCheck("store", func() error { return errors.New("the disk is full") })
	d.AddCheck("other", func() error { return nil })
	end := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	d.AddExpiries(func() map[string]time.Time { return map[string]time.Time{"member": end} })
	var none *server.Certificate
	d.AddExpiries(none.Expiries)
	want := `# HELP causeway_certificate_expiry_timestamp_seconds Expiry of a certificate that this server uses.
# TYPE causeway_certificate_expiry_timestamp_seconds gauge
causeway_certificate_expiry_timestamp_seconds{certificate="member"} 1.893553445e+09
# HELP causeway_ready 1 while the readiness check passes; the check start fails until the server serves.
# TYPE causeway_ready gauge
causeway_ready{check="other"} 1
causeway_ready{check="start"} 0
causeway_ready{check="store"} 0
`
	d.SetStarting(errors.New("the store is not open yet"))
	if err := testutil.GatherAndCompare(d.Registry, strings.NewReader(want), "causeway_ready",
		"causeway_certificate_expiry_timestamp_seconds"); err != nil {
		t.Error(err)
	}
	d.SetStarting(nil)
	if err := testutil.GatherAndCompare(d.Registry, strings.NewReader(`# HELP causeway_ready 1 while the readiness check passes; the check start fails until the server serves.
# TYPE causeway_ready gauge
causeway_ready{check="other"} 1
causeway_ready{check="start"} 1
causeway_ready{check="store"} 0
`), "causeway_ready"); err != nil {
		t.Error(err)
	}
	certificate, err := server.LoadOrCreateCertificate(t.TempDir(), nil, testBox(7), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if ends := certificate.Expiries(); !ends["server"].Equal(leafOf(t, certificate).NotAfter) ||
		!ends["server-ca"].After(ends["server"]) {
		t.Errorf("the certificate ends at %v", ends)
	}
}
