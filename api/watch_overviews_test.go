package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestWatchOfOverviewsIsWokenByConnections checks that a list of overviews answers when a zone connects or disconnects,
// when it has taken its first configuration, when a zone refuses something or takes it after all, when a zone is added, and not
// when only other counters change.
func TestWatchOfOverviewsIsWokenByConnections(t *testing.T) {
	t.Parallel()
	f := serveConfig(t, api.Config{WatchWait: time.Minute})
	short := serveConfig(t, api.Config{WatchWait: 300 * time.Millisecond})
	for _, one := range []*fixture{f, short} {
		one.mustCall(t, "PUT", "/zones/east", "type: Zone\nname: east\n")
		one.connect(t, "east", `{id: "1", connectTime: "2026-01-01T00:00:00Z"}`)
	}
	const path = "/zones/_overview"
	revision := func(body string) string {
		t.Helper()
		var list struct {
			Revision string `json:"revision"`
		}
		if err := json.Unmarshal([]byte(body), &list); err != nil || list.Revision == "" {
			t.Fatalf("no revision in %q: %v", body, err)
		}
		return list.Revision
	}
	at := revision(short.mustCall(t, "GET", path+"?watch=0", ""))
	if got := short.mustCall(t, "GET", path+"?watch="+at, ""); got != "" {
		t.Errorf("nothing has changed, the answer is %q", got)
	}
	short.connect(t, "east", `{id: "1", connectTime: "2026-01-01T00:00:00Z", status: {total: {responsesSent: 4}}}`)
	if got := short.mustCall(t, "GET", path+"?watch="+at, ""); got != "" {
		t.Errorf("only counters have changed, the answer is %q", got)
	}

	at = revision(f.mustCall(t, "GET", path+"?watch=0", ""))
	for _, change := range []struct {
		what string
		do   func()
		want string
	}{
		{"disconnected", func() {
			f.connect(t, "east", `{id: "1", connectTime: "2026-01-01T00:00:00Z", disconnectTime: "2026-01-01T00:01:00Z"}`)
		}, `"disconnectTime"`},
		{"connected", func() { f.connect(t, "east", `{id: "2", connectTime: "2026-01-01T00:02:00Z"}`) }, `"id":"2"`},
		{"connected again", func() {
			f.connect(t, "east", `{id: "3", connectTime: "2026-01-01T00:03:00Z", status: {lastUpdateTime: "2026-01-01T00:03:01Z", total: {responsesSent: 4}}}`)
		}, `"responsesSent":"4"`},
		{"its first configuration taken", func() {
			f.connect(t, "east", `{id: "3", connectTime: "2026-01-01T00:03:00Z", status: {lastUpdateTime: "2026-01-01T00:05:00Z", total: {responsesSent: 4, responsesAcknowledged: 4}}}`)
		}, `"responsesAcknowledged":"4"`},
		{"refused", func() { f.refuse(t, "east", `{id: "3", status: {total: {responsesSent: 5}}}`, "1-a") }, `"responsesSent":"5"`},
		{"something else refused", func() { f.refuse(t, "east", `{id: "3", status: {total: {responsesSent: 6}}}`, "1-b") }, `"responsesSent":"6"`},
		{"taken", func() { f.connect(t, "east", `{id: "3", status: {total: {responsesSent: 7}}}`) }, `"responsesSent":"7"`},
		{"added", func() { f.mustCall(t, "PUT", "/zones/west", "type: Zone\nname: west\n") }, `"west"`},
	} {
		woken := f.watchText(t, path, at)
		change.do()
		got, err := woken()
		if err != nil || !strings.Contains(strings.ReplaceAll(got, " ", ""), change.want) {
			t.Errorf("%s: the answer is %q, %v, want %s in it", change.what, got, err, change.want)
			continue
		}
		at = revision(got)
	}
	if got := f.mustCall(t, "GET", path+"?watch=1.999999", ""); !strings.Contains(got, `"west"`) {
		t.Errorf("the status of another process: the answer is %q", got)
	}
	for _, wrong := range []string{"x", "7", "1.", "1.2.3", "-1.2", "+1.2", "01.2"} {
		if _, err := f.call(t, "GET", path+"?watch="+url.QueryEscape(wrong), ""); err == nil || err.Status != 400 || !strings.Contains(err.Error(), "such as 12.345") {
			t.Errorf("%s: %v, want 400", wrong, err)
		}
	}
}

// TestWatchOfOverviewsIsWokenByProblems checks that a list of overviews answers when something has no effect on a proxy any
// more, for another reason than before, or has an effect again.
func TestWatchOfOverviewsIsWokenByProblems(t *testing.T) {
	t.Parallel()
	f := serveConfig(t, api.Config{WatchWait: time.Minute})
	key := resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "d"}
	write(t, f.store, key, nil, `{"networking":{"address":"10.0.0.1"}}`)
	key.Type = resources.TypeDataplaneInsight
	says := func(problems string) {
		write(t, f.status, key, nil, `{"metadata":{"problems":`+problems+`},`+fmt.Sprintf(sessions, "", "{}")[1:])
	}
	says(`{}`)
	revision := func(body string) (at string) {
		t.Helper()
		var list struct{ Revision string }
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatal(err)
		}
		return list.Revision
	}
	at := revision(f.mustCall(t, "GET", "/dataplanes/_overview?watch=0", ""))
	for _, problems := range []string{`{"policies":"one"}`, `{"policies":"another"}`, `{"inbounds":"another"}`, `{}`} {
		woken := f.watchText(t, "/dataplanes/_overview", at)
		says(problems)
		got, err := woken()
		if err != nil || got == "" {
			t.Fatalf("%s: the answer is %q, %v", problems, got, err)
		}
		at = revision(got)
	}
}

