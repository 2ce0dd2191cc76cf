package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/resources/store/bolt"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/zone/checkpoint"
)

const (
	ofGlobal   = "correct horse battery staple" // the passphrase of the global's seal
	wrongWords = "another passphrase altogether"
)

// leaks is a mesh with secrets of every kind, the secrets to look for, and the recorded output of its servers.
type leaks struct {
	*mesh
	loot *loot
	// given is the recorded output, by source.
	given map[string][]byte
	// answered are the documented routes with a successful answer.
	answered map[string]bool
}

// TestNothingGivesKeysAway searches all output of two servers and an Envoy for every key, token and passphrase:
// answers, errors, metrics, logs, configuration, backups and files. One planted key proves that the search works.
func TestNothingGivesKeysAway(t *testing.T) {
	t.Setenv(secrets.PassphraseEnv, ofGlobal)
	m := startMesh(t, cluster.GlobalConfig{Args: []string{"--log-level", "debug", "--kds-zone-tokens"},
		Hosts: map[string]string{"diagnostics": "0.0.0.0"}})
	unsetPassphrase(t) // the zone makes a key file
	l := &leaks{mesh: m, loot: newLoot(), given: map[string][]byte{}, answered: map[string]bool{}}
	l.loot.addText("passphrase", ofGlobal)
	l.loot.addText("passphrase", wrongWords)
	zone := l.joined("zone-1")
	proxy := l.proxy(zone)
	planted := l.plant()
	l.fields()
	l.users(m.global)
	l.users(zone)
	l.authorities(zone)

	for _, s := range []*cluster.Server{m.global, zone} {
		l.routes(s)
		l.mistakes(s)
		l.commands(s)
		l.backup(s)
		l.supportBundle(s)
	}
	l.diagnostics(zone)
	l.proxyPages(proxy)
	l.wrongKeys()
	m.must(proxy.Stop(t.Context()))
	for _, s := range []*cluster.Server{zone, m.global} {
		m.must(s.Stop(t.Context()))
		l.files(s)
	}
	l.openStore(m.global, secrets.Config{Passphrase: ofGlobal}, "kds-tls", "token-signing", "zone-ca")
	l.openStore(zone, secrets.Config{Dir: zone.DataDir}, "tls", "token-signing", "identity-ca-default")
	l.openMembership(zone)
	l.openCheckpoint(zone, "backend")
	l.judge(planted)
}

// joined returns a zone that has used a join string, which its log starts with.
func (l *leaks) joined(name string) *cluster.Server {
	l.t.Helper()
	unused, err := l.JoinString(l.t.Context(), l.global, "zone-unused")
	l.must(err)
	l.joinString(unused)
	zone, err := l.StartZone(l.t.Context(), cluster.ZoneConfig{
		Name: name, Global: l.global, Args: []string{"--log-level", "debug", "--access-log", "als"},
		Hosts: map[string]string{"xds": "0.0.0.0"},
	})
	l.must(err)
	l.zones[name] = zone
	l.must(zone.WaitMesh(l.t.Context(), "default"))
	command, _, _ := strings.Cut(zone.Log(), "\n")
	for _, word := range strings.Fields(command) {
		if strings.HasPrefix(word, "causeway-join:") {
			l.joinString(word)
		}
	}
	var offer struct{ Token string }
	l.must(l.global.API.Do(l.t.Context(), http.MethodPost, "/zones/by-token/_token", map[string]any{}, &offer))
	l.loot.addText("zone token", offer.Token)
	return zone
}

// joinString adds a join string and its token. The rest of it is not secret.
func (l *leaks) joinString(text string) {
	l.t.Helper()
	payload := text[strings.LastIndexByte(text, ':')+1:]
	l.loot.addText("join string", payload)
	var inside struct{ Token string }
	l.must(json.Unmarshal(l.decoded(payload), &inside))
	l.loot.addText("join token", inside.Token)
}

// proxy starts an Envoy that authenticates with a token, without an application.
func (l *leaks) proxy(zone *cluster.Server) *cluster.Proxy {
	l.t.Helper()
	ports := [2]int{}
	for i := range ports {
		port, err := porttest.Free()
		l.must(err)
		ports[i] = port
	}
	l.apply(zone, fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [{name: http, port: %d, servicePort: 1, protocol: http}], outbound: [{address: 127.0.0.1, port: %d, backendRef: {kind: MeshService, name: backend, port: 80}}]}}
