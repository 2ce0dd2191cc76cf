package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// patience is how long a call may take.
const patience = 10 * time.Second

// set tells the server in the same pod what to do: NAME=VALUE, and so on.
func set(ctx context.Context, args []string) error {
	return get(ctx, []string{"http://" + control + "/set?" + strings.Join(args, "&")})
}

// get prints the status of each URL, and what it answers.
func get(ctx context.Context, urls []string) error {
	for _, url := range urls {
		status, body, err := ask(ctx, http.DefaultClient, url)
		if err != nil {
			return err
		}
		fmt.Println(status, strings.TrimSpace(body))
	}
	return nil
}

func ask(ctx context.Context, client *http.Client, url string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// line dials an address, and prints the first line that it says.
func line(ctx context.Context, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", args[0])
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	text, err := bufio.NewReader(c).ReadString('\n')
	fmt.Print(text)
	return err
}

// lookup prints what the resolver answers: A NAME, SRV NAME, or PTR ADDRESS. A resolver that only speaks TCP is asked
// with TCP before them.
func lookup(ctx context.Context, args []string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	resolver := &net.Resolver{PreferGo: true}
	if args[0] == "TCP" {
		args = args[1:]
		resolver.Dial = func(ctx context.Context, _, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
	}
	if len(args) != 2 {
		return errors.New("want A, SRV or PTR, and a name")
	}
	var out []string
	switch args[0] {
	case "A":
		out, err = resolver.LookupHost(ctx, args[1])
	case "PTR":
		out, err = resolver.LookupAddr(ctx, args[1])
	case "SRV":
		var all []*net.SRV
		_, all, err = resolver.LookupSRV(ctx, "", "", args[1])
		for _, one := range all {
			out = append(out, fmt.Sprint(one.Target, ":", one.Port))
		}
	}
	slices.Sort(out)
	fmt.Println(strings.Join(out, " "))
	return err
}

// load sends requests at a rate, URL RATE SECONDS, each a second time only if its connection could not be made, and prints
// that it begins, and at the end how many there were, what failed, and how long they took. Whatever it misses while it does
// not run, it sends as soon as it does.
func load(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return errors.New("want URL, requests a second, and seconds")
	}
	rate, err1 := strconv.Atoi(args[1])
	seconds, err2 := strconv.Atoi(args[2])
	if err := errors.Join(err1, err2); err != nil || rate < 1 {
		return errors.Join(err, errors.New("want a rate of at least 1"))
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	var mu sync.Mutex
	failed, took := map[string]int{}, []time.Duration{}
	one := func() {
		begin := time.Now()
		status, body, err := ask(context.WithoutCancel(ctx), client, args[0])
		mu.Lock()
		defer mu.Unlock()
		if took = append(took, time.Since(begin)); err != nil || status != http.StatusOK {
			failed[fmt.Sprintf("%d %.200q %v", status, body, err)]++
		}
	}
	fmt.Print(begins)
	begun, sent := time.Now(), 0
	ticker, end := time.NewTicker(time.Second/time.Duration(rate)), time.After(time.Duration(seconds)*time.Second)
	defer ticker.Stop()
	var all sync.WaitGroup
	for more := true; more; {
		select {
		case <-ticker.C:
			for due := int(time.Since(begun) * time.Duration(rate) / time.Second); sent < due; sent++ {
				all.Go(one)
			}
		case <-end:
			more = false
		case <-ctx.Done():
			more = false
		}
	}
	all.Wait()
	slices.Sort(took)
	fmt.Println("requests", len(took), "failed", total(failed), "p50", took[len(took)/2], "p99", took[len(took)*99/100])
	for what, n := range failed {
		fmt.Println(n, what)
	}
	return nil
}

// begins is what load prints first.
const begins = "begins\n"

func total(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
