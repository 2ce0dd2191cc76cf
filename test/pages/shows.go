package pages

import (
	"fmt"
	"regexp"
	"strings"
)

// Shows checks that the output of a command contains every line that a page shows, in order. The output may have more
// lines. replace first replaces the page's names and ports. Numbers, hashes, column widths and the units of durations
// may differ between runs: a machine may take minutes where another takes seconds.
func Shows(want []string, got string, replace *strings.Replacer) error {
	lines := strings.Split(got, "\n")
	for _, line := range want {
		found := false
		for len(lines) > 0 && !found {
			found = alike(replace.Replace(line)) == alike(lines[0])
			lines = lines[1:]
		}
		if !found {
			return fmt.Errorf("no line like %q in\n%s", line, got)
		}
	}
	return nil
}

var (
	hashed  = regexp.MustCompile(`-[a-z2-9]{16}\b`)
	lasting = regexp.MustCompile(`\b([0-9]+(\.[0-9]+)?(ms|[smhd]))+\b`)
	numbers = regexp.MustCompile(`[0-9]+`)
)

func alike(line string) string {
	line = lasting.ReplaceAllString(hashed.ReplaceAllString(line, "-HASH"), "AGE")
	return strings.Join(strings.Fields(numbers.ReplaceAllString(line, "N")), " ")
}
