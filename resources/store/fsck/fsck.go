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

// Severity is the severity of a finding.
type Severity string

// Damage means that the server does not start or that data is lost. Warning means that an operator should look at it.
const (
	Damage  Severity = "damage"
	Warning Severity = "warning"
)

// Finding is one problem.
type Finding struct {
	Severity Severity `json:"severity"`
	// Where is a file, relative to the folder, or a resource.
	Where string `json:"where"`
	// What describes the problem, Do the remedy.
	What string `json:"what"`
	Do   string `json:"do"`
	// Repairable reports whether Repair can fix it, Repaired that it has.
	Repairable bool `json:"repairable"`
	Repaired   bool `json:"repaired,omitempty"`

	repair func() error
	// rebuilds reports whether the repair rewrites the file of the store.
	rebuilds bool
}

// Report is the result of a check.
type Report struct {
	Dir string `json:"dir"`
	// Resources and Revision are those that could be read from the store. Files counts the checked files.
	Resources int       `json:"resources"`
	Revision  uint64    `json:"revision"`
	Files     int       `json:"files"`
	Findings  []Finding `json:"findings"`

	scan            *bolt.Scan
	systemNamespace string
}

// Unrepaired counts the findings that are not repaired.
func (r *Report) Unrepaired() int {
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

// Check checks everything in the data folder of a server with this system namespace, and changes nothing. ctx bounds
// the reading. Errors: bolt.ErrInUse while a server runs on it, fs.ErrNotExist if there is no folder, and the operating
// system's. Problems of the data are in the report.
func Check(ctx context.Context, dir, systemNamespace string) (*Report, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", dir)
	}
	r := &Report{Dir: dir, Findings: []Finding{}, systemNamespace: systemNamespace}
	if err := r.store(ctx); err != nil {
		return nil, err
	}
	if err := r.files(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	return r, nil
}

// store checks the file, first as the server does and then page by page, and then its contents. A folder without the
// file belongs to a server with its store in etcd, or to one that has never run.
func (r *Report) store(ctx context.Context) error {
	path := filepath.Join(r.Dir, backend.File)
	verdict := bolt.Verify(ctx, path)
	switch {
	case errors.Is(verdict, fs.ErrNotExist):
		return nil
	case errors.Is(verdict, bolt.ErrInUse):
		return verdict
	case errors.Is(verdict, bolt.ErrFormat):
		r.add(Finding{Severity: Damage, Where: backend.File, What: verdict.Error(),
			Do: "start the program that wrote it, or restore a backup that this program reads"})
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
	if scan.LostMeta {
		r.lostMeta(verdict == nil)
	}
	r.contents(scan.Resources, scan.Revision)
	return nil
}

// lostMeta adds the finding that the last write may be missing. If that is all, the server starts.
func (r *Report) lostMeta(starts bool) {
	f := Finding{Severity: Warning, Where: backend.File, Do: seeFirst,
		What: fmt.Sprintf("one of the two pages that lead to the data is damaged: the last write may be missing; the file is at revision %d",
			r.scan.Revision)}
	if starts {
		f.Do = "check the disk; look for changes of a higher revision in the audit log (causewayctl audit -o json), and make them again"
	}
	r.add(f)
}

// damaged adds the findings about the file as a whole, starting with the server's own error.
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
