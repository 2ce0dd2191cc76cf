package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
)

// refusal returns the reason why a store cannot be opened.
func refusal(t *testing.T, c Config) error {
	t.Helper()
	c.Prefix, c.Log, c.Timeout = "/refused", quiet(), time.Second
	s, err := Open(t.Context(), c)
	if err == nil {
		_ = s.Close()
	}
	return err
}

// TestCredentialsAreRefused checks that a cluster with users refuses a wrong user, and none, permanently; one that is
// away may come back.
func TestCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	administer(t, c.Endpoints())
	for name, tt := range map[string]struct {
		user, password string
		want           error
	}{
		"right":             {"root", "right", nil},
		"another password":  {"root", "wrong", ErrRefused},
		"nobody":            {"", "", ErrRefused},
		"not of the prefix": {"guest", "guest", ErrRefused},
	} {
		err := refusal(t, Config{Endpoints: c.Endpoints(), Username: tt.user, Password: tt.password})
		if !errors.Is(err, tt.want) || tt.want != nil &&
			(errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "--etcd-username")) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	c.Members[0].Kill()
	for _, user := range []string{"", "root"} {
		if err := refusal(t, Config{Endpoints: c.Endpoints(), Username: user, Password: "right"}); !errors.Is(err,
			store.ErrUnavailable) {
			t.Errorf("away, user %q: %v", user, err)
		}
	}
}

// administer makes the cluster require users: root, with all permissions, and guest, with none.
func administer(t *testing.T, endpoints []string) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	ctx := t.Context()
	_, err1 := client.UserAdd(ctx, "root", "right")
	_, err2 := client.UserGrantRole(ctx, "root", "root")
	_, err3 := client.UserAdd(ctx, "guest", "guest")
	_, err4 := client.AuthEnable(ctx)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
}

// TestTLSIsRefused checks that a side that does not trust the other is a permanent refusal; a connection that only
// breaks is not.
func TestTLSIsRefused(t *testing.T) {
	t.Parallel()
	serve := func(clients tls.ClientAuthType) *httptest.Server {
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.EnableHTTP2, s.TLS = true, &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: clients}
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	open, closed := serve(tls.NoClientCert), serve(tls.RequireAnyClientCert)
	trusted := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	trusted.RootCAs.AddCert(open.Certificate())
	none := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	breaking := breaks(t)
	for name, tt := range map[string]struct {
		endpoints []string
		config    *tls.Config
		want      error
	}{
		"another CA":                     {[]string{open.URL}, none, ErrRefused},
		"no certificate of ours":         {[]string{closed.URL}, trusted, ErrRefused},
		"one breaks, the other refuses":  {[]string{breaking, open.URL}, none, ErrRefused},
		"it breaks":                      {[]string{breaking}, trusted, store.ErrUnavailable},
		"one is fine, the other refuses": {[]string{closed.URL, open.URL}, trusted, store.ErrUnavailable},
		"nobody listens":                 {[]string{"https://127.0.0.1:1"}, trusted, store.ErrUnavailable},
	} {
		if err := refusal(t, Config{Endpoints: tt.endpoints, TLS: tt.config}); !errors.Is(err, tt.want) ||
			errors.Is(err, ErrRefused) && errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// breaks runs a server that accepts connections and closes each at once.
func breaks(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return "https://" + l.Addr().String()
}
