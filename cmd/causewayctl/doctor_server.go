package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/server"
)

const (
	defaultDiagnostics = "http://127.0.0.1:5680"
	// slowAnswer is how long the smallest request may take before it is worth a look.
	slowAnswer = time.Second
	// certificateSkew is the clock difference that certificates tolerate; noticedSkew makes ages and logs hard to read.
	certificateSkew = 5 * time.Minute
	noticedSkew     = 10 * time.Second
	// soonExpired and nearlyExpired are how long before its expiry a certificate is reported. Servers renew theirs 30
	// days before expiry, at start.
	soonExpired   = 30 * 24 * time.Hour
	nearlyExpired = 7 * 24 * time.Hour
	portTimeout   = 5 * time.Second
)

// server checks what one request shows: whether and how fast the server responds, the clock, the certificate and the
// version.
func (e *examination) server(ctx context.Context) error {
	probe, err := e.client.Probe(ctx)
	if err != nil {
		return err
	}
	var info api.Index
	if err := e.client.JSON(ctx, api.Request{Path: "/"}, &info); err != nil {
		return err
	}
	e.version, e.home = info.Version, info.Zone
	took := probe.Took.Round(time.Millisecond)
	if probe.Took > slowAnswer {
		e.add(finding{
			findingWarning, "api", "", fmt.Sprintf("it took %s to answer the smallest request", took),
			"the server, its machine or the network is overloaded: changes reach zones and proxies late",
			"look at the load of the machine, and at causeway_api_request_seconds of /metrics",
		})
	} else {
		e.note("api", "", "%s %s answers in %s", info.Product, info.Version, took)
	}
	e.add(clockFinding(probe.Skew()))
	for _, cert := range probe.Certificates[:min(1, len(probe.Certificates))] {
		e.add(certificateFinding("of "+e.cli.address, cert, time.Now()))
	}
	e.add(versionFinding("this program", server.Version(), info.Version))
	return nil
}

// clockFinding judges how far the server's clock is ahead of this machine's.
func clockFinding(skew time.Duration) finding {
	f := finding{Status: findingOK, Check: "clock", What: "the server's clock is that of this machine"}
	away := skew.Abs().Round(time.Second)
	if away < noticedSkew {
		return f
	}
	way := "ahead of"
	if skew < 0 {
		way = "behind"
	}
	f.Status, f.What = findingWarning, fmt.Sprintf("the server's clock is %s %s this machine's", away, way)
	f.Why, f.Do = "times in logs, the audit log and tables do not match",
		"synchronize both clocks by NTP (timedatectl shows whether they are)"
	if away >= certificateSkew {
		f.Status, f.Why = findingProblem,
			"certificates and tokens count as expired, or as not yet valid, on one of the machines"
	}
	return f
}

// certificateFinding judges how long a server's certificate remains valid.
func certificateFinding(about string, cert *x509.Certificate, now time.Time) finding {
	f := finding{Status: findingOK, Check: "certificate", About: about,
		What: "good until " + cert.NotAfter.UTC().Format(time.DateOnly)}
	left := cert.NotAfter.Sub(now)
	if now.Before(cert.NotBefore) {
		f.Status, f.What = findingProblem, "not valid before "+cert.NotBefore.UTC().Format(time.RFC3339)
		f.Why, f.Do = "nobody can verify the server", "set this machine's clock and the server's"
		return f
	}
	if left > soonExpired {
		return f
	}
	f.Status, f.Why = findingWarning, "once it expires, nobody can verify the server, and zones and proxies cannot connect"
	f.Do = "restart the server: at start it replaces a certificate that expires within 30 days; the CA does not change"
	if cert.IsCA {
		f.Do = "for a zone CA: causewayctl keys rotate zone-ca; for a server's CA see docs/operations/rotation.md"
	}
	switch {
	case left <= 0:
		f.Status, f.What = findingProblem, "ended at "+cert.NotAfter.UTC().Format(time.RFC3339)
	case left < nearlyExpired:
		f.Status = findingProblem
	}
	return f
}

var minorVersion = regexp.MustCompile(`^v?(\d+)\.(\d+)`)

// versionFinding compares a version with the server's. One minor version apart is supported.
func versionFinding(about, version, servers string) finding {
	f := finding{Status: findingOK, Check: "version", About: about, What: version}
	if version == servers || version == "" {
		return f
	}
	f.What = fmt.Sprintf("%s, the server is %s", version, servers)
	a, b := minorVersion.FindStringSubmatch(version), minorVersion.FindStringSubmatch(servers)
	if a == nil || b == nil {
		f.Status, f.Why = findingWarning, "whether these versions are compatible is unknown"
		f.Do = "run released versions, at most one minor version apart"
		return f
	}
	one, _ := strconv.Atoi(a[2])
	other, _ := strconv.Atoi(b[2])
	if a[1] != b[1] || max(one-other, other-one) > 1 {
		f.Status, f.Why = findingProblem, "only versions that are at most one minor version apart are tested together"
		f.Do = "upgrade the older one, one minor version at a time"
	}
	return f
}

// audit sends a request that changes nothing, and that the server refuses while it cannot write the audit log.
func (e *examination) audit(ctx context.Context) {
	err := e.client.JSON(ctx, api.Request{Method: http.MethodPost, Path: "/_can-i",
		Body: []byte(`{"verb":"read","type":"Mesh"}`)}, nil)
	switch {
	case err == nil:
		e.note("audit log", "", "is written")
	case strings.Contains(err.Error(), "audit"):
		e.add(finding{
			findingProblem, "audit log", "", err.Error(),
			"nothing can change on this server: it does nothing that it cannot write to the audit log",
			"see the server's log for the error; once there is room, or the moved files are back, it continues without a restart; if the folder is lost, restart the server",
		})
	default:
		e.unknown("audit log", "", err, "")
	}
}

