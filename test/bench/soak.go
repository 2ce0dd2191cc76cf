package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// The mesh of the soak.
const (
	soakZones, soakProxies, soakPolicies = 50, 100, 500
	// windowCommits exceeds what a server's changelog holds: memory can only level off once it is full.
	windowCommits      = 20_000
	mostWritesASecond  = 600
	soakSamples        = 90
	mostFailedSamples  = 3    // in a row: the machine may be busy
	growthPart         = 0.10 // limit for the last third above the middle third
	reconnectsInAll    = 20
	shortestSoak       = 2 * time.Minute
	writesBeforeDelete = 5
)

// slack is the growth that small values may have on top: bytes for memory and files, a count for goroutines.
func slack(what string) float64 {
	if strings.HasSuffix(what, "goroutines") {
		return 20
	}
	return 8 * mebibyte
}

var errGrows = errors.New("something grows")

// soak loads a global, a Causeway zone, foreign zones that come and go, and proxies.
type soak struct {
	*bench
	cluster *cluster.Cluster
	servers []*cluster.Server
	samples map[string][]float64
}

func (b *bench) soak(ctx context.Context, during time.Duration) error {
	if during < shortestSoak {
		return fmt.Errorf("soaking for %s shows nothing: give at least %s", during, shortestSoak)
	}
	c, err := cluster.New(cluster.Config{Bin: b.bin, Dir: filepath.Join(b.dir, "soak")})
	if err != nil {
		return err
	}
	defer c.Close()
	s := &soak{bench: b, cluster: c, samples: map[string][]float64{}}
	if err := s.start(ctx); err != nil {
		return err
	}
	soaking, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	g, ctx := errgroup.WithContext(soaking)
	rate := min(mostWritesASecond, float64(len(s.servers))*windowCommits/(during.Seconds()/4))
	b.say("%s: %d foreign zones, %d proxies, %.0f writes a second", during, soakZones, soakProxies, rate)
	g.Go(func() error { return s.write(ctx, rate) })
	g.Go(func() error { return s.comeAndGo(ctx, during/reconnectsInAll) })
	g.Go(func() error { return s.watch(ctx, during) })
	// A deadline of one part, such as proxies that are not ready in time, does not end the soak.
	if err := g.Wait(); err != nil && soaking.Err() == nil {
		return err
	}
	return s.verdict()
}

func (s *soak) start(ctx context.Context) error {
	global, err := s.cluster.StartGlobal(ctx,
		cluster.GlobalConfig{Anonymous: true, Args: []string{"--kds-tls=false", "--log-level", "error"}})
	if err != nil {
		return err
	}
	// Flags instead of ZoneConfig.Global: the connection is plaintext, like that of the foreign zones.
	zone, err := s.cluster.StartZone(ctx, cluster.ZoneConfig{Name: "soak",
		Args: []string{"--log-level", "error", "--global", "grpc://" + global.Address("kds")}})
	if err != nil {
		return err
	}
	s.servers = []*cluster.Server{global, zone}
	if err := cluster.Until(ctx, time.Minute, "the mesh in the zone", func(ctx context.Context) error {
		return zone.API.Get(ctx, "/meshes/default", nil)
	}); err != nil {
		return err
	}
	return fill(ctx, zone, soakProxies, dataplane)
}

// write changes policies on both servers in turn, and sometimes deletes one.
func (s *soak) write(ctx context.Context, rate float64) error {
	tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		server := s.servers[i%len(s.servers)]
		var target map[string]any
		if i%3 > 0 {
			target = ofProxy(i % soakProxies)
		}
		path, doc := permission(i/2%soakPolicies, i, target)
		var err error
		if i%writesBeforeDelete == 0 {
			err = server.API.Delete(ctx, path)
		} else {
			err = server.API.Put(ctx, path, doc)
		}
		if err != nil && ctx.Err() == nil && cluster.StatusOf(err) != 404 {
			return fmt.Errorf("write %d: %w", i, err)
		}
	}
}

// comeAndGo connects zones and proxies, and reconnects them periodically.
func (s *soak) comeAndGo(ctx context.Context, every time.Duration) error {
	for ctx.Err() == nil {
		z := connectZones(ctx, s.servers[0].Address("kds"), soakZones, newMarks(), true)
		p := connectProxies(ctx, s.servers[1].Address("xds"), soakProxies, newMarks())
		err := p.waitReady()
		if err == nil {
			err = sleep(p.ctx, every)
		}
		if err == nil && z.ctx.Err() != nil && ctx.Err() == nil {
			err = context.Cause(z.ctx)
		}
		z.close()
		p.close()
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// watch takes samples, and prints the last one every minute.
func (s *soak) watch(ctx context.Context, during time.Duration) error {
	tick := time.NewTicker(during / soakSamples)
	defer tick.Stop()
	said, failed := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		line, err := s.sample(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && failed == mostFailedSamples:
			return err
		case err != nil:
			failed++
			s.say("no sample: %v", err)
			continue
		}
		failed = 0
		if time.Since(said) >= time.Minute {
			said = time.Now()
			s.say("%s", line)
		}
	}
}

func (s *soak) sample(ctx context.Context) (string, error) {
	var line strings.Builder
	for _, server := range s.servers {
		u, err := cluster.UsageOf(server.PID())
		if err != nil {
			return "", err
		}
		goroutines, err := server.Metric(ctx, "go_goroutines")
		if err != nil {
			return "", err
		}
		files, err := sizeOf(server.DataDir)
		if err != nil {
			return "", err
		}
		name := server.Name()
		s.note(name+" memory", float64(u.Resident))
		s.note(name+" goroutines", goroutines)
		s.note(name+" files", files)
		fmt.Fprintf(&line, "%s: memory %.1f MiB, %.0f goroutines, files %.1f MiB   ", name,
			float64(u.Resident)/mebibyte, goroutines, files/mebibyte)
	}
	return line.String(), nil
}

func (s *soak) note(what string, value float64) { s.samples[what] = append(s.samples[what], value) }

func sizeOf(dir string) (float64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return float64(sum), err
}

// verdict compares the last third of all samples with the middle third. The first third is the warm-up.
func (s *soak) verdict() error {
	var grows []string
	for _, what := range sortedKeys(s.samples) {
		all := s.samples[what]
		third := len(all) / 3
		if third == 0 {
			return fmt.Errorf("%s: only %d samples", what, len(all))
		}
		middle, last := medianOf(all[third:2*third]), medianOf(all[2*third:])
		fmt.Fprintf(os.Stdout, "%-20s middle third %12.0f   last third %12.0f\n", what, middle, last)
		if last > middle*(1+growthPart)+slack(what) {
			grows = append(grows, fmt.Sprintf("%s went from %.0f to %.0f", what, middle, last))
		}
	}
	if len(grows) > 0 {
		return fmt.Errorf("%w: %s", errGrows, strings.Join(grows, "; "))
	}
	return nil
}

func sortedKeys(m map[string][]float64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
