package resources

import (
	"fmt"
	"strings"
)

// Suggestion returns ", did you mean X?" for the known name nearest to name, or a list of the known names if none is
// near.
func Suggestion(name string, known []string) string {
	best, distance := "", len(name)/3+2
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), strings.ToLower(k), distance); d < distance {
			best, distance = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf(", did you mean %s?", best)
	case len(known) == 0:
		return ""
	case len(known) <= 12:
		return ", want one of " + strings.Join(known, ", ")
	default:
		return ""
	}
}

// EditDistance returns the number of insertions, deletions and replacements that turn a into b, ignoring case. It may
// stop at limit.
func EditDistance(a, b string, limit int) int {
	return editDistance(strings.ToLower(a), strings.ToLower(b), limit)
}

// editDistance returns the number of insertions, deletions and replacements that turn a into b. It may stop at limit.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit || len(a) > MaxNameBytes || len(b) > MaxNameBytes {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
