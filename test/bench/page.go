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

// pageFigure is one measured value, as web/speed prints it: a line of JSON each. Those with a moment follow each other.
type pageFigure struct {
	Title, Unit, Moment string
	Goal, Sample        float64
}

// pageRun is what is measured of the page.
type pageRun struct {
	mesh pageMesh
	// steps are those of web/speed, all when empty.
	steps string
	// open, if not 0, is how long pages stay open: then only their memory is measured.
	open time.Duration
}

func pageOf(o options) pageRun {
	run := pageRun{mesh: pageZones, steps: o.steps, open: o.open}
	if o.quick {
		run.mesh = fewPageZones
	}
	return run
}

const (
	// pageConnects bounds how long all zones take to connect and to send what they have. A machine that does other work,
	// too, takes minutes.
	pageConnects = 20 * time.Minute
	// pageTakes bounds everything else.
	pageTakes = 20 * time.Minute
)

// measurePage opens the page of a global in a real Chromium, with the whole mesh behind it. web/speed is what clicks and
// measures, as a person would.
func (b *bench) measurePage(ctx context.Context, run pageRun) (*table, error) {
	ctx, cancel := context.WithTimeout(ctx, pageConnects+pageTakes+run.open)
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
	b.say("page: %s", run.mesh)
	if err := fill(ctx, g, run.mesh.policies(), run.mesh.permission); err != nil {
		return nil, err
	}
	b.say("page: %d zones connect", run.mesh)
	z := connectOffering(ctx, g.Address("kds"), int(run.mesh), newMarks())
	defer z.close()
	err = z.waitSynced(pageConnects, run.mesh.policies())
	if err == nil {
		err = waitListed(z.ctx, g, run.mesh)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.Join(z.reasons(), "; "))
	}
	b.say("page: Chromium; the global is %s, process %d", g.API.URL(), g.PID())
	if run.open > 0 {
		return b.keepOpen(z, g, run)
	}
	t := &table{title: "The page of a global: " + run.mesh.String()}
	return t, b.click(z.ctx, g, run, func(f pageFigure) { t.add(f.Title, f.Unit, f.Goal, f.Sample) })
}

// waitListed returns once the global lists all services and proxies of the zones, and their insights.
func waitListed(ctx context.Context, g *cluster.Server, mesh pageMesh) error {
	return cluster.Until(ctx, pageConnects, "the services and proxies of all zones", func(ctx context.Context) error {
		for path, want := range map[string]int{"/meshservices": mesh.services(), "/dataplanes": mesh.proxies(), "/zones": int(mesh)} {
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
		if online := insight.Dataplanes["standard"].Online; online != mesh.proxies() {
			return fmt.Errorf("%d of %d proxies are online", online, mesh.proxies())
		}
		return nil
	})
}

// click runs web/speed, and calls take with each figure that it prints.
func (b *bench) click(ctx context.Context, g *cluster.Server, run pageRun, take func(pageFigure)) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, ".tools", "bin", "node"), "speed/main.ts")
	cmd.Dir, cmd.Stderr = filepath.Join(root, "web"), os.Stderr
	cmd.Env = append(os.Environ(), "ADDRESS="+g.API.URL(), "PID="+strconv.Itoa(g.PID()), "STEPS="+run.steps,
		"ZONES="+strconv.Itoa(int(run.mesh)), "POLICIES="+strconv.Itoa(run.mesh.policies()),
		fmt.Sprintf("OPEN_SECONDS=%d", int(run.open.Seconds())))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("node: %w: make bench-page installs it", err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var f pageFigure
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return fmt.Errorf("web/speed: %w: %s", err, lines.Bytes())
		}
		b.say("%s %s: %s %s", f.Title, f.Moment, number(f.Sample), f.Unit)
		take(f)
	}
	return cmd.Wait()
}
