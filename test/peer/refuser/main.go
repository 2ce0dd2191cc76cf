// Command refuser is a zone of another vendor for tests of the page: it requests a type and refuses each resource of it
// that has a text, with a reason. It prints a line when it is connected, and runs until it is stopped.
package main

import (
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/causeway-mesh/causeway/test/peer"
)

func main() {
	var cfg peer.ZoneConfig
	flag.StringVar(&cfg.Name, "zone", "foreign", "`name` of the zone")
	flag.StringVar(&cfg.KDS, "kds", "", "the global's `address` for zones")
	ca := flag.String("ca", "", "`file` of the authority of its certificate")
	of := flag.String("type", "MeshTimeout", "the `type` that it requests")
	text := flag.String("text", "", "what it refuses: each resource that has this `text`")
	reason := flag.String("reason", "refused", "why")
	flag.Parse()
	cfg.Types = []string{"Mesh", *of}
	cfg.Refuse = func(r peer.Resource) string {
		if r.Type == *of && strings.Contains(r.Spec, *text) {
			return *reason
		}
		return ""
	}
	if err := run(cfg, *ca); err != nil {
		log.Fatal(err)
	}
}

func run(cfg peer.ZoneConfig, ca string) error {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return err
	}
	cfg.CA = x509.NewCertPool()
	if !cfg.CA.AppendCertsFromPEM(pem) {
		return errors.New(ca + " holds no certificate")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	zone, err := peer.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	fmt.Println("connected")
	for ctx.Err() == nil && zone.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	err = zone.Err()
	if closed := zone.Close(); ctx.Err() != nil {
		return closed
	}
	return err
}
