package e2e

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// command records the output of causewayctl, also of a failure.
func (l *leaks) command(s *cluster.Server, args ...string) {
	l.t.Helper()
	out, err := l.CTL(l.t.Context(), s, nil, args...)
	where := "causewayctl " + strings.Join(args, " ") + " on " + s.Name()
	l.given[where] = append(out, fmt.Sprint(err)...)
}

func (l *leaks) commands(s *cluster.Server) {
	l.t.Helper()
	for _, args := range [][]string{
		{"keys", "list", "-o", "yaml"}, {"audit", "-o", "json"}, {"get", "meshes", "-o", "yaml"},
		{"get", "dataplanes", "-o", "wide"}, {"get", "zones", "-o", "json"},
		{"inspect", "sync", "-o", "yaml"}, {"get", "secrets"}, {"get", "secret", "token-signing", "-o", "yaml"},
	} {
		l.command(s, args...)
	}
}

// backup records a backup: the file, its unpacked content, and each file in it.
func (l *leaks) backup(s *cluster.Server) {
	l.t.Helper()
	path := filepath.Join(l.Dir(), s.Name()+".backup")
	_, err := l.CTL(l.t.Context(), s, nil, "backup", "create", path)
	l.must(err)
	packed, err := os.ReadFile(path)
	l.must(err)
	where := "the backup of " + s.Name()
	l.given[where] = packed
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	l.must(err)
	l.given[where+", unpacked"], err = io.ReadAll(plain)
	l.must(err)
	b, err := archive.Read(bytes.NewReader(packed))
	l.must(err)
	for _, f := range b.Files {
		l.given[where+", "+f.Path] = f.Data
	}
	if len(b.Files) == 0 {
		l.t.Errorf("%s has no files: what was looked at?", where)
	}
}

// diagnostics records the pages of a zone, on loopback, and of the global, off loopback, without profiles.
func (l *leaks) diagnostics(zone *cluster.Server) {
	l.t.Helper()
	for _, path := range []string{"/metrics", "/livez", "/readyz", "/debug/pprof/", "/debug/pprof/goroutine?debug=2"} {
		page, err := zone.Diagnostics(l.t.Context(), path)
		l.must(err)
		l.given[path+" of the zone"] = page
	}
	file, err := l.global.CAFile()
	l.must(err)
	ca, err := os.ReadFile(file)
	l.must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots,
		MinVersion: tls.VersionTLS13}, DisableKeepAlives: true}}
	_, port, err := net.SplitHostPort(l.global.Address("diagnostics"))
	l.must(err)
	for path, want := range map[string]int{
		"/metrics": 200, "/livez": 200, "/readyz": 200,
		"/debug/pprof/": 403, "/debug/pprof/heap": 403, "/debug/pprof/cmdline": 403,
		"/debug/pprof/goroutine?debug=2": 403, "/debug/vars": 404,
	} {
		r, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, "https://127.0.0.1:"+port+path, nil)
		l.must(err)
		answer, err := client.Do(r)
		l.must(err)
		page, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		l.must(err)
		l.given[path+" of the global"] = page
		if answer.StatusCode != want {
			l.t.Errorf("%s of the global, off loopback: %s, want %d", path, answer.Status, want)
		}
	}
}

func (l *leaks) proxyPages(proxy *cluster.Proxy) {
	l.t.Helper()
	for _, page := range []string{"/config_dump?include_eds", "/clusters", "/certs", "/stats", "/server_info",
		"/init_dump", "/listeners"} {
		body, err := get(l.t.Context(), strings.TrimPrefix(proxy.AdminURL(), "http://"), page)
		l.must(err)
		l.given[page+" of the Envoy"] = body.body
	}
	l.given["the log of the Envoy"] = withoutCommands(proxy.Log())
}

// wrongKeys starts servers with keys that do not open their secrets, and a zone with an invalid token.
func (l *leaks) wrongKeys() {
	l.t.Helper()
	copied := filepath.Join(l.Dir(), "copy")
	l.must(os.CopyFS(filepath.Join(copied, "kds-tls"), os.DirFS(filepath.Join(l.global.DataDir, "kds-tls"))))
	noKey := filepath.Join(l.Dir(), "no.key")
	l.must(os.WriteFile(noKey, []byte(ofGlobal), 0o600))
	addresses := []string{"--api-address", "127.0.0.1:0", "--kds-address", "127.0.0.1:0", "--diagnostics-address",
		"127.0.0.1:0"}
	l.fails("a wrong passphrase", "", passphrase(wrongWords), "causeway-global",
		append([]string{"run", "--log-level", "debug", "--data-dir", copied}, addresses...)...)
	l.fails("a short passphrase", "", passphrase(ofGlobal[:8]), "causeway-global",
		append([]string{"run", "--data-dir", copied}, addresses...)...)
	l.fails("a key file that is none", "", nil, "causeway-global",
		append([]string{"run", "--data-dir", copied, "--secrets-key-file", noKey}, addresses...)...)
	l.fails("a token that is none", "", nil, "causeway-zone", "bootstrap", "--dataplane", "backend", "--token-file", noKey)
	command, _, _ := strings.Cut(l.zones["zone-1"].Log(), "\n")
	_, used, _ := strings.Cut(command, "--join ")
	used, _, _ = strings.Cut(used, " ")
	l.fails("a used join string", used, nil, "causeway-zone", "join", "-", "--data-dir", filepath.Join(l.Dir(), "late"))
	l.fails("half a join string", used[:len(used)-6], nil, "causeway-zone", "join", "-", "--data-dir",
		filepath.Join(l.Dir(), "late"))
}

func (l *leaks) fails(name, stdin string, env []string, program string, args ...string) {
	l.t.Helper()
	out, err := l.OutputWith(l.t.Context(), env, strings.NewReader(stdin), program, args...)
	if err == nil {
		l.t.Fatalf("%s: it does not fail", name)
	}
	l.given[program+" with "+name] = append(out, err.Error()...)
}

// files records a server's log, its ready file, and all files of its data directory except the sealing key.
func (l *leaks) files(s *cluster.Server) {
	l.t.Helper()
	l.given["the log of "+s.Name()] = withoutCommands(s.Log())
	ready, err := os.ReadFile(filepath.Join(l.Dir(), s.Name()+".ready.json"))
	l.must(err)
	l.given["the ready file of "+s.Name()] = ready
	l.must(fs.WalkDir(os.DirFS(s.DataDir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == secrets.KeyFileName {
			return err
		}
		l.given[s.Name()+"/"+path], err = os.ReadFile(filepath.Join(s.DataDir, path))
		return err
	}))
}

// withoutCommands removes the lines in which the test logs its commands.
func withoutCommands(log string) []byte {
	var out bytes.Buffer
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "$ ") {
			out.WriteString(line)
		}
	}
	return out.Bytes()
}
