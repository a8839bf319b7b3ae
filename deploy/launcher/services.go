package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

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
	// needs are the variables without which the daemon is not started. A program that needs some may be missing.
	needs []string
	// account is that of a further account, nil for others.
	account *daemon.Account
}

// program is the name of the service's program.
func (s service) program() string {
	if s.account != nil {
		return s.account.Name
	}
	return s.name
}

// environ is the service's environment: the launcher's without the secrets of others.
func (s service) environ(launcher []string) []string {
	if s.account != nil {
		return s.account.Environ
	}
	return daemon.Environ(s.name, launcher)
}

func (s service) essential() bool { return s.ready != "" }

// services are all daemons in the order of their start, those of further accounts at last. Those that write rows
// for gated are stopped before it, and gated before routd, which it asks.
func services(cfg Config, accounts []daemon.Account) (all []service) {
	const last = 3
	rank := map[string]int{"routd": 1, "gated": 2}
	ready := map[string]config.Addr{"routd": cfg.RoutdAddr, "gated": cfg.GatedAddr, "dashd": cfg.DashdAddr}
	for _, name := range daemon.Suite() {
		s := service{name: name, rank: cmp.Or(rank[name], last), ready: ready[name]}
		if token := daemon.TokenVariable(name); token != "" {
			s.needs = []string{token}
		}
		all = append(all, s)
	}
	for i := range accounts {
		a := &accounts[i]
		all = append(all, service{
			name: a.Daemon, rank: last, account: a, needs: []string{a.Token + a.Suffix, a.AddrVariable() + a.Suffix},
		})
	}
	return all
}

// choose splits all into those to start and one line for each that is skipped. A program that needs no
// variable may be missing, and is skipped silently; a missing essential one is an error.
func choose(all []service, bin string, isSet func(string) bool) (start []service, skipped []string, err error) {
	for _, s := range all {
		path := filepath.Join(bin, s.program())
		_, missing := os.Stat(path)
		unset := slices.IndexFunc(s.needs, func(name string) bool { return !isSet(name) })
		switch {
		case unset >= 0:
			skipped = append(skipped, fmt.Sprintf("%s: not started, %s is not set", s.name, s.needs[unset]))
		case missing == nil:
			start = append(start, s)
		case s.essential():
			return nil, nil, &daemon.ExitError{Code: daemon.ExitFailure,
				Err: fmt.Errorf("no program at %s: build it first", path)}
		case s.needs != nil:
			skipped = append(skipped, fmt.Sprintf("%s: not started, %s is set but there is no program at %s", s.name,
				s.needs[0], path))
		}
	}
	return start, skipped, nil
}
