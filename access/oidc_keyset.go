package access

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

const (
	// keysFresh is the age from which a provider's keys are asked for again: it may have withdrawn one.
	keysFresh = 10 * time.Minute
	// keysMost is the age from which keys are no longer used, if the provider does not give them again.
	keysMost = time.Hour
)

// keySet is the provider's keys. Those of oidc.RemoteKeySet are never forgotten while tokens are signed with one of
// them. It is safe for concurrent use.
type keySet struct {
	url    string
	client *http.Client
	now    func() time.Time
	// answered is when the provider last gave its keys, in nanoseconds; 0 before the first time.
	answered atomic.Int64

	mu    sync.Mutex
	keys  *oidc.RemoteKeySet // guarded by mu
	retry time.Time          // guarded by mu: when keys that are too old are asked for again
}

func newKeySet(url string, client *http.Client, now func() time.Time) *keySet {
	k := &keySet{url: url, client: seldomAsking(client, now), now: now}
	k.keys, _ = k.remote()
	return k
}

// remote returns keys that the provider is asked for with the first token, and whether it has given them.
func (k *keySet) remote() (keys *oidc.RemoteKeySet, given *atomic.Bool) {
	client := *k.client
	note := &noting{to: client.Transport, set: k}
	client.Transport = note
	return oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), &client), k.url), &note.given
}

// VerifySignature implements oidc.KeySet. Of the tokens that come while keys are too old, one asks for them, and the
// others do not wait for it.
func (k *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	answered := k.answered.Load()
	keys, renew := k.current(answered)
	if renew {
		next, given := k.remote()
		payload, err := next.VerifySignature(context.WithoutCancel(ctx), token) // who gives up must not keep old keys alive
		if given.Load() {
			k.mu.Lock()
			k.keys = next
			k.mu.Unlock()
			return payload, err
		}
	}
	if age := k.age(answered); answered != 0 && age >= keysMost {
		return nil, fmt.Errorf("the provider has not returned its keys for %s", age.Round(time.Second))
	}
	return keys.VerifySignature(ctx, token)
}

// current returns the keys, and whether the caller has to ask for them again.
func (k *keySet) current(answered int64) (keys *oidc.RemoteKeySet, renew bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.now(); answered != 0 && k.age(answered) >= keysFresh && !now.Before(k.retry) {
		k.retry, renew = now.Add(keysEvery), true
	}
	return k.keys, renew
}

func (k *keySet) age(answered int64) time.Duration { return k.now().Sub(time.Unix(0, answered)) }

// noting is an http.RoundTripper that notes when the provider gave its keys.
type noting struct {
	to    http.RoundTripper
	set   *keySet
	given atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (n *noting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := n.to.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusOK {
		n.given.Store(true)
		n.set.answered.Store(n.set.now().UnixNano())
	}
	return resp, err
}
