package model

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/peer"
)

// bystander is a simulated zone that owns nothing. It has joined, and connects again after each disconnect.
type bystander struct {
	name        string
	certificate tls.Certificate
	now         atomic.Pointer[peer.Zone]
}

const (
	// joinsAtOnce is how many bystanders join at the same time, each within joinWithin.
	joinsAtOnce, joinWithin = 4, 2 * time.Minute
	// comesAgain is the pause of a bystander before it reconnects.
	comesAgain = 100 * time.Millisecond
)

// gather joins bystanders, and connects them until the test ends.
func (p *play) gather(size int) {
	p.t.Helper()
	global := p.servers[Global]
	file, err := global.CAFile()
	p.must(err)
	raw, err := os.ReadFile(file)
	p.must(err)
	ca := x509.NewCertPool()
	ca.AppendCertsFromPEM(raw)
	var joining errgroup.Group
	joining.SetLimit(joinsAtOnce)
	for i := range size {
		b := &bystander{name: fmt.Sprintf("bystander-%d", i)}
		p.crowd = append(p.crowd, b)
		joining.Go(func() error {
			// As a zone, it tries again: a global accepts strangers of one address one after the other.
			return cluster.Until(p.t.Context(), joinWithin, b.name+" to join", func(ctx context.Context) error {
				text, err := p.JoinString(ctx, global, b.name)
				if err == nil {
					b.certificate, err = peer.Join(ctx, text, ca)
				}
				return err
			})
		})
	}
	p.must(joining.Wait())
	ctx, leave := context.WithCancel(p.t.Context())
	var connected sync.WaitGroup
	p.t.Cleanup(func() {
		leave()
		connected.Wait()
	})
	for _, b := range p.crowd {
		connected.Go(func() {
			b.stay(ctx, peer.ZoneConfig{Name: b.name, KDS: global.Address("kds"), CA: ca, Certificate: &b.certificate,
				Types: []string{"Mesh", "MeshTimeout", "MeshService"}})
		})
	}
}

func (b *bystander) stay(ctx context.Context, cfg peer.ZoneConfig) {
	for ctx.Err() == nil {
		if zone, err := peer.Connect(ctx, cfg); err == nil {
			b.now.Store(zone)
			for zone.Err() == nil && ctx.Err() == nil {
				wait(ctx)
			}
			_ = zone.Close()
		}
		wait(ctx)
	}
}

func wait(ctx context.Context) {
	select {
	case <-time.After(comesAgain):
	case <-ctx.Done():
	}
}

// crowdAgrees waits until each bystander has what the model says of a zone that owns nothing.
func (p *play) crowdAgrees() {
	p.t.Helper()
	want := p.world.At("bystander")
	for _, b := range p.crowd {
		p.must(cluster.Until(p.t.Context(), patience, b.name+" to have what the model says", func(context.Context) error {
			got, err := b.has()
			if err != nil {
				return err
			}
			if diff := Difference(got, want); diff != "" {
				return errors.New(diff)
			}
			return nil
		}))
	}
}

// has lists what a connected bystander has received.
func (b *bystander) has() (map[Place]Seen, error) {
	zone := b.now.Load()
	if zone == nil {
		return nil, errors.New("it has no session yet")
	}
	if err := zone.Err(); err != nil {
		return nil, fmt.Errorf("its session ended: %w", err)
	}
	all := map[Place]Seen{}
	for _, t := range []string{"MeshTimeout", "MeshService"} {
		copies, answered := zone.Copies(t)
		if !answered {
			return nil, fmt.Errorf("no answer yet for %s", t)
		}
		for _, r := range copies {
			all[Place{Type: t, Name: r.Name}] = Seen{valueOf(cluster.Item{Spec: []byte(r.Spec)}), r.Labels["kuma.io/display-name"],
				r.Labels["kuma.io/zone"], r.Labels["kuma.io/origin"], r.Labels["k8s.kuma.io/namespace"]}
		}
	}
	return all, nil
}
