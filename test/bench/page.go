package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// pageFigure is one measured value, as web/speed prints it: a line of JSON each.
type pageFigure struct {
	Title, Unit  string
	Goal, Sample float64
}

// measurePage opens the page of a global in a real Chromium, with the whole mesh behind it. web/speed is what clicks and
// measures, as a person would. With open, the page stays open for so long, used all the time, and only its memory is measured.
func (b *bench) measurePage(ctx context.Context, open time.Duration) (*table, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*patience+open)
	defer cancel()
	b.started++
	c, err := cluster.New(cluster.Config{Bin: b.bin, Dir: filepath.Join(b.dir, strconv.Itoa(b.started))})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	g, err := c.StartGlobal(ctx, cluster.GlobalConfig{Anonymous: true, Args: []string{"--kds-tls=false", "--log-level", "warn"}})
	if err != nil {
		return nil, err
	}
	b.say("page: %d policies", pagePolicies)
	if err := fill(ctx, g, pagePolicies, func(i int) (string, map[string]any) { return pagePermission(i, noMark) }); err != nil {
		return nil, err
	}
	b.say("page: %d zones with %d services and %d proxies", pageZones, pageServices, pageProxies)
	z := connectOffering(ctx, g.Address("kds"), pageZones, newMarks())
	defer z.close()
	err = z.waitSynced(2*patience, pagePolicies)
	if err == nil {
		err = waitListed(z.ctx, g)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.Join(z.reasons(), "; "))
	}
	b.say("page: Chromium")
	return b.clickThrough(z.ctx, g, open)
}

// waitListed returns once the global lists all services and proxies of the zones, and their insights.
func waitListed(ctx context.Context, g *cluster.Server) error {
	return cluster.Until(ctx, patience, "the services and proxies of all zones", func(ctx context.Context) error {
		for path, want := range map[string]int{"/meshservices": pageServices, "/dataplanes": pageProxies, "/zones": pageZones} {
			var list struct{ Total int }
			if err := g.API.Do(ctx, "GET", path+"?size=1", nil, &list); err != nil {
				return err
			}
			if list.Total != want {
				return fmt.Errorf("%s: %d of %d", path, list.Total, want)
			}
		}
		var insight struct {
			Dataplanes map[string]struct{ Online int }
		}
		if err := g.API.Do(ctx, "GET", "/global-insight", nil, &insight); err != nil {
			return err
		}
		if online := insight.Dataplanes["standard"].Online; online != pageProxies {
			return fmt.Errorf("%d of %d proxies are online", online, pageProxies)
		}
		return nil
	})
}

// clickThrough runs web/speed, and collects what it prints.
func (b *bench) clickThrough(ctx context.Context, g *cluster.Server, open time.Duration) (*table, error) {
	root, err := cluster.Root()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, ".tools", "bin", "node"), "speed/main.ts")
	cmd.Dir, cmd.Stderr = filepath.Join(root, "web"), os.Stderr
	cmd.Env = append(os.Environ(), "ADDRESS="+g.API.URL(), "PID="+strconv.Itoa(g.PID()), fmt.Sprintf("OPEN_SECONDS=%d", int(open.Seconds())))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("node: %w: make bench-page installs it", err)
	}
	t := &table{title: fmt.Sprintf("The page of a global: %d zones, %d policies, %d services, %d proxies", pageZones, pagePolicies, pageServices, pageProxies)}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var f pageFigure
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return t, fmt.Errorf("web/speed: %w: %s", err, lines.Bytes())
		}
		b.say("%s: %s %s", f.Title, number(f.Sample), f.Unit)
		t.add(f.Title, f.Unit, f.Goal, f.Sample)
	}
	return t, cmd.Wait()
}
