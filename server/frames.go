package server

import "net"

// strangersRead is the number of bytes read from a stranger at once, if frames count: what arrives in one piece is read
// before it is counted.
const strangersRead = 1 << 10

// CountFrames returns an HTTP/2 connection that limits the frames read from its guest until it is proven: pings,
// resets, settings, empty and tiny frames cost more than their bytes. conn is the connection with the frames, so behind
// TLS.
func CountFrames(conn net.Conn) net.Conn {
	guest := GuestAt(conn.RemoteAddr())
	if guest == nil {
		return conn
	}
	return &framed{Conn: conn, guest: guest, frames: newFrames()}
}

// Plaintext returns l with the connections of a gRPC server without TLS: frames of strangers are counted (CountFrames),
// and idle connections hold no memory (Readable).
func Plaintext(l net.Listener) net.Listener { return plaintext{l} }

type plaintext struct{ net.Listener }

// Accept implements net.Listener.
func (l plaintext) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Readable(CountFrames(conn)), nil
}

// framed counts frames until the proof. After that, it only reads.
type framed struct {
	net.Conn
	guest  *Guest
	frames frames
}

// Read implements net.Conn.
func (f *framed) Read(b []byte) (int, error) {
	if f.guest.proven.Load() {
		return f.Conn.Read(b)
	}
	if f.guest.frames.Load() <= 0 {
		if err := f.guest.awaitProof(); err != nil {
			return 0, err
		}
		return f.Conn.Read(b)
	}
	n, err := f.Conn.Read(b[:min(len(b), strangersRead)])
	f.guest.frames.Add(-f.frames.in(b[:n]))
	return n, err
}

// NetConn returns the underlying connection.
func (f *framed) NetConn() net.Conn { return f.Conn }

// frames finds the start of frames in what an HTTP/2 client sends.
type frames struct {
	skip   int     // of the preface, or of a payload
	header [9]byte // of the frame that begins
	have   int     // of header
}

// newFrames expects the preface first.
func newFrames() frames { return frames{skip: len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")} }

// in counts the frames that begin in b, which follows the previous call's bytes.
func (f *frames) in(b []byte) (count int64) {
	for len(b) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(b))
			f.skip -= n
			b = b[n:]
			continue
		}
		n := copy(f.header[f.have:], b)
		f.have += n
		b = b[n:]
		if f.have == len(f.header) {
			count++
			f.have, f.skip = 0, int(f.header[0])<<16|int(f.header[1])<<8|int(f.header[2])
		}
	}
	return count
}
