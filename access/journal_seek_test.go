package access_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/access"
)

// longLog returns a log of files with so many lines each, of many lengths. damaged, if not nil, may change a line.
func longLog(t *testing.T, files, lines int, damaged func(seq int, line []byte)) *access.Log {
	t.Helper()
	dir := t.TempDir()
	for file := range files {
		var content bytes.Buffer
		first := file*lines + 1
		for seq := first; seq < first+lines; seq++ {
			line, err := json.Marshal(access.Entry{Seq: uint64(seq), Time: time.Unix(int64(seq), 0).UTC(), Event: access.EventWrite,
				Outcome: access.Done, Name: fmt.Sprint("n", seq), Reason: strings.Repeat("x", seq*7%300)})
			if err != nil {
				t.Fatal(err)
			}
			if damaged != nil {
				damaged(seq, line)
			}
			content.Write(append(line, '\n'))
		}
		path := filepath.Join(dir, fmt.Sprintf("done-%020d.jsonl", first))
		if err := os.WriteFile(path, content.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return openLog(t, access.LogConfig{Dir: dir})
}

// TestReadersFindTheirPlace compares what a reader gets from any place of the log on with the whole log, also where lines
// are damaged: at their beginning, where their seq is, or after it.
func TestReadersFindTheirPlace(t *testing.T) {
	const files, lines = 3, 700
	step := 31
	if testing.Short() {
		step = 97
	}
	for name, damaged := range map[string]func(seq int, line []byte){
		"whole": nil,
		"damaged": func(seq int, line []byte) {
			if seq%13 == 0 {
				line[0] ^= 1
			}
			if seq%17 == 0 {
				line[len(line)-1] ^= 1
			}
		},
		"damaged in the middle": func(seq int, line []byte) {
			if seq > 900 && seq < 1200 {
				clear(line)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := longLog(t, files, lines, damaged)
			whole := entriesOf(t, l, access.LogQuery{})
			if len(whole) != files*lines {
				t.Fatalf("%d entries, want %d", len(whole), files*lines)
			}
			for after := 0; after <= files*lines; after += step {
				got := entriesOf(t, l, access.LogQuery{After: uint64(after)})
				if !reflect.DeepEqual(got, append([]access.Entry(nil), whole[after:]...)) {
					t.Fatalf("after %d: %d entries, want %d, or they differ", after, len(got), len(whole)-after)
				}
			}
			for _, n := range []int{1, 50, 200, len(whole), len(whole) + 1} {
				got, err := l.Last(access.LogQuery{}, n)
				if want := whole[len(whole)-min(n, len(whole)):]; err != nil || !reflect.DeepEqual(got, want) {
					t.Fatalf("the last %d: %d entries, want %d, or they differ: %v", n, len(got), len(want), err)
				}
			}
		})
	}
}

// TestLastOfFew checks that the last entries that a query selects are found wherever they are.
func TestLastOfFew(t *testing.T) {
	l := longLog(t, 2, 700, nil)
	for _, name := range []string{"n1", "n650", "n1400"} {
		got, err := l.Last(access.LogQuery{Name: name}, 5)
		if err != nil || len(got) != 1 || got[0].Name != name {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestTheEndOfALongLogCostsLittle holds what an open page needs when something has changed, and when nothing has: a log of
// thousands of lines is not read for it.
func TestTheEndOfALongLogCostsLittle(t *testing.T) {
	const lines = 3000
	l := longLog(t, 1, lines, nil)
	of := func(do func() int) float64 {
		return testing.AllocsPerRun(3, func() {
			if do() == 0 {
				t.Error("nothing was read")
			}
		})
	}
	whole := of(func() int { return len(entriesOf(t, l, access.LogQuery{})) })
	for name, do := range map[string]func() int{
		"what is new":     func() int { return len(entriesOf(t, l, access.LogQuery{After: lines - 1})) },
		"nothing new":     func() int { return 1 + len(entriesOf(t, l, access.LogQuery{After: lines})) },
		"the last twenty": func() int { last, _ := l.Last(access.LogQuery{}, 20); return len(last) },
	} {
		if cost := of(do); cost > whole/10 {
			t.Errorf("%s: %.0f allocations, and %.0f for the whole log", name, cost, whole)
		}
	}
}
