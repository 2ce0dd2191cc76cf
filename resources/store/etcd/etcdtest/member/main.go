// Command member runs one member of an etcd cluster for tests. Package etcdtest builds and starts it: as a program of
// its own it has no race detector, and the tests' binaries do not contain an etcd server.
package main

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	fmt.Fprintln(os.Stderr, serve(os.Args[1:]))
	os.Exit(1)
}

// serve runs a member until it fails or its process ends. args are its name, its folder, its URLs for clients and for
// peers, the initial cluster, and a limit.
func serve(args []string) error {
	if len(args) != 6 {
		return fmt.Errorf("want 6 arguments, have %d: package etcdtest knows them", len(args))
	}
	config := embed.NewConfig()
	config.Name, config.Dir = args[0], args[1]
	config.ListenClientUrls, config.AdvertiseClientUrls = urls(args[2]), urls(args[2])
	config.ListenPeerUrls, config.AdvertisePeerUrls = urls(args[3]), urls(args[3])
	config.InitialCluster = args[4]
	config.UnsafeNoFsync = true
	config.BcryptCost = 4 // the minimum: passwords in tests are not secret
	config.LogLevel = "fatal"
	if err := limit(config, args[5]); err != nil {
		return err
	}
	config.TickMs, config.ElectionMs = 50, 500
	e, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	return <-e.Err()
}

func urls(s string) []url.URL {
	u, err := url.Parse(s)
	if err != nil {
		return nil
	}
	return []url.URL{*u}
}

// limit applies the limits of StartLimited and StartQuota.
func limit(config *embed.Config, spec string) error {
	what, value, found := strings.Cut(spec, "=")
	if !found {
		return nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return err
	}
	if what == "quota" {
		config.QuotaBackendBytes = n
		return nil
	}
	config.MaxRequestBytes = uint(n) //nolint:gosec // of a test
	return nil
}
