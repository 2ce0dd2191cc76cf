package main

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
)

// Variables of the servers. If causewayctl runs beside a server, as in its container, they say how to reach it.
const (
	serverAPIEnv         = "CAUSEWAY_API_ADDRESS"
	serverDiagnosticsEnv = "CAUSEWAY_DIAGNOSTICS_ADDRESS"
	serverDataEnv        = "CAUSEWAY_DATA_DIR"
)

// beside returns the URL of a server's port, from the address that the server listens on, or "". Off loopback, servers
// use TLS.
func beside(listens string) string {
	host, port, err := net.SplitHostPort(listens)
	if err != nil {
		return ""
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "" || err == nil && ip.IsUnspecified():
		return "https://" + net.JoinHostPort("127.0.0.1", port)
	case host == "localhost" || err == nil && ip.IsLoopback():
		return "http://" + net.JoinHostPort(host, port)
	}
	return "https://" + net.JoinHostPort(host, port)
}

// besideFile returns the first existing one of the files of the server's data folder, or "" if there is none, or if the
// command is for another server than the one beside it.
func besideFile(names ...string) string {
	dir := os.Getenv(serverDataEnv)
	if dir == "" || os.Getenv(addressEnv) != "" || os.Getenv(serverAPIEnv) == "" {
		return ""
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil { //nolint:gosec // the environment is the caller's
			return path
		}
	}
	return ""
}

// leaveBeside drops the token of the server beside us if --address names another server.
func (c *cli) leaveBeside() {
	token := besideFile("admin.token")
	if token == "" || c.credential.tokenFile != token || c.credential.flags.Changed("token-file") {
		return
	}
	asked, err := url.Parse(c.address)
	ours, _ := url.Parse(cmp.Or(beside(os.Getenv(serverAPIEnv)), defaultAddress))
	if err == nil && asked.Port() == ours.Port() && (asked.Host == ours.Host || loopbackURL(c.address) && loopbackURL(ours.String())) {
		return
	}
	c.credential.tokenFile = ""
}
