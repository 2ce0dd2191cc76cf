package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/resources"
)

// fileLook is the interval at which the files that MeshIdentities name are read again. Without such files, nothing is
// read.
const fileLook = 30 * time.Second

// provide ensures that the authority in a MeshIdentity's files signs or is the next to sign. If it already is, provide
// writes nothing. Errors wrap ErrProvided if the files are at fault.
func (p *Publisher) provide(ctx context.Context, meshDomain string, ask *wanted) error {
	certificates, err := readSource("certificate", ask.ca.Certificate, false)
	if err != nil {
		return err
	}
	key, err := readSource("privateKey", ask.ca.PrivateKey, true)
	if err != nil {
		return err
	}
	_, err = p.Authorities.Import(ctx, meshDomain, &Provision{Certificates: certificates, Key: key,
		AllowSelfSigned: ask.selfSigned})
	if errors.Is(err, ErrRotation) {
		return nil // another is the next: this one is checked again once that signs
	}
	return err
}

// readSource reads a file on the zone's machine. It refuses a key that every user may read, and any file that every
// user may write.
func readSource(name string, source *resources.SecureDataSource, secret bool) ([]byte, error) {
	if source == nil || source.Type != resources.DataSourceFile || source.File == nil {
		return nil, fmt.Errorf("%w: ca.%s: want a file", ErrProvided, name)
	}
	read := credential.Public
	if secret {
		read = credential.Secret
	}
	text, err := read("ca."+name, source.File.Path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProvided, err)
	}
	return text, nil
}

// Problem returns the reason why the authority that MeshIdentities provide for a mesh domain is refused. It is empty if
// the authority is accepted or none is provided.
func (p *Publisher) Problem(meshDomain string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.problems[meshDomain]
}

// settle makes the authorities of a mesh domain that MeshIdentities require. Faulty files do not stop other
// publications.
func (p *Publisher) settle(ctx context.Context, meshDomain string, ask *wanted) error {
	if ask.ca == nil {
		p.note(meshDomain, nil)
		if meshDomain == MeshOfDomain(meshDomain) {
			return nil
		}
		return p.Authorities.want(ctx, meshDomain)
	}
	err := p.provide(ctx, meshDomain, ask)
	if p.note(meshDomain, err) {
		p.Log.Error("cannot use the authority that a MeshIdentity provides; trying again", "mesh", meshDomain, "error", err)
	}
	if errors.Is(err, ErrProvided) {
		return nil
	}
	return err
}

// note records a problem and reports whether it is new.
func (p *Publisher) note(meshDomain string, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.problems[meshDomain]
	if p.problems == nil {
		p.problems = map[string]string{}
	}
	delete(p.problems, meshDomain)
	if err != nil {
		p.problems[meshDomain] = err.Error()
	}
	return err != nil && before != err.Error()
}

// watchFiles records whether a mesh has files to read again.
func (p *Publisher) watchFiles(mesh string, asked map[string]*wanted) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files = slices.DeleteFunc(p.files, func(m string) bool { return m == mesh })
	for _, ask := range asked {
		if ask.ca != nil {
			p.files = append(p.files, mesh)
			return
		}
	}
}

func (p *Publisher) watched() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.files)
}
