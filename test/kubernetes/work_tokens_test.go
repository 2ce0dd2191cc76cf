package kubernetes

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// checkExpired gives the proxy of a pod a token whose time is over, as from a kubelet that does not renew it. When the proxy
// connects again, the zone refuses it and says why, and the proxy continues with what it has. With the token that the kubelet
// then writes, it is served again.
func (k *kube) checkExpired() {
	k.proxies("backend", 3)
	pod, _, _ := strings.Cut(k.kubectl("-n", work, "get", "pods", "-l", "app=backend", "-o",
		"go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}"), " ")
	folder := k.tokenFolder(pod)
	file := filepath.Join(folder, "..data", "token")
	good, err := os.ReadFile(file)
	must(k.t, err)
	expired := k.resigned(string(good), func(claims map[string]any) {
		begin := time.Now().Add(-2 * time.Hour).Unix()
		claims["iat"], claims["nbf"], claims["exp"] = begin, begin, begin+3600
	})
	ctx, renews := context.WithCancel(k.t.Context())
	defer renews()
	kept := make(chan error, 1)
	go func() { kept <- keepFile(ctx, folder, expired) }()
	k.noneLost(k.loadsInside(50, 40, func() {
		must(k.t, k.processIn(workSet+"-0", zoneArgument).Kill()) // all proxies connect again
		k.eventually("the zone to refuse the token and to say why", func(ctx context.Context) error {
			return shows(ctx, k, `"reason":"expired"`, "-n", workSystem, "logs", workSet+"-0")
		})
		k.eventually("the proxy to be offline", func(context.Context) error {
			out, err := k.ctl(workSystem, workSet, "get", "dataplanes", "-A")
			for line := range strings.Lines(out) {
				if err == nil && strings.Contains(line, pod) && strings.Contains(line, "online") {
					err = errors.New(line)
				}
			}
			return err
		})
	}))
	renews()
	must(k.t, <-kept)
	k.proxies("backend", 3)
	if now, err := os.ReadFile(file); err != nil || string(now) == expired {
		k.t.Errorf("the proxy is online, and its token is still the expired one (%v)", err)
	}
}

// tokenFolder is where the kubelet keeps the token of a pod's proxy.
func (k *kube) tokenFolder(pod string) string {
	k.t.Helper()
	uid := k.kubectl("-n", work, "get", "pod", pod, "-o", "jsonpath={.metadata.uid}")
	return filepath.Join("/proc", fmt.Sprint(k.program("kubelet").Pid), "root", "var", "lib", "kubelet", "pods", uid, "volumes",
		"kubernetes.io~projected", "causeway-token")
}

// keepFile has a token in the folder until ctx ends, whatever the kubelet writes there. As the kubelet does, it makes another
// folder and moves a link to it, which is what proxies watch.
func keepFile(ctx context.Context, folder, token string) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for i := 0; ; i++ {
		if now, _ := os.ReadFile(filepath.Join(folder, "..data", "token")); string(now) != token {
			name := fmt.Sprintf("..kept_%d", i)
			if err := os.Mkdir(filepath.Join(folder, name), 0o755); err != nil { //nolint:gosec // as the kubelet makes it
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, name, "token"), []byte(token), 0o644); err != nil { //nolint:gosec // as the kubelet makes it
				return err
			}
			link := filepath.Join(folder, "..kept_link")
			_ = os.Remove(link)
			if err := errors.Join(os.Symlink(name, link), os.Rename(link, filepath.Join(folder, "..data"))); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// resigned is a token with other claims, which the API server's own key has signed.
func (k *kube) resigned(token string, change func(map[string]any)) string {
	k.t.Helper()
	raw, err := os.ReadFile(filepath.Join(k.Dir, "keys", "tokens.key"))
	must(k.t, err)
	block, _ := pem.Decode(raw)
	key, err := x509.ParseECPrivateKey(block.Bytes)
	must(k.t, err)
	parts := strings.Split(strings.TrimSpace(token), ".")
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	must(k.t, err)
	claims := map[string]any{}
	must(k.t, json.Unmarshal(body, &claims))
	change(claims)
	body, err = json.Marshal(claims)
	must(k.t, err)
	signed := parts[0] + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	must(k.t, err)
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}