---
{type: MeshService, mesh: default, name: backend, spec: {selector: {dataplaneTags: {app: backend}}, ports: [{port: 80, targetPort: %d, appProtocol: http}]}}
`, ports[0], ports[1], ports[0]))
	token, err := l.CTL(l.t.Context(), zone, nil, "dataplane", "token", "backend")
	l.must(err)
	l.loot.addText("dataplane token", strings.TrimSpace(string(token)))
	file := filepath.Join(l.Dir(), "dataplane.token")
	l.must(os.WriteFile(file, token, 0o600))
	proxy, err := l.StartProxy(l.t.Context(), cluster.ProxyConfig{Zone: zone, Mesh: "default", Dataplane: "backend",
		TokenFile: file})
	l.must(err)
	l.must(proxy.WaitListeners(l.t.Context(), ports[0]))
	return proxy
}

// plant puts a key where any reader finds it: into a policy of the global.
func (l *leaks) plant() (kind string) {
	l.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	l.must(err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	l.must(err)
	l.must(l.loot.addKey("planted", key))
	text := base64.StdEncoding.EncodeToString(der) // as PEM it would be sealed
	l.must(l.global.API.Put(l.t.Context(), "/meshes/default/meshproxypatches/planted", map[string]any{
		"type": "MeshProxyPatch", "mesh": "default", "name": "planted",
		"spec": map[string]any{"default": map[string]any{"appendModifications": []any{
			map[string]any{"cluster": map[string]any{"operation": "Add", "value": "name: " + text}},
		}}},
	}))
	l.arrivesAs("planted", "/meshes/default/meshproxypatches")
	return "planted"
}

// arrivesAs waits until a resource of the global has reached the zone.
func (l *leaks) arrivesAs(name, path string) {
	l.t.Helper()
	l.eventually(name+" to come to the zone", func(ctx context.Context) error {
		all, err := byDisplayName(ctx, l.zones["zone-1"], path)
		if _, there := all[name]; err == nil && !there {
			err = errNotYet
		}
		return err
	})
}

// users creates users with tokens: one is used, one revoked.
func (l *leaks) users(s *cluster.Server) {
	l.t.Helper()
	for _, name := range []string{"alice", "bob"} {
		token, err := l.CTL(l.t.Context(), s, nil, "user", "token", "--name", name, "--group", "mesh-system:admin")
		l.must(err)
		text := strings.TrimSpace(string(token))
		l.loot.addText("user token", text)
		file := filepath.Join(l.Dir(), name+".token")
		l.must(os.WriteFile(file, token, 0o600))
		l.command(s, "--token-file", file, "auth", "whoami")
		var claims struct {
			ID string `json:"jti"`
		}
		l.must(json.Unmarshal(l.decoded(strings.Split(text, ".")[1]), &claims))
		if name == "bob" {
			_, err := l.CTL(l.t.Context(), s, nil, "user", "revoke", claims.ID)
			l.must(err)
			l.command(s, "--token-file", file, "auth", "whoami")
		}
	}
}

// authorities rotates all keys, so that each kind has several keys, and errors about them.
func (l *leaks) authorities(zone *cluster.Server) {
	l.t.Helper()
	l.command(l.global, "keys", "rotate", "zone-ca", "-o", "yaml")
	l.command(l.global, "keys", "rotate", "token-signing", "-o", "yaml")
	l.command(zone, "keys", "rotate", "token-signing", "-o", "yaml")
	l.command(zone, "keys", "rotate", "identity:default", "-o", "yaml")
	l.command(zone, "keys", "rotate", "no-such-key")
}

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
	l.t.Setenv(secrets.PassphraseEnv, wrongWords)
	l.fails("a wrong passphrase", "", "causeway-global",
		append([]string{"run", "--log-level", "debug", "--data-dir", copied}, addresses...)...)
	l.t.Setenv(secrets.PassphraseEnv, ofGlobal[:8])
	l.fails("a short passphrase", "", "causeway-global", append([]string{"run", "--data-dir", copied}, addresses...)...)
	unsetPassphrase(l.t)
	l.fails("a key file that is none", "", "causeway-global",
		append([]string{"run", "--data-dir", copied, "--secrets-key-file", noKey}, addresses...)...)
	l.fails("a token that is none", "", "causeway-zone", "bootstrap", "--dataplane", "backend", "--token-file", noKey)
	command, _, _ := strings.Cut(l.zones["zone-1"].Log(), "\n")
	_, used, _ := strings.Cut(command, "--join ")
	used, _, _ = strings.Cut(used, " ")
	l.fails("a used join string", used, "causeway-zone", "join", "-", "--data-dir", filepath.Join(l.Dir(), "late"))
	l.fails("half a join string", used[:len(used)-6], "causeway-zone", "join", "-", "--data-dir",
		filepath.Join(l.Dir(), "late"))
}

func (l *leaks) fails(name, stdin, program string, args ...string) {
	l.t.Helper()
	out, err := l.Output(l.t.Context(), strings.NewReader(stdin), program, args...)
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

// openStore adds what a server keeps sealed: all secrets of its store, and the keys of its certificates. The named
// secrets hold a key.
func (l *leaks) openStore(s *cluster.Server, how secrets.Config, certificates string, named ...string) {
	l.t.Helper()
	box, err := secrets.OpenBox(how)
	l.must(err)
	opened, err := bolt.Open(l.t.Context(), bolt.Config{Path: filepath.Join(s.DataDir, "causeway.db"),
		Log: slog.New(slog.DiscardHandler)})
	l.must(err)
	keeper := secrets.NewKeeper(opened, box)
	for _, name := range keeper.Names() {
		plain, _, err := keeper.Get(l.t.Context(), name)
		l.must(err)
		l.must(l.loot.addDocument(s.Name()+" "+name, plain))
	}
	l.must(opened.Close())
	if how.Dir != "" {
		key, err := os.ReadFile(filepath.Join(how.Dir, secrets.KeyFileName))
		l.must(err)
		l.loot.addText(s.Name()+" key for secrets", strings.TrimSpace(string(key)))
	}
	for file, purpose := range map[string]string{"ca.key": "server-ca", "tls.key": "server-tls"} {
		l.openFile(s, box, filepath.Join(certificates, file), purpose)
		named = append(named, filepath.Join(certificates, file))
	}
	for _, name := range named {
		if l.loot.kinds[s.Name()+" "+name] == 0 {
			l.t.Errorf("no key was found in the secret %s of %s: what was looked for?", name, s.Name())
		}
	}
}

func (l *leaks) openFile(s *cluster.Server, box server.Sealer, file, purpose string) {
	l.t.Helper()
	sealed, err := os.ReadFile(filepath.Join(s.DataDir, file))
	l.must(err)
	plain, err := box.Open(sealed, purpose)
	l.must(err)
	l.must(l.loot.addDocument(s.Name()+" "+file, plain))
}

func (l *leaks) openMembership(zone *cluster.Server) {
	l.t.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: zone.DataDir})
	l.must(err)
	l.openFile(zone, box, filepath.Join("membership", "credential.sealed"), "zone-membership")
	if l.loot.kinds["zone-1 membership/credential.sealed"] == 0 {
		l.t.Error("no key was found in the zone's credential")
	}
}

// openCheckpoint adds the key of the identity that the zone keeps for a Dataplane's proxy. No backup has it, sealed or
// not.
func (l *leaks) openCheckpoint(zone *cluster.Server, dataplane string) {
	l.t.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: zone.DataDir})
	l.must(err)
	book := checkpoint.Open(checkpoint.Config{Path: filepath.Join(zone.DataDir, "holdings.sealed"), Box: box})
	kept, there := book.Get(checkpoint.ID{Kind: "svid", Mesh: "default", Name: dataplane})
	if !there || l.given["zone-1/holdings.sealed"] == nil {
		l.t.Fatalf("the zone keeps no identity for %s (%t), or its file was not looked at", dataplane, there)
	}
	var certificate asn1.RawValue
	der, err := asn1.Unmarshal(kept, &certificate)
	l.must(err)
	key, err := x509.ParsePKCS8PrivateKey(der)
	l.must(err)
	l.must(l.loot.addKey("zone-1 holdings.sealed", key))
	for where := range l.given {
		if strings.HasPrefix(where, "the backup of ") && strings.Contains(where, "holdings") {
			l.t.Errorf("%s: what proxies hold is in a backup", where)
		}
	}
}

// judge expects the planted key wherever resources appear, and no other secret anywhere.
func (l *leaks) judge(planted string) {
	l.t.Helper()
	var shown []string
	for where, given := range l.given {
		if len(given) == 0 && strings.HasPrefix(where, "GET") {
			l.t.Errorf("%s: empty", where)
		}
		mine := false
		for _, form := range l.loot.in(given) {
			if strings.HasPrefix(form, planted+" ") {
				mine = true
				continue
			}
			l.t.Errorf("%s can grant only %s", where, form)
		}
		if mine {
			shown = append(shown, where)
		}
	}
	all := strings.Join(shown, "\n")
	for _, where := range []string{
		"GET /meshes/{mesh}/{plural} of global", "GET /meshes/{mesh}/{plural}/{name} of zone-1",
		"the backup of global, unpacked", "global/causeway.db", "zone-1/causeway.db",
	} {
		if !strings.Contains(all, where) {
			l.t.Errorf("the planted key was not found in %s, so another would not have been; it was in\n%s", where, all)
		}
	}
	l.t.Logf("looked for %d secrets in %d forms, in %d places", len(l.loot.kinds), len(l.loot.forms), len(l.given))
}

// unsetPassphrase unsets the variable until the test ends. An empty variable would be an error.
func unsetPassphrase(t *testing.T) {
	t.Helper()
	if err := os.Unsetenv(secrets.PassphraseEnv); err != nil {
		t.Fatal(err)
	}
}