// keys checks when the server's signing keys expire.
func (e *examination) keys(ctx context.Context) {
	list := &api.SigningKeyList{}
	if err := e.client.JSON(ctx, api.Request{Path: "/_keys"}, list); err != nil {
		e.unknown("keys", "", err, "use a credential that may read keys: causewayctl auth can-i read Key")
		return
	}
	e.add(keyFindings(list.Keys, time.Now())...)
}

func keyFindings(keys []api.SigningKey, now time.Time) []finding {
	var out []finding
	for _, k := range keys {
		if k.Expires == nil || k.Expires.Sub(now) > soonExpired {
			continue
		}
		f := finding{
			findingWarning, "keys", k.Purpose + " " + k.ID, "ends at " + k.Expires.UTC().Format(time.RFC3339),
			"what it signed is refused after that", "causewayctl keys rotate " + k.Purpose +
				", while all zones and proxies that depend on it are connected",
		}
		if k.Expires.Sub(now) < nearlyExpired {
			f.Status = findingProblem
		}
		out = append(out, f)
	}
	if len(out) == 0 {
		out = append(out, finding{Status: findingOK, Check: "keys",
			What: fmt.Sprintf("%d keys, none ends within 30 days", len(keys))})
	}
	return out
}

// diagnosticsAddress returns the address of the diagnostics port, or an empty string if it is unknown. In a cluster, it is
// that of the pod that serves.
func (c *cli) diagnosticsAddress(ctx context.Context, flag string) (string, error) {
	if c.kube.context != "" {
		return c.kube.diagnostics(ctx, c, flag)
	}
	return c.localDiagnostics(flag), nil
}

func (c *cli) localDiagnostics(flag string) string {
	switch {
	case flag != "":
		return flag
	case c.address == defaultAddress:
		return defaultDiagnostics
	case c.address == beside(os.Getenv(serverAPIEnv)):
		return beside(os.Getenv(serverDiagnosticsEnv))
	}
	return ""
}

// diagnosticsClient returns a client for the diagnostics port, which accepts no credentials.
func (c *cli) diagnosticsClient(address string) (*api.Client, error) {
	dial, err := c.kube.dialer(c)
	if err != nil {
		return nil, err
	}
	config := api.ClientConfig{Address: address, Dial: dial, Diagnostics: true, Timeout: c.timeout,
		UserAgent: "causewayctl/" + server.Version()}
	if c.caFile != "" || c.credential.pin != "" {
		if err := c.credential.trust(&config, c.caFile); err != nil {
			return nil, err
		}
	}
	client, err := api.NewClient(config)
	if err != nil {
		return nil, usagef("--diagnostics: %w", err)
	}
	return client, nil
}

// readiness checks whether the server is ready, which includes its store.
func (e *examination) readiness(ctx context.Context) error {
	address, err := e.cli.diagnosticsAddress(ctx, e.flags.diagnostics)
	if err == nil && address == "" {
		err = errors.New("the diagnostics port is unknown")
	}
	if err != nil {
		e.unknown("readiness", "", err, "give --diagnostics URL"+e.cli.kube.diagnosticsHint())
		return nil
	}
	client, err := e.cli.diagnosticsClient(address)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	e.panics(ctx, client, address)
	e.kubernetes(ctx, client)
	said, err := client.Do(ctx, api.Request{Path: server.ReadyPage})
	if err == nil && strings.TrimSpace(string(said)) != "ok" {
		err = errors.New("what responds there is not the diagnostics port of a Causeway server")
	}
	var answer *api.Error
	switch {
	case err == nil:
		e.note("readiness", address, "the server is ready, and its store accepts writes")
	case asAPIError(err, &answer):
		e.add(finding{
			findingProblem, "readiness", address, "not ready: " + answer.Detail,
			"a server that is not ready refuses writes or connections, or soon will; what it has it still serves",
			"for the store: make room on the disk, or look at the members of etcd; it becomes ready again without a restart, unless its folder is lost: then restart it",
		})
	default:
		e.add(finding{
			findingProblem, "readiness", address, err.Error(),
			"monitoring cannot reach the server at this port",
			"compare with the server's --diagnostics-address, and with what the network lets through",
		})
	}
	return nil
}

// otherPorts connects to the addresses that --port names, and checks the certificates there.
func (e *examination) otherPorts(ctx context.Context) {
	for _, address := range e.flags.ports {
		e.add(e.cli.portFinding(ctx, address))
	}
}

func (c *cli) portFinding(ctx context.Context, address string) finding {
	ctx, cancel := context.WithTimeout(ctx, portTimeout)
	defer cancel()
	conn, err := c.kube.dial(ctx, address)
	if err != nil {
		return finding{
			findingProblem, "port", address, err.Error(), "zones or proxies cannot connect",
			"check that the server listens on this address (its log shows it at start), and that the network allows the connection",
		}
	}
	defer conn.Close()
	// Only the certificate's dates are read. Nothing is sent, so it does not matter whose certificate it is.
	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}) //nolint:gosec // see above
	if secure.HandshakeContext(ctx) != nil {
		return finding{Status: findingOK, Check: "port", About: address, What: "answers, without TLS"}
	}
	f := certificateFinding(address, secure.ConnectionState().PeerCertificates[0], time.Now())
	f.Check = "port"
	f.What = "answers; its certificate: " + f.What
	return f
}

// meshes returns the names of the meshes, in the server's order.
func (e *examination) meshes(ctx context.Context) ([]string, error) {
	d, _ := resources.Lookup(resources.TypeMesh)
	items, err := listItems(ctx, e.client, listQuery{descriptor: d})
	var names []string
	for _, it := range items {
		names = append(names, it.Name)
	}
	return names, err
}
