package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// awayFor is how long the API server is away: shorter than the time after which a node counts as lost (node/first.sh), on a
// busy machine too. Of a lost node no pod is ready, so a mesh that is told so has no endpoint to call.
const awayFor = 25 * time.Second

// checkAPIServerAway ends the API server while a Deployment is scaled up, and then kills the zone, too: the pods that are
// there answer each other, by what the zone keeps. When it is back, all pods of the scale-up come.
func (k *kube) checkAPIServerAway() {
	const wanted = 10
	k.noneLost(k.loadsInside(50, 75, func() {
		k.kubectl("-n", work, "scale", "deployment/backend", fmt.Sprint("--replicas=", wanted))
		k.eventually("the pods to be made", func(ctx context.Context) error {
			out, err := k.Kubectl(ctx, "-n", work, "get", "pods", "-l", "app=backend", "-o", "name")
			if err == nil && strings.Count(out, "pod/") < wanted {
				err = errors.New(out)
			}
			return err
		})
		back, began := k.withoutAPIServer(), time.Now()
		defer back()
		if out, err := k.Kubectl(k.t.Context(), "get", "nodes", "--request-timeout=5s"); err == nil {
			k.t.Fatalf("the API server answers: %s", out)
		}
		k.eventually("the zone to say that nobody tells it of pods", func(ctx context.Context) error {
			if out, _ := ctlInside(ctx, "doctor"); !strings.Contains(out, "not followed for") {
				return errors.New(out)
			}
			return nil
		})
		was := k.processIn(workSet+"-0", zoneArgument)
		must(k.t, was.Kill())
		k.eventually("the zone to be back with what it had", func(ctx context.Context) error {
			out, err := ctlInside(ctx, "get", "dataplanes")
			if err != nil || !strings.Contains(out, "client") {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
		for time.Since(began) < awayFor {
			time.Sleep(time.Second) // what is measured is how the mesh does meanwhile
		}
	}))
	k.kubectl("-n", work, "rollout", "status", "deployment/backend", "--timeout=240s")
	k.proxies("backend", wanted)
	k.reaches("backend", wanted)
	k.kubectl("-n", work, "scale", "deployment/backend", "--replicas=3")
	k.kubectl("-n", work, "rollout", "status", "deployment/backend", "--timeout=120s")
	k.proxies("backend", 3)
}

// proxies waits until the zone serves the proxies of so many pods whose names begin so, and knows no others.
func (k *kube) proxies(prefix string, count int) {
	k.t.Helper()
	k.eventually(fmt.Sprintf("%d proxies of %s to be online", count, prefix), func(context.Context) error {
		out, err := k.ctl(workSystem, workSet, "get", "dataplanes", "-A")
		all, online := 0, 0
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) < 3 || f[2] != prefix && !strings.HasPrefix(f[2], prefix+"-") {
				continue
			}
			if all++; strings.Contains(line, "online") {
				online++
			}
		}
		if err == nil && (all != count || online != count) {
			err = errors.New("they are not")
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// reaches waits until calls of the client have been answered by so many pods of a service.
func (k *kube) reaches(service string, count int) {
	k.t.Helper()
	seen := map[string]bool{}
	var urls []string
	for range 2 * count {
		urls = append(urls, "http://"+service)
	}
	k.eventually(fmt.Sprintf("%d pods of %s to answer", count, service), func(ctx context.Context) error {
		out, err := k.app(ctx, append([]string{"get"}, urls...)...)
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "200" {
				seen[f[1]] = true
			}
		}
		if err == nil && len(seen) != count {
			err = fmt.Errorf("%d do: %v", len(seen), seen)
		}
		return err
	})
}
