package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/peer"
)

// found is one finding of doctor.
type found struct{ Status, Check, About, What, Do string }

// doctor runs causewayctl doctor against an address. A problem gives status 1.
func (m *mesh) doctor(ctx context.Context, address string) ([]found, error) {
	out, err := m.Output(ctx, nil, "causewayctl", "doctor", "--address", address, "-o", "json")
	status := exitStatus(err)
	if err != nil && status != 1 {
		return nil, err
	}
	var all struct{ Findings []found }
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	problems := 0
	for _, f := range all.Findings {
		if f.Status == "problem" {
			problems++
		}
	}
	if problems > 0 != (status == 1) {
		return nil, cluster.Final(fmt.Errorf("%d problems are answered with status %d", problems, status))
	}
	return all.Findings, nil
}

// names waits until doctor finds a problem, and returns its advice.
func (m *mesh) names(address, check, about, what string) (do string) {
	m.t.Helper()
	m.eventually("doctor to find that "+what, func(ctx context.Context) error {
		all, err := m.doctor(ctx, address)
		if err != nil {
			return err
		}
		for _, f := range all {
			if f.Status == "problem" && f.Check == check && f.About == about && strings.Contains(f.What, what) {
				do = f.Do
				return nil
			}
		}
		return fmt.Errorf("it found %+v", all)
	})
	return do
}

// noProblems waits until doctor finds no problem.
func (m *mesh) noProblems(address string) {
	m.t.Helper()
	m.eventually("doctor to find no problem", func(ctx context.Context) error {
		all, err := m.doctor(ctx, address)
		if err != nil {
			return err
		}
		for _, f := range all {
			if f.Status == "problem" {
				return fmt.Errorf("%+v", f)
			}
		}
		return nil
	})
}

// TestDoctorNamesClones tests two servers that really alternate as one zone.
func TestDoctorNamesClones(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1")
	m.noProblems(m.global.API.URL())
	_, err := m.StartClone(t.Context(), m.zones["zone-1"], "clone")
	m.must(err)
	if do := m.names(m.global.API.URL(), "zone", "zone-1", "two servers alternate as this zone"); !strings.Contains(do,
		"causewayctl zone create") {
		t.Errorf("it says to do %q", do)
	}
}

// TestDoctorNamesHeldRemovals tests a global that really holds a mass deletion. Following doctor's advice ends it.
func TestDoctorNamesHeldRemovals(t *testing.T) {
	t.Parallel()
	m := newAnonymousMesh(t)
	const services = 30
	var all []peer.Resource
	for i := range services {
		all = append(all, foreignService(fmt.Sprintf("s%d", i), `{"ports":[{"port":80,"appProtocol":"http"}]}`))
	}
	z := m.foreignZone("elsewhere", nil)
	m.must(z.Offer(all...))
	m.eventually("the services to be there", func(ctx context.Context) error {
		got, err := m.global.API.List(ctx, "/meshes/default/meshservices")
		if err == nil && len(got) != services {
			err = fmt.Errorf("there are %d", len(got))
		}
		return err
	})
	m.must(z.Close())
	z = m.foreignZone("elsewhere", nil) // its first list is complete
	m.must(z.Offer(all[0]))
	do := m.names(m.global.API.URL(), "zone", "elsewhere", fmt.Sprintf("the removal of %d MeshService is held",
		services-1))
	_, command, _ := strings.Cut(do, "causewayctl ")
	command, _, _ = strings.Cut(command, ";")
	_, err := m.CTL(t.Context(), m.global, nil, strings.Fields(command)...)
	m.must(err)
	m.noProblems(m.global.API.URL())
}

// TestDoctorNamesClocks tests a real global whose answers carry the date of a wrong clock, in both directions.
func TestDoctorNamesClocks(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	for skew, want := range map[time.Duration]string{-10 * time.Minute: "behind this machine's",
		10 * time.Minute: "ahead of this machine's"} {
		if do := m.names(m.withClock(m.global, skew), "clock", "", want); !strings.Contains(do, "NTP") {
			t.Errorf("it says to do %q", do)
		}
	}
	m.noProblems(m.global.API.URL())
}

// withClock returns an address at which a server answers with the date of a clock that is ahead.
func (m *mesh) withClock(s *cluster.Server, ahead time.Duration) string {
	m.t.Helper()
	target, err := url.Parse(s.API.URL())
	m.must(err)
	elsewhere := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, // without forwarding headers
		ModifyResponse: func(r *http.Response) error {
			date, err := http.ParseTime(r.Header.Get("Date"))
			r.Header.Set("Date", date.Add(ahead).UTC().Format(http.TimeFormat))
			return err
		},
	})
	m.t.Cleanup(elsewhere.Close)
	return elsewhere.URL
}
