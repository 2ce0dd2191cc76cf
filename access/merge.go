package access

import "iter"

// merge yields the lines of two journals in the order of their numbers, without some of those that the sieve rules out.
func merge(after uint64, of sieve, a, b *journal, yield func(Entry) bool) error {
	var failed error
	nextA, stopA := iter.Pull(pull(a, after, of, &failed))
	defer stopA()
	nextB, stopB := iter.Pull(pull(b, after, of, &failed))
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

func pull(j *journal, after uint64, of sieve, failed *error) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if err := j.lines(after, of, yield); err != nil {
			*failed = err
		}
	}
}
