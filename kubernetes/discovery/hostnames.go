package discovery

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"
)

const (
	// resolveInterval is how often the names of load balancers are resolved: nobody tells when they change.
	resolveInterval = 30 * time.Second
	// resolveTime limits one question.
	resolveTime = 5 * time.Second
)

// host is what is known of the name of a load balancer.
type host struct {
	address string // one of those that it resolves to; empty before it has
	failed  error  // of the last question
}

// hosts returns the names of load balancers that zone ingresses are behind.
func (d *Controller) hosts() (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.spaces[d.Home.OperatorsNamespace()]
	if s == nil {
		return nil
	}
	for _, one := range s.services {
		name := one.Status.LoadBalancer.host()
		if name == "" || one.Spec.Type != "LoadBalancer" || slices.Contains(out, name) {
			continue
		}
		if slices.ContainsFunc(s.ingresses(), one.selects) {
			out = append(out, name)
		}
	}
	return out
}

// ingresses returns the pods of a namespace that are zone ingresses.
func (s *space) ingresses() (out []*Pod) {
	for _, p := range s.pods {
		if p.isIngress() {
			out = append(out, p)
		}
	}
	return out
}

// resolve keeps the addresses of load balancers that have a name only, until ctx ends: proxies dial addresses. A name
// that does not resolve keeps its last.
func (d *Controller) resolve(ctx context.Context) error {
	ticker := time.NewTicker(resolveInterval)
	defer ticker.Stop()
	for {
		for _, name := range d.hosts() {
			asked, cancel := context.WithTimeout(ctx, resolveTime)
			all, err := d.Resolve(asked, name)
			cancel()
			d.resolved(name, all, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-d.named:
		case <-ticker.C:
		}
	}
}

// resolved notes what a name resolves to. An address stays while it is among them; the order of answers varies.
func (d *Controller) resolved(name string, all []netip.Addr, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.known[name]
	before := now
	now.failed = err
	var texts []string
	for _, ip := range all {
		if reaches(ip) { // a name such as localhost has others
			texts = append(texts, ip.Unmap().String())
		}
	}
	if slices.Sort(texts); len(texts) > 0 && !slices.Contains(texts, now.address) {
		now.address = texts[0]
	}
	d.known[name] = now
	if now.address == before.address && (now.failed == nil) == (before.failed == nil) {
		return
	}
	s := d.spaceLocked(d.Home.OperatorsNamespace())
	for _, p := range s.ingresses() {
		s.changed[p.Metadata.Name] = true
	}
	d.wake()
}

// lookUp resolves a name by the resolver of the pod.
func lookUp(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
}

// rename signals that the names of load balancers may be others.
func (d *Controller) rename() {
	select {
	case d.named <- struct{}{}:
	default:
	}
}
