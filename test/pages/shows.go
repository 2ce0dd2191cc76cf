package pages

import (
	"fmt"
	"regexp"
	"strings"
)

// Shows checks that the output of a command contains every line that a page shows, in order. The output may have more
// lines. replace first replaces the page's names and ports. Numbers, hashes and column widths may differ between runs.
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
	numbers = regexp.MustCompile(`[0-9]+`)
)

func alike(line string) string {
	line = hashed.ReplaceAllString(line, "-HASH")
	return strings.Join(strings.Fields(numbers.ReplaceAllString(line, "N")), " ")
}
