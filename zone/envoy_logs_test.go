package zone_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// logged returns the lines of a log that somebody writes.
func logged(file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// finds asks until one of the lines of a log has all of the parts.
func (w *traced) finds(file string, parts ...string) {
	w.t.Helper()
	soon(w.t, func() error {
		plain(w.port, "/hello?secret", "user-agent", "tester", "x-empty", "")
		lines := logged(file)
		for _, line := range lines {
			has := true
			for _, part := range parts {
				has = has && strings.Contains(line, part)
			}
			if has {
				return nil
			}
		}
		return fmt.Errorf("%s: no line with %q among the last of %d: %q", file, parts, len(lines),
			lines[max(0, len(lines)-3):])
	})
}

// TestAccessLogsByPolicy shows the fields of a MeshAccessLog with real Envoys on both sides of a call.
func TestAccessLogsByPolicy(t *testing.T) {
	t.Parallel()
	w := newTraced(t)
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	log := func(list, backend string) {
		w.apply(fmt.Sprintf("{type: MeshAccessLog, mesh: default, name: p, spec: {%s}}",
			fmt.Sprintf(list, "{backends: ["+backend+"]}")))
	}
	const from, to = "from: [{targetRef: {kind: Mesh}, default: %s}]",
		"to: [{targetRef: {kind: MeshService, name: backend}, default: %s}]"

	log(from, fmt.Sprintf("{type: File, file: {path: %s}}", in))
	w.finds(in, "default INBOUND spiffe://default.zone-1.mesh.local/workload/caller => backend \"GET /hello?secret HTTP/1.1\" 200", "policy=kri_mtp_default_")
	log(to, fmt.Sprintf("{type: File, file: {path: %s}}", out))
	w.finds(out, "default OUTBOUND caller => backend \"GET /hello?secret HTTP/1.1\" 200", "policy=-")
	log(to, fmt.Sprintf(`{type: File, file: {path: %s, format: {type: Plain, plain: "100%%%% %%KUMA_ZONE%% %%REQ(user-agent)%%|%%REQ(x-none)%%|", omitEmptyValues: true}}}`, out))
	w.finds(out, "100% zone-1 tester||")

	// Each command that is let through is one that Envoy knows.
	values := []map[string]string{}
	for _, command := range resources.LogCommands() {
		argument := map[string]string{"START_TIME": "(%Y-%m-%dT%H:%M:%S.%3f%z)", "REQ": "(user-agent?:path):20",
			"RESP": "(server)", "TRAILER": "(a)",
			"DYNAMIC_METADATA": "(envoy.filters.http.rbac:enforced_engine_result)",
			"FILTER_STATE":     "(causeway.client:PLAIN)"}[command]
		values = append(values, map[string]string{"key": strings.ToLower(command), "value": "%" + command + argument + "%"})
	}
	all, err := json.Marshal(values)
	must(t, err)
	log("rules: [{default: %s}]", fmt.Sprintf(`{type: File, file: {path: %s, format: {type: Json, json: %s}}}`, in, all))
	w.finds(in, `"req":"tester"`, `"dynamic_metadata":"allowed"`, `"kuma_traffic_direction":"INBOUND"`,
		`"filter_state":"spiffe://default.zone-1.mesh.local/workload/caller"`)

	c := startCollector(t)
	log(to, fmt.Sprintf(`{type: OpenTelemetry, openTelemetry: {endpoint: %q, attributes: [{key: mesh, value: "%%KUMA_MESH%%"}, {key: code, value: "%%RESPONSE_CODE%%"}],
	  body: {kvlistValue: {values: [{key: path, value: {stringValue: "%%REQ(:PATH)%%"}}]}}}}, {type: File, file: {path: /dev/stdout, format: {type: Plain, plain: "to stdout %%RESPONSE_CODE%%"}}}`, c.address))
	soon(t, func() error {
		plain(w.port, "/otel")
		return c.logged("default", "200", "/otel")
	})
	w.finds(w.caller.log, "to stdout 200")

	w.remove(resources.TypeMeshAccessLog, "p")
	soon(t, func() error {
		if listeners := w.caller.get("/config_dump?resource=dynamic_listeners"); strings.Contains(listeners,
			"access_loggers") {
			return fmt.Errorf("the log is still there")
		}
		return nil
	})
}

// logged reports whether a record with two attributes and a path in its body has come.
func (c *collector) logged(mesh, code, path string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.logs {
		for _, scope := range r.GetScopeLogs() {
			for _, record := range scope.GetLogRecords() {
				attributes, body := attributesOf(record.GetAttributes()),
					attributesOf(record.GetBody().GetKvlistValue().GetValues())
				if attributes["mesh"] == mesh && attributes["code"] == code && body["path"] == path {
					return nil
				}
			}
		}
	}
	return fmt.Errorf("no such record among %v", c.logs)
}

// TestAccessLogsOfConnections shows a MeshAccessLog on a TCP inbound.
func TestAccessLogsOfConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, _ := application(t)
	port, file := freePort(t), filepath.Join(t.TempDir(), "log")
	w.apply(`{type: MeshTrafficPermission, mesh: default, name: all, spec: {rules: [{default: {allow: [{spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/"}}]}}]}}`)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %d, servicePort: %d, protocol: tcp}]}}