// TestWatchOfProblems checks that a list of what has problems shows nothing else, and that a watch of it sleeps through
// proxies that connect, change or leave without any.
func TestWatchOfProblems(t *testing.T) {
	t.Parallel()
	f := serveConfig(t, api.Config{WatchWait: time.Minute})
	says := func(name, problems string) {
		key := resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: name}
		write(t, f.store, key, nil, `{"networking":{"address":"10.0.0.1"}}`)
		key.Type = resources.TypeDataplaneInsight
		write(t, f.status, key, nil, `{"metadata":{"problems":`+problems+`},`+fmt.Sprintf(sessions, "", "{}")[1:])
	}
	says("a", `{}`)
	says("b", `{"policies":"one"}`)
	for _, path := range []string{"/dataplanes/_overview", "/meshes/default/dataplanes/_overview"} {
		var list struct {
			Total    int
			Items    []struct{ Name string }
			Revision string
		}
		read := func(body string) string {
			t.Helper()
			list.Items = nil
			if err := json.Unmarshal([]byte(body), &list); err != nil {
				t.Fatalf("%q: %v", body, err)
			}
			return fmt.Sprint(list.Total, list.Items)
		}
		if got := read(f.mustCall(t, "GET", path+"?problems=true&watch=0", "")); got != "1 [{b}]" {
			t.Errorf("%s: got %s, want b", path, got)
		}
		woken := f.watchText(t, path, list.Revision+"&problems=true")
		says("c", `{}`)
		says("b", `{"policies":"one"}`)
		says("a", `{"refused-listener":"two"}`)
		got, err := woken()
		if err != nil {
			t.Fatal(err)
		}
		if read(got) != "2 [{a} {b}]" {
			t.Errorf("%s: got %s, want a and b", path, got)
		}
		woken = f.watchText(t, path, list.Revision+"&problems=true")
		says("a", `{}`)
		if got, err := woken(); err != nil || read(got) != "1 [{b}]" {
			t.Errorf("%s: got %s, %v, want b", path, got, err)
		}
		if _, err := f.call(t, "GET", path+"?watch=0&problems=1", ""); err == nil || err.Status != 400 {
			t.Errorf("%s: problems=1: %v, want 400", path, err)
		}
	}
	// A global may have what a zone says of a proxy before the Dataplane, and after it.
	key := resources.Key{Type: resources.TypeDataplaneInsight, Mesh: "default", Name: "early"}
	write(t, f.status, key, nil, `{"metadata":{"problems":{"policies":"one"}},`+fmt.Sprintf(sessions, "", "{}")[1:])
	key.Type = resources.TypeDataplane
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() { write(t, f.store, key, nil, `{"networking":{"address":"10.0.0.2"}}`) }, `"early"`},
		{func() {
			if _, err := f.store.Apply(t.Context(), store.Batch{Ops: []store.Op{{Delete: key}}}); err != nil {
				t.Fatal(err)
			}
		}, `"total": 1,`},
	} {
		at := regexp.MustCompile(`[0-9]+\.[0-9]+`).FindString(f.mustCall(t, "GET", "/dataplanes/_overview?problems=true&watch=0&size=0", ""))
		woken := f.watchText(t, "/dataplanes/_overview", at+"&problems=true")
		step.change()
		if got, err := woken(); err != nil || !strings.Contains(got, step.want) {
			t.Errorf("got %s, %v, want %s", got, err, step.want)
		}
	}
	// A proxy without problems wakes nobody.
	quiet := serveConfig(t, api.Config{WatchWait: 300 * time.Millisecond})
	at := func(body string) string { return regexp.MustCompile(`[0-9]+\.[0-9]+`).FindString(body) }
	revision := at(quiet.mustCall(t, "GET", "/dataplanes/_overview?problems=true&watch=0&size=0", ""))
	key = resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "d"}
	write(t, quiet.store, key, nil, `{"networking":{"address":"10.0.0.1"}}`)
	key.Type = resources.TypeDataplaneInsight
	write(t, quiet.status, key, nil, `{`+fmt.Sprintf(sessions, "", "{}")[1:])
	if got := quiet.mustCall(t, "GET", "/dataplanes/_overview?problems=true&size=0&watch="+revision, ""); got != "" {
		t.Errorf("a proxy without problems: the answer is %q", got)
	}
}

// connect gives a zone one session, as its insight shows it.
func (f *fixture) connect(t *testing.T, zone, session string) {
	t.Helper()
	f.refuse(t, zone, session, "")
}

// refuse is connect for a zone of which something is refused.
func (f *fixture) refuse(t *testing.T, zone, session, refused string) {
	t.Helper()
	docs, err := resources.DecodeDocuments([]byte("{type: ZoneInsight, name: "+zone+", subscriptions: ["+session+"]}"), resources.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if refused != "" {
		docs[0].Labels = map[string]string{resources.LabelRefused: refused}
	}
	if _, err := f.status.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: docs[0]}}}); err != nil {
		t.Fatal(err)
	}
}
