package accesslog

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestShadowReportThatIsUnknown checks that nothing is said to be safe, or not denied, where nothing was collected, and of
// a policy or a mesh that is not there.
func TestShadowReportThatIsUnknown(t *testing.T) {
	t.Parallel()
	memory := store.NewMemory()
	docs, err := resources.DecodeDocuments([]byte(`{type: Mesh, name: default}
---
{type: MeshTrafficPermission, mesh: default, name: strict, spec: {rules: [{default: {
  allowWithShadowDeny: [{spiffeId: {type: Prefix, value: "spiffe://legacy/"}}]}}]}}`), resources.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var batch store.Batch
	for _, r := range docs {
		batch.Ops = append(batch.Ops, store.Op{Put: resources.Home{Zone: "zone-1"}.Labelled(r)})
	}
	if _, err := memory.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	const strict = "kri_mtp_default_zone-1__strict_"
	for name, c := range map[string]struct {
		collecting   bool
		mesh, policy string
		unknown      string // empty if it is known
	}{
		"all":                       {true, "", "", ""},
		"of the policy":             {true, "default", strict, ""},
		"of no policy":              {true, "", "kri_mtp_default_zone-1__strikt_", "there is no MeshTrafficPermission kri_mtp_default_zone-1__strikt_ here"},
		"of no mesh":                {true, "defalt", "", "there is no mesh defalt here"},
		"all, nothing collected":    {false, "", "", notCollecting},
		"policy, nothing collected": {false, "", strict, notCollecting},
	} {
		server := api.New(api.Config{Store: memory, Home: resources.Home{Zone: "zone-1"}})
		Register(server, Config{Store: memory, Journal: NewJournal(time.Now(), 0), Collecting: c.collecting, Now: time.Now})
		query := url.Values{}
		if c.mesh != "" {
			query.Set("mesh", c.mesh)
		}
		if c.policy != "" {
			query.Set("policy", c.policy)
		}
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/_report/shadow?"+query.Encode(), http.NoBody))
		var got api.ShadowReport
		if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil || recorder.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, recorder.Code, recorder.Body)
			continue
		}
		if c.unknown == "" && got.Unknown != "" || !strings.Contains(got.Unknown, c.unknown) {
			t.Errorf("%s: unknown is %q, want %q", name, got.Unknown, c.unknown)
		}
		if safe := len(got.Readiness) > 0 && got.Readiness[0].Safe; got.Unknown != "" && safe {
			t.Errorf("%s: it is called safe to enforce", name)
		}
	}
}

// TestReadinessOfWhatChangedOnTheGlobal asks a global for a zone that was watched for a month, and may not have today's
// form of a policy: nothing was seen of that.
func TestReadinessOfWhatChangedOnTheGlobal(t *testing.T) {
	t.Parallel()
	memory := store.NewMemory()
	docs, err := resources.DecodeDocuments([]byte(`{type: Mesh, name: default}
---
{type: Zone, name: zone-1}
---
{type: MeshTrafficPermission, mesh: default, name: strict, spec: {rules: [{default: {
  allowWithShadowDeny: [{spiffeId: {type: Prefix, value: "spiffe://legacy/"}}]}}]}}`), resources.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var batch store.Batch
	for _, r := range docs {
		batch.Ops = append(batch.Ops, store.Op{Put: resources.Home{}.Labelled(r)})
	}
	if _, err := memory.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	today := time.Now()
	monthAgo := today.Add(-30 * day)
	ask := func(context.Context, string, Selection) (*Record, error) {
		return &Record{Collecting: true, Since: monthAgo, Policies: []shadowPolicy{{KRI: strict, Changed: monthAgo}}}, nil
	}
	for later, safe := range map[time.Duration]bool{time.Hour: false, 8 * day: true} {
		server := api.New(api.Config{Store: memory})
		Register(server, Config{Store: memory, Ask: ask, Now: func() time.Time { return today.Add(later) }})
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/_report/shadow?zone=zone-1", http.NoBody))
		var got api.ShadowReport
		if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil || len(got.Readiness) != 1 || got.Readiness[0].Safe != safe {
			t.Errorf("after %s: %v, %s, want safe %t", later, err, recorder.Body, safe)
		}
	}
}
