package main

import "testing"

// What a server listens on says how to reach it from beside it.
func TestBeside(t *testing.T) {
	for listens, want := range map[string]string{
		":5681": "https://127.0.0.1:5681", "0.0.0.0:5681": "https://127.0.0.1:5681", "[::]:5681": "https://127.0.0.1:5681",
		"127.0.0.1:15681": "http://127.0.0.1:15681", "localhost:1": "http://localhost:1", "[::1]:1": "http://[::1]:1",
		"192.0.2.1:5681": "https://192.0.2.1:5681", "": "", "nonsense": "",
	} {
		if got := beside(listens); got != want {
			t.Errorf("%q: %q, want %q", listens, got, want)
		}
	}
}
