package xds

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/causeway-mesh/causeway/kubernetes/podtoken"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/tokens"
)

// PodTokens identifies the pod that presents a token; see package podtoken for the errors of Check.
type PodTokens interface {
	Check(ctx context.Context, token string) (podtoken.Pod, error)
}

const (
	// podInterval is how often the token of an open stream is checked again, which is how long a stream may outlive a
	// deleted pod. podLook is how often the server looks for streams that are due.
	podInterval, podLook = 2 * time.Minute, 5 * time.Second
)

// isForeign reports whether an error of Verify is about a token that this server did not make.
func isForeign(err error) bool {
	return errors.Is(err, tokens.ErrUnknownKey) || errors.Is(err, tokens.ErrAlgorithm) || errors.Is(err, tokens.ErrMalformed)
}

// showPod judges a token that this server did not issue: the API server of Kubernetes may have issued it for a pod.
func (p *pass) showPod(ctx context.Context, token string) error {
	pod, err := p.admission.cfg.Pods.Check(ctx, token)
	switch {
	case errors.Is(err, podtoken.ErrUnknown):
		p.admission.cfg.Log.Warn("a pod's token cannot be judged; its proxy tries again", "address", p.address, "error", err)
		return p.refuse(reasonUnavailable, codes.Unavailable)
	case err != nil:
		return p.refuse(noPod(err), codes.Unauthenticated)
	}
	p.method, p.token, p.pod, p.until, p.asked = methodPod, token, pod, pod.Expires, p.admission.cfg.Now()
	return nil
}

// noPod returns the reason why a token proves no pod, in the words that are used for tokens of this server.
func noPod(err error) string {
	switch {
	case errors.Is(err, podtoken.ErrExpired):
		return tokens.Reason(tokens.ErrExpired)
	case errors.Is(err, podtoken.ErrNotYet):
		return tokens.Reason(tokens.ErrNotYet)
	}
	return reasonNoPod
}

// isPod reports whether a pod's pass is for the Dataplane of that pod. The Dataplane must have the pod's name and the
// service account that the token proves, so an author of Dataplanes in a namespace cannot give a pod another identity.
// A pod of the operator is also the proxy of the ZoneIngress that the zone has made of it.
func (p *pass) isPod(key resources.Key, r *resources.Resource) bool {
	if key.Type == resources.TypeZoneIngress {
		home := &p.admission.cfg.Home
		return home.IsOperators(p.pod.Namespace) && key.Name == p.pod.Name && (r == nil || home.Discovered(r))
	}
	return key.Type == resources.TypeDataplane && key.Namespace == p.pod.Namespace && key.Name == p.pod.Name &&
		(r == nil || r.Labels[resources.LabelServiceAccount] == p.pod.ServiceAccount)
}

// watchPods checks the tokens of open streams again, and ends the streams of deleted pods, until ctx ends. A stream
// stays while the API server does not answer: its token is valid until it expires.
func (a *Admission) watchPods(ctx context.Context) error {
	if a.cfg.Pods == nil {
		return nil
	}
	ticker := time.NewTicker(podLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			a.askAgain(ctx)
		}
	}
}

// askAgain checks the tokens that are due, one after the other, without holding a lock.
func (a *Admission) askAgain(ctx context.Context) {
	now := a.cfg.Now()
	due := map[string][]*pass{}
	a.mu.Lock()
	for p := range a.live {
		if p.method == methodPod && now.Sub(p.asked) >= podInterval {
			due[p.token] = append(due[p.token], p)
		}
	}
	a.mu.Unlock()
	for token, all := range due {
		pod, err := a.cfg.Pods.Check(ctx, token)
		if errors.Is(err, podtoken.ErrUnknown) {
			continue // it stays due
		}
		a.mu.Lock()
		for _, p := range all {
			if p.asked = now; err == nil && pod == p.pod {
				continue
			}
			if _, open := a.live[p]; open {
				delete(a.live, p)
				p.end(&ended{pass: p, reason: noPod(err), code: codes.Unauthenticated})
			}
		}
		a.mu.Unlock()
	}
}
