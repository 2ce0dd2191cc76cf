package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/cluster"
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
	t.Parallel()
	m := startMesh(t, cluster.GlobalConfig{Args: []string{"--log-level", "debug", "--kds-zone-tokens"},
		Hosts: map[string]string{"diagnostics": "0.0.0.0"}, Env: passphrase(ofGlobal)}) // the zone creates a key file
	l := &leaks{mesh: m, loot: newLoot(), given: map[string][]byte{}, answered: map[string]bool{}}
	l.loot.addText("passphrase", ofGlobal)
	l.loot.addText("passphrase", wrongWords)
	zone := l.joined("zone-1")
	proxy := l.proxy(zone)
	planted := l.plant()
	l.fields()
	l.eventually("the proxy to have its secret", func(context.Context) error {
		if l.proxyPages(proxy); !l.hasOwn() {
			return errNotYet
		}
		return nil
	})
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
	ports := [3]int{}
	for i := range ports {
		port, err := porttest.Free()
		l.must(err)
		ports[i] = port
	}
	l.apply(zone, fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, labels: {app: backend}, networking: {address: 127.0.0.1, admin: {port: %d}, inbound: [{name: http, port: %d, servicePort: 1, protocol: http}], outbound: [{address: 127.0.0.1, port: %d, backendRef: {kind: MeshService, name: backend, port: 80}}]}}
---
{type: MeshService, mesh: default, name: backend, spec: {selector: {dataplaneTags: {app: backend}}, ports: [{port: 80, targetPort: %d, appProtocol: http}]}}
`, ports[2], ports[0], ports[1], ports[0]))
	token, err := l.CTL(l.t.Context(), zone, nil, "dataplane", "token", "backend")
	l.must(err)
	l.loot.addText("dataplane token", strings.TrimSpace(string(token)))
	file := filepath.Join(l.Dir(), "dataplane.token")
	l.must(os.WriteFile(file, token, 0o600))
	proxy, err := l.StartProxy(l.t.Context(), cluster.ProxyConfig{Zone: zone, Mesh: "default", Dataplane: "backend",
		TokenFile: file})
	l.must(err)
	l.must(proxy.WaitListeners(l.t.Context(), ports[0], ports[2]))
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

// judge expects the planted key wherever resources appear, and no other secret anywhere.
func (l *leaks) judge(planted string) {
	l.t.Helper()
	var shown []string
	for where, given := range l.given {
		if len(given) == 0 && strings.HasPrefix(where, "GET") {
			l.t.Errorf("%s: empty", where)
		}
		answer := strings.HasPrefix(where, "GET") || strings.HasPrefix(where, "causewayctl")
		if at := bytes.Index(given, []byte("causewaySealed")); answer && at >= 0 {
			l.t.Errorf("%s shows what is sealed, and not its hash: %.100s", where, given[at:])
		}
		mine := false
		for _, form := range l.loot.in(given) {
			if strings.HasPrefix(form, planted+" ") {
				mine = true
				continue
			}
			if where == ownDump && strings.HasPrefix(form, ofProxy+" ") {
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

// ownDump is where a proxy's configuration is that the proxy's own machine shows.
const ownDump = "/config_dump?include_eds of the Envoy"

// hasOwn reports whether the proxy's configuration has the secret that the proxy needs.
func (l *leaks) hasOwn() bool {
	return slices.ContainsFunc(l.loot.in(l.given[ownDump]), func(form string) bool {
		return strings.HasPrefix(form, ofProxy+" ")
	})
}

// passphrase returns the variable with a passphrase.
func passphrase(words string) []string { return []string{secrets.PassphraseEnv + "=" + words} }
