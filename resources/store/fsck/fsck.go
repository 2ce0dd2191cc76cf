package fsck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/resources/store/bolt"
)

// Severity is how bad a finding is.
type Severity string

// Damage: the server does not start with it, or something is lost. Warning: it should be looked at.
const (
	Damage  Severity = "damage"
	Warning Severity = "warning"
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Severity Severity `json:"severity"`
	// Where is a file, relative to the folder, or a resource.
	Where string `json:"where"`
	// What is wrong, and Do what to do about it.
	What string `json:"what"`
	Do   string `json:"do"`
	// Repairable: Repair mends it. Repaired: it has.
	Repairable bool `json:"repairable"`
	Repaired   bool `json:"repaired,omitempty"`

	repair func() error
	// rebuilds: the repair writes the store's file anew.
	rebuilds bool
}

// Report is what a check found.
type Report struct {
	Dir string `json:"dir"`
	// Resources and Revision are those that could be read of the store; Files the files that were looked at.
	Resources int       `json:"resources"`
	Revision  uint64    `json:"revision"`
	Files     int       `json:"files"`
	Findings  []Finding `json:"findings"`

	scan *bolt.Scan
}

// Left counts the findings that were not repaired.
func (r *Report) Left() int {
	n := 0
	for i := range r.Findings {
		if !r.Findings[i].Repaired {
			n++
		}
	}
	return n
}

func (r *Report) add(f Finding) {
	f.Repairable = f.repair != nil
	r.Findings = append(r.Findings, f)
}

// Check looks at everything in a data folder. It changes nothing. ctx bounds the reading. Errors: bolt.ErrInUse while a server runs on it, fs.ErrNotExist where
// there is no folder, and the operating system's; what is wrong with the data is in the report.
func Check(ctx context.Context, dir string) (*Report, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", dir)
	}
	r := &Report{Dir: dir, Findings: []Finding{}}
	if err := r.store(ctx); err != nil {
		return nil, err
	}
	if err := r.files(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	return r, nil
}

// store checks the file, as the server would and page by page, and then what is in it. A folder without one is that of a server whose
// store is in etcd, or of one that has not run.
func (r *Report) store(ctx context.Context) error {
	path := filepath.Join(r.Dir, backend.File)
	verdict := bolt.Verify(ctx, path)
	switch {
	case errors.Is(verdict, fs.ErrNotExist):
		return nil
	case errors.Is(verdict, bolt.ErrInUse):
		return verdict
	case errors.Is(verdict, bolt.ErrFormat):
		r.add(Finding{Severity: Damage, Where: backend.File, What: verdict.Error(), Do: "start the program that wrote it, or restore a backup that this program reads"})
		return nil
	case verdict != nil && !errors.Is(verdict, bolt.ErrDamaged):
		return verdict
	}
	scan, err := bolt.ScanFile(path)
	if err != nil {
		return err
	}
	r.scan, r.Resources, r.Revision = scan, len(scan.Resources), scan.Revision
	if verdict != nil {
		r.damaged(path, verdict)
	}
	r.contents(scan.Resources, scan.Revision)
	return nil
}

// damaged adds what is wrong with the file as a whole, in the server's words first.
func (r *Report) damaged(path string, verdict error) {
	f := Finding{Severity: Damage, Where: backend.File, What: verdict.Error()}
	if r.scan.Whole {
		f.Do = "--repair writes a new file with all resources, which could be read completely; the damaged one stays beside"
		f.repair, f.rebuilds = func() error { return r.rebuild(path) }, true
	} else {
		f.Do = fmt.Sprintf("restore a backup; or --salvage FILE writes a backup of what can still be read (%d resources, and %d that only loose pages have), to be restored", len(r.scan.Resources), len(r.scan.Strays))
	}
	r.add(f)
	for _, problem := range r.scan.Problems {
		r.add(Finding{Severity: Damage, Where: backend.File, What: problem, Do: seeFirst})
	}
}
