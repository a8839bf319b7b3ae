package main

import (
	"fmt"
	"os"
	"path/filepath"

	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
)

// service is a daemon as the launcher sees it.
type service struct {
	name string
	// rank orders the stop: the highest rank first, equal ranks together.
	rank int
	// ready is where the daemon must say that it is ready before arizuko is; "" for daemons
	// that arizuko can do without.
	ready config.Addr
	// token is the variable without which the daemon has nothing to do, "" if there is none.
	token string
}

func (s service) essential() bool { return s.ready != "" }

// services are all daemons in the order of their start. Whoever hands rows to another is
// stopped before it.
func services(cfg Config) []service {
	return []service{
		{name: "routd", rank: 1, ready: cfg.RoutdAddr},
		{name: "gated", rank: 2, ready: cfg.GatedAddr},
		{name: "onbod", rank: 3},
		{name: "dashd", rank: 3, ready: cfg.DashdAddr},
		{name: "teled", rank: 3, token: "TELEGRAM_BOT_TOKEN"},
		{name: "discd", rank: 3, token: "DISCORD_BOT_TOKEN"},
		{name: "slakd", rank: 3, token: "SLACK_BOT_TOKEN"},
	}
}

// choose splits all into those to start and one line for each that is left out. A program
// without a token of its own may be absent without a word; an essential one is an error.
func choose(all []service, bin string, isSet func(string) bool) (start []service, left []string, err error) {
	for _, s := range all {
		path := filepath.Join(bin, s.name)
		_, missing := os.Stat(path)
		switch {
		case s.token != "" && !isSet(s.token):
			left = append(left, fmt.Sprintf("%s: not started, %s is not set", s.name, s.token))
		case missing == nil:
			start = append(start, s)
		case s.essential():
			return nil, nil, &daemon.ExitError{Code: daemon.ExitFailure, Err: fmt.Errorf("there is no program at %s: build it first", path)}
		case s.token != "":
			left = append(left, fmt.Sprintf("%s: not started, %s is set but there is no program at %s", s.name, s.token, path))
		}
	}
	return start, left, nil
}
