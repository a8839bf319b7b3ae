package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
)

// service is a daemon as the launcher sees it.
type service struct {
	name string
	// rank is the order of stopping: the highest rank first, equal ranks together.
	rank int
	// ready is the address of an essential daemon, which must be ready before arizuko is; "" for
	// others.
	ready config.Addr
	// token is the variable that the daemon needs to start, "" if there is none.
	token string
}

func (s service) essential() bool { return s.ready != "" }

// services are all daemons in the order of their start. Those that write rows for gated are stopped
// before it, and gated before routd, which it asks.
func services(cfg Config) (all []service) {
	const last = 3
	rank := map[string]int{"routd": 1, "gated": 2}
	ready := map[string]config.Addr{"routd": cfg.RoutdAddr, "gated": cfg.GatedAddr, "dashd": cfg.DashdAddr}
	for _, name := range daemon.Suite() {
		all = append(all, service{
			name: name, rank: cmp.Or(rank[name], last), ready: ready[name], token: daemon.TokenVariable(name),
		})
	}
	return all
}

// choose splits all into those to start and one line for each that is skipped. A program without a
// token may be missing, and is skipped silently; a missing essential one is an error.
func choose(all []service, bin string, isSet func(string) bool) (start []service, skipped []string, err error) {
	for _, s := range all {
		path := filepath.Join(bin, s.name)
		_, missing := os.Stat(path)
		switch {
		case s.token != "" && !isSet(s.token):
			skipped = append(skipped, fmt.Sprintf("%s: not started, %s is not set", s.name, s.token))
		case missing == nil:
			start = append(start, s)
		case s.essential():
			return nil, nil, &daemon.ExitError{Code: daemon.ExitFailure, Err: fmt.Errorf("no program at %s: build it first", path)}
		case s.token != "":
			skipped = append(skipped, fmt.Sprintf("%s: not started, %s is set but there is no program at %s", s.name, s.token, path))
		}
	}
	return start, skipped, nil
}
