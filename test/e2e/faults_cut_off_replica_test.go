package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsReplicaCutOff cuts one of two replicas off from etcd, and then kills the zone connected to the other. In
// every answer, the isolated replica reports the zone's state as unknown, and that a policy may be outdated; it does
// not lead. Reconnected, it reports the same as the other. A token that is revoked at one replica is refused by the
// other, and by one that was cut off as soon as it is back.
func TestFaultsReplicaCutOff(t *testing.T) {
	t.Parallel()
	r := &replicated{etcd: etcdtest.Start(t, 1)}
	r.mesh = newCluster(t)
	endpoint := r.etcd.Members[0].Endpoint
	etcd, err := cluster.NewLink(t.Context(), strings.TrimPrefix(endpoint, "http://"))
	r.must(err)
	t.Cleanup(func() { _ = etcd.Close() })
	cut, err := r.StartGlobal(t.Context(), cluster.GlobalConfig{Name: "cut-off", // first, so that it leads
		Args: []string{"--store", "etcd", "--etcd-endpoints", "http://" + etcd.Address()}})
	r.must(err)
	r.global, err = r.StartGlobal(t.Context(), cluster.GlobalConfig{Name: "other", Args: []string{"--store", "etcd",
		"--etcd-endpoints", endpoint, "--secrets-key-file", cut.DataDir + "/secrets.key"}})
	r.must(err)
	link, err := cluster.NewLink(t.Context(), r.global.Address("kds"))
	r.must(err)
	t.Cleanup(func() { _ = link.Close() })
	zone, err := r.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: r.global, Link: link})
	r.must(err)
	r.apply(cut, timeout("policy", "10s"))
	r.arrives(zone, "policy")
	says := func(what string, want ...string) {
		t.Helper()
		r.eventually(what, func(ctx context.Context) error {
			for i, args := range [][]string{{"get", "zones"}, {"inspect", "sync"}, {"get", "replicas"},
				{"rollout", "status", "meshtimeout", "policy"}} {
				out, err := r.CTL(ctx, cut, nil, args...)
				var failed *exec.ExitError
				if err != nil && !errors.As(err, &failed) {
					return err
				}
				if text := string(out) + fmt.Sprint(err); !strings.Contains(text, want[i]) {
					return fmt.Errorf("%s: %s", strings.Join(args, " "), text)
				}
			}
			online, err := cut.Metric(ctx, `causeway_zone_online{zone="zone-1"}`)
			if known := err == nil; known != (want[4] != "") || known && fmt.Sprint(online) != want[4] {
				return fmt.Errorf("causeway_zone_online: %v, %w", online, err)
			}
			found, err := r.doctor(ctx, cut.API.URL())
			if err == nil && !strings.Contains(fmt.Sprint(found), want[5]) {
				err = fmt.Errorf("doctor: %v", found)
			}
			return err
		})
	}
	says("what is known", "online", "online", "yes", "acknowledged by 1 of 1 zones", "1", "in sync")
	tokens := map[string]string{"before": "", "meanwhile": ""}
	for name := range tokens {
		token, err := r.CTL(t.Context(), cut, nil, "user", "token", "--name", name, "--group", "mesh-system:admin")
		r.must(err)
		tokens[name] = strings.TrimSpace(string(token))
	}
	taken := func(s *cluster.Server, name string, want bool) {
		t.Helper()
		r.eventually(fmt.Sprintf("the token %s at %s to be taken: %v", name, s.Name(), want), func(ctx context.Context) error {
			_, err := r.CTL(ctx, s, nil, "--token", tokens[name], "get", "meshes")
			if refused := err != nil && strings.Contains(err.Error(), "is not valid here"); err != nil && !refused || refused == want {
				return fmt.Errorf("not yet: %v", err) //nolint:errorlint // it may be nil
			}
			return nil
		})
	}
	revoke := func(name string) {
		t.Helper()
		_, err := r.CTL(t.Context(), r.global, nil, "user", "revoke", idOf(t, tokens[name]))
		r.must(err)
		taken(r.global, name, false)
	}
	for name := range tokens {
		taken(cut, name, true)
		taken(r.global, name, true)
	}
	revoke("before")
	taken(cut, "before", false)
	etcd.Set(cluster.Weather{Frozen: true})
	revoke("meanwhile")
	taken(cut, "meanwhile", true) // it cannot know: docs/security.md says so
	if _, err := r.CTL(t.Context(), cut, strings.NewReader(timeout("policy", "20s")), "--token", tokens["meanwhile"], "apply", "-f", "-"); err == nil {
		t.Error("the replica that is cut off takes a write")
	}
	zone.Kill()
	says("that it is unknown", "unknown", "unknown", "unknown", "does not know whether there is a newer one", "",
		"whether it is connected is unknown since")
	if out, err := r.CTL(t.Context(), cut, nil, "rollout", "status", "meshtimeout", "policy"); err == nil ||
		strings.Contains(string(out), "offline") {
		t.Errorf("the rollout says of the zone: %s, %v", out, err)
	}
	r.names(cut.API.URL(), "store", instanceOf(r, cut), "cannot write")
	etcd.Set(cluster.Weather{})
	taken(cut, "meanwhile", false)
	says("what the other says", "offline", "offline", "yes", "offline since", "0", "offline since")
}

// idOf returns the id of a token.
func idOf(t *testing.T, token string) string {
	t.Helper()
	var claims struct {
		ID string `json:"jti"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err == nil {
		err = json.Unmarshal(raw, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	return claims.ID
}

// instanceOf returns a server's instance name among replicas.
func instanceOf(r *replicated, s *cluster.Server) string {
	r.t.Helper()
	var index struct{ InstanceID string }
	r.must(s.API.Get(r.t.Context(), "/", &index))
	return index.InstanceID
}
