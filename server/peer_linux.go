package server

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// The connection tables of this network namespace. A dual-stack program's socket to 127.0.0.1 is in the second.
var socketTables = []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"}

const (
	// lookups is how often the tables are read: a read may miss a connection while others open and close.
	lookups = 3
	// nobody is also the kernel's number for any user outside of a user namespace.
	nobody = 65534
)

// checkPeer finds the socket at the other end: its own address is there, and its peer's is here. It asks the kernel for
// that socket, and reads the tables if the kernel does not support that.
func checkPeer(there, here netip.AddrPort) error {
	uid, err := askOwner(unmapped(there), unmapped(here))
	if err != nil && !errors.Is(err, errNoOwner) {
		uid, err = findOwner(there, here)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the caller is unknown: %w", err)
	case uid == 0 || uid == os.Geteuid() && uid != nobody:
		return nil
	}
	return ErrPeer
}

// errNoOwner reports that no program holds the other end any more.
var errNoOwner = errors.New("the other end of the connection is closed")

func findOwner(local, remote netip.AddrPort) (uid int, err error) {
	read := false
	for range lookups {
		for _, table := range socketTables {
			uid, found, err := ownerIn(table, local, remote)
			if errors.Is(err, os.ErrNotExist) {
				continue // a machine without IPv6
			}
			if err != nil || found {
				return uid, err
			}
			read = true
		}
	}
	if !read {
		return 0, errors.New("there is no /proc/self/net/tcp")
	}
	return 0, errNoOwner
}

// Fields of a line, and values of a connection that both ends hold. A connection that its program has closed has no
// owner, and the kernel shows root's number.
const (
	fieldLocal, fieldRemote, fieldState, fieldUID, fieldInode = 1, 2, 3, 7, 9

	stateEstablished = "01"
	noInode          = "0"
)

func ownerIn(table string, local, remote netip.AddrPort) (uid int, found bool, err error) {
	f, err := os.Open(table)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	ports := fmt.Sprintf(":%04X ", local.Port())
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), ports) {
			continue
		}
		fields := strings.Fields(lines.Text())
		if len(fields) <= fieldInode || fields[fieldState] != stateEstablished || fields[fieldInode] == noInode {
			continue
		}
		if parseSocket(fields[fieldLocal]) == unmapped(local) && parseSocket(fields[fieldRemote]) == unmapped(remote) {
			uid, err := strconv.Atoi(fields[fieldUID])
			return uid, err == nil, err
		}
	}
	return 0, false, lines.Err()
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// parseSocket parses an address from the tables: 32-bit words in the machine's byte order, then the port. It returns
// the zero AddrPort for malformed text.
func parseSocket(text string) netip.AddrPort {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	number, errPort := strconv.ParseUint(port, 16, 16)
	if err != nil || errPort != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	address, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(address.Unmap(), uint16(number))
}
