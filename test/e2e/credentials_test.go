package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
)

const (
	// rotatedZones are connected during the replacement of the authority of their certificates.
	rotatedZones = 20
	// startedAtOnce limits concurrent starts, for small machines.
	startedAtOnce = 4
)

// TestZoneCredentials tests, with real servers, a new zone CA with the renewal of all zones' certificates, a
// revocation, and two servers with one credential. No certificate expires meanwhile; TestRenewalAtHalfLife covers
// renewal at half of the lifetime.
func TestZoneCredentials(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	var group errgroup.Group
	group.SetLimit(startedAtOnce)
	zones := make([]*cluster.Server, rotatedZones)
	for i := range zones {
		group.Go(func() (err error) {
			zones[i], err = m.StartZone(t.Context(), cluster.ZoneConfig{Name: fmt.Sprintf("zone-%d", i),
				Global: m.global, Args: []string{"--log-level", "warn"}})
			return err
		})
	}
	m.must(group.Wait())
	m.eventually("all zones to be online", func(ctx context.Context) error { return m.sessions(ctx, rotatedZones) })

	held := m.newestCertificate("zone-0")
	out, err := m.CTL(t.Context(), m.global, nil, "keys", "rotate", "zone-ca")
	m.must(err)
	if !strings.Contains(string(out), "signing") || !strings.Contains(string(out), "accepted") {
		t.Errorf("after the rotation the keys are\n%s", out)
	}
	m.eventually("the old zone CA to be retired", func(ctx context.Context) error {
		out, err := m.CTL(ctx, m.global, nil, "keys", "list")
		if err != nil {
			return err
		}
		if n := strings.Count(string(out), "zone-ca"); n != 1 {
			return fmt.Errorf("there are %d:\n%s", n, out)
		}
		return nil
	})
	if err := m.sessions(t.Context(), rotatedZones); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
	if now := m.newestCertificate("zone-0"); now == held {
		t.Error("zone-0 has not renewed its certificate")
	}

	m.revoked(zones[1])
	m.cloned(zones[2])
}

// sessions checks that n zones are online, each in its first session.
func (m *mesh) sessions(ctx context.Context, n int) error {
	var page struct {
		Items []struct {
			Name        string
			ZoneInsight struct {
				Subscriptions []struct{ DisconnectTime *string }
			}
		}
	}
	if err := m.global.API.Get(ctx, "/zones/_overview?size=100", &page); err != nil {
		return err
	}
	online := 0
	for _, z := range page.Items {
		if s := z.ZoneInsight.Subscriptions; len(s) > 1 {
			return cluster.Final(fmt.Errorf("%s is in its session number %d", z.Name, len(s)))
		} else if len(s) == 1 && s[0].DisconnectTime == nil {
			online++
		}
	}
	if online != n {
		return fmt.Errorf("%d of %d zones are online", online, n)
	}
	return nil
}

// newestCertificate returns the serial number of the certificate that a zone stores.
func (m *mesh) newestCertificate(zone string) string {
	m.t.Helper()
	var held struct {
		Certificates []struct {
			Serial string
			Stored bool
		}
	}
	m.must(m.global.API.Get(m.t.Context(), "/zones/"+zone+"/_credentials", &held))
	for i := len(held.Certificates) - 1; i >= 0; i-- {
		if held.Certificates[i].Stored {
			return held.Certificates[i].Serial
		}
	}
	return ""
}

// revoked checks that a revoked zone is disconnected, continues alone, and rejoins with a new join string.
func (m *mesh) revoked(zone *cluster.Server) {
	m.t.Helper()
	_, err := m.CTL(m.t.Context(), m.global, nil, "zone", "revoke", zone.Name(), "--yes")
	m.must(err)
	m.eventually("the zone to hear that it was revoked", func(context.Context) error {
		if !strings.Contains(zone.Log(), "the zone's certificate was revoked") {
			return errNotYet
		}
		return nil
	})
	m.must(zone.API.Get(m.t.Context(), "/meshes/default", nil))
	if connected, err := zone.Metric(m.t.Context(), "causeway_global_connected"); err != nil || connected != 0 {
		m.t.Errorf("connected: %v, %v", connected, err)
	}
	m.must(zone.Stop(m.t.Context()))
	out, err := m.CTL(m.t.Context(), m.global, nil, "zone", "create", zone.Name())
	m.must(err)
	_, err = m.Output(m.t.Context(), strings.NewReader(string(out)), "causeway-zone", "join", "-", "--data-dir",
		zone.DataDir)
	m.must(err)
	m.must(zone.Start(m.t.Context()))
	m.eventually("the zone to be back", func(ctx context.Context) error {
		if connected, err := zone.Metric(ctx, "causeway_global_connected"); err != nil || connected != 1 {
			return errors.Join(err, fmt.Errorf("connected: %v", connected))
		}
		return nil
	})
}

// cloned checks that the global detects a second server with a copy of a zone's data directory.
func (m *mesh) cloned(zone *cluster.Server) {
	m.t.Helper()
	_, err := m.StartClone(m.t.Context(), zone, "clone")
	m.must(err)
	m.eventually("the global to show the clone", func(ctx context.Context) error {
		out, err := m.CTL(ctx, m.global, nil, "get", "zones")
		if err != nil {
			return err
		}
		for _, line := range strings.Split(string(out), "\n") {
			if strings.HasPrefix(line, zone.Name()+" ") && strings.Contains(line, "two servers") {
				return nil
			}
		}
		return fmt.Errorf("not shown in\n%s", out)
	})
	if n, err := m.global.Metric(m.t.Context(),
		fmt.Sprintf("causeway_zone_cloned{zone=%q}", zone.Name())); err != nil || n != 1 {
		m.t.Errorf("the metric is %v, %v", n, err)
	}
}
