package explain_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/zone/explain"
)

func readTests(t *testing.T, file string) *explain.TestFile {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := explain.ReadTests(file, raw)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestRunTests checks that each way in which an expectation can fail is reported, that the others pass, and that
// entries that no test matches are named.
func TestRunTests(t *testing.T) {
	report := explain.FromFiles(load(t, "testdata/backend.yaml"),
		explain.Options{}).RunTests([]*explain.TestFile{readTests(t, "testdata/tests.yaml")})
	failures := map[string]string{
		"wrong verdict":  "want deny, got allow by kri_mtp_default___by-service-owner_",
		"wrong decider":  "want allow by by-mesh-operator, got allow by kri_mtp_default___by-service-owner_",
		"proxies differ": "want allow, got deny by kri_mtp_default___canary_ at kri_dp_default_local__backend-2_http-port",
		"nowhere":        `to: mesh "default" has no Dataplane or MeshService "payments"`,
		"wrong shadow":   "want deny in the shadow, got allow",
	}
	for _, c := range report.Cases {
		want, fails := failures[c.Name]
		if (c.Failure != "") != fails || !strings.Contains(c.Failure, want) || c.Line == 0 {
			t.Errorf("%s:%d: %q: %q, want %q", c.File, c.Line, c.Name, c.Failure, want)
		}
	}
	if report.Failed != len(failures) || report.Passed != 12 {
		t.Errorf("%d passed, %d failed", report.Passed, report.Failed)
	}
	const line = "coverage: 6 of 7 entries; no test touches kri_mtp_default___by-mesh-operator_ rules[0].default.allow[0]"
	if got := report.Coverage.String(); got != line {
		t.Errorf("%s\nwant %s", got, line)
	}
	var junit bytes.Buffer
	if err := report.WriteJUnit(&junit); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/junit.golden.yaml", junit.String())
}

// TestBadTests checks that the errors of a file include their position.
func TestBadTests(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "f.yaml: has no tests",
		"tests: [{to: a, from: b}]":         `f.yaml:1: tests[0]: expect: want allow or deny, got ""`,
		"tests:\n- {to: a, expect: allow}":  "f.yaml:2: tests[0]: from: is required",
		"tests: [{from: a, expect: allow}]": "to: is required",
		"tests: [{from: a, to: b, expect: allow, shadow: maybe}]":                                       "shadow: want allow or deny",
		"tests: [{from: a, to: b, expect: allow, pathh: /}]":                                            "pathh",
		"tests: [{from: [], to: b, expect: allow}]":                                                     "the list is empty",
		"tests: []\n---\ntests: []":                                                                     "more than one document",
		"destinations: {x: {}}\ntests: [{from: a, to: b, expect: allow}]":                               "destinations.x: inbounds: is required",
		"destinations: {x: {inbounds: [{name: a, port: 1}]}}\ntests: [{from: a, to: b, expect: allow}]": "want http, http2, grpc or tcp",
		"tests: " + strings.Repeat("[", 3):                                                              "f.yaml: ",
	} {
		if _, err := explain.ReadTests("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzReadTests checks that reading any file ends without a panic, and that the result can be run.
func FuzzReadTests(f *testing.F) {
	raw, err := os.ReadFile("testdata/tests.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(raw))
	f.Add("tests: [{from: a, to: b=c, expect: allow}]")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := explain.ReadTests("f.yaml", []byte(text))
		if err != nil {
			return
		}
		explain.FromFiles(nil, explain.Options{}).RunTests([]*explain.TestFile{file})
	})
}
