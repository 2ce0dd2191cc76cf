package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/resources"
)

// nastyText is text that a stranger, a zone or another server may have written into any field.
const nastyText = "a\x1b[2J\x1b]0;owned\x07\u009b31m\u202egpj\u2066\u200b\u0085\x7f\r\U000e0041z\nforged: all is well\tz"

// nastyServer answers every request with hostile text, like a compromised server or one that trusted the wrong caller.
func nastyServer(t *testing.T, status int) string {
	t.Helper()
	entry := map[string]any{"time": "2026-01-01T00:00:00Z", "event": nastyText, "outcome": nastyText, "user": nastyText,
		"from": nastyText, "request": "GET /" + nastyText, "reason": nastyText,
		"changes": []any{map[string]any{"result": nastyText, "type": nastyText, "mesh": nastyText, "name": nastyText,
			"diff": []any{map[string]any{"path": nastyText, "from": nastyText, "to": nastyText}}}}}
	item := map[string]any{"type": nastyText, "name": nastyText, "mesh": nastyText, "kri": nastyText,
		"labels":   map[string]string{nastyText: nastyText, "kuma.io/display-name": nastyText, "kuma.io/zone": nastyText},
		"syncedTo": []string{nastyText},
		"spec":     map[string]any{nastyText: nastyText}, "networking": map[string]any{"address": nastyText},
		"creationTime": "2026-01-01T00:00:00Z"}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set(api.ServerHeader, api.ModeGlobal)
		answer := map[string]any{"entries": []any{entry}, "items": []any{item}, "total": 1,
			"keys": []any{map[string]any{"name": nastyText, "purpose": nastyText}}, "stored": true,
			"notEnforced": []string{nastyText},
			"zones": map[string]any{"total": 2, "pending": []string{nastyText},
				"offline": []any{map[string]any{"zone": nastyText}},
				"refused": []any{map[string]any{"zone": nastyText, "reason": nastyText}}}}
		answer["user"], answer["permission"], answer["inbound"], answer["reason"] = nastyText, nastyText, nastyText, nastyText
		answer["verdict"], answer["policy"], answer["field"], answer["protocol"] = nastyText, nastyText, nastyText, nastyText
		answer["request"] = map[string]string{"from": nastyText, "method": nastyText, "path": nastyText, "sni": nastyText}
		answer["shadow"] = map[string]string{"verdict": nastyText, "policy": nastyText}
		answer["matched"] = []any{map[string]any{"policy": nastyText, "action": nastyText, "field": nastyText,
			"entry": map[string]any{"path": map[string]string{"type": "Exact", "value": nastyText}}, "headers": map[string]string{nastyText: nastyText}}}
		answer["would"], answer["unguarded"], answer["warnings"] = []string{nastyText}, []string{nastyText}, []string{nastyText}
		answer["proxies"] = []any{map[string]string{"inbound": nastyText, "verdict": nastyText, "policy": nastyText}}
		if !strings.HasSuffix(r.URL.Path, "_explain") {
			delete(answer, "proxies") // others have an object there
		}
		if status != http.StatusOK {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			answer = map[string]any{"type": "/std-errors", "status": status, "title": nastyText,
				"detail":             nastyText + "; the nearest here: " + nastyText,
				"invalid_parameters": []any{map[string]string{"field": nastyText, "reason": nastyText}}}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestWhatIsPrintedIsText checks the output of commands for answers whose every field is hostile. It calls what main calls,
// many hundred times; TestHostileServers and the scripts start the program.
func TestWhatIsPrintedIsText(t *testing.T) {
	t.Parallel()
	commands := [][]string{{"audit"}, {"keys", "list"}, {"inspect", "sync"}, {"inspect", "dataplane", "a"},
		{"report", "shadow"}, {"doctor"}, {"version"}, {"auth", "can-i", "read", "zones"}}
	commands = append(commands, []string{"lint"}, []string{"inspect", "policy", "meshtimeout", "a"},
		[]string{"inspect", "service", "a"}, []string{"rollout", "status", "meshtimeout", "a"},
		[]string{"get", "zones", nastyText}, []string{"explain", "--to", nastyText, "--from", nastyText},
		[]string{"explain", "--to", "a", "--from", "spiffe://a/b"}, []string{"describe", "meshservice", "a"},
		[]string{"report", "access"}, []string{"report", "denied"}, []string{"delete", "meshservice", "a"},
		[]string{"why", "a", "b"}, []string{"zone", "adopt", "a"}, []string{"secret", "list"},
		[]string{"proxy", "config", "a"}, []string{"proxy", "stats", "a"}, []string{"proxy", "clusters", "a"}, []string{"proxy", "certs", "a"})
	for _, d := range resources.Descriptors() {
		commands = append(commands, []string{"get", d.Path}, []string{"get", d.Path, "a"})
	}
	formats := append(outputFormats(), string(formatName), "custom-columns=A:.name,B:.labels,C:.networking.address,D:.syncedTo", "jsonpath={range .items[*]}{.name} {.labels}{\"\\n\"}{end}")
	shown, ofRollout := false, false
	for _, status := range []int{http.StatusOK, http.StatusBadRequest, http.StatusNotFound} {
		address, refuses := nastyServer(t, status), status != http.StatusOK
		of := formats
		if refuses { // the same code prints it, whatever the format
			of = []string{string(formatTable), string(formatJSON)}
		}
		for _, command := range commands {
			for _, format := range of {
				args := append(append([]string{}, command...), "--address", address, "--timeout", "5s", "-o", format)
				var stdout, stderr bytes.Buffer
				status := run(args, strings.NewReader(""), &stdout, &stderr)
				for _, text := range []string{stdout.String(), stderr.String()} {
					shown = shown || strings.Contains(text, `\u202e`) && strings.Contains(text, "owned")
					ofRollout = ofRollout || !refuses && command[0] == "rollout" && format == string(formatTable) &&
						strings.Contains(text, "owned")
					if !printing.Safe(text) {
						t.Errorf("%s prints %q", args, text)
					}
					if strings.Contains(text, "\nforged") {
						t.Errorf("%s prints a line that is not ours: %q", args, text)
					}
				}
				if status == 0 && format == string(formatJSON) && command[0] != "delete" && !json.Valid(stdout.Bytes()) {
					t.Errorf("%s prints no JSON: %s", args, stdout.Bytes())
				}
			}
		}
	}
	if !ofRollout {
		t.Error("rollout status showed no zone")
	}
	if !shown {
		t.Error("no command showed any of it: what was looked at?")
	}
}

// TestOneWayOut checks that only main names the process's own outputs, so that no command can bypass the escaping.
func TestOneWayOut(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if file == "main.go" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, way := range []string{"os.Stdout", "os.Stderr", "fmt.Print", "println("} {
			if strings.Contains(strings.ReplaceAll(strings.ToLower(string(text)), "fprint", ""), strings.ToLower(way)) {
				t.Errorf("%s: %s passes by printing.Writer: use cli.out or cli.errOut", file, way)
			}
		}
	}
}

// TestValuesOfTemplatesAreLines checks that a text of two lines is printed unchanged if it is the only value, and on
// one line if something follows.
func TestValuesOfTemplatesAreLines(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(api.ServerHeader, api.ModeGlobal)
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "MeshTrust", "mesh": "default", "name": "one\ntwo"})
	}))
	t.Cleanup(srv.Close)
	for expression, want := range map[string]string{"{.name}": "one\ntwo\n", `{.name}{"\n"}`: "one\\ntwo\n", "{.name} {.mesh}": "one\\ntwo default\n"} {
		var stdout, stderr bytes.Buffer
		if status := run([]string{"get", "meshtrust", "a", "--address", srv.URL, "-o", "jsonpath=" + expression}, strings.NewReader(""), &stdout, &stderr); status != 0 || stdout.String() != want {
			t.Errorf("%s prints %q, want %q: %s", expression, stdout.String(), want, stderr.String())
		}
	}
}
