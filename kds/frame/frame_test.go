package frame

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// golden is a frame of goldenContent, as the first version that knew frames made it.
const (
	golden        = "7ca2897753138b4bd01c589c915f007264726211cc85b580000000ffff"
	goldenContent = `{"rules":[{"default":{"allow":[{"spiffeID":{"type":"Exact","value":"spiffe://default.east.mesh.local/ns/shop/sa/cart"}}]}}]}`
	// dictionaryHash is the SHA-256 of the dictionary.
	dictionaryHash = "b96ea3544dc9009066a021efbeda47dcb6af42307c8b168bec15dff766bf0e7d"
)

// TestGolden checks that frames of all versions open: the dictionary is what it was, and a frame of the first version is
// read as it was written.
func TestGolden(t *testing.T) {
	t.Parallel()
	if sum := sha256.Sum256([]byte(dictionary)); hex.EncodeToString(sum[:]) != dictionaryHash {
		t.Errorf("the dictionary has changed: its hash is %x. A peer with the one of before cannot open what this makes: "+
			"announce another feature", sum)
	}
	old, err := hex.DecodeString(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Open(old, 1<<20); err != nil || string(got) != goldenContent {
		t.Errorf("the old frame is %q, %v", got, err)
	}
	if made := Make([]byte(goldenContent)); len(made) > len(old) {
		t.Errorf("the frame takes %d bytes, and took %d: %x", len(made), len(old), made)
	}
}

// TestWhatIsMadeOpens checks contents of any size, one after another: what is left in a writer or a reader of an earlier
// one must not show.
func TestWhatIsMadeOpens(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 63, 1000, 70_000, 1 << 20, 5} {
		content := bytes.Repeat([]byte("a policy, "), size/10+1)[:size]
		got, err := Open(Make(content), size)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
	}
}

// deflated returns a frame that says that it holds size bytes, and holds the content.
func deflated(t *testing.T, size int, content []byte) []byte {
	t.Helper()
	made := Make(content)
	_, n := protowire.ConsumeVarint(made)
	return append(protowire.AppendVarint(nil, uint64(size)), made[n:]...)
}

// TestWhatDoesNotOpen checks that each frame with a fault is refused by the name of the fault.
func TestWhatDoesNotOpen(t *testing.T) {
	t.Parallel()
	content := []byte(strings.Repeat("x", 1000))
	sound := Make(content)
	stranger := func() []byte { // made with another dictionary
		var out bytes.Buffer
		w, err := flate.NewWriterDict(&out, level, []byte(strings.Repeat("x", 100)))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(content)
		_ = w.Close()
		return append(protowire.AppendVarint(nil, 1000), out.Bytes()...)
	}()
	for name, c := range map[string]struct {
		frame []byte
		want  error
	}{
		"nothing":                 {nil, ErrInvalid},
		"a size without an end":   {[]byte{0xff, 0xff}, ErrInvalid},
		"nothing but a size":      {[]byte{0}, ErrInvalid},
		"more than the limit":     {Make([]byte(strings.Repeat("x", 2001))), ErrLarge},
		"a size beyond all":       {deflated(t, 1<<62, content), ErrLarge},
		"less than it says":       {deflated(t, 1001, content), ErrSize},
		"more than it says":       {deflated(t, 999, content), ErrSize},
		"cut off":                 {sound[:len(sound)-7], ErrSize},
		"no end":                  {sound[:len(sound)-1], ErrInvalid},
		"something behind":        {append(bytes.Clone(sound), 1), ErrInvalid},
		"no deflated data":        {append(protowire.AppendVarint(nil, 9), 0xff, 0xff, 0xff, 0xff), ErrInvalid},
		"of another dictionary":   {stranger, nil},
		"as much as it can, said": {append(protowire.AppendVarint(nil, mostOfOne+1), 0), ErrLarge},
	} {
		got, err := Open(c.frame, 2000)
		if c.want == nil { // it cannot be told, and must not be what was meant
			if err == nil && bytes.Equal(got, content) {
				t.Errorf("%s: it was opened", name)
			}
			continue
		}
		if !errors.Is(err, c.want) || !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %d bytes, %v, want %v", name, len(got), err, c.want)
		}
	}
}

// TestBombs checks that a frame costs its reader no more than its limit, whatever it holds and whatever it says.
func TestBombs(t *testing.T) {
	const most = 1 << 20
	zeros := make([]byte, 16<<20)
	for name, bomb := range map[string][]byte{
		"that says so":  Make(zeros),
		"that does not": deflated(t, most, zeros),
		"of a kilobyte": deflated(t, 1<<10, zeros),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if got, err := Open(bomb, most); !errors.Is(err, ErrInvalid) {
			t.Errorf("a bomb %s: got %d bytes, %v", name, len(got), err)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > most+128<<10 {
			t.Errorf("a bomb %s of %d bytes took %d bytes", name, len(bomb), took)
		}
	}
}

// TestFramesLeaveLittleGarbage bounds the allocations of a frame whose writer or reader comes from a pool. The race
// detector makes pools lose some of what they are given, so the frame with the fewest allocations counts.
func TestFramesLeaveLittleGarbage(t *testing.T) {
	fewest := func(f func()) float64 {
		n := testing.AllocsPerRun(1, f)
		for range 30 {
			n = min(n, testing.AllocsPerRun(1, f))
		}
		return n
	}
	content := []byte(goldenContent)
	made := Make(content)
	if n := fewest(func() { Make(content) }); n > 6 {
		t.Errorf("to make a frame makes %v objects", n)
	}
	if n := fewest(func() {
		if _, err := Open(made, 1<<20); err != nil {
			t.Fatal(err)
		}
	}); n > 4 {
		t.Errorf("to open a frame makes %v objects", n)
	}
}

// FuzzOpen opens what a peer could send: it never takes more than its limit, and what it takes makes a frame again.
func FuzzOpen(f *testing.F) {
	f.Add(Make([]byte(goldenContent)))
	f.Add(Make(nil))
	f.Add([]byte{0})
	f.Add(append(protowire.AppendVarint(nil, 1<<40), Make(make([]byte, 1<<10))...))
	f.Fuzz(func(t *testing.T, raw []byte) {
		const most = 1 << 16
		content, err := Open(raw, most)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%v", err)
			}
			return
		}
		if len(content) > most {
			t.Errorf("%d bytes", len(content))
		}
		if again, err := Open(Make(content), most); err != nil || !bytes.Equal(again, content) {
			t.Errorf("what was opened does not make a frame: %v", err)
		}
	})
}

func ExampleMake() {
	content, err := Open(Make([]byte("spiffe://default")), 1<<10)
	fmt.Println(string(content), err)
	// Output: spiffe://default <nil>
}
