package callers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/callers"
)

func (s *site) send(t testing.TB, query, text string, into any) {
	t.Helper()
	recorder := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/_batch"+query, strings.NewReader(text))
	r.Header.Set("Content-Type", "application/yaml")
	s.ServeHTTP(recorder, r)
	if err := json.Unmarshal(recorder.Body.Bytes(), into); err != nil || recorder.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", text, recorder.Code, recorder.Body)
	}
}

// verdictsOf returns the verdict of each pair that a matrix has.
func verdictsOf(a *callers.Answer) map[string]string {
	out := map[string]string{}
	for i := range a.Services {
		for _, c := range a.Services[i].Cells {
			depends := strings.Join(c.DependsOn, " ")
			if c.Verdict == callers.Depends {
				depends += " by " + a.Policies[c.Policy]
			}
			out[a.Services[i].KRI+" "+a.Callers[c.Caller].SpiffeID] = c.Verdict + depends + c.Shadow
		}
	}
	return out
}

// TestForecastSaysWhichVerdictsChange compares what a dry run says with the matrix before and after the same documents are
// stored: it names each pair that differs, and no other.
func TestForecastSaysWhichVerdictsChange(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.put(t, moreTraffic[strings.LastIndex(moreTraffic, "---"):]) // web speaks HTTP
	owner := `{type: MeshTrafficPermission, mesh: default, namespace: %s, name: %s, spec: {targetRef: {kind: Dataplane, labels: {app: %s}}, rules: [{default: {%s}}]}}`
	exact := func(id, more string) string { return `{spiffeId: {type: Exact, value: "` + id + `"}` + more + `}` }
	for _, step := range []struct {
		text                string
		lost, gained, other int
	}{
		{fmt.Sprintf(owner, "shop", "web", "web", `allow: [`+exact(pay+"audit", "")+`]`), 0, 1, 0},
		{fmt.Sprintf(owner, "shop", "web", "web", `allow: [`+exact(pay+"audit", ", method: [GET]")+`]`), 1, 0, 0},
		{fmt.Sprintf(owner, "shop", "web", "web", `allow: [`+exact(pay+"audit", ", method: [GET], path: {type: Exact, value: /a}")+`]`), 0, 0, 1},
		{fmt.Sprintf(owner, "shop", "web", "web", `allowWithShadowDeny: [`+exact(pay+"audit", "")+`]`), 0, 1, 0},
		{fmt.Sprintf(owner, "shop", "web", "web", `allow: [`+exact(pay+"audit", "")+`]`), 0, 0, 1},
		{fmt.Sprintf(owner, "shop", "backend", "backend", `deny: [`+exact(shop+"backend", "")+`]`), 2, 0, 0},
		{fmt.Sprintf(owner, "shop", "web", "web", `allow: [`+exact(pay+"audit", "")+`]`) + "\n---\n" +
			fmt.Sprintf(owner, "shop", "backend", "backend", ``), 0, 2, 0},
		{moreTraffic[:strings.LastIndex(moreTraffic, "---")], 0, 1, 0},
	} {
		before := verdictsOf(s.ask(t, ""))
		var forecast api.Forecast
		s.send(t, "?dryRun=server", step.text, &forecast)
		s.send(t, "", step.text, &struct{}{})
		after := verdictsOf(s.ask(t, ""))
		v := forecast.Verdicts
		if v == nil || v.Lost != step.lost || v.Gained != step.gained || v.Other != step.other {
			t.Errorf("%s:\n%+v", step.text, v)
			continue
		}
		var want, got []string
		for pair, verdict := range after {
			if before[pair] != verdict {
				want = append(want, pair)
			}
		}
		for pair := range before {
			if _, still := after[pair]; !still {
				want = append(want, pair)
			}
		}
		for _, c := range v.Changes {
			got = append(got, c.Service+" "+c.Caller)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("%s:\nforecast %q\nstored   %q", step.text, got, want)
		}
	}
}

// TestForecastIsOfOneState: what others store while a dry run is answered is not told of its change.
func TestForecastIsOfOneState(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.put(t, moreTraffic[strings.LastIndex(moreTraffic, "---"):])
	s.meanwhile = func() {
		s.put(t, `{type: MeshTrafficPermission, mesh: default, name: none, spec: {rules: [{default: {deny: [{spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/"}}]}}]}}`)
	}
	var forecast api.Forecast
	s.send(t, "?dryRun=server", `{type: MeshTrafficPermission, mesh: default, namespace: shop, name: web, spec: {targetRef: {kind: Dataplane, labels: {app: web}},
  rules: [{default: {allow: [{spiffeId: {type: Exact, value: "`+pay+`audit"}}]}}]}}`, &forecast)
	if v := forecast.Verdicts; v == nil || v.Lost != 0 || v.Gained != 1 || v.Other != 0 {
		t.Errorf("%+v", v)
	}
}

// TestForecastWeighsBySeen checks that what callers lose comes first, and of that what was seen most; and that a document
// which decides about no caller has no verdicts.
func TestForecastWeighsBySeen(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 3 {
		s.journal.Add(accesslog.Observation{Inbound: "kri_dp_default_zone-1_shop_backend-2_http", Client: shop + "backend", Method: "GET",
			PathPrefix: "/", Allowed: true, Policy: "default"}, "/", time.Now())
	}
	var forecast api.Forecast
	s.send(t, "?dryRun=server", `{type: MeshTrafficPermission, mesh: default, namespace: shop, name: none, spec: {rules: [{default: {deny: [{spiffeId:
  {type: Prefix, value: "spiffe://default.zone-1.mesh.local/"}}]}}]}}`, &forecast)
	v := forecast.Verdicts
	if v == nil || v.Lost < 3 || v.Changes[0].Caller != shop+"backend" || v.Changes[0].Allowed != 3 || v.Changes[0].After != callers.Deny {
		t.Fatalf("%+v", v)
	}
	if seen := s.ask(t, "").Seen; v.Since.IsZero() || !v.Since.Equal(seen.Since) || v.Dropped != seen.Dropped {
		t.Errorf("counted since %s, without %d; want %+v", v.Since, v.Dropped, seen)
	}
	if policy := v.Changes[0].Policy; !strings.Contains(policy, "_none_") {
		t.Errorf("decided by %s", policy)
	}
	var timeout api.Forecast
	s.send(t, "?dryRun=server", `{type: MeshTimeout, mesh: default, namespace: shop, name: none, spec: {to: [{targetRef: {kind: Mesh},
  default: {connectionTimeout: 3s}}]}}`, &timeout)
	if timeout.Verdicts != nil {
		t.Errorf("of a timeout: %+v", timeout.Verdicts)
	}
}
