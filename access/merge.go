package access

import "iter"

// merge yields the lines of two journals in the order of their numbers.
func merge(after uint64, a, b *journal, yield func(Entry) bool) error {
	var failed error
	nextA, stopA := iter.Pull(pull(a, after, &failed))
	defer stopA()
	nextB, stopB := iter.Pull(pull(b, after, &failed))
	defer stopB()
	left, okLeft := nextA()
	right, okRight := nextB()
	for okLeft || okRight {
		if okLeft && (!okRight || left.Seq < right.Seq) {
			if !yield(left) {
				return nil
			}
			left, okLeft = nextA()
			continue
		}
		if !yield(right) {
			return nil
		}
		right, okRight = nextB()
	}
	return failed
}

func pull(j *journal, after uint64, failed *error) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if err := j.lines(after, yield); err != nil {
			*failed = err
		}
	}
}