---
{type: MeshAccessLog, mesh: default, name: p, spec: {default: {backends: [{type: File, file: {path: %s}}]}}}`, port, service, file))
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice := w.client("alice")
	soon(t, func() error {
		status(alice, port)
		for _, line := range logged(file) {
			if strings.Contains(line, "default INBOUND spiffe://default.zone-1.mesh.local/workload/alice => backend") &&
				strings.Contains(line, "policy=kri_mtp_default_") {
				return nil
			}
		}
		return fmt.Errorf("no line of the connection: %q", logged(file))
	})
}

// TestLogsThatCannotBeOpened: a proxy refuses a listener with a file that it cannot open, and whatever else the update
// says. It goes on without that file, and with all the rest.
func TestLogsThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	w := newTraced(t)
	dir := t.TempDir()
	missing, good := filepath.Join(dir, "missing", "log"), filepath.Join(dir, "good")
	w.apply(fmt.Sprintf(`{type: MeshAccessLog, mesh: default, name: p, spec: {
  to: [{targetRef: {kind: Mesh}, default: {backends: [{type: File, file: {path: %[1]s}}, {type: File, file: {path: %[2]s}}]}}],
  from: [{targetRef: {kind: Mesh}, default: {backends: [{type: File, file: {path: %[1]s}}, {type: File, file: {path: %[2]s}}]}}]}}`, missing, good))
	w.finds(good, "INBOUND")
	w.finds(good, "OUTBOUND")
	for _, name := range []string{"backend", "caller-1"} {
		soon(t, func() error {
			problems := w.problems(name)
			if !strings.Contains(problems, "file.path") || !strings.Contains(problems, missing) ||
				strings.Contains(problems, "refused-lds") {
				return fmt.Errorf("the problems of %s: %s", name, problems)
			}
			return nil
		})
	}

	// A proxy that starts meanwhile is sent the file first, and refuses it. It serves, and writes the other one.
	late := freePort(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: late, labels: {kuma.io/workload: caller}, networking: {address: 127.0.0.1, outbound: [
  {port: %d, backendRef: {kind: MeshService, name: backend, port: 80}}]}}`, late))
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "late"})
	soon(t, func() error {
		code, text := plain(late, "/late")
		if code != http.StatusOK || !slices.ContainsFunc(logged(good), func(line string) bool {
			return strings.Contains(line, `OUTBOUND caller => backend "GET /late`)
		}) {
			return fmt.Errorf("%d %s, and no line of it: %s", code, text, w.problems("late"))
		}
		return nil
	})

	// Whoever mends the folder writes the policy anew.
	must(t, os.Mkdir(filepath.Dir(missing), 0o700))
	w.apply(fmt.Sprintf(`{type: MeshAccessLog, mesh: default, name: p, spec: {to: [{targetRef: {kind: Mesh}, default: {backends: [{type: File, file: {path: %s}}]}}]}}`, missing))
	w.finds(missing, "OUTBOUND")
	soon(t, func() error {
		if problems := w.problems("caller-1"); problems != "" {
			return fmt.Errorf("still: %s", problems)
		}
		return nil
	})
}

// problems returns what the insight of a Dataplane tells of its proxy.
func (w *world) problems(name string) string {
	r := w.status.Snapshot().Get(resources.Key{Type: resources.TypeDataplaneInsight, Mesh: "default", Name: name})
	if r == nil {
		return "no insight"
	}
	var insight struct {
		Metadata struct{ Problems json.RawMessage }
	}
	must(w.t, json.Unmarshal(r.Spec.JSON(), &insight))
	return string(insight.Metadata.Problems)
}
