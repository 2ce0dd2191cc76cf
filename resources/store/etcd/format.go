package etcd

import (
	"context"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources/store"
)

// ensureFormat makes sure that the keys below the prefix have the format of this program: it marks an empty prefix as
// its own, migrates older formats, and refuses newer ones.
func (s *Store) ensureFormat(ctx context.Context) error {
	for {
		format, program, err := s.format(ctx)
		if err != nil {
			return err
		}
		if format == s.keys.version {
			return s.sign(ctx, program)
		}
		if err := s.migrate(ctx, format); err != nil {
			return err
		}
	}
}

// format returns the format below the prefix, ours or an older one, and the version of the program that last opened it.
func (s *Store) format(ctx context.Context) (format int, program string, err error) {
	asked, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	name := s.keys.format()
	r, err := s.client.Txn(asked).
		If(clientv3.Compare(clientv3.CreateRevision(name), "=", 0)).
		Then(clientv3.OpPut(name, strconv.Itoa(s.keys.version))).
		Else(clientv3.OpGet(name), clientv3.OpGet(s.keys.program())).Commit()
	if err != nil {
		return 0, "", s.config.unreachable(ctx, err)
	}
	if r.Succeeded {
		return s.keys.version, "", nil
	}
	format, err = strconv.Atoi(valueOf(r, 0))
	if err != nil || format < 1 {
		return 0, "", fmt.Errorf("%s is %q, not a format version: is %s the prefix of something else?", name,
			valueOf(r, 0), s.config.Prefix)
	}
	if format > s.keys.version {
		return 0, "", s.anotherFormat(valueOf(r, 0), valueOf(r, 1))
	}
	return format, valueOf(r, 1), nil
}

// anotherFormat returns the error for a format that this program does not write.
func (s *Store) anotherFormat(format, program string) error {
	n, err := strconv.Atoi(format)
	if err != nil {
		return fmt.Errorf("%s is %q, which it was not: somebody else writes below %s", s.keys.format(), format,
			s.config.Prefix)
	}
	return store.NewerFormat(ErrFormat, s.config.Prefix, n, s.keys.version, program)
}

// unknownType returns the error for a resource of a type that this program does not know, as a program wrote it that
// does.
func (s *Store) unknownType(err error, program string) error {
	needed := "use that one"
	if program != "" && program != s.config.Program {
		needed = fmt.Sprintf("use version %q, or a newer one", program)
	}
	return fmt.Errorf("%s: resource %w: %w: a newer program wrote it: %s; nothing is lost", s.config.Prefix, err, ErrFormat, needed)
}

// outdate ends writing and following permanently: a newer program has migrated the store. The view keeps its contents.
func (s *Store) outdate(format, program string) error {
	err := fmt.Errorf("%w: %w", store.ErrUnavailable, s.anotherFormat(format, program))
	s.health.end(err)
	s.log.Error("store: "+err.Error(), "prefix", s.config.Prefix)
	return err
}

// sign records the program that has the store, so that an older program can name it.
func (s *Store) sign(ctx context.Context, signed string) error {
	if s.config.Program == "" || s.config.Program == signed {
		return nil
	}
	asked, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	_, err := s.client.Txn(asked).
		If(clientv3.Compare(clientv3.Value(s.keys.format()), "=", strconv.Itoa(s.keys.version))).
		Then(clientv3.OpPut(s.keys.program(), s.config.Program)).Commit()
	if err != nil {
		return s.config.unreachable(ctx, err)
	}
	return nil
}
